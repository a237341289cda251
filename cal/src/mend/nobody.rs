//! A memory without grains that refuses every write, for checking statements that are only suggested.

use grainstore_format::{ContentAddress, Grain};

use crate::cancel::Cancel;
use crate::memory::{
    Explained, HashPrefix, Hit, Host, Located, Memory, MemoryError, NamedTemplate, Recalled, Scope,
    TemplateKept, Visit,
};
use crate::query::Query;

/// An empty memory, with an empty scope.
#[derive(Default)]
pub(super) struct Nobody(Scope);

fn nothing<T>() -> Result<T, MemoryError> {
    Err(MemoryError::new("ERR_READ_ONLY", "a statement that is only suggested does not run", ""))
}

impl Memory for Nobody {
    fn scope(&self) -> &Scope {
        &self.0
    }

    fn recall(&self, _: &Query, _: &Cancel, _: &mut Visit<'_>) -> Result<Recalled, MemoryError> {
        Ok(Recalled::default())
    }

    fn matched_fields(&self, _: &Query, _: &Grain) -> Result<Vec<String>, MemoryError> {
        Ok(Vec::new())
    }

    fn locate(&self, _: &HashPrefix) -> Result<Located, MemoryError> {
        Ok(Located::Nothing)
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
        _: &Cancel,
    ) -> Result<Vec<ContentAddress>, MemoryError> {
        Ok(Vec::new())
    }

    fn explain(&self, _: &Query, _: &Cancel) -> Result<Explained, MemoryError> {
        Ok(Explained::default())
    }

    fn describe(&self) -> Result<Host, MemoryError> {
        Ok(Host::default())
    }

    fn templates(&self) -> Result<Vec<NamedTemplate>, MemoryError> {
        Ok(Vec::new())
    }

    fn keep_template(&self, _: &NamedTemplate) -> Result<TemplateKept, MemoryError> {
        nothing()
    }

    fn add(&self, _: Grain, _: &str) -> Result<ContentAddress, MemoryError> {
        nothing()
    }

    fn supersede(
        &self,
        _: &ContentAddress,
        _: Grain,
        _: &str,
    ) -> Result<ContentAddress, MemoryError> {
        nothing()
    }
}
