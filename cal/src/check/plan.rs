//! Checked statements, ready to run: no syntax, no parameters, no phrases.

use grainstore_format::{ContentAddress, EpochMs, GrainType, Map};
use grainstore_sml::{Budget, Disclosure};

use crate::ast::Format;
use crate::fields::FieldRef;
use crate::memory::HashPrefix;
use crate::query::Query;
use crate::span::{Span, Spanned};

/// A checked statement.
pub(crate) enum Plan {
    Recall(RecallPlan),
    Assemble(AssemblePlan),
    Exists(Spanned<HashPrefix>),
    History(HistoryPlan),
    Add(AddPlan),
    Supersede(SupersedePlan),
}

/// A RECALL: what to look for, what to do with it, how to show it.
pub(crate) struct RecallPlan {
    pub(crate) query: Query,
    /// The pipeline in order, defaults included.
    pub(crate) steps: Vec<Step>,
    /// The fields the query asks about.
    pub(crate) matched_fields: Vec<&'static str>,
    pub(crate) format: Option<Format>,
    pub(crate) show: Show,
}

/// One step of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Sort(SortKey),
    Skip(u64),
    Take(u64),
    Count,
}

/// A field to sort by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SortKey {
    pub(crate) field: FieldRef,
    pub(crate) descending: bool,
}

/// How grains are shown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Show {
    /// WITH superseded: each result tells its state.
    pub(crate) state: bool,
    /// WITH progressive_disclosure; none without it.
    pub(crate) disclosure: Option<Disclosure>,
    /// WITH iso_timestamps.
    pub(crate) iso_timestamps: bool,
    /// WITH dedup(field).
    pub(crate) dedup: Option<FieldRef>,
}

/// An ASSEMBLE.
pub(crate) struct AssemblePlan {
    pub(crate) intent: Option<String>,
    pub(crate) sources: Vec<SourcePlan>,
    /// Indexes of the sources, highest priority first, each once.
    pub(crate) priority: Vec<usize>,
    pub(crate) budget: Budget,
    pub(crate) show: Show,
}

/// One source of an ASSEMBLE.
pub(crate) struct SourcePlan {
    pub(crate) label: String,
    pub(crate) recall: RecallPlan,
}

/// A HISTORY.
pub(crate) enum HistoryPlan {
    Of(Spanned<HashPrefix>),
    Triple { query: Query, as_of: Option<EpochMs> },
}

/// An ADD: the fields that were set, under payload names.
pub(crate) struct AddPlan {
    /// Where the type is named.
    pub(crate) place: Span,
    pub(crate) grain_type: GrainType,
    pub(crate) fields: Map,
    /// Goals this one waits for.
    pub(crate) depends_on: Vec<ContentAddress>,
    pub(crate) reason: String,
}

/// A SUPERSEDE: the fields to replace, under payload names.
pub(crate) struct SupersedePlan {
    pub(crate) target: Spanned<HashPrefix>,
    pub(crate) fields: Map,
    pub(crate) reason: String,
}

impl RecallPlan {
    /// How many grains it asks for.
    pub(crate) fn asked(&self) -> u64 {
        let takes = self.steps.iter().filter_map(|step| match step {
            Step::Take(count) => Some(*count),
            _ => None,
        });
        takes.min().unwrap_or(u64::MAX)
    }

    /// Whether it answers a number.
    pub(crate) fn counts(&self) -> bool {
        self.steps.last() == Some(&Step::Count)
    }
}
