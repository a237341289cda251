//! What survives: kills, failing disks, erasures, tampering, and the model of the whole store.

mod encrypted;
mod erase;
mod faults;
mod kill;
#[path = "../kit/mod.rs"]
mod kit;
mod model;

use grainstore as engine;
use kit::random;
