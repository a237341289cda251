//! The input: a grain with its index state, and the level of detail.
//!
//! It has the rules on which grains must not be shown, and knows no output format.

use grainstore_format::{ContentAddress, Grain, GrainType, VerificationStatus};

use crate::display_value::DisplayValue;

/// A grain to show, with its state in the index layer.
///
/// ```
/// use grainstore_format::Grain;
/// use grainstore_sml::Item;
///
/// let grain = Grain::from_json(
///     r#"{"type": "reasoning", "premises": ["a note"], "conclusion": "refund ann",
///         "inference_method": "deductive", "requires_human_review": true, "created_at": 0}"#,
/// )?;
/// let mut item = Item { grain, verification: None, chosen: None, score: None };
/// assert!(!item.is_displayable());
/// item.verification = Some("verified".to_owned());
/// assert!(item.is_displayable());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Item {
    /// The grain.
    pub grain: Grain,
    /// The `verification_status` in the index layer; `None` means `unverified`.
    pub verification: Option<String>,
    /// The fields to show instead of those of the type.
    pub chosen: Option<ChosenFields>,
    /// The relevance to the query, from 0 to 1, if known. Shown by templates only.
    pub score: Option<f64>,
}

/// The fields of a grain that a query selected, shown at every level (PROJECT, CAL 10.3.5).
///
/// ```
/// use grainstore_format::{EpochMs, EventBuilder};
/// use grainstore_sml::{ChosenFields, Clock, Item, Level, project};
///
/// let grain = EventBuilder::new(EpochMs::new(0), "alice said hello").role("user").build()?;
/// let attributes = vec![("said by".to_owned(), "a user".into())];
/// let chosen = Some(ChosenFields { text: None, attributes });
/// let item = Item { grain, verification: None, chosen, score: None };
/// let clock = Clock { now: EpochMs::new(1_000), iso_timestamps: false };
/// let shown = project(&item, Level::Full, &clock);
/// assert_eq!(shown.map(|shown| shown.attributes.len()), Some(1));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChosenFields {
    /// The text; `None` keeps the text of the type.
    pub text: Option<String>,
    /// The attributes. No others are shown.
    pub attributes: Vec<(String, DisplayValue<'static>)>,
}

impl Item {
    /// Returns the status, unless it is `unverified`.
    pub(crate) fn verification(&self) -> Option<&str> {
        self.verification.as_deref().filter(|status| *status != "unverified")
    }

    /// Returns `true` if formatted text may show the grain: it is of a standard type, and not a
    /// reasoning that still waits for human review (ruling 46).
    #[must_use]
    pub fn is_displayable(&self) -> bool {
        match self.grain.grain_type() {
            GrainType::Opaque(_) => false,
            _ => {
                let status = self.verification().and_then(VerificationStatus::from_name);
                !self.grain.awaits_review(status.unwrap_or_default())
            }
        }
    }

    /// Returns the address of the grain a consensus agreed on, if `agreed_content` is an address and
    /// the consensus has no claim of its own.
    ///
    /// Addresses never appear in formatted text: look the grain up and pass it to
    /// [`Item::resolve_agreed`], or the consensus is shown without its claim.
    #[must_use]
    pub fn agreed_address(&self) -> Option<ContentAddress> {
        let names_no_claim = self.grain.get("object").is_none();
        let agreed = self.grain.text("agreed_content").filter(|_| names_no_claim)?;
        (self.grain.grain_type() == GrainType::Consensus).then(|| parse_address(agreed)).flatten()
    }
}

/// Parses a content address, with or without the prefix `sha256:`.
pub(crate) fn parse_address(text: &str) -> Option<ContentAddress> {
    ContentAddress::digits(text).parse().ok()
}
