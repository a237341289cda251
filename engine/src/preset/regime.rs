//! The rules that hold in an open store: one place that everybody asks, and that a change of them
//! reaches at once.

use std::sync::{Arc, PoisonError, RwLock};

use super::facts::Fields;
use super::rule::RuleSet;

/// The rules of an open store, and whether it has keys.
#[derive(Debug)]
pub(crate) struct Regime {
    rules: RwLock<Arc<RuleSet>>,
    has_keys: bool,
}

impl Regime {
    pub(crate) fn new(rules: RuleSet, has_keys: bool) -> Self {
        Self { rules: RwLock::new(Arc::new(rules)), has_keys }
    }

    /// The rules as they are now.
    pub(crate) fn rules(&self) -> Arc<RuleSet> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other rules in force.
    pub(crate) fn change(&self, rules: RuleSet) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Whether a grain is encrypted at rest.
    pub(crate) fn encrypts(&self, grain: &dyn Fields) -> bool {
        self.has_keys && self.rules().encrypts(grain)
    }
}
