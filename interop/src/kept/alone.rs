//! Writers of what is kept come one after the other: what they find is as it was when they write.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while what is kept is read and written.
static WRITING: Mutex<()> = Mutex::new(());

/// Waits until nobody else writes, and keeps others from writing. The store is open in one process, which writes for all.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}
