//! What the tests of durability and of the model share: a model of the store written from the rules,
//! calls made at random, and the comparison of the two.
//!
//! The unit tests of the crate include this folder too, so that a power cut is judged by the same
//! rules as a call. Whoever includes it names the crate `engine`.

pub(crate) mod agree;
pub(crate) mod calls;
pub(crate) mod goals;
pub(crate) mod marked;
pub(crate) mod model;
pub(crate) mod offers;
pub(crate) mod random;
pub(crate) mod rules;

use super::engine;
