//! A copy of a store and its journal: the leader's commits go to the journal first, and every copy is brought to
//! where the journal is.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redb::{Database, Durability, ReadableDatabase, ReadableTable, WriteTransaction};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::change_record::ChangeRecord;
use crate::disk::journal::{
    Head, Journal, KeyringSlot, Lead, Record, RecordTag, ShardId, TagOf, append_surely, damaged,
};
use crate::disk::journaled_keyring::{
    Marks, SlotHashes, check_slots, hashes_of, lacks_mark, marks_in, marks_of, needed_slots,
    slots_in,
};
use crate::disk::keyring::Keyring;
use crate::disk::layout::{self, ErasureRecord};
use crate::disk::position::Position;
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::{CommitObserver, JournaledCommit};
use crate::disk::vault::Vault;

/// Time within which commits that are in the journal are synced to the file too.
const SYNC_AFTER: Duration = Duration::from_secs(1);
/// Number of such commits after which they are synced: redb keeps the pages they replaced until then.
const SYNC_AFTER_COMMITS: usize = 512;
/// Bytes of records that are read and applied at once.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// A place in a journal that can be waited for, e.g. `3:118` for commit 118 of shard 3.
///
/// ```
/// use grainstore::journal::{CommitPosition, ShardId};
///
/// let position: CommitPosition = "3:118".parse()?;
/// assert_eq!((position.shard, position.commit), (ShardId(3), 118));
/// assert_eq!(position.to_string(), "3:118");
/// # Ok::<(), grainstore::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CommitPosition {
    /// The shard.
    pub shard: ShardId,
    /// The number of the commit.
    pub commit: u64,
}

impl CommitPosition {
    /// The place after a commit of a shard.
    #[must_use]
    pub const fn new(shard: ShardId, commit: u64) -> Self {
        Self { shard, commit }
    }
}

impl std::fmt::Display for CommitPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.shard, self.commit)
    }
}

impl std::str::FromStr for CommitPosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once(':').and_then(|(shard, commit)| {
            Some(Self::new(ShardId(shard.parse().ok()?), commit.parse().ok()?))
        });
        let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
        numbers.ok_or_else(|| {
            Error::new(schema, "this is no position").with_hint("give SHARD:COMMIT, e.g. 3:118")
        })
    }
}

/// What the leader's commits go through.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    journal: Arc<dyn Journal>,
    lead: Lead,
    /// Time for which a journal that is not reached is tried again.
    patience: Duration,
    state: Mutex<WriterState>,
}

#[derive(Debug)]
struct WriterState {
    head: Head,
    unsynced: Unsynced,
}

/// Commits that are in the journal, and may not be on the disk yet.
#[derive(Debug)]
pub(crate) struct Unsynced {
    commits: usize,
    since: Instant,
}

/// Time for which a copy stands still where its files are to be scrubbed, and somebody reads from those of an earlier
/// scrub.
const MAX_SCRUB_DELAY: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
/// Time between two looks at whether somebody still does.
const TRY_SCRUB_EVERY: Duration = Duration::from_millis(50);

/// What a copy that follows has yet to do.
#[derive(Debug, Default)]
pub(crate) struct Following {
    pub(crate) unsynced: Unsynced,
    /// True while somebody reads from files that were replaced, and are to be overwritten then.
    pub(crate) is_read: bool,
    /// Its wait for them, while its files are to be scrubbed before it goes on.
    pub(crate) wait: Option<Wait>,
}

/// A wait for readers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    since: Instant,
    tried: Instant,
}

impl Wait {
    /// Begins to wait, or goes on.
    ///
    /// # Errors
    /// `ERR_BUSY` once it took too long.
    pub(crate) fn go_on(before: Option<Self>) -> Result<Self> {
        let tried = Instant::now();
        let since = before.map_or(tried, |before| before.since);
        if since.elapsed() > MAX_SCRUB_DELAY {
            let message = "somebody reads for too long from files that are to be overwritten";
            return Err(Error::new(ErrorKind::Busy, message)
                .with_hint("open this copy again, which ends what is read of it"));
        }
        Ok(Self { since, tried })
    }

    /// Returns `true` if it is time to look again.
    pub(crate) fn is_to_be_tried(self) -> bool {
        self.tried.elapsed() > TRY_SCRUB_EVERY
    }
}

impl Default for Unsynced {
    fn default() -> Self {
        Self { commits: 0, since: Instant::now() }
    }
}

impl Unsynced {
    /// Returns `true` if these commits are to be synced, with all before.
    pub(crate) fn add(&mut self, commits: usize) -> bool {
        self.commits = self.commits.saturating_add(commits);
        let syncs = self.commits >= SYNC_AFTER_COMMITS || self.since.elapsed() >= SYNC_AFTER;
        if syncs {
            *self = Self::default();
        }
        syncs
    }
}

impl JournalWriter {
    /// A writer that goes on after the head of the lead.
    pub(crate) fn new(journal: Arc<dyn Journal>, lead: Lead, patience: Duration) -> Self {
        let state = WriterState { head: lead.head, unsynced: Unsynced::default() };
        Self { journal, lead, patience, state: Mutex::new(state) }
    }

    /// An observer that appends each commit.
    pub(crate) fn observer(self: Arc<Self>) -> CommitObserver {
        CommitObserver::new(move |changes, slots, vault| {
            self.append((changes, slots), vault).map(Some)
        })
    }

    fn append(
        &self,
        (changes, slots): (&ChangeRecord, Vec<KeyringSlot>),
        vault: &Vault,
    ) -> Result<JournaledCommit> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Lead { shard, epoch, .. } = self.lead;
        let tag = vault
            .keyring()
            .map(|keyring| move |header: &[u8], rest: &[u8]| keyring.record_tag(header, rest));
        let tag = tag.as_ref().map(|tag| tag as &TagOf<'_>);
        let record = Record::after(&state.head, (shard, epoch), (changes, slots), tag)?;
        let appended = (&state.head, &record);
        state.head = append_surely(&*self.journal, &self.lead, appended, self.patience)?;
        let syncs = state.unsynced.add(1);
        Ok(JournaledCommit { position: Position { shard, head: state.head, epoch }, syncs })
    }
}

/// Where records come from: the journal of a shard, and the keys that those of an encrypted store are tagged with.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) journal: &'a dyn Journal,
    pub(crate) shard: ShardId,
    pub(crate) vault: &'a Vault,
}

/// Brings a copy to an end that the journal has now, or a later one, and returns where it is then. The keyring has the slots
/// that rows are encrypted under before they are written.
///
/// # Errors
/// `ERR_DIVERGED` if the copy has a commit that the journal has not; `ERR_INTEGRITY`, `ERR_STORE_VERSION` for a record
/// that cannot be read, or a slot that is not the leader's; `ERR_IO`.
pub(crate) fn catch_up(db: &Database, source: Source<'_>, end: &Head) -> Result<Position> {
    let (mut position, mut end) = (position_in(db, source.shard)?, *end);
    let mut ahead = ReadAhead { marks: marks_in(db)?, to: position };
    if let Some(keyring) = source.vault.keyring() {
        let first = keyring.slot_count();
        let lost = first..slots_in(db)?.max(first);
        if !lost.is_empty() {
            let hashes = hashes_up_to(source, &position.head, &lost)?;
            ahead.adopt((source, keyring), lost, (&position.head, &hashes))?;
        }
    }
    loop {
        let batch = next_batch(source, &position, &end)?;
        let Some(last) = batch.last() else {
            // Slots that were destroyed meanwhile are zeros here, so that their marks have to be, too.
            if ahead.to.head.commit <= end.commit {
                return Ok(position);
            }
            end = ahead.to.head;
            continue;
        };
        if let Some(keyring) = source.vault.keyring() {
            let needed = needed_slots(keyring, &batch)?;
            ahead.adopt((source, keyring), needed, (&last.head(), &hashes_of(&batch)))?;
        }
        position = apply_batch(db, &position, &batch, Applying::WhenOpened)?;
    }
}

/// Returns the hashes of slots that the file of the keyring lost, from the records that a copy has applied.
fn hashes_up_to(source: Source<'_>, end: &Head, lost: &Range<u32>) -> Result<SlotHashes> {
    let (mut hashes, mut at) = (SlotHashes::new(), Position::start(source.shard));
    loop {
        let batch = next_batch(source, &at, end)?;
        let Some(last) = batch.last() else { return Ok(hashes) };
        let of_batch = hashes_of(&batch).into_iter();
        hashes.extend(of_batch.filter(|(number, _)| lost.contains(number)));
        at = place_after(last);
    }
}

/// The marks of destroyed slots in the records up to a place, where a copy may not be yet.
struct ReadAhead {
    marks: Marks,
    to: Position,
}

impl ReadAhead {
    /// Adds needed slots of the journal to a keyring. Those that are destroyed by now were by later records than the copy
    /// has, which are read for their marks.
    fn adopt(
        &mut self,
        (source, keyring): (Source<'_>, &Keyring),
        needed: Range<u32>,
        (head, hashes): (&Head, &SlotHashes),
    ) -> Result<()> {
        if needed.is_empty() {
            return Ok(());
        }
        let (end, mut slots) = source.journal.keyring(source.shard, needed.clone())?;
        check_end(head, &end)?;
        if slots.iter().any(|slot| lacks_mark(keyring, slot, &self.marks)) {
            loop {
                let batch = next_batch(source, &self.to, &end)?;
                let Some(last) = batch.last() else { break };
                self.marks.extend(marks_of(&batch)?);
                self.to = place_after(last);
            }
        }
        check_slots(keyring, (needed, &slots), (hashes, &self.marks))?;
        for slot in slots.iter_mut().filter(|slot| self.marks.contains_key(&slot.number)) {
            // One that somebody put back is not written here.
            *slot = Keyring::erased_slot(slot.number);
        }
        keyring.adopt(&slots)
    }
}

/// The place after a record.
pub(crate) fn place_after(record: &Record) -> Position {
    Position { shard: record.shard(), head: record.head(), epoch: record.epoch() }
}

/// Returns where a copy is in the journal of a shard.
///
/// # Errors
/// `ERR_DIVERGED` for a copy of another shard, or of a store that has no journal; `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn position_in(db: &Database, shard: ShardId) -> Result<Position> {
    match Position::read(db)? {
        Some(position) if position.shard == shard => Ok(position),
        Some(position) => {
            let message = format!("this is a copy of shard {}, not of {shard}", position.shard);
            Err(diverged(message)
                .with_hint("name its own shard, or another directory: the copy is sound"))
        }
        // A file that holds nothing yet is that of a copy which is being made.
        None if db.begin_read()?.list_tables()?.next().is_none() => Ok(Position::start(shard)),
        None => Err(diverged("this store was written without a journal".to_owned())
            .with_hint("export it, and import the file into the shard")),
    }
}

/// Returns the next records up to an end that the journal has now, after the place was compared with it; none at the
/// end. Those of an encrypted store were written by who has its key.
///
/// # Errors
/// As [`catch_up`].
pub(crate) fn next_batch(
    Source { journal, vault, .. }: Source<'_>,
    position: &Position,
    end: &Head,
) -> Result<Vec<Record>> {
    let Head { commit, .. } = position.head;
    if *end == position.head {
        return Ok(Vec::new());
    }
    check_end(&position.head, end)?;
    let mut batch = journal.read(position.shard, commit, MAX_BATCH_BYTES)?;
    // What was appended since is not compared with the end.
    batch.retain(|record| record.commit() <= end.commit);
    let mut last = (position.head, position.epoch);
    for record in &batch {
        last = follow(position.shard, last, record)?;
    }
    if batch.is_empty() {
        return Err(diverged(format!("the journal lacks the record after {commit}")));
    }
    // The last is vouched for by the end, or by the record after it.
    if last.0.commit == end.commit {
        if last.0 != *end {
            let message = format!("record {} of the journal was altered", end.commit);
            return Err(diverged(message));
        }
    } else if batch.len() > 1 {
        batch.pop();
    } else {
        let next = journal.read(position.shard, last.0.commit, 1)?;
        let message = || format!("the journal lacks the record after {}", last.0.commit);
        follow(position.shard, last, next.first().ok_or_else(|| diverged(message()))?)?;
    }
    check_tags(vault, &batch)?;
    Ok(batch)
}

/// Returns the head and the epoch after a record, which is to follow these.
fn follow(shard: ShardId, (head, epoch): (Head, u64), record: &Record) -> Result<(Head, u64)> {
    if !record.follows(&head) || record.shard() != shard || record.epoch() < epoch {
        let message = format!("record {} does not follow the one before it", record.commit());
        return Err(diverged(message));
    }
    Ok((record.head(), record.epoch()))
}

/// How records are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applying {
    /// While the copy is opened: nobody reads, and what they erase is scrubbed afterwards.
    WhenOpened,
    /// Synced.
    Synced,
    /// Not synced: a crash loses them, and opening reads them again.
    Unsynced,
}

/// Writes the rows of records that follow a place, in one transaction, and returns the place after them.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_STORE_VERSION`, `ERR_IO`.
pub(crate) fn apply_batch(
    db: &Database,
    from: &Position,
    batch: &[Record],
    applying: Applying,
) -> Result<Position> {
    let Some(last) = batch.last() else { return Ok(*from) };
    let mut txn = db.begin_write()?;
    let syncs = applying != Applying::Unsynced;
    txn.set_durability(if syncs { Durability::Immediate } else { Durability::None })?;
    for record in batch {
        let changes = record.changes()?;
        check_format(&changes)?;
        // The pages of before are still in the file, and those of the index.
        if applying == Applying::WhenOpened && ends_erasure(&txn, &changes)? {
            Position::make_scrub_due(&txn)?;
        }
        changes.apply(&txn)?;
    }
    let position = place_after(last);
    position.write(&txn)?;
    txn.commit()?;
    Ok(position)
}

/// Refuses records of an encrypted store that who has its key did not write.
///
/// # Errors
/// `ERR_INTEGRITY`; `ERR_KEY` without a key.
fn check_tags(vault: &Vault, batch: &[Record]) -> Result<()> {
    let Some(keyring) = vault.keyring() else {
        return match batch.iter().any(Record::is_tagged) {
            true => {
                let key = ErrorKind::Format(grainstore_format::ErrorKind::Key);
                Err(Error::new(key, "this store is encrypted, and no key was given")
                    .with_hint("give the key or the passphrase it opens with"))
            }
            false => Ok(()),
        };
    };
    let is_tag =
        |header: &[u8], rest: &[u8], tag: &RecordTag| keyring.is_record_tag(header, rest, tag);
    match batch.iter().find(|record| !record.has_tag(is_tag)) {
        None => Ok(()),
        Some(record) => Err(damaged(format!(
            "record {} of the journal was not written by who has the key",
            record.commit()
        ))),
    }
}

/// Has the file hold all commits: those that the journal has need not be there yet.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn sync(db: &Database) -> Result<()> {
    let mut txn = db.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    Ok(txn.commit()?)
}

/// Notes that the files of a copy have nothing any more that records erased when it was opened.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn end_scrub(db: &Database) -> Result<()> {
    let txn = db.begin_write()?;
    Position::end_scrub(&txn)?;
    Ok(txn.commit()?)
}

/// Returns `true` if a commit ends an erasure that this copy has not scrubbed: the leader has scrubbed its own files. While
/// one is pending, whoever opens the copy scrubs it as that of a single store, or when the end comes.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
fn ends_erasure(txn: &WriteTransaction, changes: &ChangeRecord) -> Result<bool> {
    let mut after = None;
    for row in changes.rows() {
        let (table, key, value) = row?;
        if table == TruthTable::Meta && key == layout::META_ERASURES.as_bytes() {
            after = Some(value.map_or(Ok(Vec::new()), pending_in)?);
        }
    }
    let Some(after) = after else { return Ok(false) };
    let meta = txn.open_table(layout::META)?;
    let before = meta.get(layout::META_ERASURES)?;
    let before = before.map_or(Ok(Vec::new()), |row| pending_in(row.value()))?;
    Ok(before.iter().any(|entry| !after.contains(entry)))
}

/// The audit entries of the erasures that are pending by a row.
fn pending_in(row: &[u8]) -> Result<Vec<u64>> {
    Ok(ErasureRecord::open(row)?.pending.iter().map(|of| of.entry).collect())
}

/// Refuses a commit that makes the store one of a later format.
///
/// # Errors
/// `ERR_STORE_VERSION`.
fn check_format(changes: &ChangeRecord) -> Result<()> {
    for row in changes.rows() {
        let (table, key, value) = row?;
        let is_format = table == TruthTable::Meta && key == layout::META_FORMAT.as_bytes();
        let format = value.filter(|_| is_format);
        if format.is_some_and(|format| format > layout::FORMAT_VERSION.to_be_bytes().as_slice()) {
            let message = "the leader has a store of a later format";
            return Err(Error::new(ErrorKind::StoreVersion, message)
                .with_hint("run the version of the leader here too"));
        }
    }
    Ok(())
}

/// Refuses a copy that has what the journal has not.
///
/// # Errors
/// `ERR_DIVERGED`.
pub(crate) fn check_end(of_copy: &Head, end: &Head) -> Result<()> {
    let commit = of_copy.commit;
    if end.commit > commit || end == of_copy {
        return Ok(());
    }
    Err(diverged(match end.commit == commit {
        true => format!("commit {commit} of this copy is another than the journal's"),
        false => format!("this copy has commit {commit}, and the journal ends with {}", end.commit),
    }))
}

fn diverged(message: String) -> Error {
    Error::new(ErrorKind::Diverged, message)
}
