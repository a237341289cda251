//! Access of sessions to the read log.

use std::path::Path;
use std::sync::Arc;

use data_encoding::HEXLOWER;

use crate::base::error::{Error, Result};
use crate::handle::session::MAX_AUDIT_ENTRIES;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::state::audit::{AuditEntry, AuditHashChain};
use crate::write::read_log::ReadLog;
use crate::write::read_log::group::{self, LoggedRead, ReadRecord};
use crate::write::read_log::segment::{self, FileHeader, GroupIter};

/// The log that records CAL calls that read: [`Store::reads_recorded`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadsDestination {
    /// The read log.
    ReadLog,
    /// The audit log, because the rules of the store require it.
    AuditLog,
    /// None: the operator has switched the read log off, or the store is read-only. If its rules require an
    /// audit of reads, reads are refused then.
    Nowhere,
}

impl Store {
    /// Returns the log that records CAL calls that read, or are refused to.
    ///
    /// ```
    /// use grainstore::{ReadsDestination, prelude::*};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// let options = OpenOptions::new().create(true).audit_reads(false);
    /// let store = Store::open(dir.path(), &options)?;
    /// assert_eq!(store.reads_recorded(), ReadsDestination::Nowhere);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reads_recorded(&self) -> ReadsDestination {
        let inner = self.inner();
        match inner.reads() {
            _ if self.is_read_only() => ReadsDestination::Nowhere,
            _ if inner.active_rules().audits_reads() => ReadsDestination::AuditLog,
            Some(reads) if reads.is_recording() => ReadsDestination::ReadLog,
            _ => ReadsDestination::Nowhere,
        }
    }

    /// Number of reads ([`Session::reads`]) since the store was opened that could not be written to disk.
    #[must_use]
    pub fn lost_reads(&self) -> u64 {
        self.inner().reads().map_or(0, |reads| reads.lost_since_open())
    }
}

impl Session {
    /// Returns entries of the read log after a number, oldest first, in the form of audit entries: CAL calls
    /// that read, or were refused to. The operator sees all of them. A session with a namespace or a user
    /// sees those of sessions of its namespace, of those below it, and of its user; in an encrypted store,
    /// where the log has pseudonyms of namespaces, only those of exactly its namespace. A session with
    /// neither that is not the operator's sees those of its own actor.
    ///
    /// There may be fewer than `limit` before the end of the log: an answer has at most [`MAX_AUDIT_ENTRIES`]. An
    /// empty answer means the end.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// session.ask(r#"RECALL beliefs ABOUT "alice""#)?;
    /// let entries = session.reads(None, 10)?;
    /// let call = entries.last().and_then(|entry| entry.call.as_ref());
    /// assert_eq!(call.and_then(|call| call.statement.as_deref()), Some("recall"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the log is damaged; `ERR_IO`.
    pub fn reads(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.read_log_entries(after, limit, None)
    }

    /// Like [`Session::reads`], limited to one actor.
    ///
    /// # Errors
    /// The errors of [`Session::reads`].
    pub fn reads_by(
        &self,
        actor: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        self.read_log_entries(after, limit, Some(actor))
    }

    /// Returns the end of the read log: its number of entries, including deleted ones, and the hash of its
    /// last group in hex. `None` if nothing was ever recorded.
    ///
    /// # Errors
    /// The errors of [`Session::reads`].
    pub fn reads_head(&self) -> Result<Option<(u64, String)>> {
        let Some(reads) = self.store().inner().reads() else { return Ok(None) };
        let store = self.flush_read_log(reads)?;
        let dir = reads.directory()?;
        let Some(number) = segment::file_numbers(&dir)?.last().copied() else { return Ok(None) };
        let bytes = segment::read_file(&dir, number)?;
        let start = FileHeader::decode(&bytes, &store, number)?;
        let mut frames = GroupIter::of(&bytes, &start);
        frames.by_ref().for_each(drop);
        Ok(Some((frames.end.count, HEXLOWER.encode(&frames.end.hash))))
    }

    /// Records a call that read.
    ///
    /// # Errors
    /// `ERR_IO` if the store is closed.
    pub(crate) fn record_read(&self, note: ReadRecord) -> Result<()> {
        self.store().inner().reads().map_or(Ok(()), |reads| reads.push(note))
    }

    /// Returns `true` if reads are recorded in the read log.
    pub(crate) fn records_reads(&self) -> bool {
        self.store().reads_recorded() == ReadsDestination::ReadLog
    }

    /// Writes waiting entries. Returns the store's id.
    fn flush_read_log(&self, reads: &Arc<ReadLog>) -> Result<[u8; 16]> {
        reads.settle()?;
        self.view()?.store_id()
    }

    fn read_log_entries(
        &self,
        after: Option<u64>,
        limit: usize,
        actor: Option<&str>,
    ) -> Result<Vec<AuditEntry>> {
        let Some(reads) = self.store().inner().reads() else { return Ok(Vec::new()) };
        let store = self.flush_read_log(reads)?;
        let view = self.view()?;
        let chain = view.chain_before_genesis()?.with_vault(view.vault().clone());
        let reader = ReadLogFilter::of(self, &chain, actor);
        let from = after.map_or(0, |after| after.saturating_add(1));
        let limit = limit.min(MAX_AUDIT_ENTRIES);
        let mut entries = Vec::new();
        let _held = reads.retain_files();
        let dir = reads.directory()?;
        visit_entries(&dir, &store, from, &mut |read| {
            if entries.len() < limit && reader.sees(&read) {
                entries.push(read.entry);
            }
            entries.len() < limit
        })?;
        Ok(entries)
    }
}

/// Visits the entries from a number on, until `take` returns `false`.
fn visit_entries(
    dir: &Path,
    store: &[u8; 16],
    from: u64,
    take: &mut dyn FnMut(LoggedRead) -> bool,
) -> Result<()> {
    let numbers = segment::file_numbers(dir)?;
    let starts = numbers.iter().map(|number| segment::read_header(dir, *number, store));
    let starts: Vec<FileHeader> =
        starts.collect::<Result<_>>().map_err(|error| error.at_path(dir))?;
    let begin = starts.iter().rposition(|start| start.at.count <= from).unwrap_or_default();
    for start in starts.iter().skip(begin) {
        let bytes = segment::read_file(dir, start.number)?;
        let mut frames = GroupIter::of(&bytes, start);
        while let Some((first, body)) = frames.next() {
            if frames.end.count <= from {
                continue;
            }
            for read in group::decode(body, first)?.reads {
                if read.entry.sequence >= from && !take(read) {
                    return Ok(());
                }
            }
        }
        let is_last = Some(&start.number) == numbers.last();
        if !frames.is_at_end() && !is_last {
            let message = format!("the read log is damaged behind entry {}", frames.end.count);
            return Err(Error::integrity(message).with_hint("run `grain verify`"));
        }
    }
    Ok(())
}

/// The filter for the entries that a session sees.
struct ReadLogFilter {
    /// The namespace as written in the log, and the prefix of those below it if names are in the clear.
    namespace: Option<(String, Option<String>)>,
    user: Option<String>,
    actor: Option<String>,
}

impl ReadLogFilter {
    fn of(session: &Session, chain: &AuditHashChain, actor: Option<&str>) -> Self {
        let own = session.options();
        let namespace = own.namespace.as_deref().map(|name| {
            let below = chain.vault().keyring().is_none().then(|| format!("{name}:"));
            (group::namespace_label(name, chain), below)
        });
        let user = own.user_id.as_deref().map(|user| chain.reader_pseudonym(user));
        let limited =
            namespace.is_some() || user.is_some() || session.principal().authority.is_operator();
        let actor = actor.or(own.actor.as_deref().filter(|_| !limited));
        let actor = actor.map(|actor| chain.pseudonym(Some(actor)));
        Self { namespace, user, actor }
    }

    fn sees(&self, read: &LoggedRead) -> bool {
        let told = read.entry.call.as_ref().and_then(|call| call.namespace.as_deref());
        let in_namespace = self.namespace.as_ref().is_none_or(|(own, below)| {
            told.is_some_and(|told| {
                told == own || below.as_ref().is_some_and(|below| told.starts_with(below))
            })
        });
        in_namespace
            && (self.user.is_none() || self.user == read.user)
            && self.actor.as_ref().is_none_or(|actor| read.entry.actor == *actor)
    }
}
