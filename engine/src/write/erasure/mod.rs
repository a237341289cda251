//! Decides whether an erasure may be done: holds, retention and the rules of the store (OMS 23.2; rulings 25 and 42).
//!
//! Reads one view; writes nothing.

mod judge;
mod retention;
mod ruled;

pub(crate) use judge::{
    ErasureRequest, ErasureVerdict, consents_of, is_of, judge_grain, judge_user, places_of,
};
