//! The index layer of one grain (OMS 5.6, 28.3): what a store keeps beside the immutable blob, and
//! what travels in the manifest of a container (11.7).

use serde::{Serialize, Serializer};

use crate::address::ContentAddress;
use crate::grain_type::GrainType;
use crate::time::EpochMs;

/// The field by which a grain asks for the review of a person (OMS 6.1).
pub const REVIEW_FLAG: &str = "requires_human_review";

/// What review made of a grain (OMS 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum VerificationStatus {
    /// Not reviewed.
    #[default]
    Unverified,
    /// Confirmed by an authority.
    Verified,
    /// Disputed.
    Contested,
    /// Withdrawn from use, for good.
    Retracted,
}

impl VerificationStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Unverified, Self::Verified, Self::Contested, Self::Retracted];

    /// The word of the standard.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::Verified => "verified",
            Self::Contested => "contested",
            Self::Retracted => "retracted",
        }
    }

    /// Whether a grain of this status still waits for the review that its flag asks for. Of reasonings alone
    /// that is binding (OMS 6.1).
    pub(crate) fn leaves_open(self, grain_type: GrainType, asks_review: bool) -> bool {
        asks_review && grain_type == GrainType::Reasoning && self != Self::Verified
    }

    /// The status a word stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl Serialize for VerificationStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The index-layer state of a grain. The default is that of a grain nothing has happened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct GrainState {
    /// The grain that took its place.
    pub superseded_by: Option<ContentAddress>,
    /// When it stopped being current.
    pub system_valid_to: Option<EpochMs>,
    /// What review made of it.
    pub verification_status: VerificationStatus,
    /// Whether another grain contradicts it.
    pub contradicted: bool,
    /// Whether a person should look at it.
    pub needs_review: bool,
    /// Whether a litigation hold is on it.
    pub held: bool,
}

impl GrainState {
    /// Whether the grain is current now: not superseded, contradicted or retracted, and not known to
    /// have ended, as one from an exporter that states the end alone (OMS 11.7).
    #[must_use]
    pub fn is_current_at(&self, now: EpochMs) -> bool {
        self.is_current() && !self.has_ended(now)
    }

    /// Whether its end in system time has come.
    #[must_use]
    pub fn has_ended(&self, now: EpochMs) -> bool {
        self.system_valid_to.is_some_and(|end| end <= now)
    }

    /// Whether nothing was said against the grain: it is not superseded, contradicted or retracted,
    /// whatever its end in time.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.superseded_by.is_none()
            && !self.contradicted
            && self.verification_status != VerificationStatus::Retracted
    }
}
