//! The index-layer state of one grain (OMS 5.6, 28.3): kept by a store beside the immutable blob, and
//! carried by the manifest of a container (11.7).

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::address::ContentAddress;
use crate::grain_type::GrainType;
use crate::time::EpochMs;

/// The field with which a grain asks for human review (OMS 6.1), for which it then waits
/// ([`Grain::awaits_review`](crate::Grain::awaits_review)).
pub const REVIEW_FLAG: &str = "requires_human_review";

/// The result of reviewing a grain (OMS 6.1), kept in its [`GrainState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum VerificationStatus {
    /// Not reviewed.
    #[default]
    Unverified,
    /// Confirmed by an authority.
    Verified,
    /// Disputed.
    Contested,
    /// Withdrawn from use; final.
    Retracted,
}

impl VerificationStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Unverified, Self::Verified, Self::Contested, Self::Retracted];

    /// Returns the word the standard uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::Verified => "verified",
            Self::Contested => "contested",
            Self::Retracted => "retracted",
        }
    }

    /// Returns `true` if a grain of this type and status still waits for the human review it asks for.
    /// The request is binding for reasonings only (OMS 6.1).
    pub(crate) fn awaits_review(self, grain_type: GrainType, asks_review: bool) -> bool {
        asks_review && grain_type == GrainType::Reasoning && self != Self::Verified
    }

    /// Returns the status of a word, or `None` for any other word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl<'de> Deserialize<'de> for VerificationStatus {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(source)?;
        Self::from_name(&name).ok_or_else(|| {
            serde::de::Error::custom(format_args!("no verification status {name:?}"))
        })
    }
}

impl Serialize for VerificationStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The index-layer state of a grain. The default is the state of a grain that was just stored.
///
/// ```
/// use grainstore_format::{EpochMs, GrainState, VerificationStatus};
///
/// let now = EpochMs::new(1_768_471_200_000);
/// let mut state = GrainState::default();
/// assert!(state.is_current_at(now));
/// state.system_valid_to = Some(now);
/// assert!(state.is_current() && !state.is_current_at(now));
/// state.verification_status = VerificationStatus::Retracted;
/// assert!(!state.is_current());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GrainState {
    /// The grain that superseded it.
    pub superseded_by: Option<ContentAddress>,
    /// The time it stopped being current.
    pub system_valid_to: Option<EpochMs>,
    /// The result of its review.
    pub verification_status: VerificationStatus,
    /// `true` if another grain contradicts it.
    pub contradicted: bool,
    /// `true` if the store marked it for human review.
    pub needs_review: bool,
    /// `true` if a litigation hold is on it.
    pub held: bool,
}

impl GrainState {
    /// Returns `true` if the grain is current at `now`: neither superseded, contradicted nor retracted,
    /// and its `system_valid_to` has not passed. Some exporters state only that end (OMS 11.7).
    #[must_use]
    pub fn is_current_at(&self, now: EpochMs) -> bool {
        self.is_current() && !self.has_ended(now)
    }

    /// Returns `true` if its `system_valid_to` has passed at `now`.
    #[must_use]
    pub fn has_ended(&self, now: EpochMs) -> bool {
        self.system_valid_to.is_some_and(|end| end <= now)
    }

    /// Returns `true` if the grain is neither superseded, contradicted nor retracted. Its
    /// `system_valid_to` is not considered.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.superseded_by.is_none()
            && !self.contradicted
            && self.verification_status != VerificationStatus::Retracted
    }
}
