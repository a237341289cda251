//! Compliance presets: rules of the store on what may be stored, read, exported and erased
//! (OMS 13, 17.3, 20.6, Appendix A and D).
//!
//! - `rules/*.toml`: the presets. `builtin`: the table of them, the only code that has their names.
//! - `file`: the format of a rule file. `condition`, `references`, `facts`, `purposes` (purposes), `jq`: what a
//!   rule can test.
//! - `settings`: settings of the whole store, and which of two values is stricter.
//! - `rule`: rules in force, and one pure function: facts in, decision out.
//! - `build`: a preset combined with the files that changed it; what a change loosens.
//! - `active_rules`: the rules of an open store. `intern`: the texts of rules.
//!
//! No code here reads or writes a store, or depends on a particular regulation.

mod active_rules;
mod build;
mod builtin;
#[cfg(test)]
mod case_tests;
mod condition;
mod facts;
mod file;
mod intern;
mod jq;
mod purposes;
mod references;
mod rule;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use active_rules::ActiveRules;
pub(crate) use build::{RuleChange, StoredRules};
pub use builtin::Preset;
pub(crate) use builtin::builtin_reason;
pub use facts::SensitivityLevel;
pub(crate) use facts::{ProcessingBasis, RuleFacts};
pub use file::Action;
pub(crate) use rule::RuleRefusal;
pub use rule::{PresetRule, RuleSet};
pub use settings::{EncryptionScope, Setting, Settings};
