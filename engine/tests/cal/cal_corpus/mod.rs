//! The cases of CAL (`vectors/cal`, their format in `vectors/README.md`), asked of whole stores in both
//! wire forms, and the check that they cover the language.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test stops at a surprise"
)]

mod case;
mod coverage;
mod derive;
mod expect;
mod labels;
mod near_misses;
#[path = "../../../../cal/src/parse/grammar_tests/rules.rs"]
mod rules;
mod run;
mod stores;
