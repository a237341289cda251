//! Grains that leave the store in `.mg` files (OMS section 11).
//!
//! - `order`: grains in the order of a file, however many there are.
//! - `export`: what a session sees, with its state, as files.

mod export;
mod order;

pub use export::{Exported, Exporting};
