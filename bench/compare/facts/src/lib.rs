//! The facts of the comparison, what is asked about them, and how a store is measured. It knows no
//! store: each program that has one implements [`Peer`] and calls [`serve`].
//!
//! - `random`, `data`: the facts. `question`: what is asked in a language. `peer`: the seam.
//! - `record`, `system`: figures. `check`: answers compared with the facts. `trial`: what is done.
//! - `order`: what a process that measures one store is told, and what it answers.

mod check;
mod data;
mod order;
mod peer;
mod question;
mod random;
mod record;
mod system;
mod trial;

pub use data::{CONFIDENCE, FACTS_PER_SUBJECT, Fact, Facts, Frequency, NAMESPACE};
pub use order::{Order, serve};
pub use peer::{Peer, Row, Told};
pub use question::Question;
pub use random::Random;
pub use record::{Figure, Record, Unit, rate, real, time_calls};
pub use system::{disk_bytes, quiet_disk, resident_bytes};
pub use trial::{run as measure, works};

/// What ends a run: anything at all. A comparison that met an error has no figures.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests;
