//! The rows of an answer: whole grains or selected fields, with what WITH asks to see beside them.

use grainstore_format::{Map, Value};

use super::Run;
use super::value::Looked;
use crate::check::plan::RecallPlan;
use crate::error::Result;
use crate::memory::Hit;
use crate::response::{Explanation, ResultRow};

/// Payload fields that tell where a grain comes from.
const PROVENANCE: [&str; 9] = [
    "source_type",
    "author_did",
    "created_at",
    "derived_from",
    "provenance_chain",
    "consolidation_level",
    "origin_did",
    "origin_namespace",
    "supersession_justification",
];

impl Run<'_> {
    /// The rows of a RECALL that shows grains.
    pub(super) fn rows(
        &self,
        hits: Vec<Hit>,
        plan: &RecallPlan,
        explanation: Option<&Explanation>,
    ) -> Result<Vec<ResultRow>> {
        let mut rows = Vec::with_capacity(hits.len());
        for hit in hits {
            self.cancel.check()?;
            rows.push(self.row(hit, plan, explanation)?);
        }
        Ok(rows)
    }

    fn row(
        &self,
        hit: Hit,
        plan: &RecallPlan,
        explanation: Option<&Explanation>,
    ) -> Result<ResultRow> {
        let show = &plan.show;
        let contradictions = match show.contradictions {
            true => Some(self.contradictions(&hit)?),
            false => None,
        };
        let looked = Looked { address: hit.address, grain: &hit.grain, state: &hit.state };
        let selected = plan.select.as_ref().map(|fields| {
            let value = |field: &&'static crate::fields::Field| {
                Some((field.name.to_owned(), looked.field(field)?))
            };
            fields.iter().filter_map(value).collect::<Map>()
        });
        Ok(ResultRow {
            selected,
            score: 1.0,
            matched_fields: plan.matched_fields.clone(),
            content_address: hit.address,
            provenance_id: hit.address,
            state: show.state.then_some(hit.state),
            score_breakdown: show
                .score_breakdown
                .then(|| Map::from([("structural".to_owned(), Value::from(1.0))])),
            explanation: explanation.map(|found| why(found, plan)),
            provenance: show.provenance.then(|| provenance(&hit)),
            contradictions,
            known: hit.state,
            grain: hit.grain,
        })
    }
}

/// Why a grain is in the answer, in one sentence.
fn why(explanation: &Explanation, plan: &RecallPlan) -> String {
    let index = &explanation.plan.index;
    match plan.matched_fields.as_slice() {
        [] => format!("found through {index}; there was no condition"),
        fields => format!("found through {index}; matches on {}", fields.join(", ")),
    }
}

/// Where a grain comes from and what became of it.
fn provenance(hit: &Hit) -> Map {
    let field = |name: &&str| Some(((*name).to_owned(), hit.grain.get(name)?.clone()));
    let mut map: Map = PROVENANCE.iter().filter_map(field).collect();
    if let Some(successor) = hit.state.superseded_by {
        map.insert("superseded_by".to_owned(), successor.to_string().into());
    }
    map
}
