//! One grain of an answer, and what stands beside it.

use std::borrow::Cow;

use grainstore_format::{ContentAddress, Grain, GrainState, Map, REVIEW_FLAG, VerificationStatus};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// One grain of a RECALL.
#[derive(Debug, Clone)]
pub struct ResultRow {
    /// The grain. In JSON it stands under full field names, or gives way to `selected`.
    pub grain: Grain,
    /// SELECT: the fields shown in place of the grain, under their names in CAL, and
    /// `requires_human_review` where it waits for that.
    pub selected: Option<Map>,
    /// 1.0: a purely structural match.
    pub score: f64,
    /// The fields the query asked about.
    pub matched_fields: Vec<Cow<'static, str>>,
    /// Its address.
    pub content_address: ContentAddress,
    /// Its address again, the root of its provenance.
    pub provenance_id: ContentAddress,
    /// Its index state, WITH superseded.
    pub state: Option<GrainState>,
    /// What its score is made of, WITH score_breakdown.
    pub score_breakdown: Option<Map>,
    /// Why it is here, WITH explanation.
    pub explanation: Option<String>,
    /// Where it comes from, WITH provenance.
    pub provenance: Option<Map>,
    /// What speaks against it, WITH contradiction_detection.
    pub contradictions: Option<Vec<ContentAddress>>,
    /// Shown by its address and what stands beside it, without the grain: a text tells of that.
    pub(crate) beside_alone: bool,
    /// Its index state, shown or not.
    pub(crate) known: GrainState,
}

impl ResultRow {
    /// What review made of it, whether its state is shown or not.
    #[must_use]
    pub fn verification_status(&self) -> VerificationStatus {
        self.known.verification_status
    }

    /// Whether it is a reasoning that asks for a review and has had none (OMS 6.1).
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
        beside(&mut map, REVIEW_FLAG, self.awaits_review().then_some(&true))?;
        beside(&mut map, "state", self.state.as_ref())?;
        beside(&mut map, "score_breakdown", self.score_breakdown.as_ref())?;
        beside(&mut map, "explanation", self.explanation.as_ref())?;
        beside(&mut map, "provenance", self.provenance.as_ref())?;
        beside(&mut map, "contradictions", self.contradictions.as_ref())?;
        map.end()
    }
}

/// An entry that is left out where there is nothing to tell.
fn beside<M: SerializeMap>(
    map: &mut M,
    name: &'static str,
    value: Option<&impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}
