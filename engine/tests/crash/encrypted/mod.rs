//! Encrypted stores: what they answer, what they refuse, and what lies on disk.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test stops at a surprise"
)]

mod alike;
mod answers;
mod bytes;
mod compressed;
mod erasing;
mod opening;
mod rotating;
mod tampered;
mod unscrubbed;
mod world;

use crate::random;
