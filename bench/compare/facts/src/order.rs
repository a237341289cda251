//! What a process that measures one store is told, and what it answers: a line of JSON each way, so
//! that a store whose libraries cannot be in one program with the others is measured as they are.

use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::peer::Peer;
use crate::trial;

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The name the figures are under.
    pub peer: String,
    /// Facts the store is loaded with.
    pub grains: usize,
    /// Which round, from 1.
    pub pass: usize,
    /// Calls behind each percentile.
    pub calls: usize,
    /// Seconds after which slow work is ended.
    pub patience: u64,
    /// An empty directory for the store.
    pub directory: PathBuf,
}

/// Reads an order, measures a store, and prints its records.
///
/// # Errors
/// The store's; for a wrong answer; for an order that is none.
pub fn serve<P: Peer>() -> Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let order: Order = serde_json::from_str(&text)?;
    let records = trial::run::<P>(&order)?;
    serde_json::to_writer(io::stdout().lock(), &records)?;
    Ok(())
}
