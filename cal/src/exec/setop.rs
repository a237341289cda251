//! Set operations (CAL 8.11): grains of two queries combined by address, in the order of a RECALL.

use std::collections::BTreeMap;

use grainstore_format::ContentAddress;

use super::Executor;
use super::recall::RecallOutcome;
use super::rows::RowContext;
use crate::ast::SetOperator;
use crate::check::plan::{DisplayOptions, PlanWithLets, RecallPlan, SetPlan, StatementPlan};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::Hit;
use crate::response::{Answer, RecallAnswer, ResultRow};
use crate::search::Score;

/// The grains of an operand. If it is the result of a search, its scores define the order.
#[derive(Default)]
struct Operand {
    rows: Vec<ResultRow>,
    searched: bool,
}

impl Executor<'_> {
    /// Runs a set operation.
    pub(super) fn set_operation(&mut self, plan: &SetPlan) -> Result<Answer> {
        let results = self.joined(plan)?.rows;
        self.count_returned(results.len());
        let formatted = match self.options.as_format {
            Some(format) => {
                let hit = |row: &ResultRow| Hit {
                    address: row.content_address,
                    grain: row.grain.clone(),
                    state: row.known,
                    score: Score { value: row.score, ..Score::STRUCTURAL },
                };
                let hits: Vec<Hit> = results.iter().map(hit).collect();
                let text = self.render(
                    &hits,
                    format,
                    &DisplayOptions::default(),
                    None,
                    limits::MAX_LIMIT,
                )?;
                self.usage.tokens_used += super::count(self.options.counter.count(&text));
                Some(text)
            }
            None => None,
        };
        Ok(Answer::Grains(RecallAnswer {
            total: Some(super::count(results.len())),
            results,
            next_cursor: None,
            formatted,
            summarized: None,
            explanation: None,
        }))
    }

    fn joined(&mut self, plan: &SetPlan) -> Result<Operand> {
        let left = self.operand(&plan.left)?;
        let right = self.operand(&plan.right)?;
        self.cancel.check()?;
        Ok(join(left, plan.operator, right))
    }

    /// Runs an operand, with its own LETs in scope.
    fn operand(&mut self, request: &PlanWithLets) -> Result<Operand> {
        let mark = self.lets.len();
        self.bind_lets(&request.lets);
        let operand = self.operand_rows(&request.plan);
        self.lets.truncate(mark);
        operand
    }

    fn operand_rows(&mut self, plan: &StatementPlan) -> Result<Operand> {
        match plan {
            StatementPlan::Recall(plan) => {
                let found = self.find(plan)?;
                self.operand_of(found, plan)
            }
            StatementPlan::Coalesce(branches) => {
                for branch in branches {
                    let found = self.find(branch)?;
                    if !found.hits.is_empty() {
                        return self.operand_of(found, branch);
                    }
                }
                Ok(Operand::default())
            }
            StatementPlan::Set(inner) => self.joined(inner),
            _ => Err(Error::new(ErrorKind::WrongStage, "an operand yields grains")),
        }
    }

    fn operand_of(&self, found: RecallOutcome, plan: &RecallPlan) -> Result<Operand> {
        // A search without results gives no score to order by.
        let searched = !found.hits.is_empty()
            && found.query.as_ref().is_some_and(|query| query.search().is_some());
        let asked = RowContext { query: found.query.as_ref(), explanation: None };
        Ok(Operand { rows: self.rows(found.hits, plan, &asked, false)?, searched })
    }
}

/// Combines two operands. Of a grain on both sides UNION keeps the larger score and INTERSECT the smaller.
/// The order is that of a RECALL: by score if an operand that contributes grains was a search, else newest
/// first.
fn join(left: Operand, operator: SetOperator, right: Operand) -> Operand {
    let searched = left.searched || (right.searched && operator != SetOperator::Except);
    let mut others: BTreeMap<ContentAddress, ResultRow> =
        right.rows.into_iter().map(|row| (row.content_address, row)).collect();
    let mut rows = Vec::with_capacity(left.rows.len());
    for mut row in left.rows {
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
    rows.sort_by(|a, b| {
        let by_rank = match searched {
            true => b.score.total_cmp(&a.score),
            false => b.grain.time().cmp(&a.grain.time()),
        };
        by_rank.then_with(|| a.content_address.cmp(&b.content_address))
    });
    Operand { rows, searched }
}
