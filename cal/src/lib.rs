//! CAL/1: the query and context language of OMS, over traits of its own.
//!
//! A query goes through the modules in this order: text to tokens ([`parse`]), syntax tree, checked
//! plan, answer ([`execute`]). The executor sees a [`Memory`] and nothing else, and that trait has no
//! way to erase, to read keys or to change policies: CAL cannot do it even by mistake.
//!
//! The modules, in that order:
//! - `lex`, `words`, `text`: characters to tokens, words to classes, literals to texts;
//! - `parse`, `ast`, `print`: tokens to syntax and back, one file a part of the grammar;
//! - `json`, `source`: the second wire form, and a query in either;
//! - `fields`, `types`, `relations`, `grammar`, `reference`, `codes`, `limits`: the tables of the language, as data;
//! - `scan`, [`vocabulary`]: for who helps to write queries: pieces to colour, words to offer;
//! - `check`, `params`, `when`: syntax to plans, with parameters bound and phrases resolved;
//! - `mend`: what a query was meant to be that is refused for how it is written;
//! - `conditions`: what stands behind WHERE, for hosts that have no statement;
//! - `query`, `bounds`, `predicate`, `search`: what a recall asks for, which a memory can drive
//!   indexes by;
//! - `memory`, `cancel`: the seam to the store; `gate`: whether a checked statement may run;
//! - `exec`, `writes`, `response`: plans to answers; `event`: what is told of one on the way.
//!
//! ```
//! let statement = grainstore_cal::parse("recall beliefs where subject = \"alice\" limit 5")?;
//! assert_eq!(statement.to_string(), "RECALL beliefs WHERE subject = \"alice\" | LIMIT 5");
//!
//! let error = grainstore_cal::parse("RECALL beleifs").unwrap_err();
//! assert_eq!((error.code(), error.suggestion()), ("CAL-E003", "Did you mean \"beliefs\"?"));
//! # Ok::<(), grainstore_cal::Error>(())
//! ```

// Places, errors and limits, known everywhere.
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

// Text to syntax and back.
mod ast;
mod json;
mod lex;
mod parse;
mod print;
mod scan;
mod source;
mod text;
pub mod vocabulary;

// What a memory is asked.
mod bounds;
mod cancel;
mod expansion;
mod gate;
mod memory;
mod moment;
mod predicate;
mod query;
mod search;

// Syntax to plans.
mod check;
mod conditions;
mod mend;
mod params;
mod when;

// Plans to answers.
mod event;
mod exec;
mod response;
mod writes;

#[cfg(test)]
mod testutil;

pub use ast::{Format, Statement, StatementType};
pub use bounds::{Order, Reach, TimeRange, TypeSet, Visibility};
pub use cancel::{Cancel, Stop};
pub use codes::{ErrorKind, Warning};
pub use conditions::conditions;
pub use error::{Error, ErrorEnvelope, Position, Result};
pub use event::{Allocation, Allowance, Began, Event, EventKind, Levels, Listener, Summary};
pub use exec::{Options, Preparation, Tier, execute, execute_bytes, prepare, stream};
pub use expansion::{Direction, Expansion, Link, Links};
pub use gate::{Admission, Gate, Operation};
#[cfg(feature = "cl100k")]
pub use grainstore_sml::Cl100k;
pub use grainstore_sml::{Estimator, TokenCounter};
pub use json::schema;
pub use memory::{
    Candidate, Counted, Explained, HashPrefix, Hit, Host, Located, Memory, MemoryError,
    NamedTemplate, Recalled, Scope, TemplateKeeper, TemplateKept, Visit,
};
pub use moment::{is_known_at, is_valid_at};
pub use params::Params;
pub use parse::{parse, parse_bytes};
pub use predicate::{Comparator, Lookup, Predicate};
pub use query::Query;
pub use reference::REFERENCE;
pub use response::{
    Answer, Change, Explanation, FormattedContext, Grains, Group, Meta, PlanReport, RecallReport,
    Response, ResultRow, Slot, Slots, SourceAnswer, Sources, Usage, Version,
};
pub use scan::{Piece, PieceKind, scan};
pub use search::{Ask, Diversity, Floor, Near, Rerank, Score, Search};
pub use source::{Identity, Source};
pub use writes::{WriteLimits, Writes};
