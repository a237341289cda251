//! The cognitive type of a grain: header byte, payload names and aliases (OMS 3.1.1, section 8).

use std::fmt;

/// The type of a grain, as encoded in its header byte.
///
/// ```
/// use grainstore_format::GrainType;
///
/// assert_eq!(GrainType::from_name("fact"), Some(GrainType::Belief));
/// assert_eq!((GrainType::Belief.name(), GrainType::Belief.byte()), ("belief", 1));
/// assert!(GrainType::from_byte(0x2a).is_some_and(|opaque| !opaque.is_standard()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GrainType {
    /// 0x01: a subject-relation-object triple with confidence.
    Belief,
    /// 0x02: a timestamped occurrence or message.
    Event,
    /// 0x03: an agent state snapshot.
    State,
    /// 0x04: a learned sequence of steps.
    Workflow,
    /// 0x05: a tool invocation.
    Action,
    /// 0x06: raw sensory or cognitive input.
    Observation,
    /// 0x07: an objective with a lifecycle.
    Goal,
    /// 0x08: an inference chain.
    Reasoning,
    /// 0x09: an agreement of several agents.
    Consensus,
    /// 0x0A: a permission granted or withdrawn.
    Consent,
    /// 0x0B..=0xFF: a type outside the standard. Stored and addressed, not checked against a schema
    /// (OMS 19.4).
    Opaque(OpaqueType),
}

/// A type byte outside the ten standard types of [`GrainType`]: 0x0B..=0xFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpaqueType(u8);

impl OpaqueType {
    /// Returns the byte as an opaque type, or `None` for 0x00..=0x0A.
    #[must_use]
    pub fn new(byte: u8) -> Option<Self> {
        (byte > 0x0A).then_some(Self(byte))
    }
}

/// Every payload name a reader accepts, with its type. Canonical names come first, aliases after them.
const NAMES: [(&str, GrainType); 15] = [
    ("belief", GrainType::Belief),
    ("event", GrainType::Event),
    ("state", GrainType::State),
    ("workflow", GrainType::Workflow),
    ("action", GrainType::Action),
    ("observation", GrainType::Observation),
    ("goal", GrainType::Goal),
    ("reasoning", GrainType::Reasoning),
    ("consensus", GrainType::Consensus),
    ("consent", GrainType::Consent),
    ("fact", GrainType::Belief),
    ("episode", GrainType::Event),
    ("checkpoint", GrainType::State),
    ("tool", GrainType::Action),
    ("tool_call", GrainType::Action),
];

impl GrainType {
    /// The ten standard types, in the order of their bytes.
    pub const STANDARD: [Self; 10] = [
        Self::Belief,
        Self::Event,
        Self::State,
        Self::Workflow,
        Self::Action,
        Self::Observation,
        Self::Goal,
        Self::Reasoning,
        Self::Consensus,
        Self::Consent,
    ];

    /// Returns the type of a header byte, or `None` for byte 0, which names no type.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => None,
            1..=10 => Self::STANDARD.get(usize::from(byte) - 1).copied(),
            _ => OpaqueType::new(byte).map(Self::Opaque),
        }
    }

    /// Returns the standard type of a payload name, aliases included (`fact`, `episode`, ...).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, t)| *t)
    }

    /// Returns the header byte.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::Belief => 1,
            Self::Event => 2,
            Self::State => 3,
            Self::Workflow => 4,
            Self::Action => 5,
            Self::Observation => 6,
            Self::Goal => 7,
            Self::Reasoning => 8,
            Self::Consensus => 9,
            Self::Consent => 10,
            Self::Opaque(OpaqueType(byte)) => byte,
        }
    }

    /// Returns the canonical payload name, or `opaque` for a type without one.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Opaque(_) => "opaque",
            _ => NAMES.iter().find(|(_, t)| *t == self).map_or("opaque", |(name, _)| name),
        }
    }

    /// Returns `true` if this is one of the ten types with a schema.
    #[must_use]
    pub fn is_standard(self) -> bool {
        !matches!(self, Self::Opaque(_))
    }
}

impl fmt::Display for GrainType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opaque(OpaqueType(byte)) => write!(f, "opaque(0x{byte:02x})"),
            _ => f.write_str(self.name()),
        }
    }
}
