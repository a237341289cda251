//! The rules in force in an open store, shared by all its parts; a change takes effect at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::facts::GrainFields;
use super::file::Action;
use super::rule::RuleSet;

/// The rules of an open store, and whether it has keys.
#[derive(Debug)]
pub(crate) struct ActiveRules {
    rules: RwLock<Arc<RuleSet>>,
    has_keys: bool,
    /// True if reads are recorded in the audit log.
    audits_reads: AtomicBool,
    /// True if a rule applies to reads.
    restricts_reads: AtomicBool,
}

impl ActiveRules {
    pub(crate) fn new(rules: RuleSet, has_keys: bool) -> Self {
        let audits_reads = AtomicBool::new(rules.settings.audit_reads.value);
        let asks_reads = AtomicBool::new(rules.has_rules_on(Action::Read));
        let rules = RwLock::new(Arc::new(rules));
        Self { rules, has_keys, audits_reads, restricts_reads: asks_reads }
    }

    /// Returns the rules in force.
    pub(crate) fn rules(&self) -> Arc<RuleSet> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the rules in force.
    pub(crate) fn replace(&self, rules: RuleSet) {
        self.restricts_reads.store(rules.has_rules_on(Action::Read), Ordering::Release);
        self.audits_reads.store(rules.settings.audit_reads.value, Ordering::Release);
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Returns `true` if a rule applies to reads.
    pub(crate) fn restricts_reads(&self) -> bool {
        self.restricts_reads.load(Ordering::Acquire)
    }

    /// Returns `true` if reads are recorded in the audit log.
    pub(crate) fn audits_reads(&self) -> bool {
        self.audits_reads.load(Ordering::Acquire)
    }

    /// Returns `true` if a grain is encrypted at rest.
    pub(crate) fn encrypts(&self, grain: &dyn GrainFields) -> bool {
        self.has_keys && self.rules().encrypts(grain)
    }
}
