//! CAL/1, the query and context language of OMS, over traits this crate defines.
//!
//! A query passes through these stages: text to tokens and syntax tree ([`fn@parse`]), syntax tree to checked
//! plan, plan to answer ([`execute`]). The executor reaches the store only through [`Memory`]. That trait
//! has no method that erases, reads keys or changes policies, so no statement can do so.
//!
//! The modules, in that order:
//! - `lex`, `words`, `text`: characters to tokens, words to classes, string literals to text;
//! - `parse`, `ast`, `print`: tokens to syntax tree and back, one file per part of the grammar;
//! - `json`, `source`: the JSON form of a query, and a query in either form;
//! - `fields`, `types`, `relations`, `grammar`, `reference`, `codes`, `limits`: the tables of the language,
//!   as data;
//! - `scan`, `next_words`, [`vocabulary`]: for editors: spans to highlight, words to complete;
//! - `check`, `params`, `time_phrase`: syntax tree to plan, with parameters bound and time phrases resolved;
//! - `correction`: a corrected statement for a query that was refused for its spelling or form;
//! - `conditions`: WHERE conditions for hosts that have no statement;
//! - `query`, `bounds`, `predicate`, `search`: what a recall asks for, in a form that a memory can answer
//!   from its indexes;
//! - `memory`, `cancel`: the interface to the store; `gate`: admission of checked statements;
//! - `exec`, `write_quotas`, `response`: plan to answer; `event`: events of a streamed answer.
//!
//! ```
//! let statement = grainstore_cal::parse("recall beliefs where subject = \"alice\" limit 5")?;
//! assert_eq!(statement.to_string(), "RECALL beliefs WHERE subject = \"alice\" | LIMIT 5");
//!
//! let error = grainstore_cal::parse("RECALL beleifs").unwrap_err();
//! assert_eq!((error.code(), error.suggestion()), ("CAL-E003", "Did you mean \"beliefs\"?"));
//! # Ok::<(), grainstore_cal::Error>(())
//! ```

// Spans, errors and limits, used by every module.
mod codes;
mod error;
mod limits;
mod span;
mod suggest;

// The tables of the language.
mod fields;
mod grammar;
mod reference;
mod relations;
mod types;
mod words;

// Text to syntax tree and back.
mod ast;
mod json;
mod lex;
mod next_words;
mod parse;
mod print;
mod scan;
mod source;
mod text;
mod tier;
pub mod vocabulary;

// What a memory is asked for.
mod bounds;
mod cancel;
mod expansion;
mod gate;
mod memory;
mod operation;
mod predicate;
mod query;
mod search;
mod temporal;

// Syntax tree to plan.
mod check;
mod conditions;
mod correction;
mod params;
mod time_phrase;

// Plan to answer.
mod event;
mod exec;
mod response;
mod write_quotas;

#[cfg(test)]
mod testutil;

pub use ast::{Format, Statement, StatementType};
pub use bounds::{Order, Reach, TimeRange, TypeSet, Visibility, is_within};
pub use cancel::{CancelHandle, StopReason};
pub use codes::{ErrorKind, Warning};
pub use conditions::conditions;
pub use correction::{parse, parse_bytes};
pub use error::{Error, ErrorEnvelope, Position, Result};
pub use event::{
    AssemblySummary, BudgetAmount, BudgetShare, Event, EventKind, EventListener, LevelCounts,
    StreamStart,
};
pub use exec::{ExecuteOptions, Preparation, execute, execute_bytes, prepare, stream};
pub use expansion::{Direction, Expansion, Link, Links};
pub use gate::{AdmissionGate, AdmissionRequest};
#[cfg(feature = "cl100k")]
pub use grainstore_sml::Cl100k;
pub use grainstore_sml::{Estimator, TokenCounter};
pub use json::schema;
pub use memory::{
    AccessPlan, Candidate, CountStats, HashPrefix, Hit, HostInfo, Memory, MemoryError,
    NamedTemplate, PrefixMatch, RecallStats, RecallVisitor, SessionScope, TemplateOwner,
    TemplateSaveOutcome,
};
pub use next_words::{NextWord, NextWordKind, next_words};
pub use operation::CalOperation;
pub use params::Params;
pub use predicate::{Comparator, Lookup, Predicate};
pub use query::Query;
pub use reference::REFERENCE;
pub use response::{
    Answer, BatchSlot, BatchSlots, FieldChange, FormattedContext, GroupCount, PlanReport,
    RecallAnswer, RecallExplanation, RecallReport, Response, ResponseMeta, ResultRow, SourceAnswer,
    SourceAnswers, Usage, Version,
};
pub use scan::{SyntaxKind, SyntaxSpan, scan};
pub use search::{Ask, Diversity, Floor, Near, Rerank, Score, Search};
pub use source::{QueryIdentity, QuerySource};
pub use temporal::{is_known_at, is_valid_at};
pub use tier::Tier;
pub use write_quotas::{WriteLimits, WriteQuotas};
