//! The mapping of JSON lines: rules that say of which rows they are, and which field is what.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::json;
use crate::migrate::rows::Row;
use crate::migrate::time::Unit;

/// A mapping: the first rule that is for a row reads it.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) rules: Vec<Rule>,
    /// The members that have the rows, where the file is one object.
    pub(super) lists: Vec<String>,
}

/// A rule of a mapping.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) kind: Kind,
    /// The rows it is for: those with these values in these fields. All without it.
    #[serde(default)]
    when: Map<String, Value>,
    /// The list that the rows are in, where the file is one object.
    list: Option<String>,
    pub(super) fields: Fields,
    /// What dates are that are numbers.
    #[serde(default, rename = "numeric_dates")]
    pub(super) unit: Unit,
}

/// What the rows of a rule are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// What is known of somebody, in words.
    Memory,
    /// A subject, a relation and an object.
    Fact,
    /// A message of a conversation.
    Message,
    /// How something is done.
    Procedure,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Fact => "fact",
            Self::Message => "message",
            Self::Procedure => "procedure",
        }
    }
}

/// Where a row has a value: a name, a JSON pointer (`/a/b`), or a value for all rows.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Field {
    Place(String),
    Constant { value: Value },
}

/// The fields that a mapping may name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Fields {
    pub(super) id: Option<Field>,
    pub(super) text: Option<Field>,
    pub(super) subject: Option<Field>,
    pub(super) relation: Option<Field>,
    pub(super) object: Option<Field>,
    pub(super) confidence: Option<Field>,
    pub(super) steps: Option<Field>,
    pub(super) trigger: Option<Field>,
    pub(super) parent: Option<Field>,
    pub(super) model: Option<Field>,
    pub(super) created_at: Option<Field>,
    pub(super) updated_at: Option<Field>,
    pub(super) valid_from: Option<Field>,
    pub(super) valid_to: Option<Field>,
    pub(super) expired_at: Option<Field>,
    pub(super) follows: Option<Field>,
    pub(super) user: Option<Field>,
    pub(super) agent: Option<Field>,
    pub(super) session: Option<Field>,
    pub(super) run: Option<Field>,
    pub(super) role: Option<Field>,
    pub(super) namespace: Option<Field>,
    pub(super) tags: Option<Field>,
}

impl Mapping {
    /// Reads a mapping: a rule, or an object with the list `rules`.
    ///
    /// # Errors
    /// `ERR_CORRUPT` if it is no JSON, `ERR_SCHEMA` if it is no mapping.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let value = json::parse(text.as_bytes())?;
        let rules = match value.get("rules") {
            Some(Value::Array(rules)) => rules.clone(),
            Some(_) => return Err(Error::schema("rules are a list")),
            None => vec![value],
        };
        let rules = rules.into_iter().map(serde_json::from_value).collect::<Result<Vec<Rule>, _>>();
        let rules = rules.map_err(|error| Error::schema(format!("no mapping: {error}")))?;
        if rules.iter().any(|rule| rule.fields.id.is_none()) {
            return Err(Error::schema(
                "a rule names the field of the id, by which a second run knows a row",
            ));
        }
        let lists = rules.iter().filter_map(|rule| rule.list.clone()).collect();
        Ok(Self { rules, lists })
    }
}

impl Rule {
    /// Returns `true` if the rule is for a row.
    pub(super) fn fits(&self, row: &Row) -> bool {
        let is_in = self.list.as_deref().is_none_or(|list| row.list.is_empty() || row.list == list);
        let has = |(name, value): (&String, &Value)| {
            at(&row.members, name).is_some_and(|found| json::equal(found, value))
        };
        is_in && self.when.iter().all(has)
    }

    /// What of a row no field of the rule takes.
    pub(super) fn rest(&self, members: &Map<String, Value>) -> Map<String, Value> {
        let taken = self.fields.all().into_iter().filter_map(|field| match field {
            Some(Field::Place(name)) => Some(name.as_str()),
            _ => None,
        });
        let taken: Vec<_> = taken.collect();
        crate::migrate::record::rest(members, &taken)
    }
}

impl Field {
    pub(super) fn value<'v>(&'v self, members: &'v Map<String, Value>) -> Option<&'v Value> {
        match self {
            Self::Place(place) => at(members, place),
            Self::Constant { value } => Some(value),
        }
    }
}

impl Fields {
    fn all(&self) -> [&Option<Field>; 23] {
        [
            &self.id,
            &self.text,
            &self.subject,
            &self.relation,
            &self.object,
            &self.confidence,
            &self.steps,
            &self.trigger,
            &self.parent,
            &self.model,
            &self.created_at,
            &self.updated_at,
            &self.valid_from,
            &self.valid_to,
            &self.expired_at,
            &self.follows,
            &self.user,
            &self.agent,
            &self.session,
            &self.run,
            &self.role,
            &self.namespace,
            &self.tags,
        ]
    }
}

/// The value at a place: a name, or a JSON pointer (RFC 6901).
fn at<'v>(members: &'v Map<String, Value>, place: &str) -> Option<&'v Value> {
    let Some(path) = place.strip_prefix('/') else { return members.get(place) };
    let mut parts = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    let first = members.get(&parts.next()?)?;
    parts.try_fold(first, |value, part| match value {
        Value::Object(members) => members.get(&part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}
