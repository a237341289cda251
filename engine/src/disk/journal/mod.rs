//! The journal of a shard: the ordered records of its commits, kept by something that several nodes reach.
//!
//! Who leads a shard appends a record before it commits it; everybody else reads the records and applies them. A
//! journal decides one thing: whether a record follows the one before it, and comes from who leads. Knows bytes and
//! their order, not what is in them.

mod append;
mod file;
mod keyring_slot;
mod memory;
mod record;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::base::error::{Error, ErrorKind, Result};

pub(crate) use append::append_surely;
pub use file::FileJournal;
pub use keyring_slot::{KEYRING_SLOT_BYTES, KeyringSlot};
pub use memory::MemoryJournal;
pub use record::{Head, MAX_RECORD_BYTES, Record};
pub(crate) use record::{RecordTag, TagOf, check_size};

/// The number of a shard: a store that several nodes have a copy of ([`Journal`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u64);

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The right to append to the [`Journal`] of a shard. It ends when another node takes it, which the journal notices and
/// this node is told with its next append.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lead {
    /// The shard.
    pub shard: ShardId,
    /// Which lead of the shard this is, from 1 on; each is higher than those before.
    pub epoch: u64,
    /// The name of the node.
    pub node: String,
    /// Time for which nobody else takes it, from each append or renewal on.
    pub ttl: Duration,
    /// The last record when it was taken.
    pub head: Head,
}

impl Lead {
    /// A lead, for implementors of [`Journal`].
    #[must_use]
    pub fn new(
        (shard, epoch): (ShardId, u64),
        node: impl Into<String>,
        ttl: Duration,
        head: Head,
    ) -> Self {
        Self { shard, epoch, node: node.into(), ttl, head }
    }
}

/// Where the [`Journal`] of a shard stands, and who leads it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardStatus {
    /// The last record.
    pub head: Head,
    /// The last lead that was taken; 0 if none was.
    pub epoch: u64,
    /// The node that took it, `None` if none did or it was given back.
    pub leader: Option<String>,
    /// Time for which nobody else takes it, by the clock of the journal; zero once it ran out.
    pub lease: Duration,
}

impl ShardStatus {
    /// A status, for implementors of [`Journal`].
    #[must_use]
    pub fn new(head: Head, epoch: u64, leader: Option<String>, lease: Duration) -> Self {
        Self { head, epoch, leader, lease }
    }

    /// Returns `true` if nobody leads now.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.leader.is_none() || self.lease.is_zero()
    }

    /// Returns `true` if a node may take the lead now, for such a time. One that lasts for more than twice that was not
    /// taken so: the clock was set back, and nobody would lead until it is where it was.
    #[must_use]
    pub fn may_be_taken(&self, ttl: Duration) -> bool {
        self.is_free() || self.lease > ttl.saturating_mul(2)
    }
}

/// Keeps the records of shards in their order. Calls block, and may come from any thread.
///
/// Every call can fail with `ERR_IO` if the journal is not reached. Whether an append that failed so was made is not
/// known then: it is made again with the same record, which a journal takes once at most.
///
/// ```
/// use grainstore::journal::{Head, Journal, MemoryJournal, ShardId};
/// use std::time::Duration;
///
/// let journal = MemoryJournal::default();
/// let lead = journal.lead(ShardId(1), "a", Duration::from_secs(10))?;
/// journal.renew(&lead)?;
/// let status = journal.status(ShardId(1))?;
/// assert_eq!((status.head, status.leader.as_deref()), (Head::EMPTY, Some("a")));
/// journal.release(&lead)?;
/// assert!(journal.status(ShardId(1))?.is_free());
/// # Ok::<(), grainstore::Error>(())
/// ```
pub trait Journal: fmt::Debug + Send + Sync {
    /// Takes the lead of a shard if it [may be taken](ShardStatus::may_be_taken): the epoch becomes one higher, so that
    /// nothing more comes from who had it.
    ///
    /// # Errors
    /// `ERR_BUSY` while another node has it; `ERR_IO`.
    fn lead(&self, shard: ShardId, node: &str, ttl: Duration) -> Result<Lead>;

    /// Keeps a lead for another `ttl`, and returns the last record as it is then.
    ///
    /// # Errors
    /// `ERR_FENCED` if another node took it; `ERR_IO`.
    fn renew(&self, lead: &Lead) -> Result<Head>;

    /// Gives a lead back, so that nobody has to wait for its end. One that another node took by now stays with it.
    ///
    /// # Errors
    /// `ERR_IO`.
    fn release(&self, lead: &Lead) -> Result<()>;

    /// Appends a record if the journal ends with `after` and nobody took the lead, and keeps the lead for another
    /// `ttl`. In the same step, or with neither, it writes the record's [keyring slots](Record::slots) in the place of
    /// those with their numbers. It is durable when this returns.
    ///
    /// # Errors
    /// `ERR_FENCED` if one of the two is not so: this call appended nothing. `ERR_LIMIT` for a record of more than
    /// [`MAX_RECORD_BYTES`]. `ERR_IO`: whether it was appended is not known.
    fn append(&self, lead: &Lead, after: &Head, record: &Record) -> Result<Head>;

    /// Returns the records after a commit in their order, at most `bytes` of them and at least one; none at the end.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if one is missing or none; `ERR_IO`.
    fn read(&self, shard: ShardId, after: u64, bytes: usize) -> Result<Vec<Record>>;

    /// Returns the slots of the keyring of a shard with these numbers, in their order, and the end that the journal has
    /// with them. Those that are not there are left out: all, for a store that is not encrypted.
    ///
    /// # Errors
    /// `ERR_IO`.
    fn keyring(&self, shard: ShardId, slots: Range<u32>) -> Result<(Head, Vec<KeyringSlot>)>;

    /// Returns where a shard stands, as the place that decides knows it and not a copy of that.
    ///
    /// # Errors
    /// `ERR_IO`.
    fn status(&self, shard: ShardId) -> Result<ShardStatus>;
}

/// `ERR_FENCED`, for implementors of [`Journal`].
#[must_use]
pub fn fenced(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Fenced, message)
}

/// `ERR_BUSY` of a shard that another node leads, for implementors of [`Journal`].
#[must_use]
pub fn led_by(node: &str) -> Error {
    Error::new(ErrorKind::Busy, format!("{node} leads this shard"))
        .with_hint("write there; another node takes over when it is gone")
}

/// `ERR_NOT_LEADER` of a node that follows the [`Journal`] of a shard, which `leader` leads as far as it knows.
#[must_use]
pub fn not_leader(shard: ShardId, leader: Option<&str>) -> Error {
    let leads =
        leader.map_or_else(|| "nobody leads".to_owned(), |leader| format!("{leader} leads"));
    let message = format!("this node follows shard {shard}, and this writes; {leads}");
    Error::new(ErrorKind::NotLeader, message)
}

/// `ERR_IO` of a journal that refuses this program, for implementors of [`Journal`].
#[must_use]
pub fn refused(message: impl Into<String>, hint: &'static str) -> Error {
    Error::new(ErrorKind::Io, message).with_hint(hint)
}

/// `ERR_IO` of a journal, for implementors of [`Journal`].
#[must_use]
pub fn unreachable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Io, message).with_hint(
        "check that the journal runs and is reached; nothing that was acknowledged is lost",
    )
}

/// `ERR_STORE_VERSION` of a journal, for implementors of [`Journal`].
#[must_use]
pub fn incompatible(message: impl Into<String>, hint: &'static str) -> Error {
    Error::new(ErrorKind::StoreVersion, message).with_hint(hint)
}

/// `ERR_SCHEMA` of what a journal was given, for implementors of [`Journal`].
#[must_use]
pub fn invalid(message: impl Into<String>, hint: &'static str) -> Error {
    Error::new(ErrorKind::Format(grainstore_format::ErrorKind::Schema), message).with_hint(hint)
}

/// `ERR_INTEGRITY` of a journal, for implementors of [`Journal`].
#[must_use]
pub fn damaged(message: impl Into<String>) -> Error {
    Error::truth_damaged(message).with_hint("restore the journal; the nodes keep what they applied")
}
