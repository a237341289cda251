//! The memory behind a token limited to some grain types: grains of all others do not exist in it.

use grainstore_cal::{
    AccessPlan, CancelHandle, HashPrefix, Hit, HostInfo, Memory, MemoryError, NamedTemplate,
    PrefixMatch, Query, RecallStats, RecallVisitor, SessionScope, TemplateSaveOutcome, TypeSet,
};
use grainstore_format::{ContentAddress, Grain, GrainType};

use crate::base::error::{Error, ErrorKind};
use crate::read::memory::SessionMemory;

/// A session's memory, limited to these types.
pub(super) struct TypeLimitedMemory<'b> {
    pub(super) inner: SessionMemory<'b>,
    pub(super) types: Vec<GrainType>,
}

impl TypeLimitedMemory<'_> {
    fn shows(&self, hit: &Hit) -> bool {
        self.types.contains(&hit.grain.grain_type())
    }

    /// The query limited to the allowed types; `None` if it can match no grain.
    fn limit_query(&self, query: &Query) -> Option<Query> {
        let own = query.types();
        let types = own.iter().filter(|of| self.types.contains(of));
        let types = types.fold(TypeSet::NONE, |types, of| types.or(TypeSet::of(of)));
        (types != TypeSet::NONE).then(|| query.clone().of_types(types))
    }
}

impl Memory for TypeLimitedMemory<'_> {
    fn scope(&self) -> &SessionScope {
        self.inner.scope()
    }

    fn recall(
        &self,
        query: &Query,
        cancel: &CancelHandle,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<RecallStats, MemoryError> {
        match self.limit_query(query) {
            Some(query) => self.inner.recall(&query, cancel, visit),
            None => Ok(RecallStats { scanned: 0, total: Some(0) }),
        }
    }

    fn matched_fields(
        &self,
        query: &Query,
        hits: &[Hit],
        cancel: &CancelHandle,
    ) -> Result<Vec<Vec<String>>, MemoryError> {
        self.inner.matched_fields(query, hits, cancel)
    }

    fn locate(&self, prefix: &HashPrefix) -> Result<PrefixMatch, MemoryError> {
        match self.inner.locate(prefix)? {
            PrefixMatch::One(address) if !self.exists(&address)? => Ok(PrefixMatch::Nothing),
            located => Ok(located),
        }
    }

    fn exists(&self, address: &ContentAddress) -> Result<bool, MemoryError> {
        Ok(self.get(address)?.is_some())
    }

    fn get(&self, address: &ContentAddress) -> Result<Option<Hit>, MemoryError> {
        Ok(self.inner.get(address)?.filter(|hit| self.shows(hit)))
    }

    fn templates(&self) -> Result<Vec<NamedTemplate>, MemoryError> {
        self.inner.templates()
    }

    fn save_template(&self, template: &NamedTemplate) -> Result<TemplateSaveOutcome, MemoryError> {
        self.inner.save_template(template)
    }

    fn history(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Hit>, MemoryError> {
        Ok(self.inner.versions(address, limit, &|of| self.types.contains(&of))?)
    }

    fn count_versions(
        &self,
        address: &ContentAddress,
        cancel: &CancelHandle,
    ) -> Result<u64, MemoryError> {
        self.inner.number_of_versions(address, cancel, &|of| self.types.contains(&of))
    }

    fn thread(
        &self,
        message: &ContentAddress,
        limit: usize,
        cancel: &CancelHandle,
    ) -> Result<Vec<ContentAddress>, MemoryError> {
        match self.types.contains(&GrainType::Event) {
            true => self.inner.thread(message, limit, cancel),
            false => Ok(Vec::new()),
        }
    }

    fn uses_external_service(&self, query: &Query) -> bool {
        self.inner.uses_external_service(query)
    }

    fn explain(&self, query: &Query, cancel: &CancelHandle) -> Result<AccessPlan, MemoryError> {
        match self.limit_query(query) {
            Some(query) => self.inner.explain(&query, cancel),
            None => Ok(AccessPlan {
                index: "none".to_owned(),
                scans_at_most: Some(0),
                ..AccessPlan::default()
            }),
        }
    }

    fn describe(&self) -> Result<HostInfo, MemoryError> {
        self.inner.describe()
    }

    fn add(&self, grain: Grain, reason: &str) -> Result<ContentAddress, MemoryError> {
        self.check_writes(&grain)?;
        self.inner.add(grain, reason)
    }

    fn supersede(
        &self,
        old: &ContentAddress,
        grain: Grain,
        reason: &str,
    ) -> Result<ContentAddress, MemoryError> {
        self.check_writes(&grain)?;
        self.inner.supersede(old, grain, reason)
    }
}

impl TypeLimitedMemory<'_> {
    /// # Errors
    /// `ERR_TOKEN` for a grain of another type.
    fn check_writes(&self, grain: &Grain) -> Result<(), MemoryError> {
        let grain_type = grain.grain_type();
        if self.types.contains(&grain_type) {
            return Ok(());
        }
        let message = format!("the token does not cover writing a {grain_type}");
        Err(Error::new(ErrorKind::Token, message).into())
    }
}
