//! Reads an answer from its JSON, as another process has sent it.
//!
//! The JSON of an answer has less than the answer: a row with chosen fields has no grain, and the state of a row is
//! there only if it was asked for.

use std::borrow::Cow;

use grainstore_format::{
    ContentAddress, DeviceProfile, Grain, GrainState, Map, REVIEW_FLAG, Value, VerificationStatus,
    parse_json,
};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    Answer, BatchSlot, BatchSlots, FRESH, FieldChange, GroupCount, LINEARIZABLE, RecallAnswer,
    Response, ResultRow, SourceAnswer, SourceAnswers, VERSION, Version,
};

type Result<T> = serde_json::Result<T>;

impl Response {
    /// Reads an answer from the JSON it is [serialized](serde::Serialize) to.
    ///
    /// A row of chosen fields has another grain in place of its grain, since the JSON does not tell it; and a row
    /// that does not tell its state counts as verified where its grain demands a review and awaits none.
    ///
    /// ```
    /// use grainstore_cal::{Answer, Response};
    ///
    /// let json = r#"{"_cal":{"version":"1.0","statement_type":"exists","tier":0,"query_hash":"sha256:00",
    ///     "duration_ms":1,"budget":{"tokens_used":0,"grains_returned":0,"grains_scanned":1},"warnings":[]},
    ///     "exists":true}"#;
    /// let response = Response::from_json(json)?;
    /// assert!(matches!(response.answer, Answer::Exists { exists: true }));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// For what is no answer.
    pub fn from_json(json: &str) -> Result<Self> {
        let mut members = Members::read(json)?;
        let meta = members.take("_cal")?;
        Ok(Self { meta, answer: answer(members)? })
    }
}

/// The version of an answer, which must be that of this program.
pub(super) fn own_version<'de, D: Deserializer<'de>>(
    source: D,
) -> std::result::Result<&'static str, D::Error> {
    match String::deserialize(source)?.as_str() {
        VERSION => Ok(VERSION),
        other => {
            Err(D::Error::custom(format_args!("answers have version {VERSION}, not {other:?}")))
        }
    }
}

/// One of the words that answers have in their meta data.
pub(super) fn known<'de, D: Deserializer<'de>>(
    source: D,
) -> std::result::Result<Option<&'static str>, D::Error> {
    let told = Option::<String>::deserialize(source)?;
    let known = |word: String| {
        let known = [LINEARIZABLE, FRESH].into_iter().find(|known| *known == word);
        known.ok_or_else(|| D::Error::custom(format_args!("{word:?} is told of no answer")))
    };
    told.map(known).transpose()
}

/// The members of an object, in order.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(source: D) -> std::result::Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        source.deserialize_map(All)
    }
}

impl Members {
    fn read(json: &str) -> Result<Self> {
        serde_json::from_str(json)
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(member, _)| member == name)
    }

    fn raw(&mut self, name: &str) -> Option<Box<RawValue>> {
        let at = self.0.iter().position(|(member, _)| member == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// A member that must be there.
    fn take<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T> {
        match self.raw(name) {
            Some(raw) => serde_json::from_str(raw.get()),
            None => Err(serde_json::Error::missing_field(name)),
        }
    }

    /// A member that may be left out or null.
    fn find<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<Option<T>> {
        self.raw(name).map_or(Ok(None), |raw| serde_json::from_str(raw.get()))
    }

    /// A list whose items are read one by one.
    fn list<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T>,
    ) -> Result<Vec<T>> {
        let items: Vec<Box<RawValue>> = self.take(name)?;
        items.iter().map(|item| read(item)).collect()
    }

    fn map(&mut self, name: &'static str) -> Result<Option<Map>> {
        self.raw(name).map(|raw| map(&raw)).transpose()
    }
}

fn answer(mut of: Members) -> Result<Answer> {
    if of.has("branch") {
        let branch = of.take("branch")?;
        return Ok(Answer::Coalesced { branch, answer: Box::new(answer(of)?) });
    }
    let listed = of.0.iter().map(|(name, _)| name.as_str()).find_map(|name| {
        let known =
            ["results", "groups", "values", "versions", "diff", "batch", "formatted_context"];
        known.into_iter().find(|known| *known == name)
    });
    Ok(match listed {
        Some("results") => Answer::Grains(grains(of)?),
        Some("groups") => Answer::Groups {
            groups: of.list("groups", group)?,
            total: of.take("total")?,
            formatted: of.find("formatted")?,
        },
        Some("values") => Answer::Values {
            values: of.list("values", value)?,
            total: of.find("total")?,
            formatted: of.find("formatted")?,
        },
        Some("versions") => {
            Answer::Versions { versions: of.list("versions", version)?, total: of.take("total")? }
        }
        Some("diff") => Answer::Diff {
            diff: of.list("diff", change)?,
            requires_human_review: of.find(REVIEW_FLAG)?.unwrap_or_default(),
        },
        Some("batch") => Answer::Batch { batch: slots(of.take("batch")?)? },
        Some(_) => Answer::Assembly {
            name: of.find("name")?,
            formatted_context: of.take("formatted_context")?,
            sources: sources(of.take("sources")?)?,
        },
        None => single(of)?,
    })
}

/// An answer without a list.
fn single(mut of: Members) -> Result<Answer> {
    Ok(if of.has("count") {
        Answer::Count { count: of.take("count")?, formatted: of.find("formatted")? }
    } else if of.has("plan") {
        Answer::Plan { plan: of.take("plan")? }
    } else if of.has("description") {
        Answer::Description { description: of.take("description")? }
    } else if of.has("exists") {
        Answer::Exists { exists: of.take("exists")? }
    } else if of.has("superseded") {
        Answer::Superseded {
            content_address: of.take("content_address")?,
            superseded: of.take("superseded")?,
        }
    } else if of.has("template") {
        let (template, extends) = (of.take("template")?, of.find("extends")?);
        Answer::Defined { template, extends, kept: of.take("kept")? }
    } else {
        Answer::Added { content_address: of.take("content_address")? }
    })
}

fn grains(mut of: Members) -> Result<RecallAnswer> {
    Ok(RecallAnswer {
        results: of.list("results", row)?,
        total: of.find("total")?,
        next_cursor: of.find("next_cursor")?,
        formatted: of.find("formatted")?,
        summarized: of.find("summarized")?,
        explanation: of.find("explanation")?,
    })
}

fn row(raw: &RawValue) -> Result<ResultRow> {
    let mut of = Members::read(raw.get())?;
    let told = of.raw("grain");
    let awaits_review: bool = of.find(REVIEW_FLAG)?.unwrap_or_default();
    let (grain, selected) = match &told {
        None => (untold(awaits_review)?, None),
        Some(told) => match Grain::from_json(told.get()) {
            Ok(grain) => (grain, None),
            Err(_) => (untold(awaits_review)?, Some(map(told)?)),
        },
    };
    let state: Option<GrainState> = of.find("state")?;
    let known = state.unwrap_or_else(|| {
        let mut known = GrainState::default();
        if !awaits_review && grain.awaits_review(known.verification_status) {
            known.verification_status = VerificationStatus::Verified;
        }
        known
    });
    let matched: Vec<String> = of.take("matched_fields")?;
    Ok(ResultRow {
        grain,
        selected,
        score: of.take("score")?,
        matched_fields: matched.into_iter().map(Cow::Owned).collect(),
        content_address: of.take("content_address")?,
        provenance_id: of.take("provenance_id")?,
        state,
        score_breakdown: of.map("score_breakdown")?,
        explanation: of.find("explanation")?,
        provenance: of.map("provenance")?,
        contradictions: of.find::<Vec<ContentAddress>>("contradictions")?,
        beside_alone: told.is_none(),
        shown: of.find("shown")?,
        known,
    })
}

/// What stands for a grain that an answer does not tell, but that it awaits its review.
const UNTOLD_AND_UNREVIEWED: &str = r#"{"type":"reasoning","created_at":0,"premises":["untold"],
    "conclusion":"untold","requires_human_review":true}"#;
/// What stands for any other grain that an answer does not tell.
const UNTOLD: &str = r#"{"type":"event","created_at":0,"content":"untold"}"#;

fn untold(awaits_review: bool) -> Result<Grain> {
    let json = if awaits_review { UNTOLD_AND_UNREVIEWED } else { UNTOLD };
    Grain::from_json(json).map_err(serde_json::Error::custom)
}

fn group(raw: &RawValue) -> Result<GroupCount> {
    let mut of = Members::read(raw.get())?;
    Ok(GroupCount {
        key: member(&mut of, "key")?.unwrap_or(Value::Null),
        count: of.take("count")?,
        requires_human_review: of.find(REVIEW_FLAG)?.unwrap_or_default(),
    })
}

fn change(raw: &RawValue) -> Result<FieldChange> {
    let mut of = Members::read(raw.get())?;
    let (from, to) = (member(&mut of, "from")?, member(&mut of, "to")?);
    Ok(FieldChange { field: of.take("field")?, from, to })
}

fn version(raw: &RawValue) -> Result<Version> {
    let mut of = Members::read(raw.get())?;
    let grain: Box<RawValue> = of.take("grain")?;
    let grain = Grain::from_json(grain.get()).map_err(serde_json::Error::custom)?;
    Ok(Version { address: of.take("address")?, grain, state: of.take("state")? })
}

fn slots(of: Members) -> Result<BatchSlots> {
    let slot = |(label, raw): (String, Box<RawValue>)| {
        let mut of = Members::read(raw.get())?;
        let slot = match of.find("error")? {
            Some(error) => BatchSlot::Failed { error },
            None => BatchSlot::Answer(Box::new(answer(of)?)),
        };
        Ok((label, slot))
    };
    of.0.into_iter().map(slot).collect::<Result<_>>().map(BatchSlots)
}

fn sources(of: Members) -> Result<SourceAnswers> {
    let source = |(label, raw): (String, Box<RawValue>)| {
        let mut of = Members::read(raw.get())?;
        let grains = if of.has("grains") { of.list("grains", row)? } else { Vec::new() };
        let answer = SourceAnswer {
            full: of.take("full")?,
            standard: of.take("standard")?,
            summary: of.take("summary")?,
            omitted: of.take("omitted")?,
            allocated: of.take("allocated")?,
            used: of.take("used")?,
            error: of.find("error")?,
            summarized: of.find("summarized")?,
            formatted: of.find("formatted")?,
            grains,
            shown: Vec::new(),
        };
        Ok((label, answer))
    };
    of.0.into_iter().map(source).collect::<Result<_>>().map(SourceAnswers)
}

/// A value that may be null.
fn member(of: &mut Members, name: &str) -> Result<Option<Value>> {
    let told = of.raw(name).filter(|raw| raw.get() != "null");
    told.map(|raw| value(&raw)).transpose()
}

fn value(raw: &RawValue) -> Result<Value> {
    parse_json(raw.get(), &DeviceProfile::EXTENDED).map_err(serde_json::Error::custom)
}

fn map(raw: &RawValue) -> Result<Map> {
    match value(raw)? {
        Value::Map(map) => Ok(map),
        _ => Err(serde_json::Error::custom("an object is expected")),
    }
}
