//! The rows of an answer: whole grains or selected fields, with the details that WITH options add.

use std::borrow::Cow;

use grainstore_format::{Map, REVIEW_FLAG};

use super::Executor;
use super::value::HitRef;
use crate::check::plan::RecallPlan;
use crate::error::Result;
use crate::memory::Hit;
use crate::query::Query;
use crate::response::{RecallExplanation, ResultRow};
use crate::search::Score;

/// Payload fields that describe the provenance of a grain.
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

/// The query a RECALL ran last, and its explanation.
pub(super) struct RowContext<'a> {
    /// The query; `None` if it cannot match.
    pub(super) query: Option<&'a Query>,
    /// The access plan and its cost, WITH explanation.
    pub(super) explanation: Option<&'a RecallExplanation>,
}

impl Executor<'_> {
    /// Builds the rows of a RECALL. With `in_parts` the caller replaces the grains, so the gate need not
    /// allow them as a whole.
    pub(super) fn rows(
        &self,
        hits: Vec<Hit>,
        plan: &RecallPlan,
        asked: &RowContext<'_>,
        in_parts: bool,
    ) -> Result<Vec<ResultRow>> {
        let mut searched = match asked.query.filter(|query| query.search().is_some()) {
            Some(query) => self.memory.matched_fields(query, &hits, &self.cancel)?,
            None => Vec::new(),
        }
        .into_iter();
        let mut rows = Vec::with_capacity(hits.len());
        for hit in hits {
            self.cancel.check()?;
            if !(in_parts || plan.select.is_some()) || plan.show.provenance {
                self.check_whole_grain(&hit.grain)?;
            }
            rows.push(self.row(hit, plan, searched.next(), asked)?);
        }
        Ok(rows)
    }

    /// Builds one row; `searched` are the fields that match the search, if there was one.
    fn row(
        &self,
        hit: Hit,
        plan: &RecallPlan,
        searched: Option<Vec<String>>,
        asked: &RowContext<'_>,
    ) -> Result<ResultRow> {
        let show = &plan.show;
        let contradictions = match show.contradictions {
            true => Some(self.contradictions(&hit)?),
            false => None,
        };
        let looked = HitRef::from(&hit);
        let selected = plan.select.as_ref().map(|fields| {
            let value = |field: &&'static crate::fields::Field| {
                Some((field.name.to_owned(), looked.field(field)?))
            };
            let flag = looked.awaits_review().then(|| (REVIEW_FLAG.to_owned(), true.into()));
            fields.iter().filter_map(value).chain(flag).collect::<Map>()
        });
        let matched = MatchedFields::of(&hit, plan, searched);
        let explanation = asked.explanation.map(|found| explain_match(found, &matched, hit.score));
        Ok(ResultRow {
            selected,
            beside_alone: false,
            shown: None,
            score: hit.score.value,
            content_address: hit.address,
            provenance_id: hit.address,
            state: show.state.then_some(hit.state),
            score_breakdown: show.score_breakdown.then(|| score_parts(hit.score)),
            explanation,
            matched_fields: matched.all(),
            provenance: show.provenance.then(|| provenance_fields(&hit)),
            contradictions,
            known: hit.state,
            grain: hit.grain,
        })
    }
}

/// The fields a grain matches on.
struct MatchedFields {
    /// Fields of the conditions.
    conditions: Vec<Cow<'static, str>>,
    /// Fields with searched words.
    searched: Vec<Cow<'static, str>>,
}

impl MatchedFields {
    fn of(hit: &Hit, plan: &RecallPlan, searched: Option<Vec<String>>) -> Self {
        let mut conditions = plan.matched_fields.clone();
        if hit.score.is_linked_only() {
            conditions.clear();
        } else if searched.is_some() && plan.fallback_search.is_some() {
            conditions.retain(|name| name != "subject");
        }
        let searched = searched.into_iter().flatten().map(Cow::from).collect();
        Self { conditions, searched }
    }

    /// Returns each field once, those of the conditions first.
    fn all(self) -> Vec<Cow<'static, str>> {
        let mut names = self.conditions;
        for name in self.searched {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// Returns the parts of the score of a grain.
fn score_parts(score: Score) -> Map {
    let parts = [("text", score.text), ("vector", score.vector), ("graph", score.graph)];
    let parts = parts.into_iter().filter_map(|(name, part)| Some((name, part?)));
    let mut map: Map = parts.map(|(name, part)| (name.to_owned(), part.into())).collect();
    if map.is_empty() {
        map.insert("structural".to_owned(), score.value.into());
    }
    map
}

/// Returns the reason a grain is in the answer, in one sentence.
fn explain_match(explanation: &RecallExplanation, matched: &MatchedFields, score: Score) -> String {
    if score.is_linked_only() {
        return "linked to a better answer".to_owned();
    }
    let searched = explain_search(matched, score);
    let conditions = matched.conditions.join(", ");
    match (searched, conditions.as_str()) {
        (Some(how), "") => format!("found by {how}"),
        (Some(how), fields) => format!("found by {how}; matches on {fields}"),
        (None, "") => {
            format!("found through {}; there was no condition", explanation.plan.index)
        }
        (None, fields) => format!("found through {}; matches on {fields}", explanation.plan.index),
    }
}

/// Describes how a grain matches a search; `None` without a search.
fn explain_search(matched: &MatchedFields, score: Score) -> Option<String> {
    let words = score.text.filter(|text| *text > 0.0).map(|_| match matched.searched.as_slice() {
        [] => "words of the turns around it".to_owned(),
        fields => format!("words in {}", fields.join(", ")),
    });
    let meaning = score.vector.map(|near| format!("meaning, {near:.2} near"));
    match (words, meaning) {
        (Some(words), Some(meaning)) => Some(format!("{words}, and {meaning}")),
        (words, meaning) => words.or(meaning),
    }
}

/// Returns the provenance fields of a grain, and its successor.
fn provenance_fields(hit: &Hit) -> Map {
    let field = |name: &&str| Some(((*name).to_owned(), hit.grain.get(name)?.clone()));
    let mut map: Map = PROVENANCE.iter().filter_map(field).collect();
    if let Some(successor) = hit.state.superseded_by {
        map.insert("superseded_by".to_owned(), successor.to_string().into());
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_answered_by_words_by_those_around_or_by_meaning() {
        let score = |text, vector| Score { value: 0.5, text, vector, ..Score::STRUCTURAL };
        for (score, words, expected) in [
            (Score::STRUCTURAL, "", None),
            (score(Some(0.5), None), "object", Some("words in object")),
            (score(Some(0.1), None), "", Some("words of the turns around it")),
            (score(Some(0.0), Some(0.7)), "", Some("meaning, 0.70 near")),
            (score(None, Some(0.7)), "", Some("meaning, 0.70 near")),
            (
                score(Some(0.5), Some(0.25)),
                "content",
                Some("words in content, and meaning, 0.25 near"),
            ),
        ] {
            let words = words.split_whitespace().map(|word| word.to_owned().into()).collect();
            let matched = MatchedFields { conditions: Vec::new(), searched: words };
            assert_eq!(explain_search(&matched, score).as_deref(), expected);
        }
    }
}
