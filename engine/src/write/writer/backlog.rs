//! How much may wait for the writer. Knows nothing of what waits.

use std::sync::PoisonError;

use crate::base::error::Result;
use crate::base::pending::stopped;
use crate::base::sync::{Condvar, Mutex, MutexGuard};

/// Bytes of blobs that may wait before senders have to.
const MAX_BACKLOG_BYTES: usize = 256 << 20;

/// The bytes that wait for the writer. Senders wait while there are too many, so that a host that
/// submits faster than the disk takes it does not fill its memory.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: usize,
    closed: bool,
}

impl Backlog {
    /// Waits until there is room, then counts the bytes in. One request always fits.
    ///
    /// # Errors
    /// `ERR_IO` once the writer is gone.
    pub(crate) fn enter(&self, bytes: usize) -> Result<()> {
        let full = |waiting: &mut Waiting| {
            let over = waiting.bytes.saturating_add(bytes) > MAX_BACKLOG_BYTES;
            !waiting.closed && waiting.bytes > 0 && over
        };
        let waiting = self.changed.wait_while(self.lock(), full);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        if waiting.closed {
            return Err(stopped());
        }
        waiting.bytes = waiting.bytes.saturating_add(bytes);
        Ok(())
    }

    pub(crate) fn leave(&self, bytes: usize) {
        let mut waiting = self.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        self.changed.notify_all();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
