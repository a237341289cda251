//! The answer to a write in progress: wait for it, or poll it as a future.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::sync::once;

/// The sending end of a [`Pending`].
pub(crate) type PendingReply<T> = once::Sender<Result<T>>;

/// A write that was sent to the writer thread: [`wait`](Self::wait) for it, or `.await` it.
///
/// Dropping it does not cancel the write.
///
/// Writes that are sent before the first is waited for share one sync of the disk.
///
/// ```
/// use grainstore::SameFact;
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
///
/// let mut pending = Vec::new();
/// for drink in ["tea", "coffee"] {
///     let grain = BeliefBuilder::new(session.now(), "alice", "likes", drink, 0.9).build()?;
///     pending.push(session.submit(grain, SameFact::Add));
/// }
/// for write in pending {
///     assert!(!write.wait()?.is_duplicate());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pending<T>(PendingState<once::Receiver<Result<T>>>);

/// The future of a [`Pending`].
#[derive(Debug)]
pub struct PendingFuture<T>(PendingState<once::AsyncReceiver<Result<T>>>);

#[derive(Debug)]
enum PendingState<R> {
    Waiting(R),
    /// Refused before it reached the writer thread.
    Refused(Option<Error>),
}

impl<T> Pending<T> {
    /// Returns the sending end and the pending answer.
    pub(crate) fn new() -> (PendingReply<T>, Self) {
        let (reply, answer) = once::channel();
        (reply, Self(PendingState::Waiting(answer)))
    }

    pub(crate) fn failed(error: Error) -> Self {
        Self(PendingState::Refused(Some(error)))
    }

    /// Blocks until the write is durable or refused.
    ///
    /// # Errors
    /// The error the write was refused with; `ERR_IO` if the writer thread stopped.
    pub fn wait(self) -> Result<T> {
        match self.0 {
            PendingState::Waiting(answer) => {
                answer.recv().unwrap_or_else(|_| Err(writer_stopped()))
            }
            PendingState::Refused(error) => Err(error.unwrap_or_else(writer_stopped)),
        }
    }
}

impl<T> IntoFuture for Pending<T> {
    type Output = Result<T>;
    type IntoFuture = PendingFuture<T>;

    fn into_future(self) -> PendingFuture<T> {
        PendingFuture(match self.0 {
            PendingState::Waiting(answer) => PendingState::Waiting(answer.into_future()),
            PendingState::Refused(error) => PendingState::Refused(error),
        })
    }
}

impl<T> Future for PendingFuture<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            PendingState::Waiting(answer) => Pin::new(answer)
                .poll(context)
                .map(|got| got.unwrap_or_else(|_| Err(writer_stopped()))),
            PendingState::Refused(error) => {
                Poll::Ready(Err(error.take().unwrap_or_else(writer_stopped)))
            }
        }
    }
}

pub(crate) fn writer_stopped() -> Error {
    Error::new(ErrorKind::Io, "the store is closed, or its writer stopped")
}
