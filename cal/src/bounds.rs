//! The bounds of a query: namespaces, times, types, visibility and order.
//!
//! Plain sets, each with a membership test; the query combines them.

use grainstore_format::{EpochMs, GrainState, GrainType, VerificationStatus};

/// Namespaces a query reads, always within those of the session.
///
/// ```
/// use grainstore_cal::Reach;
///
/// let work = Reach::Subtree("work".to_owned());
/// assert!(work.contains("work:budget") && !work.contains("workshop"));
/// assert!(!Reach::Exact("work".to_owned()).contains("work:budget"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Reach {
    /// All namespaces the session can see.
    #[default]
    Session,
    /// This namespace only.
    Exact(String),
    /// This namespace and all below it (`ns:...`).
    Subtree(String),
}

/// A time range in epoch milliseconds, both ends included, for [`Query::during`](crate::Query::during).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// The first millisecond.
    pub from: EpochMs,
    /// The last millisecond.
    pub to: EpochMs,
}

/// The kinds of non-current grains that are included.
///
/// ```
/// use grainstore_cal::Visibility;
/// use grainstore_format::{EpochMs, GrainState};
///
/// let state = GrainState { contradicted: true, ..GrainState::default() };
/// let now = EpochMs::new(1_768_471_200_000);
/// assert!(!Visibility::default().admits(&state, now));
/// assert!(Visibility::EVERYTHING.admits(&state, now));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Visibility {
    /// Includes superseded grains.
    pub superseded: bool,
    /// Includes contradicted grains.
    pub contradicted: bool,
    /// Includes retracted grains.
    pub retracted: bool,
}

/// The order in which a [`Query`](crate::Query) visits grains; ties by ascending address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Newest first, by the grain's time.
    #[default]
    Newest,
    /// Oldest first, by the grain's time.
    Oldest,
}

/// A set of the ten standard grain types.
///
/// ```
/// use grainstore_cal::TypeSet;
/// use grainstore_format::GrainType;
///
/// let types = TypeSet::of(GrainType::Belief).or(TypeSet::of(GrainType::Goal));
/// assert!(types.contains(GrainType::Goal) && !types.contains(GrainType::Event));
/// assert_eq!(types.iter().count(), 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeSet(u16);

impl Reach {
    /// Returns `true` if the namespace is in the scope; `Session` contains all.
    #[must_use]
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::Session => true,
            Self::Exact(only) => only == namespace,
            Self::Subtree(root) => is_within(namespace, root),
        }
    }
}

/// Returns `true` if `namespace` is `root` or lies below it.
///
/// ```
/// assert!(grainstore_cal::is_within("work:budget", "work"));
/// assert!(!grainstore_cal::is_within("workshop", "work"));
/// ```
#[must_use]
pub fn is_within(namespace: &str, root: &str) -> bool {
    namespace.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

impl TimeRange {
    /// The unbounded range.
    pub const ALWAYS: Self = Self { from: EpochMs::new(i64::MIN), to: EpochMs::new(i64::MAX) };

    /// Returns `true` if `at` is in the range.
    #[must_use]
    pub fn contains(&self, at: EpochMs) -> bool {
        self.from <= at && at <= self.to
    }

    /// Returns the intersection of both ranges.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), to: self.to.min(other.to) }
    }
}

impl Visibility {
    /// Includes every grain, current or not.
    pub const EVERYTHING: Self = Self { superseded: true, contradicted: true, retracted: true };

    /// Returns the union of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            superseded: self.superseded || other.superseded,
            contradicted: self.contradicted || other.contradicted,
            retracted: self.retracted || other.retracted,
        }
    }

    /// Returns `true` if a grain in this state is included at `now`. A grain that has ended without a
    /// stated reason counts as superseded.
    #[must_use]
    pub fn admits(self, state: &GrainState, now: EpochMs) -> bool {
        let ended = state.superseded_by.is_some() || state.is_current() && state.has_ended(now);
        (self.superseded || !ended)
            && (self.contradicted || !state.contradicted)
            && (self.retracted || state.verification_status != VerificationStatus::Retracted)
    }
}

impl TypeSet {
    /// The ten standard types.
    pub const ALL: Self = Self(0b111_1111_1110);
    /// The ten standard types and opaque types, which no CAL statement names (OMS 19.4): the default of
    /// host queries and exports.
    pub const EVERYTHING: Self = Self(Self::ALL.0 | Self::OPAQUE);
    const OPAQUE: u16 = 1 << 11;
    /// No type: a query that cannot match.
    pub const NONE: Self = Self(0);

    /// Returns the set of one type; empty for types outside the ten.
    #[must_use]
    pub fn of(grain_type: GrainType) -> Self {
        match grain_type {
            GrainType::Opaque(_) => Self(0),
            standard => Self(1 << standard.byte()),
        }
    }

    /// Returns `true` if the type is in the set.
    #[must_use]
    pub fn contains(self, grain_type: GrainType) -> bool {
        match grain_type {
            GrainType::Opaque(_) => self.0 & Self::OPAQUE != 0,
            standard => self.0 & Self::of(standard).0 != 0,
        }
    }

    /// Returns the standard types in the set, in the order of their bytes.
    pub fn iter(self) -> impl Iterator<Item = GrainType> {
        GrainType::STANDARD.into_iter().filter(move |grain_type| self.contains(*grain_type))
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the intersection of both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_reaches_down_by_whole_segments() {
        for (namespace, root, within) in [
            ("work", "work", true),
            ("work:team", "work", true),
            ("workshop", "work", false),
            ("home", "work", false),
        ] {
            assert_eq!(Reach::Subtree(root.to_owned()).contains(namespace), within, "{namespace}");
        }
    }

    #[test]
    fn the_full_type_set_is_the_ten_standard_types() {
        assert_eq!(TypeSet::ALL.iter().count(), 10);
        assert!(!TypeSet::ALL.contains(GrainType::from_byte(0x0B).unwrap()));
        assert_eq!(TypeSet::EVERYTHING.iter().count(), 10);
        assert!(TypeSet::EVERYTHING.contains(GrainType::from_byte(0x0B).unwrap()));
    }
}
