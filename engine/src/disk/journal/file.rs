//! A journal in files of one directory: for several processes of one machine.
//!
//! A shard has a file of records, one with its lead, and one whose lock says who reads or writes the two. One that is
//! encrypted has a file of keyring slots, too, and another of those that the record to be appended next comes with.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind as Io, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{
    Head, Journal, KEYRING_SLOT_BYTES, KeyringSlot, Lead, MAX_RECORD_BYTES, Record, ShardId,
    ShardStatus, damaged, fenced, led_by, unreachable,
};
use crate::base::error::Result;
use crate::disk::directory;

/// Before the bytes of a record: their length, the checksum of that, and theirs.
const FRAME_BYTES: u64 = 12;
/// What a file system writes at once, or leaves as zeros, at least.
const PAGE_BYTES: usize = 4096;
/// Zeros that are no end of a record by chance.
const MIN_ZEROS: usize = 32;

/// Time for which a process is waited for that holds the lock: one that reads a long journal for the first time, or
/// stands still.
const LOCK_TIME: Duration = Duration::from_secs(60);
/// Time between two attempts to lock.
const LOCK_AGAIN: Duration = Duration::from_micros(200);

/// A [`Journal`] in files of a directory that all nodes reach, on a file system with locks: the disk of one machine.
///
/// An append is synced before it is told. The directory is created with the first lead. A process that is stopped in the
/// middle of a call keeps the others from the journal (`ERR_IO`) until it goes on or is killed.
#[derive(Debug)]
pub struct FileJournal {
    directory: PathBuf,
    /// What was read of each shard.
    known: Mutex<BTreeMap<ShardId, Known>>,
    lock_time: Duration,
}

/// The records of a shard as far as they were read.
#[derive(Debug)]
struct Known {
    /// Where each record begins.
    starts: Vec<u64>,
    /// Where the last ends.
    end: u64,
    head: Head,
}

impl Known {
    fn add(&mut self, record: &Record) {
        self.starts.push(self.end);
        self.end = self.end.saturating_add(frame_length(record));
        self.head = record.head();
    }

    fn end(&self) -> End {
        End { at: self.end, last: self.starts.last().copied(), head: self.head }
    }
}

/// Where the records of a shard end.
#[derive(Debug, Clone, Copy)]
struct End {
    at: u64,
    /// Where the last record begins.
    last: Option<u64>,
    head: Head,
}

impl Default for Known {
    fn default() -> Self {
        Self { starts: Vec::new(), end: 0, head: Head::EMPTY }
    }
}

/// The lead of a shard.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Lease {
    epoch: u64,
    node: Option<String>,
    /// Milliseconds since 1970.
    until_ms: u64,
}

impl Lease {
    fn left(&self) -> Duration {
        Duration::from_millis(self.until_ms.saturating_sub(now_ms()))
    }

    fn status(&self, head: Head) -> ShardStatus {
        ShardStatus::new(head, self.epoch, self.node.clone(), self.left())
    }

    fn of(lead: &Lead) -> Self {
        let ttl = u64::try_from(lead.ttl.as_millis()).unwrap_or(u64::MAX);
        let until_ms = now_ms().saturating_add(ttl);
        Self { epoch: lead.epoch, node: Some(lead.node.clone()), until_ms }
    }
}

/// The files of a shard, locked.
struct Locked<'j> {
    journal: &'j FileJournal,
    shard: ShardId,
    /// Unlocked when it is dropped.
    _lock: File,
}

impl FileJournal {
    /// The journal in a directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), known: Mutex::default(), lock_time: LOCK_TIME }
    }

    /// Sets the time for which who holds a lock is waited for.
    #[cfg(test)]
    pub(super) fn lock_time(mut self, lock_time: Duration) -> Self {
        self.lock_time = lock_time;
        self
    }

    fn path(&self, shard: ShardId, suffix: &str) -> PathBuf {
        self.directory.join(format!("shard-{shard}.{suffix}"))
    }

    fn lock(&self, shard: ShardId) -> Result<Locked<'_>> {
        directory::create_all(&self.directory)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path(shard, "lock"))?;
        let began = Instant::now();
        while let Err(failed) = lock.try_lock() {
            match failed {
                TryLockError::Error(failed) => return Err(failed.into()),
                TryLockError::WouldBlock if began.elapsed() >= self.lock_time => {
                    let message = format!(
                        "another process has held the journal in {} for {} s",
                        self.directory.display(),
                        self.lock_time.as_secs()
                    );
                    return Err(unreachable(message));
                }
                TryLockError::WouldBlock => thread::sleep(LOCK_AGAIN),
            }
        }
        Ok(Locked { journal: self, shard, _lock: lock })
    }
}

impl Locked<'_> {
    fn lease(&self) -> Result<Lease> {
        match fs::read(self.journal.path(self.shard, "lead")) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|_| damaged("the file of the lead of a journal is damaged")),
            Err(missing) if missing.kind() == Io::NotFound => Ok(Lease::default()),
            Err(failed) => Err(failed.into()),
        }
    }

    fn set_lease(&self, lease: &Lease) -> Result<()> {
        let (file, new) = ("lead", "lead.new");
        let (file, new) = (self.journal.path(self.shard, file), self.journal.path(self.shard, new));
        let json = serde_json::to_vec(lease).map_err(|error| damaged(error.to_string()))?;
        let mut written = File::create(&new)?;
        written.write_all(&json)?;
        written.sync_all()?;
        fs::rename(&new, &file)?;
        directory::sync_directory(&self.journal.directory)
    }

    /// Refuses a lead that another node ended.
    fn held(&self, lead: &Lead) -> Result<()> {
        let epoch = self.lease()?.epoch;
        match epoch == lead.epoch {
            true => Ok(()),
            false => Err(fenced(format!("lead {} ended: {epoch} began", lead.epoch))),
        }
    }

    fn records(&self) -> PathBuf {
        self.journal.path(self.shard, "journal")
    }

    /// Reads what other processes appended, and has it on the disk: who wrote it may have died before it was synced, and
    /// whoever is told of it may have it there first.
    fn end(&self) -> Result<End> {
        let mut all = self.journal.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(self.shard).or_default();
        let Some(mut file) = open(&self.records())? else { return Ok(known.end()) };
        let length = file.metadata()?.len();
        if length < known.end {
            return Err(damaged("the file of a journal became shorter"));
        }
        file.seek(SeekFrom::Start(known.end))?;
        let mut read = Known { starts: Vec::new(), ..*known };
        while let Some(record) = next_record(&mut file, length.saturating_sub(read.end))? {
            if !record.follows(&read.head) {
                let commit = record.commit();
                return Err(damaged(format!("record {commit} of a journal follows none")));
            }
            read.add(&record);
        }
        if read.end > known.end {
            file.sync_data()?;
            known.starts.append(&mut read.starts);
            (known.end, known.head) = (read.end, read.head);
        }
        Ok(known.end())
    }

    fn keyring(&self) -> PathBuf {
        self.journal.path(self.shard, "keyring")
    }

    fn new_slots(&self) -> PathBuf {
        self.journal.path(self.shard, "slots")
    }

    /// Keeps the slots of a record that is appended next: a crash in between leaves both or neither.
    fn announce(&self, record: &Record) -> Result<()> {
        let mut bytes = record.commit().to_be_bytes().to_vec();
        for slot in record.slots() {
            bytes.extend_from_slice(&slot.number.to_be_bytes());
            bytes.extend_from_slice(&slot.bytes);
        }
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        let mut file = private(&self.new_slots())?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        directory::sync_directory(&self.journal.directory)
    }

    /// Writes announced slots to their places if their record is one of those up to the last, and drops them otherwise.
    fn settle(&self, last: &Head) -> Result<()> {
        let Some(mut file) = open(&self.new_slots())? else { return Ok(()) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if let Some((commit, slots)) = announced(&bytes)
            && commit <= last.commit
        {
            let mut keyring = private(&self.keyring())?;
            for slot in slots {
                keyring.seek(SeekFrom::Start(slot_offset(slot.number)))?;
                keyring.write_all(&slot.bytes)?;
            }
            keyring.sync_all()?;
            directory::sync_directory(&self.journal.directory)?;
        }
        directory::shred(&self.new_slots())
    }

    /// Appends a record behind the others, and its slots.
    fn append(&self, record: &Record, end: &End) -> Result<()> {
        self.settle(&end.head)?;
        if !record.slots().is_empty() {
            self.announce(record)?;
        }
        let is_new = !self.records().exists();
        let file = open_to_write(&self.records())?;
        // What a process that died left of an append was told to nobody.
        file.set_len(end.at)?;
        if let Err(failed) = write_record(&file, record, end.at) {
            // Or else the next who looks may take for appended what is not on the disk.
            let _ = file.set_len(end.at).and_then(|()| file.sync_data());
            return Err(failed);
        }
        if is_new {
            directory::sync_directory(&self.journal.directory)?;
        }
        if !record.slots().is_empty() {
            self.settle(&record.head())?;
        }
        let mut all = self.journal.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(self.shard).or_default().add(record);
        Ok(())
    }

    /// Writes again, and so syncs, the last record, if it is this one: an attempt to append it failed, and what failed to be
    /// synced may be taken for synced by now.
    fn append_again(&self, record: &Record, end: &End) -> Result<()> {
        match end.last {
            Some(start) if end.head.commit == record.commit() && end.head == record.head() => {
                write_record(&open_to_write(&self.records())?, record, start)?;
                directory::sync_directory(&self.journal.directory)?;
                self.settle(&end.head)
            }
            _ => Ok(()),
        }
    }
}

impl Journal for FileJournal {
    fn lead(&self, shard: ShardId, node: &str, ttl: Duration) -> Result<Lead> {
        let locked = self.lock(shard)?;
        let (lease, end) = (locked.lease()?, locked.end()?);
        if let Some(leader) = lease.node.as_deref().filter(|leader| *leader != node)
            && !lease.status(end.head).may_be_taken(ttl)
        {
            return Err(led_by(leader));
        }
        let lead = Lead::new((shard, lease.epoch.saturating_add(1)), node, ttl, end.head);
        locked.set_lease(&Lease::of(&lead))?;
        Ok(lead)
    }

    fn renew(&self, lead: &Lead) -> Result<Head> {
        let locked = self.lock(lead.shard)?;
        locked.held(lead)?;
        locked.set_lease(&Lease::of(lead))?;
        Ok(locked.end()?.head)
    }

    fn release(&self, lead: &Lead) -> Result<()> {
        let locked = self.lock(lead.shard)?;
        match locked.held(lead) {
            Ok(()) => locked.set_lease(&Lease { epoch: lead.epoch, ..Lease::default() }),
            Err(_) => Ok(()),
        }
    }

    /// The lead is not kept by an append, which would sync a second file: [`Journal::renew`] does.
    fn append(&self, lead: &Lead, after: &Head, record: &Record) -> Result<Head> {
        let locked = self.lock(lead.shard)?;
        let end = locked.end()?;
        locked.append_again(record, &end)?;
        locked.held(lead)?;
        if end.head != *after || !record.follows(after) {
            return Err(fenced(format!("the journal ends with commit {}", end.head.commit)));
        }
        locked.append(record, &end)?;
        Ok(record.head())
    }

    fn read(&self, shard: ShardId, after: u64, bytes: usize) -> Result<Vec<Record>> {
        let end = self.lock(shard)?.end()?;
        let first = usize::try_from(after).unwrap_or(usize::MAX);
        let start = {
            let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(&shard).and_then(|known| known.starts.get(first).copied())
        };
        let Some(start) = start else { return Ok(Vec::new()) };
        // Records that are whole do not change, so no lock is needed.
        let Some(mut file) = open(&self.path(shard, "journal"))? else { return Ok(Vec::new()) };
        file.seek(SeekFrom::Start(start))?;
        let (mut records, mut at, mut left) = (Vec::new(), start, bytes);
        while at < end.at {
            let Some(record) = next_record(&mut file, end.at.saturating_sub(at))? else { break };
            let length = record.as_bytes().len();
            if length > left && !records.is_empty() {
                break;
            }
            at = at.saturating_add(frame_length(&record));
            left = left.saturating_sub(length);
            records.push(record);
        }
        Ok(records)
    }

    fn keyring(&self, shard: ShardId, slots: Range<u32>) -> Result<(Head, Vec<KeyringSlot>)> {
        let locked = self.lock(shard)?;
        let End { head, .. } = locked.end()?;
        locked.settle(&head)?;
        let Some(mut file) = open(&locked.keyring())? else { return Ok((head, Vec::new())) };
        file.seek(SeekFrom::Start(slot_offset(slots.start)))?;
        let mut bytes = Vec::new();
        file.take(slot_offset(slots.end).saturating_sub(slot_offset(slots.start)))
            .read_to_end(&mut bytes)?;
        let (whole, rest) = bytes.as_chunks::<KEYRING_SLOT_BYTES>();
        if !rest.is_empty() {
            return Err(damaged("the keyring of a journal was cut off"));
        }
        let slots = slots.zip(whole).map(|(number, bytes)| KeyringSlot::new(number, *bytes));
        Ok((head, slots.collect()))
    }

    fn status(&self, shard: ShardId) -> Result<ShardStatus> {
        let locked = self.lock(shard)?;
        Ok(locked.lease()?.status(locked.end()?.head))
    }
}

/// The commit and the slots of an announcement; `None` for one that was cut off.
fn announced(bytes: &[u8]) -> Option<(u64, Vec<KeyringSlot>)> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(body).to_be_bytes() != *sum {
        return None;
    }
    let (commit, slots) = body.split_first_chunk::<8>()?;
    let slots = slots.chunks_exact(4 + KEYRING_SLOT_BYTES).filter_map(|slot| {
        let (number, bytes) = slot.split_first_chunk::<4>()?;
        Some(KeyringSlot::new(u32::from_be_bytes(*number), bytes.try_into().ok()?))
    });
    Some((u64::from_be_bytes(*commit), slots.collect()))
}

fn slot_offset(number: u32) -> u64 {
    u64::from(number).saturating_mul(KEYRING_SLOT_BYTES as u64)
}

/// Opens a file to write it, made as its owner's alone.
fn private(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(options.open(path)?)
}

fn open_to_write(path: &Path) -> Result<File> {
    Ok(OpenOptions::new().create(true).truncate(false).write(true).open(path)?)
}

/// Writes a record from a place of a file on, synced.
fn write_record(mut file: &File, record: &Record, start: u64) -> Result<()> {
    file.seek(SeekFrom::Start(start))?;
    let bytes = record.as_bytes();
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(bytes.len().saturating_add(12));
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&length.to_be_bytes()).to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(bytes).to_be_bytes());
    frame.extend_from_slice(bytes);
    file.write_all(&frame)?;
    Ok(file.sync_data()?)
}

fn open(path: &Path) -> Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(missing) if missing.kind() == Io::NotFound => Ok(None),
        Err(failed) => Err(failed.into()),
    }
}

/// Reads a record of the `left` bytes from here on; `None` if there is none, or one whose append was cut off.
fn next_record(file: &mut File, left: u64) -> Result<Option<Record>> {
    if left < FRAME_BYTES {
        return Ok(None);
    }
    let mut frame = [0; 12];
    file.read_exact(&mut frame)?;
    if frame == [0; 12] {
        // A file system may have lengthened the file and not written it.
        return Ok(None);
    }
    let [a, b, c, d, e, f, g, h, sum @ ..] = frame;
    let length = [a, b, c, d];
    if crc32fast::hash(&length).to_be_bytes() != [e, f, g, h] {
        return Err(damaged("the length of a record of the journal has changed"));
    }
    let length = u64::from(u32::from_be_bytes(length));
    let room = left.saturating_sub(FRAME_BYTES);
    if length > room {
        // Its append was cut off.
        return Ok(None);
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MAX_RECORD_BYTES {
        return Err(damaged("a record of the journal has an impossible length"));
    }
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes)?;
    if crc32fast::hash(&bytes).to_be_bytes() == sum {
        return Record::from_bytes(bytes).map(Some);
    }
    let end = file.stream_position()?;
    if end == file.metadata()?.len() && has_unwritten_page(&bytes, end) {
        // The power was cut in its append, which was told to nobody.
        return Ok(None);
    }
    Err(damaged("the bytes of a record of the journal have changed"))
}

/// Returns `true` if bytes that end at a place of a file have a page that has only zeros, from its beginning on: the file was
/// made longer, and that page was not written.
fn has_unwritten_page(bytes: &[u8], end: u64) -> bool {
    let start = end.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    let before = start.next_multiple_of(PAGE_BYTES as u64).saturating_sub(start);
    let before = usize::try_from(before).unwrap_or(usize::MAX);
    let pages = bytes.get(before..).unwrap_or_default().chunks(PAGE_BYTES);
    pages.filter(|page| page.len() >= MIN_ZEROS).any(|page| page.iter().all(|byte| *byte == 0))
}

fn frame_length(record: &Record) -> u64 {
    FRAME_BYTES.saturating_add(u64::try_from(record.as_bytes().len()).unwrap_or(u64::MAX))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
