//! Turns of a conversation: each is found by its own words and by those of its neighbours. Says
//! which turns are to be joined anew when one comes, changes or goes. Knows nothing of where turns
//! are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::document::Document;
use super::joined::Joined;
use crate::error::Result;
use crate::posting::Sequence;

/// The turns of conversations, as they are after a change.
pub trait Turns {
    /// The current neighbours of a turn: up to two before and two after. Of a turn that went, or
    /// that is none any more, those around the place where it stood.
    ///
    /// # Errors
    /// Those of reading the turns.
    fn around(&self, sequence: Sequence) -> Result<Vec<Sequence>>;

    /// The words of a turn; `None` if it is not to be found any more.
    ///
    /// # Errors
    /// Those of reading the turns.
    fn document(&self, sequence: Sequence) -> Result<Option<Arc<Document>>>;
}

/// What is to be set anew after these turns came, changed or went: they and their neighbours, each
/// once, in the order of the log. `None` is for a turn that went.
///
/// A turn that moved counts at both places: its place before is given by a call of its own before
/// it moves.
///
/// # Errors
/// Those of reading the turns.
pub fn rejoin(
    turns: &dyn Turns,
    changed: impl IntoIterator<Item = Sequence>,
) -> Result<Vec<(Sequence, Option<Joined>)>> {
    let mut around: BTreeMap<Sequence, Vec<Sequence>> = BTreeMap::new();
    let mut affected = BTreeSet::new();
    for sequence in changed {
        let neighbours = turns.around(sequence)?;
        affected.insert(sequence);
        affected.extend(neighbours.iter().copied());
        around.insert(sequence, neighbours);
    }
    let mut documents = BTreeMap::new();
    let mut joined = Vec::with_capacity(affected.len());
    for sequence in affected {
        let Some(own) = document(turns, &mut documents, sequence)? else {
            joined.push((sequence, None));
            continue;
        };
        let neighbours = match around.remove(&sequence) {
            Some(neighbours) => neighbours,
            None => turns.around(sequence)?,
        };
        let mut lending = Vec::with_capacity(neighbours.len());
        for neighbour in neighbours {
            lending.extend(document(turns, &mut documents, neighbour)?);
        }
        let lending: Vec<&Document> = lending.iter().map(AsRef::as_ref).collect();
        joined.push((sequence, Some(Joined::of(&own, &lending))));
    }
    Ok(joined)
}

type Documents = BTreeMap<Sequence, Option<Arc<Document>>>;

/// The words of a turn, read once.
fn document(
    turns: &dyn Turns,
    read: &mut Documents,
    sequence: Sequence,
) -> Result<Option<Arc<Document>>> {
    if let Some(document) = read.get(&sequence) {
        return Ok(document.clone());
    }
    let document = turns.document(sequence)?;
    read.insert(sequence, document.clone());
    Ok(document)
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
