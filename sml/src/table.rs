//! The projection of each grain type: one table, read by every output format (CAL 10.3.2).
//!
//! Data only. `project` applies a rule to a grain; the formats write the result.

use grainstore_format::GrainType;

use crate::item::Level;

/// The projection of one grain type.
pub(crate) struct Row {
    pub(crate) grain_type: GrainType,
    /// The plural, as used in RECALL.
    pub(crate) plural: &'static str,
    /// The columns of a TOON array; [`CONTENT`] is the text.
    pub(crate) columns: &'static [&'static str],
    /// The rules for the text. The first one that yields a text is used.
    pub(crate) text: &'static [Text],
    /// The attributes, in output order.
    pub(crate) attributes: &'static [Attribute],
}

/// A rule that yields the text of a grain.
#[derive(Clone, Copy)]
pub(crate) enum Text {
    /// The humanized relation and the object.
    Claim,
    /// Subject, humanized relation and object, if all three are present.
    Triple,
    /// A field, unchanged.
    Field(&'static str),
    /// A field, in one `action_phase` only: phase, field.
    InPhase(&'static str, &'static str),
    /// A field, unless it is the address of another grain.
    Spelled(&'static str),
    /// The text blocks of a list of content blocks. Other kinds of blocks are left out.
    Blocks(&'static str),
    /// A list, joined by a separator.
    Joined(&'static str, &'static str),
    /// A list, numbered: `1. first  2. second`.
    Numbered(&'static str),
}

/// An attribute: its name, its value, and the lowest level that shows it.
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) value: Source,
    pub(crate) from: Level,
}

/// A rule that yields the value of an attribute.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// A field, unchanged.
    Field(&'static str),
    /// A field, or this default if it is absent.
    FieldOr(&'static str, &'static str),
    /// A field with one of its values replaced: field, value, replacement.
    Reworded(&'static str, &'static str, &'static str),
    /// A boolean in words: field, word for false, word for true.
    Flag(&'static str, &'static str, &'static str),
    /// The first of these keys that a map field has.
    Inside(&'static str, &'static [&'static str]),
    /// A list field, joined by commas.
    List(&'static str),
    /// A field in epoch milliseconds, as a date.
    Date(&'static str),
    /// The time of the grain, as a relative time.
    Time,
    /// The verification status in the index layer.
    Verification,
}

/// Returns the projection of a type, or `None` for an opaque type.
pub(crate) fn row(grain_type: GrainType) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.grain_type == grain_type)
}

/// Iterates over the names of all attributes, each once.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let all = || ROWS.iter().flat_map(|row| row.attributes).chain(&EXTRAS);
    let first = move |at: usize, name: &str| all().take(at).all(|other| other.name != name);
    let named = ROWS.iter().flat_map(|row| row.attributes).chain(&EXTRAS).enumerate();
    named.filter(move |(at, one)| first(*at, one.name)).map(|(_, one)| one.name)
}

/// The name of the text where it is a column.
pub(crate) const CONTENT: &str = "content";

/// Returns the first attribute of a type, with which the one-line formats begin.
pub(crate) fn lead(grain_type: GrainType) -> Option<&'static str> {
    row(grain_type)?.attributes.first().map(|attribute| attribute.name)
}

/// Returns `true` if the full level adds this attribute to every type.
pub(crate) fn is_extra(name: &str) -> bool {
    EXTRAS.iter().any(|extra| extra.name == name)
}

/// An attribute shown at every level.
const fn always(name: &'static str, value: Source) -> Attribute {
    Attribute { name, value, from: Level::Summary }
}

/// An attribute shown from the standard level on, marked `?` in the standard.
const fn standard(name: &'static str, value: Source) -> Attribute {
    Attribute { name, value, from: Level::Standard }
}

const fn full(name: &'static str, value: Source) -> Attribute {
    Attribute { name, value, from: Level::Full }
}

/// The attributes the full level adds to every type.
pub(crate) const EXTRAS: [Attribute; 5] = [
    full("source", Source::Reworded("source_type", "user_explicit", "explicit")),
    full("observed", Source::Time),
    full("importance", Source::Field("importance")),
    full("tags", Source::List("structural_tags")),
    full("verification", Source::Verification),
];

/// The projections. Those whose text starts with the object do not need `Triple`, which requires an
/// object.
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
