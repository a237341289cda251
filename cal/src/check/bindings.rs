//! LET: names for the result of a RECALL, visible to the statements after it (CAL 8.12).

use super::plan::{LetPlan, RecallPlan};
use super::{CheckContext, recall};
use crate::ast::{Extractor, LetBinding};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::span::{Span, Spanned};

/// A LET in scope.
pub(crate) struct LetInScope {
    name: String,
    /// True if it holds values, false if it holds grains.
    gives_values: bool,
    /// The number of grains it asks for.
    requested_grains: u64,
    /// Length of the longest chain of LETs that ends with this one.
    depth: usize,
}

/// The LETs in scope.
#[derive(Default)]
pub(crate) struct Bindings {
    known: Vec<LetInScope>,
    /// True while LETs cannot be used: only those of an ASSEMBLE may use earlier ones.
    sealed: bool,
    deepest_used: usize,
}

/// Checks the LETs of a query in order and adds them to the scope; with `builds` they may use earlier ones.
pub(super) fn lets(
    lets: &[LetBinding<'_>],
    builds: bool,
    context: &mut CheckContext<'_>,
) -> Result<Vec<LetPlan>> {
    let mut plans = Vec::with_capacity(lets.len());
    for binding in lets {
        let name = binding.name.node;
        if context.bindings.position(name).is_some() {
            let message = format!("${name} is bound by a LET already");
            return Err(Error::new(ErrorKind::BoundTwice, message).at(binding.name.span));
        }
        context.bindings.sealed = !builds;
        context.bindings.deepest_used = 0;
        let plan = check_let(binding, context);
        context.bindings.sealed = false;
        let plan = plan?;
        let depth = context.bindings.deepest_used + 1;
        if depth > limits::MAX_LET_DEPTH {
            let message =
                format!("LETs build on each other at most {} deep", limits::MAX_LET_DEPTH);
            return Err(Error::new(ErrorKind::TooDeep, message).at(binding.name.span));
        }
        let gives_values = binding.extract.is_some();
        let asked = plan.recall.requested_grains();
        context.bindings.known.push(LetInScope {
            name: name.to_owned(),
            gives_values,
            requested_grains: asked,
            depth,
        });
        plans.push(plan);
    }
    Ok(plans)
}

fn check_let(binding: &LetBinding<'_>, context: &mut CheckContext<'_>) -> Result<LetPlan> {
    let place = binding.name.span;
    let plan = recall::recall_for(&binding.recall, binding.extract, context)?;
    let recall = check_feed(plan, binding.extract, place)?;
    Ok(LetPlan { name: binding.name.node.to_owned(), recall, extract: binding.extract })
}

/// Checks a RECALL whose grains or values another part of the query takes.
pub(super) fn check_feed(
    mut plan: RecallPlan,
    extract: Option<Extractor>,
    place: Span,
) -> Result<RecallPlan> {
    plan.require_whole_grains("a LET or subquery", place)?;
    plan.require_no_display("a LET or subquery", place)?;
    if let Some(extractor) = extract {
        recall::check_extractor(extractor, &plan, place)?;
        plan.drop_default_limit();
    }
    Ok(plan)
}

impl Bindings {
    /// Returns the size of the scope, for [`Bindings::leave`].
    pub(super) fn mark(&self) -> usize {
        self.known.len()
    }

    /// Removes the LETs added since the mark.
    pub(super) fn leave(&mut self, mark: usize) {
        self.known.truncate(mark);
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.known.iter().position(|known| known.name == name)
    }

    /// Returns `true` if a LET of this name is in scope.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// Returns the number of grains that the LET at this index asks for.
    pub(super) fn requested_grains(&self, at: usize) -> u64 {
        self.known.get(at).map_or(0, |known| known.requested_grains)
    }

    /// Returns the index of the LET of this name, which must hold values if `wants_values`, else grains;
    /// `None` if no LET has the name.
    ///
    /// # Errors
    /// E021 for a LET of the other kind, or where LETs cannot be used.
    pub(super) fn find(
        &mut self,
        name: &Spanned<&str>,
        wants_values: bool,
    ) -> Result<Option<usize>> {
        let Some(at) = self.position(name.node) else { return Ok(None) };
        let refused = |message: String, advice: &str| {
            let error = Error::new(ErrorKind::WrongStage, message).at(name.span);
            Err(error.suggest(advice.to_owned()))
        };
        let Some(known) = self.known.get(at) else { return Ok(None) };
        if self.sealed {
            let message = format!("${} cannot be used in another LET here", name.node);
            return refused(message, "only the LETs of an ASSEMBLE build on each other");
        }
        match (wants_values, known.gives_values) {
            (true, false) => {
                let message = format!("${} holds grains, IN needs values", name.node);
                return refused(message, "end the LET with | SUBJECTS, | OBJECTS or | HASHES");
            }
            (false, true) => {
                let message = format!("${} holds values, a source needs grains", name.node);
                return refused(message, "leave the extractor of the LET out");
            }
            _ => {}
        }
        self.deepest_used = self.deepest_used.max(known.depth);
        Ok(Some(at))
    }
}
