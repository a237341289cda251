//! CAL statements with the options of their caller, and the call.

use std::borrow::Cow;

use grainstore::cal::{
    self, CancelHandle, EventListener, ExecuteOptions, Expansion, Format, Params, Predicate,
    QuerySource, Response, Tier,
};
use grainstore::{EpochMs, Session};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::json::Form;

/// A statement in text or JSON, which need not be UTF-8, with the options of its caller.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::Question;
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let params = vec![("who".into(), "alice".into())];
/// let query = br#"RECALL beliefs ABOUT $who AS text"#;
/// let response = Question { query, params, ..Question::default() }.ask(&session)?;
/// assert!(response.text().is_some_and(|text| text.contains("tea")));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Question<'q> {
    /// Its text, or JSON form.
    pub query: &'q [u8],
    /// The values of its parameters.
    pub params: Vec<(String, Value)>,
    /// The format of grains, in place of its own.
    pub format: Option<Format>,
    /// True if it may write.
    pub evolve: bool,
    /// True if a tight budget may choose toon for a statement without a format.
    pub auto_toon: bool,
    /// Expansion of a RECALL by links from its best answers.
    pub expansion: Option<Expansion>,
    /// Conditions on the grains of a RECALL that the language has no field for.
    pub conditions: Vec<Predicate>,
    /// More of them, by their values.
    pub beyond: BeyondCal,
    /// The time taken as now; the store's clock if not given.
    pub now: Option<EpochMs>,
    /// The caller's handle to cancel it.
    pub cancel: CancelHandle,
}

impl Question<'_> {
    /// Runs the statement.
    pub fn ask(&self, session: &Session) -> Result<Response> {
        let answer = session.ask_with(self.query, &self.options(session)?);
        answer.map_err(|error| self.failed(&error))
    }

    /// Runs the statement and passes its events to a listener.
    pub fn run_streaming(
        &self,
        session: &Session,
        listener: &mut dyn EventListener,
    ) -> Result<Response> {
        let answer = session.ask_streaming(self.query, &self.options(session)?, listener);
        answer.map_err(|error| self.failed(&error))
    }

    /// The parameters of the method `cal` or `cal_stream` that asks the same of another process. `conditions` are not
    /// among them.
    ///
    /// ```
    /// use grainstore_rpc::Question;
    ///
    /// let question = Question { query: b"RECALL", evolve: true, ..Question::default() };
    /// let params = serde_json::to_value(question.params_of("cal"))?;
    /// assert_eq!(params, serde_json::json!({ "query": "RECALL", "tier": 1 }));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn params_of(&self, method: &str) -> impl Serialize {
        let whole = method == "cal";
        let expand = self.expansion.filter(|_| whole).map(|of| Expanded {
            hops: of.hops,
            seeds: of.seeds,
            links: of.links.iter().map(cal::Link::name).collect(),
            direction: of.direction,
            fan_out: of.fan_out,
            reached: of.reached,
            decay: of.decay,
            freely: of.freely,
        });
        Asked {
            query: String::from_utf8_lossy(self.query),
            params: Given(&self.params),
            format: self.format.map(Format::name),
            auto_toon: self.auto_toon,
            tier: u8::from(self.evolve && whole),
            now: self.now.map(EpochMs::get),
            expand,
            beyond: Some(&self.beyond).filter(|beyond| whole && !beyond.is_empty()),
        }
    }

    fn failed(&self, error: &cal::Error) -> Error {
        Error::from_cal(error, &String::from_utf8_lossy(self.query))
    }

    fn tier(&self) -> Tier {
        if self.evolve { Tier::Evolve } else { Tier::Read }
    }

    /// Returns the error of a parameter, with its position in the query, once the session has recorded it.
    fn parameter_error(&self, session: &Session, error: cal::Error, name: &str) -> Error {
        let error = match QuerySource::read_bytes(self.query) {
            Ok(source) => source.at_parameter(error, name),
            Err(_) => error,
        };
        self.failed(&session.record_failed_call(self.query, self.tier(), error))
    }

    fn options(&self, session: &Session) -> Result<ExecuteOptions<'static>> {
        let mut params = Params::new();
        for (name, value) in &self.params {
            let bound = params.bind(name, value);
            bound.map_err(|error| self.parameter_error(session, error, name))?;
        }
        let mut conditions = self.conditions.clone();
        conditions.extend(self.beyond.clone().conditions()?);
        Ok(ExecuteOptions {
            tier: self.tier(),
            params,
            as_format: self.format,
            auto_toon: self.auto_toon,
            expansion: self.expansion,
            conditions,
            cancel: self.cancel.clone(),
            ..ExecuteOptions::at(self.now.unwrap_or_else(|| session.now()))
        })
    }
}

/// The parameters of a question, as docs/rpc.md has them.
#[derive(Serialize)]
struct Asked<'q> {
    query: Cow<'q, str>,
    #[serde(skip_serializing_if = "Given::is_empty")]
    params: Given<'q>,
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    auto_toon: bool,
    #[serde(skip_serializing_if = "is_zero")]
    tier: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expand: Option<Expanded>,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    beyond: Option<&'q BeyondCal>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// The values of parameters, in order, with duplicate names.
struct Given<'q>(&'q [(String, Value)]);

impl Given<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Given<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The member `expand`.
#[derive(Serialize)]
struct Expanded {
    hops: usize,
    seeds: usize,
    links: Vec<&'static str>,
    direction: cal::Direction,
    fan_out: usize,
    reached: usize,
    decay: f64,
    freely: bool,
}

/// Values of fields that CAL has no name for; each that is given must be that of the grain.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{BeyondCal, Question};
///
/// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).run_id("r-7");
/// session.put(grain.build()?)?;
/// let wanted = BeyondCal { run_id: Some("r-7".into()), ..BeyondCal::default() };
/// let conditions = wanted.conditions()?;
/// let question = Question { query: b"RECALL AS text", conditions, ..Question::default() };
/// assert!(question.ask(&session)?.text().is_some_and(|text| text.contains("tea")));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BeyondCal {
    /// The run that made the grain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The DID of its author, which the grain names and nobody has checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author_did: Option<String>,
    /// The entity it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<String>,
    /// Its legal basis: the address of a consent, with or without `sha256:`, or a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processing_basis: Option<String>,
}

impl Form for BeyondCal {
    const FORM: &'static str = "an object {run_id?, author_did?, entity_id?, processing_basis?}";
}

impl BeyondCal {
    fn is_empty(&self) -> bool {
        let Self { run_id, author_did, entity_id, processing_basis } = self;
        [run_id, author_did, entity_id, processing_basis].iter().all(|value| value.is_none())
    }

    /// Returns a condition for each value.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for text that no grain can hold.
    pub fn conditions(self) -> Result<Vec<Predicate>> {
        let texts = [
            ("run_id", self.run_id),
            ("author_did", self.author_did),
            ("entity_id", self.entity_id),
        ];
        let mut conditions = Vec::new();
        for (field, wanted) in texts {
            if let Some(wanted) = wanted {
                let wanted = Predicate::text_is(field, normalise(&wanted)?);
                conditions.push(wanted.map_err(|error| Error::from_cal(&error, ""))?);
            }
        }
        if let Some(basis) = self.processing_basis {
            conditions.push(Predicate::rests_on(&normalise(&basis)?));
        }
        Ok(conditions)
    }
}

/// Normalises text to NFC, as it is in grains.
pub(crate) fn normalise(text: &str) -> Result<String> {
    Ok(grainstore::format::normalise_text(text)?.into_owned())
}
