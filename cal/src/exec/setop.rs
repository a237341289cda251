//! Set operations: grains of two queries joined by their addresses, in the order of a RECALL.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use grainstore_format::ContentAddress;

use super::Run;
use super::recall::Found;
use super::rows::Asked;
use crate::ast::SetOperator;
use crate::check::plan::{Plan, RecallPlan, RequestPlan, SetPlan, Show};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::Hit;
use crate::response::{Answer, Grains, ResultRow};
use crate::search::Score;

impl Run<'_> {
    /// Runs a set operation.
    pub(super) fn set_operation(&mut self, plan: &SetPlan) -> Result<Answer> {
        let results = self.joined(plan)?;
        self.returned(results.len());
        let formatted = match self.options.as_format {
            Some(format) => {
                let hit = |row: &ResultRow| Hit {
                    address: row.content_address,
                    grain: row.grain.clone(),
                    state: row.known,
                    score: Score { value: row.score, ..Score::STRUCTURAL },
                };
                let hits: Vec<Hit> = results.iter().map(hit).collect();
                let text = self.show(&hits, format, &Show::default(), None, limits::MAX_LIMIT)?;
                self.used.tokens_used += super::count(self.options.counter.count(&text));
                Some(text)
            }
            None => None,
        };
        Ok(Answer::Grains(Grains {
            total: Some(super::count(results.len())),
            results,
            next_cursor: None,
            formatted,
            summarized: None,
            explanation: None,
        }))
    }

    fn joined(&mut self, plan: &SetPlan) -> Result<Vec<ResultRow>> {
        let left = self.operand(&plan.left)?;
        let right = self.operand(&plan.right)?;
        self.cancel.check()?;
        Ok(join(left, plan.operator, right))
    }

    /// The rows of an operand, with its LETs in scope while it runs.
    fn operand(&mut self, request: &RequestPlan) -> Result<Vec<ResultRow>> {
        let mark = self.lets.len();
        self.bind(&request.lets);
        let rows = self.operand_rows(&request.plan);
        self.lets.truncate(mark);
        rows
    }

    fn operand_rows(&mut self, plan: &Plan) -> Result<Vec<ResultRow>> {
        match plan {
            Plan::Recall(plan) => {
                let found = self.find(plan)?;
                self.operand_of(found, plan)
            }
            Plan::Coalesce(branches) => {
                for branch in branches {
                    let found = self.find(branch)?;
                    if !found.hits.is_empty() {
                        return self.operand_of(found, branch);
                    }
                }
                Ok(Vec::new())
            }
            Plan::Set(inner) => self.joined(inner),
            _ => Err(Error::new(ErrorKind::WrongStage, "an operand yields grains")),
        }
    }

    fn operand_of(&self, found: Found, plan: &RecallPlan) -> Result<Vec<ResultRow>> {
        self.rows(found.hits, plan, &Asked { query: found.query.as_ref(), explanation: None })
    }
}

/// UNION keeps the larger score of a grain on both sides and INTERSECT the smaller.
fn join(left: Vec<ResultRow>, operator: SetOperator, right: Vec<ResultRow>) -> Vec<ResultRow> {
    let mut others: BTreeMap<ContentAddress, ResultRow> =
        right.into_iter().map(|row| (row.content_address, row)).collect();
    let mut rows = Vec::with_capacity(left.len());
    for mut row in left {
        let other = others.remove(&row.content_address);
        let keep = match operator {
            SetOperator::Union => true,
            SetOperator::Intersect => other.is_some(),
            SetOperator::Except => other.is_none(),
        };
        if let Some(other) = other {
            row.score = match operator {
                SetOperator::Union => row.score.max(other.score),
                SetOperator::Intersect | SetOperator::Except => row.score.min(other.score),
            };
            let new = other.matched_fields.into_iter();
            let new: Vec<_> = new.filter(|name| !row.matched_fields.contains(name)).collect();
            row.matched_fields.extend(new);
        }
        if keep {
            rows.push(row);
        }
    }
    if operator == SetOperator::Union {
        rows.extend(others.into_values());
    }
    rows.sort_by_cached_key(|row| (Reverse(row.grain.time()), row.content_address));
    rows
}
