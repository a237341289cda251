//! The namespaces of a scope, looked up once for all lists of a query.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::dictionary::TermDictionary;
use crate::error::Result;
use crate::lookup::Scope;
use crate::term::TermId;

/// The namespaces of a scope in one view, looked up once for all of its
/// [`PostingEstimate`](crate::PostingEstimate)s.
#[derive(Debug, Clone)]
pub struct ScopeNamespaces<'s> {
    scope: Scope<'s>,
    ids: OnceCell<Arc<[TermId]>>,
}

impl<'s> ScopeNamespaces<'s> {
    /// Wraps a scope; its namespaces are looked up when they are first needed.
    #[must_use]
    pub fn of(scope: Scope<'s>) -> Self {
        Self { scope, ids: OnceCell::new() }
    }

    /// The ids of the namespaces, ascending. For a list with rows for the whole store, and the scope of all
    /// namespaces, it is the id 0 alone.
    pub(crate) fn ids(
        &self,
        names: &TermDictionary<'_>,
        everywhere: bool,
    ) -> Result<Arc<[TermId]>> {
        if everywhere && matches!(self.scope, Scope::All) {
            return Ok(Arc::new([TermId::NONE]));
        }
        if let Some(ids) = self.ids.get() {
            return Ok(Arc::clone(ids));
        }
        let ids: Arc<[TermId]> = names.namespaces(&self.scope)?.into();
        Ok(Arc::clone(self.ids.get_or_init(|| ids)))
    }
}
