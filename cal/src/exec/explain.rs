//! EXPLAIN (CAL 8.5): the plan of a statement, from what the memory knows without reading grains.

use std::borrow::Cow;

use grainstore_sml::Budget;

use super::{Executor, count, evolve};
use crate::ast::{Literal, StatementType};
use crate::check::plan::{
    DeferredValues, ExplainPlan, HistoryPlan, LetPlan, PipelineOutput, PlanWithLets, RecallPlan,
    SourceInput, StatementPlan,
};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::AccessPlan;
use crate::query::Query;
use crate::response::{Answer, PlanReport, RecallReport};
use crate::tier::Tier;

impl Executor<'_> {
    /// Runs an EXPLAIN statement. Nothing of the statement it explains is run.
    pub(super) fn explain(&self, explained: &ExplainPlan, lets: &[LetPlan]) -> Result<Answer> {
        Ok(Answer::Plan { plan: self.plan_report(explained, lets)? })
    }

    /// Returns the plan of a statement.
    pub(super) fn plan_report(
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
            StatementPlan::Assemble(plan) => match plan.budget {
                Budget::Tokens(tokens) => count(tokens),
                Budget::Grains(grains) => {
                    count(grains).saturating_mul(limits::ESTIMATED_GRAIN_TOKENS)
                }
            },
            _ => u64::MAX,
        };
        Ok(PlanReport {
            statement: explained.statement.clone(),
            statement_type: explained.statement_type,
            tier: explained.tier,
            side_effects: words(side_effects(explained.statement_type, explained.tier)),
            refusals: self.refusals(&explained.plan)?,
            checked_later: words(checked_later(explained.statement_type)),
            estimated_tokens: tokens.min(most),
            recalls,
        })
    }

    fn report(
        &self,
        plan: &StatementPlan,
        part: &str,
        reports: &mut Vec<RecallReport>,
    ) -> Result<()> {
        self.cancel.check()?;
        match plan {
            StatementPlan::Recall(recall) => {
                self.report_recall(recall, part.to_owned(), gives_grains(recall), reports)
            }
            StatementPlan::Coalesce(branches) => {
                for (at, branch) in branches.iter().enumerate() {
                    let part = format!("branch {at}");
                    self.report_recall(branch, part, gives_grains(branch), reports)?;
                }
                Ok(())
            }
            StatementPlan::Set(set) => {
                self.report_operand(&set.left, "left operand", reports)?;
                self.report_operand(&set.right, "right operand", reports)
            }
            StatementPlan::Assemble(assemble) => {
                for source in &assemble.sources {
                    if let SourceInput::Recall(recall) = &source.from {
                        let part = format!("source {}", source.label);
                        self.report_recall(recall, part, true, reports)?;
                    }
                }
                Ok(())
            }
            StatementPlan::Batch(entries) => {
                for (label, entry) in entries {
                    if let Ok(entry) = entry {
                        self.report(entry, &format!("entry {}", label.node), reports)?;
                    }
                }
                Ok(())
            }
            StatementPlan::History(HistoryPlan::Triple(query)) => {
                let most = count(limits::MAX_BUFFERED_GRAINS);
                reports.push(self.explain_query(query, part.to_owned(), most)?);
                Ok(())
            }
            StatementPlan::History(_)
            | StatementPlan::Exists(_)
            | StatementPlan::Describe(_)
            | StatementPlan::Explain(_)
            | StatementPlan::Add(_)
            | StatementPlan::Supersede(_)
            | StatementPlan::Revert(_)
            | StatementPlan::Define(_) => Ok(()),
        }
    }

    fn report_lets(&self, lets: &[LetPlan], reports: &mut Vec<RecallReport>) -> Result<()> {
        for binding in lets {
            let part = format!("LET ${}", binding.name);
            self.report_recall(&binding.recall, part, binding.extract.is_none(), reports)?;
        }
        Ok(())
    }

    fn report_operand(
        &self,
        operand: &PlanWithLets,
        part: &str,
        reports: &mut Vec<RecallReport>,
    ) -> Result<()> {
        self.report_lets(&operand.lets, reports)?;
        self.report(&operand.plan, part, reports)
    }

    /// Reports a RECALL. Its grains are counted as text only if `gives` is true.
    fn report_recall(
        &self,
        plan: &RecallPlan,
        part: String,
        gives: bool,
        reports: &mut Vec<RecallReport>,
    ) -> Result<()> {
        let mut waits_for = Vec::new();
        for feed in &plan.feeds {
            let name = feed.field.name;
            waits_for.push(match &feed.from {
                DeferredValues::Recall(inner, extractor) => {
                    let part = format!("subquery of {name} in {part}");
                    self.report_recall(inner, part, false, reports)?;
                    format!("{} of a subquery, for {name}", extractor.text())
                }
                DeferredValues::Let(_) => format!("the values of a LET, for {name}"),
            });
        }
        if let Some(thread) = &plan.thread {
            waits_for.push(format!("the thread of {}", thread.message.node));
        }
        let most = if gives { plan.requested_grains() } else { 0 };
        let mut report = self.explain_query(&plan.query, part, most)?;
        if let Some(subject) = &plan.fallback_search {
            let text = Literal::Text(subject.as_str().into());
            report.otherwise = Some(format!("where nothing has this subject: query = {text}"));
            let search = self.access_plan(&plan.query.clone().searching_for_subject(subject));
            self.check_stop()?;
            // A search that would be refused is an error only if the statement comes to run it.
            if let Ok(search) = search {
                if report.plan.estimated == 0 {
                    report.estimated_tokens = estimate_tokens(search.estimated.min(most));
                }
                report.otherwise_plan = Some(search);
            }
        }
        let desugared = plan.desugared.clone().unwrap_or_default();
        reports.push(RecallReport { desugared, waits_for, ..report });
        Ok(())
    }

    /// Reports a query of which at most `most` grains become text.
    fn explain_query(&self, query: &Query, part: String, most: u64) -> Result<RecallReport> {
        let plan = self.access_plan(query)?;
        Ok(RecallReport {
            part,
            desugared: String::new(),
            estimated_tokens: estimate_tokens(plan.estimated.min(most)),
            plan,
            waits_for: Vec::new(),
            otherwise: None,
            otherwise_plan: None,
        })
    }
}

impl Executor<'_> {
    /// Returns the access plan of a query; one that cannot match has no index.
    pub(super) fn access_plan(&self, query: &Query) -> Result<AccessPlan> {
        if query.is_impossible() {
            let index = "none".to_owned();
            return Ok(AccessPlan { index, scans_at_most: Some(0), ..AccessPlan::default() });
        }
        Ok(self.memory.explain(query, &self.cancel)?)
    }

    /// Returns the errors that a write would be refused for, as far as they are known without writing. A
    /// target outside the session is reported as not found: a real write to it leaves an entry in the audit
    /// log, EXPLAIN does not, so it must not reveal that the target exists.
    fn refusals(&self, plan: &StatementPlan) -> Result<Vec<Error>> {
        let (target, found) = match plan {
            StatementPlan::Add(plan) => (None, self.new_fields(plan).map(drop)),
            StatementPlan::Supersede(plan) => {
                (Some(&plan.target), self.supersede_target(plan).map(drop))
            }
            StatementPlan::Revert(plan) => {
                (Some(&plan.target), self.revert_versions(plan).map(drop))
            }
            _ => return Ok(Vec::new()),
        };
        let refused = found.err().map(|error| match (target, error.kind()) {
            (Some(target), ErrorKind::OtherNamespace) => evolve::target_not_found(target),
            _ => error,
        });
        if let Some(error) = refused.as_ref().filter(|error| error.kind() == ErrorKind::Memory) {
            return Err(error.clone());
        }
        let tier = Error::new(ErrorKind::TierDisabled, "this session reads only");
        let reads = self.options.tier == Tier::Read;
        let refusals = reads.then_some(tier).into_iter().chain(refused);
        Ok(refusals.map(|error| self.source.locate(error)).collect())
    }
}

/// Returns `true` if a RECALL answers grains.
fn gives_grains(plan: &RecallPlan) -> bool {
    plan.output == PipelineOutput::Grains
}

/// Estimates the tokens of so many grains in a text.
fn estimate_tokens(grains: u64) -> u64 {
    grains.saturating_mul(limits::ESTIMATED_GRAIN_TOKENS)
}

fn words(words: Vec<&'static str>) -> Vec<Cow<'static, str>> {
    words.into_iter().map(Cow::Borrowed).collect()
}

/// Returns the checks that are made only when a statement runs.
fn checked_later(statement_type: StatementType) -> Vec<&'static str> {
    let replaces = ["the invalidation policy of the grain it supersedes"];
    let writes = ["the rules of the store", "the writes of the last minute"];
    match statement_type {
        StatementType::Add => writes.to_vec(),
        StatementType::Supersede | StatementType::Revert => [&replaces[..], &writes].concat(),
        _ => Vec::new(),
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
