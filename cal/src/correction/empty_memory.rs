//! A memory without grains that refuses every write, for checking statements that are only suggested.

use grainstore_format::{ContentAddress, Grain};

use crate::cancel::CancelHandle;
use crate::memory::{
    AccessPlan, HashPrefix, Hit, HostInfo, Memory, MemoryError, NamedTemplate, PrefixMatch,
    RecallStats, RecallVisitor, SessionScope, TemplateSaveOutcome,
};
use crate::query::Query;

/// An empty memory, with an empty scope.
#[derive(Default)]
pub(super) struct EmptyMemory(SessionScope);

fn refuse_write<T>() -> Result<T, MemoryError> {
    Err(MemoryError::new("ERR_READ_ONLY", "a statement that is only suggested does not run", ""))
}

impl Memory for EmptyMemory {
    fn scope(&self) -> &SessionScope {
        &self.0
    }

    fn recall(
        &self,
        _: &Query,
        _: &CancelHandle,
        _: &mut RecallVisitor<'_>,
    ) -> Result<RecallStats, MemoryError> {
        Ok(RecallStats::default())
    }

    fn matched_fields(
        &self,
        _: &Query,
        _: &[Hit],
        _: &CancelHandle,
    ) -> Result<Vec<Vec<String>>, MemoryError> {
        Ok(Vec::new())
    }

    fn locate(&self, _: &HashPrefix) -> Result<PrefixMatch, MemoryError> {
        Ok(PrefixMatch::Nothing)
    }

    fn exists(&self, _: &ContentAddress) -> Result<bool, MemoryError> {
        Ok(false)
    }

    fn get(&self, _: &ContentAddress) -> Result<Option<Hit>, MemoryError> {
        Ok(None)
    }

    fn history(&self, _: &ContentAddress, _: usize) -> Result<Vec<Hit>, MemoryError> {
        Ok(Vec::new())
    }

    fn thread(
        &self,
        _: &ContentAddress,
        _: usize,
        _: &CancelHandle,
    ) -> Result<Vec<ContentAddress>, MemoryError> {
        Ok(Vec::new())
    }

    fn explain(&self, _: &Query, _: &CancelHandle) -> Result<AccessPlan, MemoryError> {
        Ok(AccessPlan::default())
    }

    fn describe(&self) -> Result<HostInfo, MemoryError> {
        Ok(HostInfo::default())
    }

    fn templates(&self) -> Result<Vec<NamedTemplate>, MemoryError> {
        Ok(Vec::new())
    }

    fn save_template(&self, _: &NamedTemplate) -> Result<TemplateSaveOutcome, MemoryError> {
        refuse_write()
    }

    fn add(&self, _: Grain, _: &str) -> Result<ContentAddress, MemoryError> {
        refuse_write()
    }

    fn supersede(
        &self,
        _: &ContentAddress,
        _: Grain,
        _: &str,
    ) -> Result<ContentAddress, MemoryError> {
        refuse_write()
    }
}
