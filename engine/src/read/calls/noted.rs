//! What the audit log is told of the events of a streamed call (spec section 6): how many went to whom,
//! and how it ended. Never what is in them.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use grainstore_cal::{Began, Event, EventKind, Listener};
use grainstore_format::{Map, Value};

/// Why a stream ended early.
const BY_HOST: &str = "host";
const BY_LISTENER: &str = "listener";

/// What became of the events of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamNote {
    options: String,
    events: u64,
    cancelled: Option<&'static str>,
    sources_failed: u64,
    /// Grains of the text, once events told of it.
    given: Option<u64>,
}

/// What an entry of the audit log has of the events of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamedEntry {
    /// The events that were asked for and the size of a chunk: `chunks, chunk_size = 100`.
    pub options: String,
    /// Events that were handed over, one that was refused then among them.
    pub events_emitted: u64,
    /// Why it was cancelled, where it was: `host`, or `listener` where nobody took the events.
    pub cancel_reason: Option<String>,
    /// Sources that failed.
    pub sources_failed: u64,
}

/// A listener whose events are counted.
pub(super) struct Noting<'l> {
    listener: &'l mut dyn Listener,
    /// Nothing before it begins.
    note: Option<StreamNote>,
}

impl<'l> Noting<'l> {
    /// Nothing yet.
    pub(super) fn of(listener: &'l mut dyn Listener) -> Self {
        Self { listener, note: None }
    }

    /// What came of it; nothing where it never began.
    pub(super) fn note(self) -> Option<StreamNote> {
        self.note
    }
}

impl Listener for Noting<'_> {
    fn begins(&mut self, began: &Began<'_>) {
        self.note = Some(StreamNote { options: began.options.to_owned(), ..StreamNote::default() });
        self.listener.begins(began);
    }

    fn gives(&mut self, grains: u64) {
        self.note.get_or_insert_default().given = Some(grains);
        self.listener.gives(grains);
    }

    fn event(&mut self, event: Event) -> ControlFlow<()> {
        let note = self.note.get_or_insert_default();
        let mut ends = false;
        match &event.kind {
            EventKind::Error { source: Some(_), .. } => {
                note.sources_failed = note.sources_failed.saturating_add(1);
            }
            EventKind::Cancelled { .. } => note.cancelled = Some(BY_HOST),
            EventKind::AssemblyCompleted { .. } | EventKind::Error { .. } => ends = true,
            _ => {}
        }
        let taken = self.listener.event(event);
        note.events = note.events.saturating_add(1);
        if taken.is_break() && !ends {
            note.cancelled.get_or_insert(BY_LISTENER);
        }
        taken
    }
}

/// A listener whose panic is kept, so that it is not taken for damage of the storage it is called under.
pub(super) struct Caught<'l> {
    listener: &'l mut dyn Listener,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'l> Caught<'l> {
    /// Nothing yet.
    pub(super) fn of(listener: &'l mut dyn Listener) -> Self {
        Self { listener, panic: None }
    }

    /// Goes on with the panic of the listener, if there was one.
    pub(super) fn resume(self) {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }

    /// What the listener says; nothing once it panicked.
    fn run<T>(&mut self, tell: impl FnOnce(&mut dyn Listener) -> T) -> Option<T> {
        if self.panic.is_some() {
            return None;
        }
        let listener = &mut *self.listener;
        let told = catch_unwind(AssertUnwindSafe(|| tell(listener)));
        told.map_err(|panic| self.panic = Some(panic)).ok()
    }
}

impl Listener for Caught<'_> {
    fn begins(&mut self, began: &Began<'_>) {
        self.run(|listener| listener.begins(began));
    }

    fn gives(&mut self, grains: u64) {
        self.run(|listener| listener.gives(grains));
    }

    fn event(&mut self, event: Event) -> ControlFlow<()> {
        self.run(|listener| listener.event(event)).unwrap_or(ControlFlow::Break(()))
    }
}

impl StreamNote {
    /// The grains of its text, of which any may have been handed over; nothing where it did not come so far.
    pub(super) fn given(&self) -> Option<u64> {
        self.given
    }

    /// The same as an entry has it.
    pub(super) fn entry(&self) -> StreamedEntry {
        StreamedEntry {
            options: self.options.clone(),
            events_emitted: self.events,
            cancel_reason: self.cancelled.map(str::to_owned),
            sources_failed: self.sources_failed,
        }
    }

    /// Its part of the map of an entry.
    pub(super) fn fields(&self) -> Map {
        let mut fields = Map::from([
            ("stream_enabled".to_owned(), Value::from(true)),
            ("stream_options".to_owned(), Value::from(self.options.as_str())),
            ("events_emitted".to_owned(), Value::from(self.events)),
            ("cancelled".to_owned(), Value::from(self.cancelled.is_some())),
            ("sources_failed".to_owned(), Value::from(self.sources_failed)),
        ]);
        fields.extend(self.cancelled.map(|why| ("cancel_reason".to_owned(), Value::from(why))));
        fields
    }
}

impl StreamedEntry {
    /// Reads its part of the map of an entry; nothing where the call was not streamed.
    pub(super) fn of(fields: &Map) -> Option<Self> {
        let count = |name: &str| u64::try_from(fields.get(name)?.as_i64()?).ok();
        let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
        Some(Self {
            options: text("stream_options")?,
            events_emitted: count("events_emitted")?,
            cancel_reason: text("cancel_reason"),
            sources_failed: count("sources_failed")?,
        })
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel_reason.is_some()
    }
}
