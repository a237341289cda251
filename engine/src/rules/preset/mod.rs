//! Compliance presets: rules of the store about what may be stored, read, taken out and erased
//! (OMS 13, 17.3, 20.6, Appendix A and D).
//!
//! - `rules/*.toml`: the presets. `builtin`: the table of them, the one place that has their names.
//! - `file`: the shape of such a file. `condition`, `names`, `facts`, `folded`, `jq`: what a rule asks about.
//! - `settings`: what is settled once for the whole store, and which of two values is stricter.
//! - `rule`: rules as they hold, and one pure function: facts in, decision out.
//! - `build`: a preset and the files that changed it, put together; what a change loosens.
//! - `regime`: the rules of an open store. `notes`: reads on their way into the audit log. `words`: the texts of rules.
//!
//! Nothing here reads or writes a store, or knows one regulation from another.

mod build;
mod builtin;
#[cfg(test)]
mod case_tests;
mod condition;
mod facts;
mod file;
mod folded;
mod jq;
mod names;
mod notes;
mod regime;
mod rule;
mod settings;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use build::{Change, Kept};
pub use builtin::Preset;
pub(crate) use builtin::reason_of;
pub use facts::Level;
pub(crate) use facts::{Basis, Facts};
pub use file::Deed;
pub(crate) use notes::Noted;
pub(crate) use regime::Regime;
pub(crate) use rule::Refusal;
pub use rule::{Rule, RuleSet};
pub use settings::{Encrypt, Setting, Settings};
