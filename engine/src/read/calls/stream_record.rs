//! The audit record of a streamed call's events (CAL 21): how many were delivered, and how the stream ended.
//! Must never hold their content.

use crate::state::audit::StreamRecord;
use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use grainstore_cal::{Event, EventKind, EventListener, StreamStart};

/// Reasons why a stream ended early.
const CANCELLED_BY_HOST: &str = "host";
const CANCELLED_BY_LISTENER: &str = "listener";

/// A listener that counts the events it passes on.
pub(super) struct CountingListener<'l> {
    listener: &'l mut dyn EventListener,
    /// `None` before the stream starts.
    record: Option<StreamRecord>,
}

impl<'l> CountingListener<'l> {
    /// Wraps a listener.
    pub(super) fn new(listener: &'l mut dyn EventListener) -> Self {
        Self { listener, record: None }
    }

    /// The outcome of the stream; `None` if it never started.
    pub(super) fn into_record(self) -> Option<StreamRecord> {
        self.record
    }
}

impl EventListener for CountingListener<'_> {
    fn on_start(&mut self, began: &StreamStart<'_>) {
        self.record =
            Some(StreamRecord { options: began.options.to_owned(), ..StreamRecord::default() });
        self.listener.on_start(began);
    }

    fn on_text(&mut self, grains: u64) {
        self.record.get_or_insert_default().given = Some(grains);
        self.listener.on_text(grains);
    }

    fn on_event(&mut self, event: Event) -> ControlFlow<()> {
        let note = self.record.get_or_insert_default();
        let mut ends = false;
        match &event.kind {
            EventKind::Error { source: Some(_), .. } => {
                note.sources_failed = note.sources_failed.saturating_add(1);
            }
            EventKind::Cancelled { .. } => note.cancelled = Some(CANCELLED_BY_HOST),
            EventKind::AssemblyCompleted { .. } | EventKind::Error { .. } => ends = true,
            _ => {}
        }
        let taken = self.listener.on_event(event);
        note.events = note.events.saturating_add(1);
        if taken.is_break() && !ends {
            note.cancelled.get_or_insert(CANCELLED_BY_LISTENER);
        }
        taken
    }
}

/// A listener that holds back a panic, so that it is not taken for damage of the storage code that calls it.
pub(super) struct PanicCatchingListener<'l> {
    listener: &'l mut dyn EventListener,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'l> PanicCatchingListener<'l> {
    /// Wraps a listener.
    pub(super) fn new(listener: &'l mut dyn EventListener) -> Self {
        Self { listener, panic: None }
    }

    /// Resumes the panic of the listener, if there was one.
    pub(super) fn resume_panic(self) {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }

    /// Runs the listener; `None` once it has panicked.
    fn catch<T>(&mut self, tell: impl FnOnce(&mut dyn EventListener) -> T) -> Option<T> {
        if self.panic.is_some() {
            return None;
        }
        let listener = &mut *self.listener;
        let told = catch_unwind(AssertUnwindSafe(|| tell(listener)));
        told.map_err(|panic| self.panic = Some(panic)).ok()
    }
}

impl EventListener for PanicCatchingListener<'_> {
    fn on_start(&mut self, began: &StreamStart<'_>) {
        self.catch(|listener| listener.on_start(began));
    }

    fn on_text(&mut self, grains: u64) {
        self.catch(|listener| listener.on_text(grains));
    }

    fn on_event(&mut self, event: Event) -> ControlFlow<()> {
        self.catch(|listener| listener.on_event(event)).unwrap_or(ControlFlow::Break(()))
    }
}
