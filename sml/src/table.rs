//! What each grain type shows: one table, read by every output format (`cal.md` section 8).
//!
//! Data only. How a row is applied to a grain is in `project`, how it looks in the formats.

use grainstore_format::GrainType;

use crate::item::Level;

/// What one grain type shows.
pub(crate) struct Row {
    pub(crate) grain_type: GrainType,
    /// Its plural, as RECALL names it.
    pub(crate) plural: &'static str,
    /// The columns of a TOON array, [`CONTENT`] standing for the text.
    pub(crate) columns: &'static [&'static str],
    /// Where the text comes from: the first rule that yields any.
    pub(crate) text: &'static [Text],
    /// The attributes, in the order they are written.
    pub(crate) attributes: &'static [Attribute],
}

/// One way to get the text of a grain.
#[derive(Clone, Copy)]
pub(crate) enum Text {
    /// The relation in plain words and the object.
    Claim,
    /// Subject, relation in plain words and object, where all three are there.
    Triple,
    /// A field as it is.
    Field(&'static str),
    /// A field, in one `action_phase` only.
    InPhase(&'static str, &'static str),
    /// A field, unless it is the address of a grain that says it.
    Spelled(&'static str),
    /// The text blocks of a list of content blocks; no other kind of block.
    Blocks(&'static str),
    /// A list with a separator.
    Joined(&'static str, &'static str),
    /// A list as `1. first  2. second`.
    Numbered(&'static str),
}

/// One attribute: its name, its value, and the lowest level that shows it.
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) value: Source,
    pub(crate) from: Level,
}

/// One way to get the value of an attribute.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// A field as it is.
    Field(&'static str),
    /// A field, or this word where it is absent.
    FieldOr(&'static str, &'static str),
    /// A field with one of its words replaced: field, word, replacement.
    Reworded(&'static str, &'static str, &'static str),
    /// A flag in words: field, false, true.
    Flag(&'static str, &'static str, &'static str),
    /// The first of these keys inside a map field.
    Inside(&'static str, &'static [&'static str]),
    /// A list field, joined by commas.
    List(&'static str),
    /// A field in epoch milliseconds, as a date.
    Date(&'static str),
    /// The time of the grain, as an age.
    Time,
    /// The status in the index layer.
    Verification,
}

/// The row of a type; opaque types have none.
pub(crate) fn row(grain_type: GrainType) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.grain_type == grain_type)
}

/// The names of all attributes, each once.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let all = || ROWS.iter().flat_map(|row| row.attributes).chain(&EXTRAS);
    let first = move |at: usize, name: &str| all().take(at).all(|other| other.name != name);
    let named = ROWS.iter().flat_map(|row| row.attributes).chain(&EXTRAS).enumerate();
    named.filter(move |(at, one)| first(*at, one.name)).map(|(_, one)| one.name)
}

/// The name the text of a grain has where it is a column.
pub(crate) const CONTENT: &str = "content";

/// The first attribute of a type, which the formats of one line a grain begin with.
pub(crate) fn lead(grain_type: GrainType) -> Option<&'static str> {
    row(grain_type)?.attributes.first().map(|attribute| attribute.name)
}

/// Whether the full level adds this attribute to every type.
pub(crate) fn is_extra(name: &str) -> bool {
    EXTRAS.iter().any(|extra| extra.name == name)
}

/// Shown at every level.
const fn always(name: &'static str, value: Source) -> Attribute {
    Attribute { name, value, from: Level::Summary }
}

/// Marked `?` in the source: not at summary level.
const fn standard(name: &'static str, value: Source) -> Attribute {
    Attribute { name, value, from: Level::Standard }
}

const fn full(name: &'static str, value: Source) -> Attribute {
    Attribute { name, value, from: Level::Full }
}

/// What the full level adds to every type.
pub(crate) const EXTRAS: [Attribute; 5] = [
    full("source", Source::Reworded("source_type", "user_explicit", "explicit")),
    full("observed", Source::Time),
    full("importance", Source::Field("importance")),
    full("tags", Source::List("structural_tags")),
    full("verification", Source::Verification),
];

/// Rows that start with the object need no `Triple`: without an object there is none.
const ROWS: [Row; 10] = [
    Row {
        grain_type: GrainType::Belief,
        plural: "beliefs",
        columns: &["subject", CONTENT, "confidence"],
        text: &[Text::Claim, Text::Field("context")],
        attributes: &[
            always("subject", Source::Field("subject")),
            standard("confidence", Source::Field("confidence")),
        ],
    },
    Row {
        grain_type: GrainType::Event,
        plural: "events",
        columns: &["role", "time", CONTENT],
        text: &[Text::Field("content"), Text::Blocks("content_blocks"), Text::Triple],
        attributes: &[always("role", Source::Field("role")), standard("time", Source::Time)],
    },
    Row {
        grain_type: GrainType::Goal,
        plural: "goals",
        columns: &["subject", CONTENT, "state", "deadline"],
        text: &[Text::Field("object"), Text::Field("description"), Text::Field("context")],
        attributes: &[
            always("subject", Source::Field("subject")),
            standard("state", Source::Field("goal_state")),
            standard("deadline", Source::Date("deadline")),
        ],
    },
    Row {
        grain_type: GrainType::Action,
        plural: "actions",
        columns: &["tool", "phase", CONTENT],
        text: &[
            Text::InPhase("definition", "tool_description"),
            Text::InPhase("call", "input"),
            Text::Field("object"),
            Text::Field("content"),
            Text::Field("error"),
            Text::Field("stdout"),
            Text::Field("context"),
        ],
        attributes: &[
            always("tool", Source::Field("tool_name")),
            standard("phase", Source::FieldOr("action_phase", "completed")),
        ],
    },
    Row {
        grain_type: GrainType::Observation,
        plural: "observations",
        columns: &["observer", CONTENT],
        text: &[Text::Field("object"), Text::Field("content"), Text::Field("context")],
        attributes: &[standard("observer", Source::Field("observer_id"))],
    },
    Row {
        grain_type: GrainType::Reasoning,
        plural: "reasonings",
        columns: &["type", CONTENT],
        text: &[Text::Field("conclusion"), Text::Triple, Text::Field("context")],
        attributes: &[standard("type", Source::Field("inference_method"))],
    },
    Row {
        grain_type: GrainType::State,
        plural: "states",
        columns: &["context", CONTENT],
        text: &[Text::Joined("plan", "; "), Text::Field("context"), Text::Triple],
        attributes: &[standard("context", Source::Inside("context", &["id", "name"]))],
    },
    Row {
        grain_type: GrainType::Workflow,
        plural: "workflows",
        columns: &["trigger", CONTENT],
        text: &[Text::Numbered("steps"), Text::Triple, Text::Field("context")],
        attributes: &[standard("trigger", Source::Field("trigger"))],
    },
    Row {
        grain_type: GrainType::Consensus,
        plural: "consensuses",
        columns: &["threshold", "count", CONTENT],
        text: &[Text::Field("object"), Text::Spelled("agreed_content"), Text::Field("context")],
        attributes: &[
            standard("threshold", Source::Field("threshold")),
            standard("count", Source::Field("agreement_count")),
        ],
    },
    Row {
        grain_type: GrainType::Consent,
        plural: "consents",
        columns: &["grantor", "grantee", "action", CONTENT],
        text: &[
            Text::Field("purpose"),
            Text::Joined("scope", ", "),
            Text::Triple,
            Text::Field("context"),
        ],
        attributes: &[
            always("action", Source::Flag("is_withdrawal", "granted", "withdrawn")),
            always("grantor", Source::Field("subject_did")),
            always("grantee", Source::Field("grantee_did")),
        ],
    },
];
