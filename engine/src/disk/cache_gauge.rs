//! How much of its page cache a database uses, told to who does not own the database.

use std::sync::{Arc, PoisonError, Weak};

use redb::{Database, ReadableDatabase as _};

use crate::base::sync::Mutex;

/// Reads the used bytes of the page cache of the database that is in use now.
#[derive(Debug, Clone, Default)]
pub(crate) struct CacheGauge(Arc<Mutex<Weak<Database>>>);

impl CacheGauge {
    /// Turns to a database, which is closed all the same when its owner drops it.
    pub(crate) fn watch(&self, db: &Arc<Database>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(db);
    }

    /// Turns away from the database, which nobody holds but its owner from then on.
    pub(crate) fn leave(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Weak::new();
    }

    /// Bytes of the page cache in use, 0 once the database is closed.
    pub(crate) fn used(&self) -> usize {
        let db = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        db.upgrade().map_or(0, |db| db.cache_stats().used_bytes())
    }
}
