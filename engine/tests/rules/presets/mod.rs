//! Compliance presets held against their case files on a whole store, changes of rules, and what is told
//! of them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at a surprise"
)]

#[expect(dead_code, reason = "the runner on the decision alone uses the rest")]
mod case;
mod change;
mod erase;
mod import;
mod reads;
mod store;
mod subject;

pub(crate) use grainstore::format;
