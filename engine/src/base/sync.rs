//! What the threads of a store wait for each other with: the standard library's primitives, or,
//! built with `--cfg shuttle`, twins of them whose every switch of threads a test decides
//! (`tests/hand_over.rs`).
//!
//! Whatever blocks a thread of the store is taken from here. Counts of references and atomics block
//! nobody and need not be. Knows nothing of what is waited for.

#[cfg(not(shuttle))]
mod primitives {
    use std::time::Duration;

    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, mpsc};
    pub(crate) use std::thread;

    /// Answers that come once.
    pub(crate) mod once {
        pub(crate) use oneshot::{AsyncReceiver, Receiver, Sender, channel};
    }

    /// The next message, waited for so long.
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

    /// Answers that come once.
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

    /// The next message, or that patience ended, whenever the test's scheduler likes: time does not
    /// pass in such a test.
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
