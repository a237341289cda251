//! What a streamed ASSEMBLE tells while it is put together, and who listens (spec section 8).
//!
//! Data only. When which event is due is the executor's business, how it travels the host's.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::codes::Warning;
use crate::error::Error;

/// Takes the events of a streamed ASSEMBLE, in their order, while it is put together. The time it takes
/// for them is not the statement's, as long as [`crate::Options::patience`] lasts.
pub trait Listener {
    /// The statement was checked and may run: what follows are events, the last of which says how it
    /// ended. Without this call there is none.
    fn begins(&mut self, began: &Began<'_>) {
        let _ = began;
    }

    /// The text is written, and events that tell of what is in it follow: of this many grains. Called once,
    /// or not at all where it did not come so far.
    fn gives(&mut self, grains: u64) {
        let _ = grains;
    }

    /// One event. `Break` cancels the assembly, and no event follows.
    fn event(&mut self, event: Event) -> ControlFlow<()>;
}

impl<F: FnMut(Event) -> ControlFlow<()>> Listener for F {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        self(event)
    }
}

/// A stream that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Began<'b> {
    /// The id that its events carry.
    pub assembly_id: &'b str,
    /// The events that were asked for and the size of a chunk: `progress, chunks, chunk_size = 100`.
    pub options: &'b str,
}

/// One event. As JSON an object of `type`, `assembly_id` and what the kind has.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// `asm_` and 16 hex digits, made of the query, its parameters, its format and now: the same for
    /// the same.
    pub assembly_id: Arc<str>,
    /// What happened.
    pub kind: EventKind,
}

/// What an event tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EventKind {
    /// `assembly_started`.
    AssemblyStarted {
        /// The name of the assembly.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What it is for.
        #[serde(skip_serializing_if = "Option::is_none")]
        intent: Option<String>,
        /// The labels of its sources, in the order of FROM.
        sources: Vec<String>,
        /// What it may take.
        budget: Allowance,
    },
    /// `source_started`.
    SourceStarted {
        /// Its label.
        source: String,
        /// Its place in FROM, from 0.
        index: u64,
    },
    /// `source_completed`.
    SourceCompleted {
        /// Its label.
        source: String,
        /// Its place in FROM, from 0.
        index: u64,
        /// Grains it found, before duplicates are removed.
        grain_count: u64,
        /// What all of them would take in the format of the assembly.
        estimated_tokens: u64,
        /// Why it failed, if it did; the assembly goes on without it.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
    },
    /// `dedup_completed`.
    DedupCompleted {
        /// Grains of all sources.
        before: u64,
        /// Those that are left.
        after: u64,
    },
    /// `budget_allocated`: where a source failed, sent once with its share and once without.
    BudgetAllocated {
        /// What each source is given.
        allocations: Vec<Allocation>,
    },
    /// `disclosure_decided`.
    DisclosureDecided {
        /// What becomes of the grains of each source.
        levels: Vec<Levels>,
    },
    /// `chunk`: some whole elements or rows. All of them joined are the formatted text.
    Chunk {
        /// Its number, from 0.
        chunk_index: u64,
        /// The text.
        content: String,
        /// Its tokens, by the counter in use.
        tokens: u64,
        /// What is left of the budget behind it, in its unit.
        budget_remaining: u64,
    },
    /// `assembly_completed`: the last event of an assembly that was finished.
    AssemblyCompleted {
        /// What it came to.
        summary: Summary,
    },
    /// `error`: that of a source, and the assembly goes on; without a source the last event.
    Error {
        /// Its stable code.
        code: String,
        /// What happened.
        message: String,
        /// The label of the source it is of.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// `cancelled`: the last event of an assembly that somebody did not want any longer. What was sent
    /// before it holds.
    Cancelled {
        /// Why.
        reason: String,
    },
}

/// A budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Allowance {
    /// How many.
    pub amount: u64,
    /// Of what: `tokens` or `grains`.
    pub unit: &'static str,
}

/// What a source is given of the budget; as JSON under the name of its unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The label of the source.
    pub source: String,
    /// How much.
    pub given: Allowance,
}

/// What becomes of the grains of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Levels {
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

/// What an assembly came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Tokens of the text, by the counter in use.
    pub tokens_used: u64,
    /// What is left of the budget, in its unit.
    pub budget_remaining: u64,
    /// The part of the budget that was used, from 0 to 1, in ten-thousandths.
    pub utilization: f64,
    /// Grains in the text.
    pub grains_included: u64,
    /// Grains left out for the budget.
    pub grains_omitted: u64,
    /// The labels of the sources that failed.
    pub sources_failed: Vec<String>,
    /// The format of the text.
    pub format: &'static str,
    /// What the caller should know.
    pub warnings: Vec<Warning>,
}

/// What STREAM asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Progress,
    Budget,
    Chunks,
    /// Sent whatever was asked for.
    Always,
}

impl EventKind {
    /// The name of the event, such as `chunk`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.row().0
    }

    /// Which option of STREAM asks for it.
    pub(crate) const fn class(&self) -> Class {
        self.row().1
    }

    const fn row(&self) -> (&'static str, Class) {
        match self {
            Self::AssemblyStarted { .. } => ("assembly_started", Class::Progress),
            Self::SourceStarted { .. } => ("source_started", Class::Progress),
            Self::SourceCompleted { .. } => ("source_completed", Class::Progress),
            Self::DedupCompleted { .. } => ("dedup_completed", Class::Budget),
            Self::BudgetAllocated { .. } => ("budget_allocated", Class::Budget),
            Self::DisclosureDecided { .. } => ("disclosure_decided", Class::Budget),
            Self::Chunk { .. } => ("chunk", Class::Chunks),
            Self::AssemblyCompleted { .. } => ("assembly_completed", Class::Progress),
            Self::Error { .. } => ("error", Class::Always),
            Self::Cancelled { .. } => ("cancelled", Class::Always),
        }
    }
}

/// An event as it travels.
#[derive(Serialize)]
struct Wire<'e> {
    #[serde(rename = "type")]
    name: &'static str,
    assembly_id: &'e str,
    #[serde(flatten)]
    kind: &'e EventKind,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { assembly_id, kind } = self;
        Wire { name: kind.name(), assembly_id, kind }.serialize(serializer)
    }
}

impl Serialize for Allocation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("source", &self.source)?;
        map.serialize_entry(self.given.unit, &self.given.amount)?;
        map.end()
    }
}
