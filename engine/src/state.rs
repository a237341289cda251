//! The index layer of one grain (OMS 5.6, 28.3): what the store keeps beside the immutable blob.

use grainstore_format::{ContentAddress, EpochMs};
use grainstore_index::Sequence;
use serde::Serialize;

/// What is known of a grain's content (OMS 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VerificationStatus {
    /// Not reviewed.
    #[default]
    Unverified,
    /// Confirmed.
    Verified,
    /// Disputed.
    Contested,
    /// Withdrawn from use, for good.
    Retracted,
}

impl VerificationStatus {
    const ALL: [Self; 4] = [
        Self::Unverified,
        Self::Verified,
        Self::Contested,
        Self::Retracted,
    ];

    /// The word of the standard.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::Verified => "verified",
            Self::Contested => "contested",
            Self::Retracted => "retracted",
        }
    }

    pub(crate) fn byte(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

/// The index-layer state of a grain. The default is that of a grain nothing has happened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct GrainState {
    /// The grain that replaced it.
    pub superseded_by: Option<ContentAddress>,
    /// When it stopped being current.
    pub system_valid_to: Option<EpochMs>,
    /// What is known of its content.
    pub verification_status: VerificationStatus,
    /// Whether it is contradicted.
    pub contradicted: bool,
    /// Whether a person should look at it.
    pub needs_review: bool,
    /// Whether a litigation hold is on it.
    pub held: bool,
    /// The nearest ancestor whose protection reaches this grain (OMS 23.6).
    #[serde(skip)]
    pub(crate) protected_root: Option<Sequence>,
}

impl GrainState {
    /// Whether the grain is current: not superseded, contradicted or retracted.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.superseded_by.is_none()
            && !self.contradicted
            && self.verification_status != VerificationStatus::Retracted
    }
}
