//! EXPLAIN: the plan of a statement, from what the memory knows without looking at grains.

use grainstore_sml::Budget;

use super::{Run, count};
use crate::ast::{Literal, StatementType};
use crate::check::plan::{
    ExplainPlan, FeedFrom, HistoryPlan, LetPlan, Plan, RecallPlan, RequestPlan, SourceFrom,
};
use crate::error::Result;
use crate::limits;
use crate::memory::Explained;
use crate::query::Query;
use crate::response::{Answer, PlanReport, RecallReport};

impl Run<'_> {
    /// Runs an EXPLAIN statement, and nothing of the statement it explains.
    pub(super) fn explain(&self, explained: &ExplainPlan, lets: &[LetPlan]) -> Result<Answer> {
        Ok(Answer::Plan { plan: self.report_of(explained, lets)? })
    }

    /// What a statement would do.
    pub(super) fn report_of(
        &self,
        explained: &ExplainPlan,
        lets: &[LetPlan],
    ) -> Result<PlanReport> {
        let mut recalls = Vec::new();
        self.report_lets(lets, &mut recalls)?;
        self.report(&explained.plan, "statement", &mut recalls)?;
        let tokens =
            recalls.iter().map(|report| report.estimated_tokens).fold(0_u64, u64::saturating_add);
        let most = match &explained.plan {
            Plan::Assemble(plan) => match plan.budget {
                Budget::Tokens(tokens) => count(tokens),
                Budget::Grains(grains) => count(grains).saturating_mul(limits::TOKENS_A_GRAIN),
            },
            _ => u64::MAX,
        };
        Ok(PlanReport {
            statement: explained.statement.clone(),
            statement_type: explained.statement_type,
            tier: explained.tier,
            side_effects: side_effects(explained.statement_type, explained.tier),
            estimated_tokens: tokens.min(most),
            recalls,
        })
    }

    fn report(&self, plan: &Plan, part: &str, reports: &mut Vec<RecallReport>) -> Result<()> {
        self.cancel.check()?;
        match plan {
            Plan::Recall(recall) => self.report_recall(recall, part.to_owned(), reports),
            Plan::Coalesce(branches) => {
                for (at, branch) in branches.iter().enumerate() {
                    self.report_recall(branch, format!("branch {at}"), reports)?;
                }
                Ok(())
            }
            Plan::Set(set) => {
                self.report_operand(&set.left, "left operand", reports)?;
                self.report_operand(&set.right, "right operand", reports)
            }
            Plan::Assemble(assemble) => {
                for source in &assemble.sources {
                    if let SourceFrom::Recall(recall) = &source.from {
                        self.report_recall(recall, format!("source {}", source.label), reports)?;
                    }
                }
                Ok(())
            }
            Plan::Batch(entries) => {
                for (label, entry) in entries {
                    if let Ok(entry) = entry {
                        self.report(entry, &format!("entry {}", label.node), reports)?;
                    }
                }
                Ok(())
            }
            Plan::History(HistoryPlan::Triple(query)) => {
                reports.push(self.explain_query(
                    query,
                    part.to_owned(),
                    count(limits::VERSIONS),
                )?);
                Ok(())
            }
            Plan::History(_)
            | Plan::Exists(_)
            | Plan::Describe(_)
            | Plan::Explain(_)
            | Plan::Add(_)
            | Plan::Supersede(_)
            | Plan::Revert(_)
            | Plan::Define(_) => Ok(()),
        }
    }

    fn report_lets(&self, lets: &[LetPlan], reports: &mut Vec<RecallReport>) -> Result<()> {
        for binding in lets {
            self.report_recall(&binding.recall, format!("LET ${}", binding.name), reports)?;
        }
        Ok(())
    }

    fn report_operand(
        &self,
        operand: &RequestPlan,
        part: &str,
        reports: &mut Vec<RecallReport>,
    ) -> Result<()> {
        self.report_lets(&operand.lets, reports)?;
        self.report(&operand.plan, part, reports)
    }

    fn report_recall(
        &self,
        plan: &RecallPlan,
        part: String,
        reports: &mut Vec<RecallReport>,
    ) -> Result<()> {
        let mut waits_for = Vec::new();
        for feed in &plan.feeds {
            let name = feed.field.name;
            waits_for.push(match &feed.from {
                FeedFrom::Recall(inner, extractor) => {
                    self.report_recall(inner, format!("subquery of {name} in {part}"), reports)?;
                    format!("{} of a subquery, for {name}", extractor.text())
                }
                FeedFrom::Let(_) => format!("the values of a LET, for {name}"),
            });
        }
        if let Some(thread) = &plan.thread {
            waits_for.push(format!("the thread of {}", thread.message.node));
        }
        let report = self.explain_query(&plan.query, part, plan.asked())?;
        let desugared = plan.desugared.clone().unwrap_or_default();
        let otherwise = plan.otherwise.as_ref().map(|text| {
            let text = Literal::Text(text.as_str().into());
            format!("where nothing has this subject: query = {text}")
        });
        reports.push(RecallReport { desugared, waits_for, otherwise, ..report });
        Ok(())
    }

    fn explain_query(&self, query: &Query, part: String, asked: u64) -> Result<RecallReport> {
        let plan = self.explained(query)?;
        let grains = plan.estimated.min(asked);
        Ok(RecallReport {
            part,
            desugared: String::new(),
            estimated_tokens: grains.saturating_mul(limits::TOKENS_A_GRAIN),
            plan,
            waits_for: Vec::new(),
            otherwise: None,
        })
    }
}

impl Run<'_> {
    /// What the memory says about a query; one that cannot match needs no index.
    pub(super) fn explained(&self, query: &Query) -> Result<Explained> {
        if query.is_impossible() {
            let index = "none".to_owned();
            return Ok(Explained { index, scans_at_most: Some(0), ..Explained::default() });
        }
        Ok(self.memory.explain(query)?)
    }
}

fn side_effects(statement_type: StatementType, tier: u8) -> Vec<&'static str> {
    match statement_type {
        StatementType::DefineTemplate if tier > 0 => vec!["keeps a template for the namespace"],
        StatementType::DefineTemplate => vec!["keeps a template for the session"],
        StatementType::Add => vec!["adds one grain"],
        StatementType::Supersede | StatementType::Revert => {
            vec!["adds one grain", "supersedes one grain"]
        }
        _ => Vec::new(),
    }
}
