//! The rules that hold in an open store: one place that everybody asks, and that a change of them
//! reaches at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::facts::Fields;
use super::file::Deed;
use super::notes::Notes;
use super::rule::RuleSet;

/// The rules of an open store, and whether it has keys.
#[derive(Debug)]
pub(crate) struct Regime {
    rules: RwLock<Arc<RuleSet>>,
    has_keys: bool,
    /// Whether reads are noted, and those that are.
    audits_reads: AtomicBool,
    /// Whether some rule bears on reading.
    asks_reads: AtomicBool,
    notes: Notes,
}

impl Regime {
    pub(crate) fn new(rules: RuleSet, has_keys: bool) -> Self {
        let audits_reads = AtomicBool::new(rules.settings.audit_reads.value);
        let asks_reads = AtomicBool::new(rules.rules_on(Deed::Read));
        let (rules, notes) = (RwLock::new(Arc::new(rules)), Notes::default());
        Self { rules, has_keys, audits_reads, asks_reads, notes }
    }

    /// The rules as they are now.
    pub(crate) fn rules(&self) -> Arc<RuleSet> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other rules in force.
    pub(crate) fn change(&self, rules: RuleSet) {
        self.asks_reads.store(rules.rules_on(Deed::Read), Ordering::Release);
        self.audits_reads.store(rules.settings.audit_reads.value, Ordering::Release);
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Whether some rule bears on reading.
    pub(crate) fn asks_reads(&self) -> bool {
        self.asks_reads.load(Ordering::Acquire)
    }

    /// Whether reads go into the audit log.
    pub(crate) fn audits_reads(&self) -> bool {
        self.audits_reads.load(Ordering::Acquire)
    }

    /// Reads on their way there.
    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Whether a grain is encrypted at rest.
    pub(crate) fn encrypts(&self, grain: &dyn Fields) -> bool {
        self.has_keys && self.rules().encrypts(grain)
    }
}
