//! The replies to messages, one message after the other, in however many namespaces they lie.

use std::collections::{HashMap, HashSet};

use grainstore_format::{ContentAddress, GrainType};
use grainstore_index::{Field, Shape};

use super::sight::Sight;
use super::thread::Found;
use crate::base::error::Result;

/// Ranges of the index opened for replies before a pass over all events is thought of.
const MAX_REPLY_RANGES: u64 = 100_000;
/// Events that such a pass reads at most.
const MAX_PASS: usize = 50_000;

/// How the replies to messages are found: looked up message by message, which takes a range in
/// every namespace, or taken from one pass over the events once that promises to be less.
pub(super) struct Replies {
    /// Ranges that may have been opened before a pass is thought of.
    patience: u64,
    /// Every event that replies to something, by what it replies to.
    all: Option<HashMap<ContentAddress, Vec<Found>>>,
}

impl Replies {
    pub(super) fn new(sight: &Sight<'_>) -> Self {
        Self { patience: sight.ranges().saturating_add(MAX_REPLY_RANGES), all: None }
    }

    /// At most `room` replies to a message that were not met before.
    pub(super) fn to(
        &mut self,
        sight: &mut Sight<'_>,
        parent: &ContentAddress,
        met: &mut HashSet<ContentAddress>,
        room: usize,
    ) -> Result<Vec<Found>> {
        if self.all.is_none() && sight.ranges() > self.patience {
            // Where it is not worth it, it is not thought of again.
            self.patience = u64::MAX;
            self.all = every_reply(sight)?;
        }
        let mut found = Vec::new();
        if let Some(all) = &self.all {
            let here = all.get(parent).into_iter().flatten();
            found.extend(here.filter(|reply| met.insert(reply.address)).take(room));
            return Ok(found);
        }
        let digits = parent.to_string();
        for posting in sight.postings(&[Shape::Value(Field::Parent, digits.as_str().into())])? {
            if found.len() >= room {
                break;
            }
            let reply = sight.any_at(posting?.sequence, |seen| {
                Ok(Found::of(seen).filter(|found| found.parent.as_ref() == Some(parent)))
            })?;
            found.extend(reply.filter(|reply| met.insert(reply.address)));
        }
        Ok(found)
    }
}

/// The events of the session that reply to something, by what they reply to; nothing where there
/// are more than [`MAX_PASS`] events to read.
fn every_reply(sight: &mut Sight<'_>) -> Result<Option<HashMap<ContentAddress, Vec<Found>>>> {
    let events = [Shape::Type(GrainType::Event)];
    if sight.estimate(&events, MAX_PASS)? >= MAX_PASS {
        return Ok(None);
    }
    let mut all: HashMap<ContentAddress, Vec<Found>> = HashMap::new();
    for posting in sight.postings(&events)? {
        let reply = sight.any_at(posting?.sequence, |seen| Ok(Found::of(seen)))?;
        if let Some((parent, reply)) = reply.and_then(|found| found.parent.zip(Some(found))) {
            all.entry(parent).or_default().push(reply);
        }
    }
    Ok(Some(all))
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
