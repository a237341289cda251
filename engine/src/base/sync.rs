//! The blocking primitives of the store: those of the standard library, or, built with `--cfg shuttle`, their
//! twins whose every thread switch is decided by a test (`tests/hand_over.rs`).
//!
//! Every primitive that blocks a thread of the store is taken from here. Reference counts and atomics do not
//! block, and need not be.

#[cfg(not(shuttle))]
mod primitives {
    use std::time::Duration;

    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, mpsc};
    pub(crate) use std::thread;

    /// Channels for one message.
    pub(crate) mod once {
        pub(crate) use oneshot::{AsyncReceiver, Receiver, Sender, channel};
    }

    /// Receives the next message, waiting at most `patience`.
    pub(crate) fn receive_within<T>(
        from: &mpsc::Receiver<T>,
        patience: Duration,
    ) -> Result<T, mpsc::RecvTimeoutError> {
        from.recv_timeout(patience)
    }
}

#[cfg(shuttle)]
mod primitives {
    use std::time::Duration;

    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, mpsc};
    pub(crate) use shuttle::thread;

    /// Channels for one message.
    pub(crate) mod once {
        use std::future::Future;
        use std::pin::Pin;
        use std::task::{Context, Poll};

        use super::mpsc;

        #[derive(Debug)]
        pub(crate) struct Sender<T>(mpsc::Sender<T>);
        #[derive(Debug)]
        pub(crate) struct Receiver<T>(mpsc::Receiver<T>);
        #[derive(Debug)]
        pub(crate) struct AsyncReceiver<T>(mpsc::Receiver<T>);

        pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
            let (sender, receiver) = mpsc::channel();
            (Sender(sender), Receiver(receiver))
        }

        impl<T> Sender<T> {
            pub(crate) fn send(self, answer: T) -> Result<(), mpsc::SendError<T>> {
                self.0.send(answer)
            }
        }

        impl<T> Receiver<T> {
            pub(crate) fn recv(self) -> Result<T, mpsc::RecvError> {
                self.0.recv()
            }
        }

        impl<T> IntoFuture for Receiver<T> {
            type Output = Result<T, mpsc::RecvError>;
            type IntoFuture = AsyncReceiver<T>;

            fn into_future(self) -> AsyncReceiver<T> {
                AsyncReceiver(self.0)
            }
        }

        impl<T> Future for AsyncReceiver<T> {
            type Output = Result<T, mpsc::RecvError>;

            fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                match self.0.try_recv() {
                    Ok(answer) => Poll::Ready(Ok(answer)),
                    Err(mpsc::TryRecvError::Disconnected) => Poll::Ready(Err(mpsc::RecvError)),
                    Err(mpsc::TryRecvError::Empty) => {
                        context.waker().wake_by_ref();
                        Poll::Pending
                    }
                }
            }
        }
    }

    /// Receives the next message or times out, as the test's scheduler decides: time does not pass in such a
    /// test.
    pub(crate) fn receive_within<T>(
        from: &mpsc::Receiver<T>,
        _: Duration,
    ) -> Result<T, mpsc::RecvTimeoutError> {
        use shuttle::rand::Rng;
        if shuttle::rand::thread_rng().gen_bool(0.5) {
            return from.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected);
        }
        thread::yield_now();
        from.try_recv().map_err(|error| match error {
            mpsc::TryRecvError::Empty => mpsc::RecvTimeoutError::Timeout,
            mpsc::TryRecvError::Disconnected => mpsc::RecvTimeoutError::Disconnected,
        })
    }
}

pub(crate) use primitives::*;
