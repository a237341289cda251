//! Ctrl-C while a statement runs: it cancels the statement, and the prompt continues.
//!
//! While a line is edited, the terminal passes Ctrl-C to the line editor and sends no signal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use grainstore::cal::CancelHandle;
use grainstore_rpc::Patience;

use crate::error::{Code, Error, Result};

/// The handler of Ctrl-C, with the statement it cancels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    running: Mutex<Option<CancelHandle>>,
    pressed: AtomicBool,
}

impl Interrupt {
    /// Installs the signal handler for the process.
    pub(crate) fn install() -> Result<Self> {
        let interrupt = Self::default();
        let shared = Arc::clone(&interrupt.shared);
        ctrlc::set_handler(move || shared.press()).map_err(|error| {
            let message = format!("Ctrl-C cannot be caught: {error}");
            Error::new(Code::Io, message, "run the statement with `grain cal`")
        })?;
        Ok(interrupt)
    }

    /// Runs cancellable work. It is cancelled at once if Ctrl-C was pressed before it began.
    pub(crate) fn run_cancellable<T>(&self, run: impl FnOnce(CancelHandle) -> T) -> T {
        let cancel = CancelHandle::new();
        self.shared.set_running(Some(cancel.clone()));
        if self.was_pressed() {
            cancel.cancel();
        }
        let done = run(cancel);
        self.shared.set_running(None);
        done
    }

    /// Returns `true` if Ctrl-C was pressed since the last reset.
    pub(crate) fn was_pressed(&self) -> bool {
        self.shared.pressed.load(Ordering::SeqCst)
    }

    /// Resets the pressed state, once all of the input that Ctrl-C was meant for has ended.
    pub(crate) fn reset(&self) {
        self.shared.pressed.store(false, Ordering::SeqCst);
    }
}

impl Shared {
    fn press(&self) {
        self.pressed.store(true, Ordering::SeqCst);
        if let Some(running) = &*self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            running.cancel();
        }
    }

    fn set_running(&self, cancel: Option<CancelHandle>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = cancel;
    }
}

/// Has a signal that ends the process end the patience with who reads stdout.
#[cfg(unix)]
pub(crate) fn stop_at_signal(signal: i32, patience: &Patience) {
    // Where one cannot be registered the reader is waited for, as before.
    let number = usize::try_from(signal).unwrap_or_default();
    let noted = signal_hook::flag::register_usize(signal, patience.signal(), number);
    let _ = noted.and_then(|_| signal_hook::flag::register(signal, patience.stop()));
}

/// Has every signal that ends the process end the patience with who reads stdout.
#[cfg(unix)]
pub(crate) fn stop_at_signals(patience: &Patience) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    [SIGINT, SIGTERM, SIGHUP].iter().for_each(|signal| stop_at_signal(*signal, patience));
}

/// Elsewhere there is no such signal.
#[cfg(not(unix))]
pub(crate) fn stop_at_signals(_: &Patience) {}

/// Ends the process by the signal that stopped what nobody reads, as it ends any process.
#[cfg(unix)]
pub(crate) fn end_by_signal(patience: &Patience) {
    if let Some(signal) = patience.ended_by() {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// Elsewhere there is no such signal.
#[cfg(not(unix))]
pub(crate) fn end_by_signal(_: &Patience) {}

/// Has signals stop what serves others; a second one ends the process at once.
#[cfg(unix)]
#[cfg(any(feature = "cluster", feature = "serve"))]
pub(crate) fn set_at_signals(stop: &Arc<AtomicBool>) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Where one cannot be registered the system does what it did before.
        let again = signal_hook::flag::register_conditional_default(signal, Arc::clone(stop));
        let _ = again.and_then(|_| signal_hook::flag::register(signal, Arc::clone(stop)));
    }
}

/// Elsewhere Ctrl-C stops it.
#[cfg(not(unix))]
#[cfg(any(feature = "cluster", feature = "serve"))]
pub(crate) fn set_at_signals(stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    let _ = ctrlc::set_handler(move || stop.store(true, std::sync::atomic::Ordering::SeqCst));
}

#[cfg(test)]
mod tests {
    use grainstore::cal::StopReason;

    use super::*;

    #[test]
    fn what_runs_and_what_follows_it_is_stopped_until_that_is_over() {
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.run_cancellable(|cancel| cancel.stop_reason()), None);
        let stopped = interrupt.run_cancellable(|cancel| {
            interrupt.shared.press();
            cancel.stop_reason()
        });
        assert_eq!((stopped, interrupt.was_pressed()), (Some(StopReason::Cancelled), true));
        let next = interrupt.run_cancellable(|cancel| cancel.stop_reason());
        assert_eq!(next, Some(StopReason::Cancelled), "the next of the same file");
        interrupt.reset();
        assert_eq!(interrupt.run_cancellable(|cancel| cancel.stop_reason()), None);
    }
}
