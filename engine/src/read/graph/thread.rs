//! Conversations (OMS 28.6): messages and their replies as a tree.
//!
//! A message is an event. A reply names its parent by address, so links cannot form a cycle; but a parent may
//! be missing or outside the session, and have many replies.

use std::collections::{HashMap, HashSet, VecDeque};

use grainstore_cal::CancelHandle;
use grainstore_format::{ContentAddress, EpochMs, GrainState, GrainType};
use grainstore_index::{Field, IndexLookup};
use serde::Serialize;

use super::GraphOptions;
use super::reader::{GraphReader, VisibleGrain, normalised};
use super::replies::ReplyFinder;
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::handle::session::Session;
use crate::state::consent::parse_basis_address;
use crate::state::view::View;

/// Most messages of one thread.
pub const MAX_MESSAGES: usize = 10_000;

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Thread {
    /// Its messages, oldest first, ties by ascending address.
    pub messages: Vec<Message>,
    /// Messages that reply to none of these, in the same order.
    pub roots: Vec<ContentAddress>,
    /// Messages without a reply.
    pub heads: Vec<ContentAddress>,
    /// Messages with more than one reply.
    pub branch_points: Vec<ContentAddress>,
}

/// A message in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Message {
    /// The event.
    pub address: ContentAddress,
    /// The message it replies to, if that one is in the thread too.
    pub parent: Option<ContentAddress>,
    /// Its `timestamp_ms`, else its `created_at`.
    pub time: EpochMs,
}

impl Session {
    /// The whole conversation of a message, branches included: the messages of its `session_id`; for a
    /// message without one, everything connected to it by `parent_message_id`.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if the session cannot see the message; `ERR_SCHEMA` for a grain that is not an event;
    /// `ERR_LIMIT` beyond [`MAX_MESSAGES`]; `ERR_TIMEOUT`; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn thread(&self, message: &ContentAddress, lens: &GraphOptions) -> Result<Thread> {
        self.conversation(lens, |sight| {
            let start = sight.read_start(message, |seen| Ok(Some(ThreadStart::of(seen))))?;
            let Some(start) = start else {
                return Err(schema_error(format!("{message} is no event, so it is in no thread")));
            };
            start.members(sight, MAX_MESSAGES + 1)
        })
    }

    /// The conversation of a `session_id`; empty if it has no messages.
    ///
    /// # Errors
    /// As [`Session::thread`].
    pub fn thread_of_session(&self, session_id: &str, lens: &GraphOptions) -> Result<Thread> {
        let id = normalised(session_id)?;
        self.conversation(lens, |sight| messages_of_session(sight, &id, MAX_MESSAGES + 1))
    }

    /// The conversation as of a state grain (OMS 22.9): from the message its context names as `messages_tail`
    /// back to the first, without branches.
    ///
    /// # Errors
    /// As [`Session::thread`]; `ERR_SCHEMA` for a grain that is not a state, or names no message.
    pub fn thread_from_state(&self, state: &ContentAddress, lens: &GraphOptions) -> Result<Thread> {
        self.conversation(lens, |sight| {
            let tail = sight.read_start(state, |seen| {
                let context = seen.grain.get("context").and_then(|context| context.as_map());
                let tail = context.and_then(|context| context.get("messages_tail")?.as_str());
                let is_state = seen.grain.grain_type() == GrainType::State;
                Ok(Some(tail.filter(|_| is_state).and_then(parse_basis_address)))
            })?;
            let Some(tail) = tail else {
                let message = format!("{state} is no state that names its messages_tail");
                return Err(schema_error(message));
            };
            let Some(last) = message_at(sight, &tail)? else { return Err(sight.unseen(&tail)) };
            with_ancestors(sight, last, MAX_MESSAGES + 1)
        })
    }

    /// The members of [`Session::thread`] in any order and any state, at most `limit`: the THREAD of a
    /// message in CAL. Empty if the session cannot see the message.
    pub(crate) fn thread_members(
        &self,
        view: &View,
        message: &ContentAddress,
        limit: usize,
        cancel: &CancelHandle,
    ) -> Result<Vec<ContentAddress>> {
        let lens = GraphOptions { include_superseded: true, cancel: cancel.clone() };
        let mut sight = GraphReader::new(self, view, &lens);
        let Some(start) = sight.read_by_address(message, |seen| Ok(ThreadStart::of(seen)))? else {
            return Ok(Vec::new());
        };
        let members = start.members(&mut sight, limit)?;
        Ok(members.into_iter().map(|found| found.address).collect())
    }

    fn conversation(
        &self,
        lens: &GraphOptions,
        members: impl FnOnce(&mut GraphReader<'_>) -> Result<Vec<ThreadMember>>,
    ) -> Result<Thread> {
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut sight = GraphReader::new(self, &view, lens);
            let members = members(&mut sight)?;
            if members.len() > MAX_MESSAGES {
                let message = format!("a thread of more than {MAX_MESSAGES} messages");
                let hint = "query events by session_id, a page at a time";
                return Err(Error::new(ErrorKind::Limit, message).with_hint(hint));
            }
            Ok(build_thread(
                members.into_iter().filter(|found| sight.admits_state(&found.state)).collect(),
            ))
        })
    }
}

/// A message with its state.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadMember {
    pub(super) address: ContentAddress,
    /// The message it names as its parent.
    pub(super) parent: Option<ContentAddress>,
    time: EpochMs,
    state: GrainState,
}

impl ThreadMember {
    pub(super) fn of(seen: &VisibleGrain<'_>) -> Option<Self> {
        (seen.grain.grain_type() == GrainType::Event).then(|| Self {
            address: seen.address(),
            parent: seen.grain.text("parent_message_id").and_then(parse_basis_address),
            time: seen.grain.time(),
            state: seen.state,
        })
    }
}

/// The message whose thread is asked for.
struct ThreadStart {
    found: ThreadMember,
    session_id: Option<String>,
}

impl ThreadStart {
    fn of(seen: &VisibleGrain<'_>) -> Option<Self> {
        let session_id = seen.grain.text("session_id").filter(|id| !id.is_empty());
        let session_id = session_id.map(str::to_owned);
        ThreadMember::of(seen).map(|found| Self { found, session_id })
    }

    /// The messages of its session, or without one those connected to it by links (OMS 28.6); at most
    /// `limit`.
    fn members(self, sight: &mut GraphReader<'_>, limit: usize) -> Result<Vec<ThreadMember>> {
        match self.session_id {
            Some(id) => messages_of_session(sight, &id, limit),
            None => connected_messages(sight, self.found, limit),
        }
    }
}

fn schema_error(message: String) -> Error {
    Error::new(ErrorKind::Format(grainstore_format::ErrorKind::Schema), message)
}

pub(super) fn message_at(
    sight: &mut GraphReader<'_>,
    address: &ContentAddress,
) -> Result<Option<ThreadMember>> {
    sight.read_by_address(address, |seen| Ok(ThreadMember::of(seen)))
}

/// The messages of a `session_id`, at most `limit`.
fn messages_of_session(
    sight: &mut GraphReader<'_>,
    id: &str,
    limit: usize,
) -> Result<Vec<ThreadMember>> {
    let mut members = Vec::new();
    for posting in sight.postings(&[IndexLookup::Value(Field::Session, id.into())])? {
        members.extend(sight.read_any(posting?.sequence, |seen| {
            let is_here = seen.grain.text("session_id") == Some(id);
            Ok(ThreadMember::of(seen).filter(|_| is_here))
        })?);
        if members.len() >= limit {
            break;
        }
    }
    Ok(members)
}

/// A message and its ancestors, at most `limit`.
fn with_ancestors(
    sight: &mut GraphReader<'_>,
    last: ThreadMember,
    limit: usize,
) -> Result<Vec<ThreadMember>> {
    let mut met = HashSet::from([last.address]);
    let mut line = vec![last];
    let mut parent = last.parent;
    while let Some(address) = parent
        && line.len() < limit
        && met.insert(address)
        && let Some(found) = message_at(sight, &address)?
    {
        line.push(found);
        parent = found.parent;
    }
    Ok(line)
}

/// Everything below the first ancestor of this message, at most `limit`.
pub(super) fn connected_messages(
    sight: &mut GraphReader<'_>,
    message: ThreadMember,
    limit: usize,
) -> Result<Vec<ThreadMember>> {
    let line = with_ancestors(sight, message, limit)?;
    if line.len() >= limit {
        return Ok(line);
    }
    let Some(root) = line.last().copied() else { return Ok(line) };
    let mut met = HashSet::from([root.address]);
    let mut members = vec![root];
    let mut open = VecDeque::from([root.address]);
    let mut replies = ReplyFinder::new(sight);
    while let Some(parent) = open.pop_front() {
        let room = limit.saturating_sub(members.len());
        let found = replies.replies_to(sight, &parent, &mut met, room)?;
        open.extend(found.iter().map(|reply| reply.address));
        members.extend(found);
        if members.len() >= limit {
            break;
        }
    }
    Ok(members)
}

/// Sorts the messages and derives roots, heads and branch points.
fn build_thread(mut members: Vec<ThreadMember>) -> Thread {
    members.sort_unstable_by_key(|found| (found.time, found.address));
    let here: HashSet<ContentAddress> = members.iter().map(|found| found.address).collect();
    let mut thread = Thread::default();
    let mut replies: HashMap<ContentAddress, usize> = HashMap::new();
    for ThreadMember { address, parent, time, .. } in members {
        let parent = parent.filter(|parent| here.contains(parent));
        match parent {
            Some(parent) => *replies.entry(parent).or_default() += 1,
            None => thread.roots.push(address),
        }
        thread.messages.push(Message { address, parent, time });
    }
    for Message { address, .. } in &thread.messages {
        match replies.get(address) {
            None => thread.heads.push(*address),
            Some(1) => {}
            Some(_) => thread.branch_points.push(*address),
        }
    }
    thread
}
