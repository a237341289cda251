//! What every format is read as: records that say what somebody knew, said or kept, and when.
//!
//! Knows no format and no store.

use grainstore::EpochMs;
use grainstore::format::GrainType;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::time::Dated;
use crate::error::{Error, Result};
use crate::json;

/// One record of a source, or one version of it.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// Where it was found, for a report: an entry, a line, a name.
    pub(super) place: String,
    /// What it is in words of its source: `memory`, `message`, `relation`.
    pub(super) kind: &'static str,
    pub(super) body: Body,
    pub(super) created: Dated,
    pub(super) updated: Option<EpochMs>,
    /// When its source made it first, where it is dated by a change since: what it said then is not known.
    pub(super) made: Option<EpochMs>,
    pub(super) valid_from: Option<EpochMs>,
    pub(super) valid_to: Option<EpochMs>,
    pub(super) who: Who,
    pub(super) namespace: Option<String>,
    pub(super) tags: Vec<String>,
    /// How soon it is recalled: the tier of the memory it was in.
    pub(super) priority: Option<&'static str>,
    /// The fields that have no other place.
    pub(super) rest: Map<String, Value>,
}

/// What a record says.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Body {
    /// Something that is so.
    Fact { subject: String, relation: String, object: Value, confidence: Option<f64> },
    /// A message of a conversation.
    Message {
        text: String,
        /// The message that it answers. An export that lacks that one does not make it another message.
        #[serde(skip)]
        parent: Option<String>,
        model: Option<String>,
    },
    /// Something an agent keeps before it.
    State { subject: String, context: Map<String, Value> },
    /// How something is done.
    Procedure { trigger: String, steps: Vec<String> },
}

/// Whose a record is, and who was there.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Who {
    pub(super) user: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) session: Option<String>,
    pub(super) run: Option<String>,
    pub(super) role: Option<String>,
}

/// The versions of a record of a source, oldest first, and whether it ended. Most have one version.
#[derive(Debug)]
pub(super) struct Chain {
    /// What the source calls it: the same for every version, and in every export.
    pub(super) id: String,
    /// Each with what the source calls the version, if it does.
    pub(super) versions: Vec<(String, Record)>,
    /// The record that this one takes the place of, where that has another id.
    pub(super) follows: Option<String>,
    pub(super) ending: Option<Ending>,
    /// Whether the source tells less of it than it may have told before, and not whose it is: then the newest version does
    /// not count as changed, and what is not known here already needs a person that the caller names.
    pub(super) is_partial: bool,
}

/// How a record ended in its source, and when, if that is known.
#[derive(Debug, Clone)]
pub(super) enum Ending {
    /// It was deleted.
    Deleted(Option<EpochMs>),
    /// Something else turned out to be so.
    Expired(EpochMs),
}

impl Ending {
    pub(super) fn at(&self) -> Option<EpochMs> {
        match self {
            Self::Deleted(at) => *at,
            Self::Expired(at) => Some(*at),
        }
    }
}

/// A record that does not come into the store.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) place: String,
    pub(super) why: String,
    /// What is wrong with it; `None` if it is left out because of what it is.
    pub(super) error: Option<Error>,
}

impl LeftOut {
    pub(super) fn wrong(place: &str, error: Error) -> Self {
        Self { place: place.to_owned(), why: error.to_string(), error: Some(error) }
    }
}

/// Takes the records of a source, one after the other.
pub(super) trait Sink {
    /// Takes a record with its versions.
    ///
    /// # Errors
    /// Those of the store that are about more than this record; cancellation.
    fn chain(&mut self, chain: Chain) -> Result<()>;

    /// Notes a record that is left out.
    ///
    /// # Errors
    /// That of the record, if nothing may be left out for an error.
    fn leave_out(&mut self, left: LeftOut) -> Result<()>;

    /// Notes what a person should know of records that are taken.
    fn note(&mut self, note: String);
}

impl dyn Sink + '_ {
    /// Takes a record that has one version.
    pub(super) fn record(&mut self, id: impl Into<String>, record: Record) -> Result<()> {
        self.chain(Chain::of(id, record))
    }

    /// Leaves a record out because of what it is.
    pub(super) fn skip(&mut self, place: &str, why: impl Into<String>) -> Result<()> {
        self.leave_out(LeftOut { place: place.to_owned(), why: why.into(), error: None })
    }

    /// Leaves a record out because something is wrong with it.
    pub(super) fn refuse(&mut self, place: &str, error: Error) -> Result<()> {
        self.leave_out(LeftOut::wrong(place, error))
    }

    /// Leaves a record out that is not of the form of its format.
    pub(super) fn misshapen(&mut self, place: &str, why: impl Into<String>) -> Result<()> {
        self.refuse(place, Error::schema(why))
    }
}

impl Chain {
    pub(super) fn of(id: impl Into<String>, record: Record) -> Self {
        let versions = vec![(String::new(), record)];
        Self { id: id.into(), versions, follows: None, ending: None, is_partial: false }
    }
}

impl Record {
    pub(super) fn new(
        place: impl Into<String>,
        kind: &'static str,
        body: Body,
        created: Dated,
    ) -> Self {
        Self {
            place: place.into(),
            kind,
            body,
            created,
            updated: None,
            made: None,
            valid_from: None,
            valid_to: None,
            who: Who::default(),
            namespace: None,
            tags: Vec::new(),
            priority: None,
            rest: Map::new(),
        }
    }

    /// When it was changed last, else made, as far as its source says.
    pub(super) fn newest_date(&self) -> Option<EpochMs> {
        let dates = [self.updated, self.created.time()];
        dates.into_iter().flatten().find(|date| date.header_second().is_some())
    }

    /// A hash of what the source says: equal for a record that did not change. When it was made and touched is not part of
    /// it, nor is where it was found.
    pub(super) fn digest(&self) -> [u8; 32] {
        let ms = |time: Option<EpochMs>| time.map(EpochMs::get);
        let parts = (
            (self.kind, &self.body, ms(self.valid_from), ms(self.valid_to)),
            (&self.who, &self.namespace, &self.tags, &self.rest),
        );
        let value = serde_json::to_value(parts).unwrap_or_default();
        Sha256::digest(json::line(&value)).into()
    }
}

impl Body {
    /// The type of grain that it becomes.
    pub(super) fn grain_type(&self) -> GrainType {
        match self {
            Self::Fact { .. } => GrainType::Belief,
            Self::Message { .. } => GrainType::Event,
            Self::State { .. } => GrainType::State,
            Self::Procedure { .. } => GrainType::Workflow,
        }
    }

    /// What is known of somebody, in words.
    pub(super) fn knows(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self::fact(subject, KNOWS, text)
    }

    /// A fact of three texts.
    pub(super) fn fact(
        subject: impl Into<String>,
        relation: impl Into<String>,
        object: impl Into<String>,
    ) -> Self {
        let object = Value::String(object.into());
        let (subject, relation) = (subject.into(), relation.into());
        Self::Fact { subject, relation, object, confidence: None }
    }
}

/// The relation of what is known of a subject (OMS 8).
pub(super) const KNOWS: &str = "mg:knows";

/// The relation that a source names, kept out of the ones that have a meaning in the standard (`mg:`, OMS 8): a file from
/// elsewhere delegates nothing and owns nothing.
pub(super) fn relation(of_source: &str) -> String {
    // What the writer takes out of text must not hide the beginning of a name.
    let name = of_source.replace('\u{feff}', "");
    match name.trim() {
        "" => KNOWS.to_owned(),
        name if is_meant(name) => format!("imported:{name}"),
        name => name.to_owned(),
    }
}

/// Returns `true` for a relation that the standard or the store gives a meaning.
fn is_meant(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("mg:") || name == "owned_by"
}

/// The text of a member that is one and is not empty.
pub(super) fn text<'v>(members: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    members.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// Takes the members with these names, and leaves the others that say anything.
pub(super) fn rest(members: &Map<String, Value>, used: &[&str]) -> Map<String, Value> {
    let says_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    let left = members
        .iter()
        .filter(|(name, value)| !used.contains(&name.as_str()) && !says_nothing(value));
    left.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The texts of a list.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
