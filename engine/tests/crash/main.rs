//! What survives: kills, failing disks, erasures, tampering, and the model of the whole store.

mod encrypted;
mod erase;
mod faults;
mod kill;
#[path = "../kit/mod.rs"]
#[expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]
mod kit;
mod model;

use grainstore as engine;
use kit::random;
