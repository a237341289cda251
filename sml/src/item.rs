//! What is shown: a grain with its index state, and the level of detail.
//!
//! Knows the rules about what must not be shown; nothing of how anything looks.

use grainstore_format::{ContentAddress, Grain, GrainType, Value, VerificationStatus};

use crate::cell::Cell;
use crate::project::text_of;

/// How much of a grain is shown (`cal.md` section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The text and the attributes no reader can do without.
    Summary,
    /// The default, also called `headlines`: every attribute of the type.
    Standard,
    /// Also where it came from, when, how important, its tags and its verification.
    Full,
}

impl Level {
    /// Its name in `progressive_disclosure`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }

    /// The next level with less detail.
    #[must_use]
    pub fn lower(self) -> Option<Self> {
        match self {
            Self::Full => Some(Self::Standard),
            Self::Standard => Some(Self::Summary),
            Self::Summary => None,
        }
    }
}

/// A grain to be shown, with what the index layer says about it.
#[derive(Debug, Clone)]
pub struct Item {
    /// The grain.
    pub grain: Grain,
    /// `verification_status` of the index layer; none stands for `unverified`.
    pub verification: Option<String>,
    /// What to show in place of what its type shows.
    pub chosen: Option<Chosen>,
    /// How well it answers what was asked, from 0 to 1, where that is known; templates alone show it.
    pub score: Option<f64>,
}

/// What a query chose to show of a grain, at every level (PROJECT).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chosen {
    /// The text; none keeps that of the type.
    pub text: Option<String>,
    /// The attributes, and no others.
    pub attributes: Vec<(String, Cell<'static>)>,
}

impl Item {
    /// The status as a word, where there is more to say than `unverified`.
    pub(crate) fn verification(&self) -> Option<&str> {
        self.verification.as_deref().filter(|status| *status != "unverified")
    }

    /// Whether formatted text may show it: one of the ten standard types, and no reasoning that
    /// still waits for the review it asks for (OMS ruling 46).
    #[must_use]
    pub fn may_be_shown(&self) -> bool {
        match self.grain.grain_type() {
            GrainType::Opaque(_) => false,
            _ => {
                let status = self.verification().and_then(VerificationStatus::from_name);
                !self.grain.awaits_review(status.unwrap_or_default())
            }
        }
    }

    /// The grain a consensus agreed on, where `agreed_content` is an address and not the claim.
    ///
    /// Addresses never appear in formatted text: look the grain up and hand it to
    /// [`Item::resolve_agreed`], or the consensus is shown without its claim.
    #[must_use]
    pub fn agreed_address(&self) -> Option<ContentAddress> {
        let names_no_claim = self.grain.get("object").is_none();
        let agreed = self.grain.text("agreed_content").filter(|_| names_no_claim)?;
        (self.grain.grain_type() == GrainType::Consensus).then(|| address(agreed)).flatten()
    }

    /// Puts the text of the `agreed` grain in the place of its address, for display only: the
    /// grain held afterwards is no longer the stored one.
    ///
    /// # Errors
    /// Those of [`Grain::from_fields`], should the grain not take the text.
    pub fn resolve_agreed(&mut self, agreed: &Self) -> grainstore_format::Result<()> {
        let shown = self.agreed_address().is_some() && agreed.may_be_shown();
        let Some(text) = text_of(&agreed.grain).filter(|_| shown) else {
            return Ok(());
        };
        let mut fields = self.grain.fields().clone();
        // A grain that is read may say so, to no effect, and none that is made may.
        fields.remove("contradicted");
        fields.insert("agreed_content".to_owned(), Value::from(text.into_owned()));
        self.grain = Grain::from_fields(fields)?;
        Ok(())
    }
}

/// The content address a text is, with or without `sha256:` before it.
pub(crate) fn address(text: &str) -> Option<ContentAddress> {
    text.strip_prefix("sha256:").unwrap_or(text).parse().ok()
}
