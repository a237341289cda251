//! Inputs of a RECALL: LETs, values of subqueries, members of a thread.

use std::sync::Arc;

use grainstore_format::{ContentAddress, GrainType};

use super::Executor;
use crate::bounds::TypeSet;
use crate::check::plan::{DeferredValues, LetPlan, RecallPlan, ThreadTarget};
use crate::check::too_many_values;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::Hit;
use crate::predicate::Predicate;
use crate::query::Query;
use crate::types;

/// The result of a LET. The error of a failed one is raised where it is used.
pub(super) type LetResult = Result<LetValue>;

/// The grains or the values of a LET.
pub(super) enum LetValue {
    /// The grains, with the bytes they take in memory.
    Grains(Vec<Hit>, usize),
    Values(InValues),
}

/// The values of an IN, and whether they are complete.
#[derive(Clone)]
pub(super) struct InValues {
    pub(super) values: Vec<String>,
    pub(super) complete: bool,
}

impl Executor<'_> {
    /// Runs the LETs of a query in order and brings them into scope.
    pub(super) fn bind_lets(&mut self, lets: &[LetPlan]) {
        for binding in lets {
            let bound = match binding.extract {
                Some(extractor) => self.texts(&binding.recall, extractor).map(LetValue::Values),
                None => self
                    .find(&binding.recall)
                    .map(|found| LetValue::Grains(found.hits, found.bytes)),
            };
            self.lets.push(Arc::new(bound));
        }
    }

    /// Returns the query of a RECALL with all its inputs resolved.
    ///
    /// # Errors
    /// E011 for too many values, E046 for an unknown message, E030 for a thread that is too long, and the
    /// errors of the inner RECALLs.
    pub(super) fn resolve_inputs(&mut self, plan: &RecallPlan) -> Result<Query> {
        let mut query = plan.query.clone();
        if let Some(thread) = &plan.thread {
            query = self.thread(thread, query)?;
        }
        for feed in &plan.feeds {
            let InValues { values, complete } = match &feed.from {
                DeferredValues::Recall(inner, extractor) => self.texts(inner, *extractor)?,
                DeferredValues::Let(at) => self.let_values(*at)?,
            };
            if !complete {
                return Err(too_many_values(feed.place));
            }
            if values.is_empty() {
                query.types = TypeSet::NONE;
            }
            query.require(Predicate::among(feed.field, values));
        }
        Ok(query)
    }

    /// Runs `read` on the query of a RECALL; `read` also returns whether any grain matched. If none has the
    /// subject of an ABOUT, it runs again on a search for the words of the subject (CAL 9.1).
    ///
    /// # Errors
    /// As [`Executor::resolve_inputs`], and those of `read`.
    pub(super) fn read_with_fallback<T>(
        &mut self,
        plan: &RecallPlan,
        mut read: impl FnMut(&mut Self, Query) -> Result<(T, bool)>,
    ) -> Result<T> {
        let query = self.resolve_inputs(plan)?;
        let Some(subject) = &plan.fallback_search else { return Ok(read(self, query)?.0) };
        let (answer, found) = read(self, query.clone())?;
        if found || query.is_impossible() {
            return Ok(answer);
        }
        Ok(read(self, query.searching_for_subject(subject))?.0)
    }

    /// Returns E046 for a grain that exists and is no message.
    fn not_a_message(
        &self,
        thread: &ThreadTarget,
        address: &ContentAddress,
    ) -> Result<Option<Error>> {
        let found = self.memory.get(address)?.map(|hit| hit.grain.grain_type());
        Ok(found.filter(|found| *found != GrainType::Event).map(|found| {
            let message = format!(
                "{} is no message: it is one of the {}",
                thread.message.node,
                types::plural_of(found)
            );
            let error = Error::new(ErrorKind::TargetNotFound, message).at(thread.message.span);
            error.suggest("THREAD FROM takes the hash of an event, see RECALL events | HASHES")
        }))
    }

    fn let_values(&self, at: usize) -> Result<InValues> {
        match self.lets.get(at).map(Arc::as_ref) {
            Some(Ok(LetValue::Values(values))) => Ok(values.clone()),
            Some(Err(error)) => Err(error.clone()),
            // The checker admits only a LET of values here.
            Some(Ok(LetValue::Grains(..))) | None => {
                Ok(InValues { values: Vec::new(), complete: true })
            }
        }
    }

    /// Returns the grains of a LET.
    pub(super) fn let_grains(&mut self, at: usize) -> Result<Vec<Hit>> {
        let (hits, bytes) = match self.lets.get(at).map(Arc::as_ref) {
            Some(Ok(LetValue::Grains(hits, bytes))) => (hits.clone(), *bytes),
            Some(Err(error)) => return Err(error.clone()),
            Some(Ok(LetValue::Values(_))) | None => (Vec::new(), 0),
        };
        self.reserve_bytes(bytes)?;
        Ok(hits)
    }

    fn thread(&self, thread: &ThreadTarget, query: Query) -> Result<Query> {
        let unknown = || {
            let message = format!("{} leads to no grain", thread.message.node);
            Error::new(ErrorKind::TargetNotFound, message).at(thread.message.span)
        };
        let address = thread.address.ok_or_else(unknown)?;
        let most = limits::MAX_BUFFERED_GRAINS;
        let members = self.memory.thread(&address, most + 1, &self.cancel)?;
        if members.is_empty() {
            return Err(self.not_a_message(thread, &address)?.unwrap_or_else(unknown));
        }
        if members.len() > most {
            let message = format!("the thread has more than {most} messages");
            let error = Error::new(ErrorKind::BudgetExceeded, message).at(thread.message.span);
            return Err(error.suggest("use THREAD \"session\" with conditions and a LIMIT"));
        }
        Ok(query.among(members))
    }
}
