//! Grains as text for the context window of a model: projection, output formats, token counting,
//! budgeted assembly.
//!
//! Modules, in the order data flows through them:
//!
//! - `item`: the input: a grain with its index state, and the level it is shown at
//! - `words`: relations, numbers and values as text
//! - `time`: relative and absolute times, against a given `now`
//! - `table`: the projection of each grain type, as data
//! - `display_value`: one value as shown: a text, a number or a flag
//! - `project`: applies the table to an item; every output format starts from its result
//! - `cancel`, `text_builder`: cancellation, and the text under construction
//! - `format`: writes the projection in each output format, escaped so that stored text cannot forge
//!   markup
//! - `tokens`: token counting
//! - `budget`: splits a budget over sources
//! - `select`: chooses the grains to show, and their levels
//! - `template`: output formats written by the user
//! - `best_fit`: finds as many items as fit together
//! - `assemble`, `chunks`: several sources in one text that never exceeds its budget, and that text in
//!   pieces
//! - `summarize`: extracts the sentences that cover most of several grains
//! - `error`: the one error type of the crate
//!
//! The crate reads no clock, no store and no network: the same input gives the same bytes.
//!
//! ```
//! use grainstore_format::{EpochMs, Grain};
//! use grainstore_sml::{Clock, Format, Item, Level, render};
//!
//! let grain = Grain::from_json(
//!     r#"{"type": "belief", "subject": "alice", "relation": "mg:prefers", "object": "dark mode",
//!         "confidence": 0.9, "created_at": 1768471200000}"#,
//! )?;
//! let clock = Clock { now: EpochMs::new(1_768_474_800_000), iso_timestamps: false };
//! let items = [Item { grain, verification: None, chosen: None, score: None }];
//! assert_eq!(
//!     render(&items, Format::Sml, Level::Standard, &clock),
//!     "<context>\n\n  <belief subject=\"alice\" confidence=\"0.9\">prefers dark mode</belief>\n\n\
//!      </context>\n"
//! );
//! # Ok::<(), grainstore_format::Error>(())
//! ```

mod assemble;
mod best_fit;
mod budget;
mod cancel;
mod chunks;
mod display_value;
mod error;
mod format;
mod item;
mod level;
mod options;
mod project;
mod select;
mod summarize;
mod table;
mod template;
mod text_builder;
mod time;
mod tokens;
mod words;

pub use assemble::{
    Assembly, BudgetShares, SourceReport, assemble, assemble_with_progress, required_budget,
};
pub use budget::Budget;
pub use cancel::CancelCheck;
pub use chunks::Chunk;
pub use display_value::DisplayValue;
pub use error::{Error, ErrorKind, TemplateLocation};
pub use format::{Format, RowFormat, Rows, Shape, render, render_cancellable};
pub use item::{ChosenFields, Item};
pub use level::Level;
pub use options::{AssemblyOptions, AssemblySource, Disclosure};
pub use project::{Projection, attribute, attribute_names, project};
pub use summarize::summarize;
pub use template::{
    MAX_CHARS_PER_TOKEN as TEMPLATE_CHARS_A_TOKEN, MAX_DEPTH as MAX_TEMPLATE_DEPTH,
    MAX_EACH_GRAINS as MAX_TEMPLATE_EACH, MAX_TEMPLATE_BYTES, Preset, Section, Template, body_end,
    body_text, template_variables,
};
pub use time::{Clock, date_or_iso, relative_time};
#[cfg(feature = "cl100k")]
pub use tokens::Cl100k;
pub use tokens::{Estimator, TokenCounter};
pub use words::humanize;
