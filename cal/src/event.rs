//! Events of a streamed ASSEMBLE, and the trait that receives them (CAL 11).
//!
//! Data only. The executor decides when an event is sent, the host how it is transported.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::codes::Warning;
use crate::error::Error;

/// Receives the events of a streamed ASSEMBLE, in order, while it is assembled. Time spent in the listener
/// does not count against the deadline of the statement, up to [`crate::ExecuteOptions::listener_timeout`].
///
/// ```
/// use grainstore_cal::{Event, EventKind, EventListener};
/// use std::ops::ControlFlow;
///
/// let mut text = String::new();
/// let mut listener = |event: Event| {
///     if let EventKind::Chunk { content, .. } = event.kind {
///         text.push_str(&content);
///     }
///     ControlFlow::Continue(())
/// };
/// # let (chunk_index, tokens, budget_remaining) = (0, 4, 96);
/// # let content = "alice prefers tea\n".to_owned();
/// # let kind = EventKind::Chunk { chunk_index, content, tokens, budget_remaining };
/// # let event = Event { assembly_id: "asm_0123456789abcdef".into(), kind };
/// // `event` is a chunk of the text.
/// assert!(listener.on_event(event).is_continue());
/// assert_eq!(text, "alice prefers tea\n");
/// ```
pub trait EventListener {
    /// Called when the statement has been checked and may run. Events follow, the last of which says how it
    /// ended. If this is not called, there are no events.
    fn on_start(&mut self, began: &StreamStart<'_>) {
        let _ = began;
    }

    /// Called when the text is complete and before the events that depend on it, with the number of grains
    /// in it. Called at most once: not at all if the assembly ended earlier.
    fn on_text(&mut self, grains: u64) {
        let _ = grains;
    }

    /// Receives one event. `Break` cancels the assembly; no event follows.
    fn on_event(&mut self, event: Event) -> ControlFlow<()>;
}

impl<F: FnMut(Event) -> ControlFlow<()>> EventListener for F {
    fn on_event(&mut self, event: Event) -> ControlFlow<()> {
        self(event)
    }
}

/// The start of a stream, passed to an [`EventListener`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStart<'b> {
    /// The id carried by its events.
    pub assembly_id: &'b str,
    /// The event classes requested and the chunk size: `progress, chunks, chunk_size = 100`.
    pub options: &'b str,
}

/// One event, passed to an [`EventListener`]. Its JSON is an object of `type`, `assembly_id` and the fields
/// of its kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// `asm_` and 16 hex digits, derived from the query, its parameters, its format and the current time:
    /// equal inputs give equal ids.
    pub assembly_id: Arc<str>,
    /// The kind of event and its fields.
    pub kind: EventKind,
}

/// The kind of an event, with its fields, by which an [`EventListener`] tells events apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EventKind {
    /// `assembly_started`.
    AssemblyStarted {
        /// The name of the assembly.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The purpose (FOR).
        #[serde(skip_serializing_if = "Option::is_none")]
        intent: Option<String>,
        /// The labels of its sources, in the order of FROM.
        sources: Vec<String>,
        /// The budget.
        budget: BudgetAmount,
    },
    /// `source_started`.
    SourceStarted {
        /// Label of the source.
        source: String,
        /// Position in FROM, from 0.
        index: u64,
    },
    /// `source_completed`.
    SourceCompleted {
        /// Label of the source.
        source: String,
        /// Position in FROM, from 0.
        index: u64,
        /// Grains it found, before duplicates are removed.
        grain_count: u64,
        /// Tokens of all its grains at standard level in the format of the assembly.
        estimated_tokens: u64,
        /// The error if the source failed; the assembly continues without it.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
    },
    /// `dedup_completed`.
    DedupCompleted {
        /// Grains of all sources before deduplication.
        before: u64,
        /// Grains left after it.
        after: u64,
    },
    /// `budget_allocated`: if a source failed, sent once with its share and once with it redistributed.
    BudgetAllocated {
        /// The share of each source.
        allocations: Vec<BudgetShare>,
    },
    /// `disclosure_decided`.
    DisclosureDecided {
        /// Disclosure levels of the grains of each source.
        levels: Vec<LevelCounts>,
    },
    /// `chunk`: whole elements or rows. All chunks joined are the formatted text.
    Chunk {
        /// Index of the chunk, from 0.
        chunk_index: u64,
        /// The text.
        content: String,
        /// Its tokens, by the token counter in use.
        tokens: u64,
        /// Budget left after this chunk, in its unit.
        budget_remaining: u64,
    },
    /// `assembly_completed`: the last event of an assembly that completed.
    AssemblyCompleted {
        /// Totals of the assembly.
        summary: AssemblySummary,
    },
    /// `error`: with a source, that source failed and the assembly continues; without one, it is the last
    /// event.
    Error {
        /// Its stable code.
        code: String,
        /// A description for people.
        message: String,
        /// Label of the source that failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// `cancelled`: the last event of an assembly that was cancelled. Chunks sent before it stay valid.
    Cancelled {
        /// The reason.
        reason: String,
    },
}

/// A budget: an amount and its unit.
///
/// ```
/// use grainstore_cal::{BudgetAmount, BudgetShare, EventKind};
///
/// let budget = BudgetAmount { amount: 500, unit: "tokens" };
/// let share = BudgetShare { source: "beliefs".to_owned(), given: budget };
/// let kind = EventKind::BudgetAllocated { allocations: vec![share] };
/// assert_eq!(kind.name(), "budget_allocated");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BudgetAmount {
    /// The number of units.
    pub amount: u64,
    /// The unit: `tokens` or `grains`.
    pub unit: &'static str,
}

/// The share of the budget allocated to a source, a [`BudgetAmount`]; in JSON its key is the name of the
/// unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetShare {
    /// The label of the source.
    pub source: String,
    /// The share.
    pub given: BudgetAmount,
}

/// Disclosure levels of the grains of a source.
///
/// ```
/// use grainstore_cal::{EventKind, LevelCounts};
///
/// let counts =
///     LevelCounts { source: "beliefs".to_owned(), full: 0, standard: 3, summary: 1, omitted: 0 };
/// let kind = EventKind::DisclosureDecided { levels: vec![counts] };
/// assert_eq!(kind.name(), "disclosure_decided");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LevelCounts {
    /// The label of the source.
    pub source: String,
    /// Grains shown in full.
    pub full: u64,
    /// Grains shown at standard level.
    pub standard: u64,
    /// Grains shown in summary form.
    pub summary: u64,
    /// Grains left out for the budget.
    pub omitted: u64,
}

/// Totals of a completed assembly, in the last event that an [`EventListener`] receives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssemblySummary {
    /// Tokens of the text, by the token counter in use.
    pub tokens_used: u64,
    /// Budget left, in its unit.
    pub budget_remaining: u64,
    /// Share of the budget that was used, 0 to 1, rounded to ten-thousandths.
    pub utilization: f64,
    /// Grains in the text.
    pub grains_included: u64,
    /// Grains left out for the budget.
    pub grains_omitted: u64,
    /// The labels of the sources that failed.
    pub sources_failed: Vec<String>,
    /// The format of the text.
    pub format: &'static str,
    /// Warnings for the caller.
    pub warnings: Vec<Warning>,
}

/// Classes of events that STREAM selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventClass {
    Progress,
    Budget,
    Chunks,
    /// Sent whatever was requested.
    Always,
}

impl EventKind {
    /// The name of the event, such as `chunk`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name_and_class().0
    }

    /// Returns the class of STREAM that selects it.
    pub(crate) const fn class(&self) -> EventClass {
        self.name_and_class().1
    }

    const fn name_and_class(&self) -> (&'static str, EventClass) {
        match self {
            Self::AssemblyStarted { .. } => ("assembly_started", EventClass::Progress),
            Self::SourceStarted { .. } => ("source_started", EventClass::Progress),
            Self::SourceCompleted { .. } => ("source_completed", EventClass::Progress),
            Self::DedupCompleted { .. } => ("dedup_completed", EventClass::Budget),
            Self::BudgetAllocated { .. } => ("budget_allocated", EventClass::Budget),
            Self::DisclosureDecided { .. } => ("disclosure_decided", EventClass::Budget),
            Self::Chunk { .. } => ("chunk", EventClass::Chunks),
            Self::AssemblyCompleted { .. } => ("assembly_completed", EventClass::Progress),
            Self::Error { .. } => ("error", EventClass::Always),
            Self::Cancelled { .. } => ("cancelled", EventClass::Always),
        }
    }
}

/// The JSON form of an event.
#[derive(Serialize)]
struct EventJson<'e> {
    #[serde(rename = "type")]
    name: &'static str,
    assembly_id: &'e str,
    #[serde(flatten)]
    kind: &'e EventKind,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { assembly_id, kind } = self;
        EventJson { name: kind.name(), assembly_id, kind }.serialize(serializer)
    }
}

impl Serialize for BudgetShare {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("source", &self.source)?;
        map.serialize_entry(self.given.unit, &self.given.amount)?;
        map.end()
    }
}
