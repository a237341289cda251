//! One grain of an answer, with the details that options add.

use std::borrow::Cow;

use grainstore_format::{ContentAddress, Grain, GrainState, Map, REVIEW_FLAG, VerificationStatus};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// One grain of a RECALL, from [`execute`](crate::execute).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResultRow {
    /// The grain. In JSON it has full field names, and is replaced by `selected` where that is set.
    pub grain: Grain,
    /// SELECT or PROJECT: the fields shown in place of the grain, under their CAL names, and
    /// `requires_human_review` if a review is pending.
    pub selected: Option<Map>,
    /// The score; 1.0 for a purely structural match.
    pub score: f64,
    /// The fields of the query that the grain matches on.
    pub matched_fields: Vec<Cow<'static, str>>,
    /// The address.
    pub content_address: ContentAddress,
    /// The address again, as the root of its provenance.
    pub provenance_id: ContentAddress,
    /// The index-layer state, WITH superseded.
    pub state: Option<GrainState>,
    /// The parts of the score, WITH score_breakdown.
    pub score_breakdown: Option<Map>,
    /// The reason for the match, WITH explanation.
    pub explanation: Option<String>,
    /// The provenance fields, WITH provenance.
    pub provenance: Option<Map>,
    /// The contradicting grains, WITH contradiction_detection.
    pub contradictions: Option<Vec<ContentAddress>>,
    /// True to serialise the row without the grain: of a source of an ASSEMBLE, whose text has the grain.
    pub(crate) beside_alone: bool,
    /// Whether the text has the grain, of a row beside a source of an ASSEMBLE.
    pub shown: Option<bool>,
    /// The index-layer state, shown or not.
    pub(crate) known: GrainState,
}

impl ResultRow {
    /// Returns the verification status, whether or not the row shows its state.
    #[must_use]
    pub fn verification_status(&self) -> VerificationStatus {
        self.known.verification_status
    }

    /// Returns `true` if it is a reasoning that asks for a review and has had none (OMS 6.1).
    #[must_use]
    pub fn awaits_review(&self) -> bool {
        self.grain.awaits_review(self.verification_status())
    }
}

impl Serialize for ResultRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.selected {
            _ if self.beside_alone => {}
            Some(selected) => map.serialize_entry("grain", selected)?,
            None => map.serialize_entry("grain", &self.grain)?,
        }
        map.serialize_entry("score", &self.score)?;
        map.serialize_entry("matched_fields", &self.matched_fields)?;
        map.serialize_entry("content_address", &self.content_address)?;
        map.serialize_entry("provenance_id", &self.provenance_id)?;
        serialize_optional(&mut map, "shown", self.shown.as_ref())?;
        serialize_optional(&mut map, REVIEW_FLAG, self.awaits_review().then_some(&true))?;
        serialize_optional(&mut map, "state", self.state.as_ref())?;
        serialize_optional(&mut map, "score_breakdown", self.score_breakdown.as_ref())?;
        serialize_optional(&mut map, "explanation", self.explanation.as_ref())?;
        serialize_optional(&mut map, "provenance", self.provenance.as_ref())?;
        serialize_optional(&mut map, "contradictions", self.contradictions.as_ref())?;
        map.end()
    }
}

/// Serialises an entry, or leaves it out if it is `None`.
fn serialize_optional<M: SerializeMap>(
    map: &mut M,
    name: &'static str,
    value: Option<&impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}
