//! The first of two phases: a statement is parsed, checked and planned, what it replaces is found, and
//! nothing of it runs (spec sections 1 and 6).

use grainstore_format::ContentAddress;

use super::{Admitted, Options, Run, admitted, tier_of};
use crate::ast::{Asked, Statement, StatementType};
use crate::check::plan::{ExplainPlan, Plan, RequestPlan};
use crate::codes::Warning;
use crate::error::Result;
use crate::gate::Admission;
use crate::memory::Memory;
use crate::print;
use crate::response::PlanReport;
use crate::source::Source;
use crate::writes::Writes;

/// A statement that could run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Preparation {
    /// Which statement it is.
    pub statement_type: StatementType,
    /// The tier it needs.
    pub tier: u8,
    /// `sha256:` and the hash of the normalised query, parameters unbound.
    pub query_hash: String,
    /// The statement in normal form.
    pub text: String,
    /// What it would do.
    pub plan: PlanReport,
    /// What is known of it beside the plan.
    pub admission: Admission,
    /// The grain it would replace, by its whole address.
    pub target: Option<ContentAddress>,
    /// What the caller should know.
    pub warnings: Vec<Warning>,
}

/// Prepares one query. What it would be refused for before it writes, it is refused for here; what is
/// wrong within an entry of a BATCH is told when it runs.
///
/// # Errors
/// As [`execute`](super::execute), but for what only shows once it runs.
pub fn prepare(memory: &dyn Memory, source: &str, options: &Options<'_>) -> Result<Preparation> {
    let source = Source::read(source)?;
    let (statement, refused) = source.forgiving()?;
    let (place, tier) = (statement.place(), tier_of(&statement, options.tier));
    let prepared = admitted(memory, &statement, options, true).and_then(|admitted| {
        let Admitted { plan, warnings, .. } = admitted;
        let admission = Admission::of(&statement, tier, &plan, true);
        // Nothing is written.
        let writes = Writes::default();
        let run = Run::new(memory, &source, &plan.plan, options, &writes);
        let target = run.found_target(&plan.plan)?;
        let RequestPlan { lets, plan } = plan;
        let explained = match plan {
            Plan::Explain(explained) => *explained,
            plan => ExplainPlan {
                statement: text_of(&statement),
                statement_type: statement.statement_type(),
                tier,
                plan,
            },
        };
        Ok((run.report_of(&explained, &lets)?, admission, target, warnings))
    });
    let (plan, admission, target, warnings) =
        prepared.map_err(|error| source.locate(error.within(place)))?;
    Ok(Preparation {
        statement_type: statement.statement_type(),
        tier,
        query_hash: print::query_hash(&statement, &refused),
        text: statement.to_string(),
        plan,
        admission,
        target,
        warnings,
    })
}

/// A statement in normal form, without its LETs.
fn text_of(statement: &Statement<'_>) -> String {
    match &statement.0 {
        Asked::Statement(request) => request.body.node.to_string(),
        Asked::Define(definition) => definition.node.to_string(),
    }
}

impl Run<'_> {
    /// The grain that a statement replaces, which must be one it can replace.
    fn found_target(&self, plan: &Plan) -> Result<Option<ContentAddress>> {
        match plan {
            Plan::Supersede(plan) => Ok(Some(self.replaced(plan)?.address)),
            Plan::Revert(plan) => {
                self.reverted(plan)?;
                Ok(Some(self.target(&plan.target)?.address))
            }
            Plan::Add(plan) => self.new_fields(plan).map(|_| None),
            Plan::Define(plan) => self.definable(plan).map(|()| None),
            _ => Ok(None),
        }
    }
}
