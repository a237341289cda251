//! The projection of each grain type: one table, read by every output format (CAL 10.3.2).
//!
//! Data only. `project` applies a rule to a grain; the formats write the result.

use grainstore_format::GrainType;

use crate::level::Level;

/// The projection of one grain type.
pub(crate) struct ProjectionRule {
    pub(crate) grain_type: GrainType,
    /// The plural, as used in RECALL.
    pub(crate) plural: &'static str,
    /// The columns of a TOON array; [`CONTENT`] is the text.
    pub(crate) columns: &'static [&'static str],
    /// The rules for the text. The first one that yields a text is used.
    pub(crate) text: &'static [TextRule],
    /// The attributes, in output order.
    pub(crate) attributes: &'static [Attribute],
}

/// A rule that yields the text of a grain.
#[derive(Clone, Copy)]
pub(crate) enum TextRule {
    /// The humanized relation and the object.
    Claim,
    /// Subject, humanized relation and object, if all three are present.
    Triple,
    /// A field, unchanged.
    Field(&'static str),
    /// A field, in one `action_phase` only: phase, field.
    InPhase(&'static str, &'static str),
    /// A field, unless it is the address of another grain.
    UnlessAddress(&'static str),
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
    pub(crate) value: AttributeSource,
    pub(crate) min_level: Level,
}

/// A rule that yields the value of an attribute.
#[derive(Clone, Copy)]
pub(crate) enum AttributeSource {
    /// A field, unchanged.
    Field(&'static str),
    /// A field, or this default if it is absent.
    FieldOr(&'static str, &'static str),
    /// A field with one of its values replaced: field, value, replacement.
    Replaced(&'static str, &'static str, &'static str),
    /// A boolean in words: field, word for false, word for true.
    Flag(&'static str, &'static str, &'static str),
    /// The first of these keys that a map field has.
    MapEntry(&'static str, &'static [&'static str]),
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
pub(crate) fn rule_for(grain_type: GrainType) -> Option<&'static ProjectionRule> {
    PROJECTION_RULES.iter().find(|row| row.grain_type == grain_type)
}

/// Iterates over the names of all attributes, each once.
pub(crate) fn attribute_names() -> impl Iterator<Item = &'static str> {
    let all =
        || PROJECTION_RULES.iter().flat_map(|row| row.attributes).chain(&FULL_LEVEL_ATTRIBUTES);
    let first = move |at: usize, name: &str| all().take(at).all(|other| other.name != name);
    let named = PROJECTION_RULES
        .iter()
        .flat_map(|row| row.attributes)
        .chain(&FULL_LEVEL_ATTRIBUTES)
        .enumerate();
    named.filter(move |(at, one)| first(*at, one.name)).map(|(_, one)| one.name)
}

/// The name of the text where it is a column.
pub(crate) const CONTENT: &str = "content";

/// Returns the first attribute of a type, with which the one-line formats begin.
pub(crate) fn lead_attribute(grain_type: GrainType) -> Option<&'static str> {
    rule_for(grain_type)?.attributes.first().map(|attribute| attribute.name)
}

/// Returns `true` if the full level adds this attribute to every type.
pub(crate) fn is_full_level_attribute(name: &str) -> bool {
    FULL_LEVEL_ATTRIBUTES.iter().any(|extra| extra.name == name)
}

/// An attribute shown at every level.
const fn always(name: &'static str, value: AttributeSource) -> Attribute {
    Attribute { name, value, min_level: Level::Summary }
}

/// An attribute shown from the standard level on, marked `?` in the standard.
const fn standard(name: &'static str, value: AttributeSource) -> Attribute {
    Attribute { name, value, min_level: Level::Standard }
}

const fn full(name: &'static str, value: AttributeSource) -> Attribute {
    Attribute { name, value, min_level: Level::Full }
}

/// The attributes the full level adds to every type.
pub(crate) const FULL_LEVEL_ATTRIBUTES: [Attribute; 5] = [
    full("source", AttributeSource::Replaced("source_type", "user_explicit", "explicit")),
    full("observed", AttributeSource::Time),
    full("importance", AttributeSource::Field("importance")),
    full("tags", AttributeSource::List("structural_tags")),
    full("verification", AttributeSource::Verification),
];

/// The projections. Those whose text starts with the object do not need `Triple`, which requires an
/// object.
const PROJECTION_RULES: [ProjectionRule; 10] = [
    ProjectionRule {
        grain_type: GrainType::Belief,
        plural: "beliefs",
        columns: &["subject", CONTENT, "confidence"],
        text: &[TextRule::Claim, TextRule::Field("context")],
        attributes: &[
            always("subject", AttributeSource::Field("subject")),
            standard("confidence", AttributeSource::Field("confidence")),
        ],
    },
    ProjectionRule {
        grain_type: GrainType::Event,
        plural: "events",
        columns: &["role", "time", CONTENT],
        text: &[TextRule::Field("content"), TextRule::Blocks("content_blocks"), TextRule::Triple],
        attributes: &[
            always("role", AttributeSource::Field("role")),
            standard("time", AttributeSource::Time),
        ],
    },
    ProjectionRule {
        grain_type: GrainType::Goal,
        plural: "goals",
        columns: &["subject", CONTENT, "state", "deadline"],
        text: &[
            TextRule::Field("object"),
            TextRule::Field("description"),
            TextRule::Field("context"),
        ],
        attributes: &[
            always("subject", AttributeSource::Field("subject")),
            standard("state", AttributeSource::Field("goal_state")),
            standard("deadline", AttributeSource::Date("deadline")),
        ],
    },
    ProjectionRule {
        grain_type: GrainType::Action,
        plural: "actions",
        columns: &["tool", "phase", CONTENT],
        text: &[
            TextRule::InPhase("definition", "tool_description"),
            TextRule::InPhase("call", "input"),
            TextRule::Field("object"),
            TextRule::Field("content"),
            TextRule::Field("error"),
            TextRule::Field("stdout"),
            TextRule::Field("context"),
        ],
        attributes: &[
            always("tool", AttributeSource::Field("tool_name")),
            standard("phase", AttributeSource::FieldOr("action_phase", "completed")),
        ],
    },
    ProjectionRule {
        grain_type: GrainType::Observation,
        plural: "observations",
        columns: &["observer", CONTENT],
        text: &[TextRule::Field("object"), TextRule::Field("content"), TextRule::Field("context")],
        attributes: &[standard("observer", AttributeSource::Field("observer_id"))],
    },
    ProjectionRule {
        grain_type: GrainType::Reasoning,
        plural: "reasonings",
        columns: &["type", CONTENT],
        text: &[TextRule::Field("conclusion"), TextRule::Triple, TextRule::Field("context")],
        attributes: &[standard("type", AttributeSource::Field("inference_method"))],
    },
    ProjectionRule {
        grain_type: GrainType::State,
        plural: "states",
        columns: &["context", CONTENT],
        text: &[TextRule::Joined("plan", "; "), TextRule::Field("context"), TextRule::Triple],
        attributes: &[standard("context", AttributeSource::MapEntry("context", &["id", "name"]))],
    },
    ProjectionRule {
        grain_type: GrainType::Workflow,
        plural: "workflows",
        columns: &["trigger", CONTENT],
        text: &[TextRule::Numbered("steps"), TextRule::Triple, TextRule::Field("context")],
        attributes: &[standard("trigger", AttributeSource::Field("trigger"))],
    },
    ProjectionRule {
        grain_type: GrainType::Consensus,
        plural: "consensuses",
        columns: &["threshold", "count", CONTENT],
        text: &[
            TextRule::Field("object"),
            TextRule::UnlessAddress("agreed_content"),
            TextRule::Field("context"),
        ],
        attributes: &[
            standard("threshold", AttributeSource::Field("threshold")),
            standard("count", AttributeSource::Field("agreement_count")),
        ],
    },
    ProjectionRule {
        grain_type: GrainType::Consent,
        plural: "consents",
        columns: &["grantor", "grantee", "action", CONTENT],
        text: &[
            TextRule::Field("purpose"),
            TextRule::Joined("scope", ", "),
            TextRule::Triple,
            TextRule::Field("context"),
        ],
        attributes: &[
            always("action", AttributeSource::Flag("is_withdrawal", "granted", "withdrawn")),
            always("grantor", AttributeSource::Field("subject_did")),
            always("grantee", AttributeSource::Field("grantee_did")),
        ],
    },
];
