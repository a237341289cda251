//! Lookup of the replies to messages, one message after the other, in any number of namespaces.

use std::collections::{HashMap, HashSet};

use grainstore_format::{ContentAddress, GrainType};
use grainstore_index::{Field, IndexLookup};

use super::reader::GraphReader;
use super::thread::ThreadMember;
use crate::base::error::Result;

/// Index ranges opened for replies before a pass over all events is considered.
const MAX_REPLY_RANGES: u64 = 100_000;
/// Most events that such a pass reads.
const MAX_PASS_EVENTS: usize = 50_000;

/// Finder of replies. It looks them up message by message, which opens a range in every namespace; once that
/// becomes expensive it reads all events in one pass instead, if they are few enough.
pub(super) struct ReplyFinder {
    /// Total of index ranges beyond which a pass is considered.
    pass_threshold: u64,
    /// Every event that is a reply, by the message it replies to; `None` without a pass.
    by_parent: Option<HashMap<ContentAddress, Vec<ThreadMember>>>,
}

impl ReplyFinder {
    pub(super) fn new(reader: &GraphReader<'_>) -> Self {
        Self { pass_threshold: reader.ranges().saturating_add(MAX_REPLY_RANGES), by_parent: None }
    }

    /// At most `room` replies to a message that are not in `met`.
    pub(super) fn replies_to(
        &mut self,
        reader: &mut GraphReader<'_>,
        parent: &ContentAddress,
        met: &mut HashSet<ContentAddress>,
        room: usize,
    ) -> Result<Vec<ThreadMember>> {
        if self.by_parent.is_none() && reader.ranges() > self.pass_threshold {
            // If there are too many events for a pass, it is not considered again.
            self.pass_threshold = u64::MAX;
            self.by_parent = all_replies(reader)?;
        }
        let mut found = Vec::new();
        if let Some(all) = &self.by_parent {
            let here = all.get(parent).into_iter().flatten();
            found.extend(here.filter(|reply| met.insert(reply.address)).take(room));
            return Ok(found);
        }
        let digits = parent.to_string();
        for posting in
            reader.postings(&[IndexLookup::Value(Field::Parent, digits.as_str().into())])?
        {
            if found.len() >= room {
                break;
            }
            let reply = reader.read_any(posting?.sequence, |seen| {
                Ok(ThreadMember::of(seen).filter(|found| found.parent.as_ref() == Some(parent)))
            })?;
            found.extend(reply.filter(|reply| met.insert(reply.address)));
        }
        Ok(found)
    }
}

/// The events of the session that are replies, by the message they reply to; `None` if there are
/// [`MAX_PASS_EVENTS`] events or more to read.
fn all_replies(
    reader: &mut GraphReader<'_>,
) -> Result<Option<HashMap<ContentAddress, Vec<ThreadMember>>>> {
    let events = [IndexLookup::Type(GrainType::Event)];
    if reader.estimate(&events, MAX_PASS_EVENTS)? >= MAX_PASS_EVENTS {
        return Ok(None);
    }
    let mut all: HashMap<ContentAddress, Vec<ThreadMember>> = HashMap::new();
    for posting in reader.postings(&events)? {
        let reply = reader.read_any(posting?.sequence, |seen| Ok(ThreadMember::of(seen)))?;
        if let Some((parent, reply)) = reply.and_then(|found| found.parent.zip(Some(found))) {
            all.entry(parent).or_default().push(reply);
        }
    }
    Ok(Some(all))
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
