//! A limit for the size of waiting requests. Knows nothing of their contents.

use std::sync::PoisonError;

use crate::base::error::Result;
use crate::base::pending::writer_stopped;
use crate::base::sync::{Condvar, Mutex, MutexGuard};

/// Maximum size of waiting requests in bytes, beyond which senders wait.
const MAX_BACKLOG_BYTES: usize = 256 << 20;

/// The size of waiting requests in bytes. Senders wait while it is too large, so that a host that submits
/// faster than the disk can write does not exhaust memory.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    state: Mutex<BacklogState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BacklogState {
    bytes: usize,
    closed: bool,
}

impl Backlog {
    /// Waits until there is room, then adds the bytes. A single request always fits.
    ///
    /// # Errors
    /// `ERR_IO` if the writer is gone.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<()> {
        let full = |waiting: &mut BacklogState| {
            let over = waiting.bytes.saturating_add(bytes) > MAX_BACKLOG_BYTES;
            !waiting.closed && waiting.bytes > 0 && over
        };
        let waiting = self.changed.wait_while(self.lock(), full);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        if waiting.closed {
            return Err(writer_stopped());
        }
        waiting.bytes = waiting.bytes.saturating_add(bytes);
        Ok(())
    }

    pub(crate) fn release(&self, bytes: usize) {
        let mut waiting = self.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        self.changed.notify_all();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, BacklogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
