//! Syntax tree to plan: parameters bound, shortcuts desugared, rules of the language held.
//!
//! What passes here can be run without looking at syntax again. Errors keep the places of the tree.

mod assemble;
mod comparison;
mod condition;
mod evolve;
mod history;
mod options;
pub(crate) mod plan;
mod recall;
mod resolve;
mod stages;

use grainstore_format::EpochMs;

use crate::ast::{Body, Statement};
use crate::codes::Warning;
use crate::error::Result;
use crate::memory::Memory;
use crate::params::Params;
use plan::Plan;

pub(crate) use resolve::ambiguous;

/// What checking needs to know of the request, and what it has to say about it.
pub(crate) struct Context<'c> {
    pub(crate) memory: &'c dyn Memory,
    pub(crate) params: &'c Params,
    pub(crate) now: EpochMs,
    pub(crate) warnings: Vec<Warning>,
}

/// Checks a statement and turns it into a plan.
///
/// # Errors
/// The first rule broken, with its place.
pub(crate) fn check(statement: &Statement<'_>, context: &mut Context<'_>) -> Result<Plan> {
    match &statement.0.node {
        Body::Recall(recall) => recall::recall(recall, context).map(Plan::Recall),
        Body::Assemble(assemble) => assemble::assemble(assemble, context).map(Plan::Assemble),
        Body::Exists(target) => context.hash(target).map(Plan::Exists),
        Body::History(history) => history::history(history, context).map(Plan::History),
        Body::Add(add) => evolve::add(add, context).map(Plan::Add),
        Body::Supersede(supersede) => evolve::supersede(supersede, context).map(Plan::Supersede),
    }
}

impl Context<'_> {
    /// Notes a warning, each code and message once.
    pub(crate) fn warn(&mut self, code: &'static str, message: String) {
        let warning = Warning { code, message };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
