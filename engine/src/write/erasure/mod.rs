//! Decides whether an erasure may be done: holds, retention and the rules of the store (OMS 23.2; rulings 25 and 42).
//!
//! Reads one view; writes nothing.

mod decide;
mod erasure_rules;
mod retention;

pub(crate) use decide::{
    ErasureRequest, ErasureVerdict, belongs_to_user, check_grain_erasure, check_user_erasure,
    consents_of, user_sequences,
};
