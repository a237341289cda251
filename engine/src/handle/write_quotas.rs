//! The quotas of CAL writes (CAL 17.3), one for each identity of a session: what one writes takes nothing from others.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use grainstore_cal::{WriteLimits, WriteQuotas};

use crate::base::sync::Mutex;
use crate::state::session_options::SessionOptions;

/// Number of identities beyond which those that have not written for a minute are forgotten.
const MAX_REMEMBERED: usize = 1024;

/// Namespace, user, actor and agent of a session.
type Identity = [Option<String>; 4];

/// The quotas of all sessions of a store.
#[derive(Debug)]
pub(crate) struct SessionQuotas {
    /// Those that all others are made beside.
    first: WriteQuotas,
    by_identity: Mutex<HashMap<Identity, Arc<WriteQuotas>>>,
}

impl SessionQuotas {
    pub(crate) fn new(limits: WriteLimits) -> Self {
        Self { first: WriteQuotas::new(limits), by_identity: Mutex::default() }
    }

    /// The limits, which are the same for all.
    pub(crate) fn limits(&self) -> WriteLimits {
        self.first.limits()
    }

    /// The quotas of a session.
    pub(crate) fn of(&self, session: &SessionOptions) -> Arc<WriteQuotas> {
        let SessionOptions { namespace, user_id, actor, agent_id, .. } = session;
        let identity = [namespace, user_id, actor, agent_id].map(Clone::clone);
        let mut all = self.by_identity.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_REMEMBERED && !all.contains_key(&identity) {
            // What is in use stays, and what would be full anyway goes.
            all.retain(|_, quotas| Arc::strong_count(quotas) > 1 || !quotas.is_full());
        }
        let quotas = all.entry(identity).or_insert_with(|| Arc::new(self.first.beside()));
        Arc::clone(quotas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_identity_has_its_own_and_those_that_are_full_are_forgotten() {
        let quotas = SessionQuotas::new(WriteLimits::default());
        let session = |number: usize| SessionOptions {
            namespace: Some(format!("n{number}")),
            ..SessionOptions::default()
        };
        let first = quotas.of(&session(0));
        assert!(Arc::ptr_eq(&first, &quotas.of(&session(0))));
        let reads = SessionOptions { purposes: vec!["research".to_owned()], ..session(0) };
        assert!(Arc::ptr_eq(&first, &quotas.of(&reads)), "purposes are of reads");
        for number in 1..4 * MAX_REMEMBERED {
            assert!(!Arc::ptr_eq(&first, &quotas.of(&session(number))));
        }
        assert!(quotas.by_identity.lock().unwrap().len() <= MAX_REMEMBERED);
        assert!(Arc::ptr_eq(&first, &quotas.of(&session(0))), "one in use stays");
    }
}
