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

/// Most messages of one [`Session::thread`]; `ERR_LIMIT` beyond.
pub const MAX_MESSAGES: usize = 10_000;

/// A conversation: [`Session::thread`].
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

/// A message in a [`Thread`], as [`Session::thread`] returns it.
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
    /// ```
    /// use grainstore::graph::GraphOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let question = EventBuilder::new(session.now(), "tea or coffee?").build()?;
    /// let question = session.put(question)?.address();
    /// let reply = EventBuilder::new(session.now(), "tea, please").parent_message_id(question.to_string());
    /// let reply = session.put(reply.build()?)?.address();
    /// let thread = session.thread(&reply, &GraphOptions::default())?;
    /// assert_eq!((thread.roots, thread.heads), (vec![question], vec![reply]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if the session cannot see the message; `ERR_SCHEMA` for a grain that is not an event;
    /// `ERR_LIMIT` beyond [`MAX_MESSAGES`]; `ERR_TIMEOUT`; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn thread(&self, message: &ContentAddress, options: &GraphOptions) -> Result<Thread> {
        self.conversation(options, |reader| {
            let start = reader.read_start(message, |seen| Ok(Some(ThreadStart::of(seen))))?;
            let Some(start) = start else {
                return Err(schema_error(format!("{message} is no event, so it is in no thread")));
            };
            start.members(reader, MAX_MESSAGES + 1)
        })
    }

    /// The conversation of a `session_id`; empty if it has no messages.
    ///
    /// # Errors
    /// As [`Session::thread`].
    pub fn thread_of_session(&self, session_id: &str, options: &GraphOptions) -> Result<Thread> {
        let id = normalised(session_id)?;
        self.conversation(options, |reader| messages_of_session(reader, &id, MAX_MESSAGES + 1))
    }

    /// The conversation as of a state grain (OMS 22.9): from the message its context names as `messages_tail`
    /// back to the first, without branches.
    ///
    /// # Errors
    /// As [`Session::thread`]; `ERR_SCHEMA` for a grain that is not a state, or names no message.
    pub fn thread_from_state(
        &self,
        state: &ContentAddress,
        options: &GraphOptions,
    ) -> Result<Thread> {
        self.conversation(options, |reader| {
            let tail = reader.read_start(state, |seen| {
                let context = seen.grain.get("context").and_then(|context| context.as_map());
                let tail = context.and_then(|context| context.get("messages_tail")?.as_str());
                let is_state = seen.grain.grain_type() == GrainType::State;
                Ok(Some(tail.filter(|_| is_state).and_then(parse_basis_address)))
            })?;
            let Some(tail) = tail else {
                let message = format!("{state} is no state that names its messages_tail");
                return Err(schema_error(message));
            };
            let Some(last) = message_at(reader, &tail)? else { return Err(reader.unseen(&tail)) };
            with_ancestors(reader, last, MAX_MESSAGES + 1)
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
        let options = GraphOptions { include_superseded: true, cancel: cancel.clone() };
        let mut reader = GraphReader::new(self, view, &options);
        let Some(start) = reader.read_by_address(message, |seen| Ok(ThreadStart::of(seen)))? else {
            return Ok(Vec::new());
        };
        let members = start.members(&mut reader, limit)?;
        Ok(members.into_iter().map(|found| found.address).collect())
    }

    fn conversation(
        &self,
        options: &GraphOptions,
        members: impl FnOnce(&mut GraphReader<'_>) -> Result<Vec<ThreadMember>>,
    ) -> Result<Thread> {
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut reader = GraphReader::new(self, &view, options);
            let members = members(&mut reader)?;
            if members.len() > MAX_MESSAGES {
                let message = format!("a thread of more than {MAX_MESSAGES} messages");
                let hint = "query events by session_id, a page at a time";
                return Err(Error::new(ErrorKind::Limit, message).with_hint(hint));
            }
            Ok(build_thread(
                members.into_iter().filter(|found| reader.admits_state(&found.state)).collect(),
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
    fn members(self, reader: &mut GraphReader<'_>, limit: usize) -> Result<Vec<ThreadMember>> {
        match self.session_id {
            Some(id) => messages_of_session(reader, &id, limit),
            None => connected_messages(reader, self.found, limit),
        }
    }
}

fn schema_error(message: String) -> Error {
    Error::new(ErrorKind::Format(grainstore_format::ErrorKind::Schema), message)
}

pub(super) fn message_at(
    reader: &mut GraphReader<'_>,
    address: &ContentAddress,
) -> Result<Option<ThreadMember>> {
    reader.read_by_address(address, |seen| Ok(ThreadMember::of(seen)))
}

/// The messages of a `session_id`, at most `limit`.
fn messages_of_session(
    reader: &mut GraphReader<'_>,
    id: &str,
    limit: usize,
) -> Result<Vec<ThreadMember>> {
    let mut members = Vec::new();
    for posting in reader.postings(&[IndexLookup::Value(Field::Session, id.into())])? {
        members.extend(reader.read_any(posting?.sequence, |seen| {
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
    reader: &mut GraphReader<'_>,
    last: ThreadMember,
    limit: usize,
) -> Result<Vec<ThreadMember>> {
    let mut met = HashSet::from([last.address]);
    let mut line = vec![last];
    let mut parent = last.parent;
    while let Some(address) = parent
        && line.len() < limit
        && met.insert(address)
        && let Some(found) = message_at(reader, &address)?
    {
        line.push(found);
        parent = found.parent;
    }
    Ok(line)
}

/// Everything below the first ancestor of this message, at most `limit`.
pub(super) fn connected_messages(
    reader: &mut GraphReader<'_>,
    message: ThreadMember,
    limit: usize,
) -> Result<Vec<ThreadMember>> {
    let line = with_ancestors(reader, message, limit)?;
    if line.len() >= limit {
        return Ok(line);
    }
    let Some(root) = line.last().copied() else { return Ok(line) };
    let mut met = HashSet::from([root.address]);
    let mut members = vec![root];
    let mut open = VecDeque::from([root.address]);
    let mut replies = ReplyFinder::new(reader);
    while let Some(parent) = open.pop_front() {
        let room = limit.saturating_sub(members.len());
        let found = replies.replies_to(reader, &parent, &mut met, room)?;
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
