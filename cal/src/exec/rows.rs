//! The rows of an answer: whole grains or selected fields, with what WITH asks to see beside them.

use std::borrow::Cow;

use grainstore_format::Map;

use super::Run;
use super::value::Looked;
use crate::check::plan::RecallPlan;
use crate::error::Result;
use crate::memory::Hit;
use crate::query::Query;
use crate::response::{Explanation, ResultRow};
use crate::search::Score;

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

/// What a RECALL asked in the end, and how it was answered.
pub(super) struct Asked<'a> {
    /// None where it cannot match.
    pub(super) query: Option<&'a Query>,
    /// WITH explanation.
    pub(super) explanation: Option<&'a Explanation>,
}

impl Run<'_> {
    /// The rows of a RECALL that shows grains.
    pub(super) fn rows(
        &self,
        hits: Vec<Hit>,
        plan: &RecallPlan,
        asked: &Asked<'_>,
    ) -> Result<Vec<ResultRow>> {
        let mut rows = Vec::with_capacity(hits.len());
        for hit in hits {
            self.cancel.check()?;
            rows.push(self.row(hit, plan, asked)?);
        }
        Ok(rows)
    }

    fn row(&self, hit: Hit, plan: &RecallPlan, asked: &Asked<'_>) -> Result<ResultRow> {
        let show = &plan.show;
        let contradictions = match show.contradictions {
            true => Some(self.contradictions(&hit)?),
            false => None,
        };
        let looked = Looked::from(&hit);
        let selected = plan.select.as_ref().map(|fields| {
            let value = |field: &&'static crate::fields::Field| {
                Some((field.name.to_owned(), looked.field(field)?))
            };
            fields.iter().filter_map(value).collect::<Map>()
        });
        let matched = self.matched(&hit, plan, asked.query)?;
        Ok(ResultRow {
            selected,
            score: hit.score.value,
            content_address: hit.address,
            provenance_id: hit.address,
            state: show.state.then_some(hit.state),
            score_breakdown: show.score_breakdown.then(|| breakdown(hit.score)),
            explanation: asked.explanation.map(|found| why(found, &hit.score, &matched)),
            matched_fields: matched,
            provenance: show.provenance.then(|| provenance(&hit)),
            contradictions,
            known: hit.state,
            grain: hit.grain,
        })
    }

    /// The fields a grain matches on: those of the conditions, then those with words searched for.
    fn matched(
        &self,
        hit: &Hit,
        plan: &RecallPlan,
        query: Option<&Query>,
    ) -> Result<Vec<Cow<'static, str>>> {
        let mut names = plan.matched_fields.clone();
        if hit.score.is_linked_only() {
            names.clear();
        }
        let Some(query) = query.filter(|query| query.search().is_some()) else { return Ok(names) };
        if plan.otherwise.is_some() {
            names.retain(|name| name != "subject");
        }
        for name in self.memory.matched_fields(query, &hit.grain)? {
            if !names.iter().any(|known| *known == name) {
                names.push(name.into());
            }
        }
        Ok(names)
    }
}

/// What the score of a grain is made of.
fn breakdown(score: Score) -> Map {
    let parts = [("text", score.text), ("vector", score.vector), ("graph", score.graph)];
    let parts = parts.into_iter().filter_map(|(name, part)| Some((name, part?)));
    let mut map: Map = parts.map(|(name, part)| (name.to_owned(), part.into())).collect();
    if map.is_empty() {
        map.insert("structural".to_owned(), score.value.into());
    }
    map
}

/// Why a grain is in the answer, in one sentence.
fn why(explanation: &Explanation, score: &Score, matched: &[Cow<'static, str>]) -> String {
    let index = &explanation.plan.index;
    match matched {
        _ if score.is_linked_only() => "linked to a better answer".to_owned(),
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
