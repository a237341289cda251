//! What sessions are shown of the read log.

use std::path::Path;
use std::sync::Arc;

use data_encoding::HEXLOWER;

use super::ReadLog;
use super::group::{self, Read, ReadNote};
use super::segment::{self, Frames, Start};
use crate::base::error::{Error, Result};
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::operate::report::MAX_ENTRIES;
use crate::state::audit::{AuditEntry, Chain};

/// Where the calls in CAL are recorded that read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadsRecorded {
    /// In the read log.
    ReadLog,
    /// In the audit log, since the rules of the store want it so.
    AuditLog,
    /// Nowhere: the operator has switched it off, or the store was opened to be read. Where its rules want
    /// them recorded they are refused then.
    Nowhere,
}

impl Store {
    /// Where the calls in CAL are recorded that read, or are refused to.
    #[must_use]
    pub fn reads_recorded(&self) -> ReadsRecorded {
        let inner = self.inner();
        match inner.reads() {
            _ if self.is_read_only() => ReadsRecorded::Nowhere,
            _ if inner.regime().audits_reads() => ReadsRecorded::AuditLog,
            Some(reads) if reads.records() => ReadsRecorded::ReadLog,
            _ => ReadsRecorded::Nowhere,
        }
    }

    /// Reads that stand nowhere since the store was opened, because no disk took them.
    #[must_use]
    pub fn lost_reads(&self) -> u64 {
        self.inner().reads().map_or(0, |reads| reads.lost_so_far())
    }
}

impl Session {
    /// Entries of the read log after a number, oldest first, in the shape of those of the audit log: calls
    /// in CAL that read, or were refused to. The operator is shown all of them, a session with a namespace or
    /// a user what sessions of its namespace, of those below it, and of its user did; in an encrypted store,
    /// where the log names namespaces by pseudonyms, of its very namespace alone. A session with neither that
    /// is not the operator's is shown what its own actor did.
    ///
    /// There may be fewer than `limit` before the log ends: an answer holds [`MAX_ENTRIES`]. None at all
    /// means the end.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where the log is damaged; `ERR_IO`.
    pub fn reads(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.chosen(after, limit, None)
    }

    /// As [`Session::reads`], what this actor did alone.
    ///
    /// # Errors
    /// As [`Session::reads`].
    pub fn reads_by(
        &self,
        actor: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        self.chosen(after, limit, Some(actor))
    }

    /// Where the read log ends: its number of entries, those among them that made room for others, and the
    /// hash of its last group in hex. Nothing where nothing was ever recorded.
    ///
    /// # Errors
    /// As [`Session::reads`].
    pub fn reads_head(&self) -> Result<Option<(u64, String)>> {
        let Some(reads) = self.store().inner().reads() else { return Ok(None) };
        let store = self.settled(reads)?;
        let dir = reads.place()?;
        let Some(number) = segment::numbers(&dir)?.last().copied() else { return Ok(None) };
        let bytes = segment::bytes_of(&dir, number)?;
        let start = Start::decode(&bytes, &store, number)?;
        let mut frames = Frames::of(&bytes, &start);
        frames.by_ref().for_each(drop);
        Ok(Some((frames.end.count, HEXLOWER.encode(&frames.end.hash))))
    }

    /// Notes a call that read.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub(crate) fn record_read(&self, note: ReadNote) -> Result<()> {
        self.store().inner().reads().map_or(Ok(()), |reads| reads.push(note))
    }

    /// Whether reads go into the read log.
    pub(crate) fn records_reads(&self) -> bool {
        self.store().reads_recorded() == ReadsRecorded::ReadLog
    }

    /// Writes what waits. Gives the store's id.
    fn settled(&self, reads: &Arc<ReadLog>) -> Result<[u8; 16]> {
        reads.settle()?;
        self.view()?.store_id()
    }

    fn chosen(
        &self,
        after: Option<u64>,
        limit: usize,
        actor: Option<&str>,
    ) -> Result<Vec<AuditEntry>> {
        let Some(reads) = self.store().inner().reads() else { return Ok(Vec::new()) };
        let store = self.settled(reads)?;
        let view = self.view()?;
        let chain = view.chain_before_genesis()?.with_vault(view.vault().clone());
        let sight = Sight::of(self, &chain, actor);
        let from = after.map_or(0, |after| after.saturating_add(1));
        let limit = limit.min(MAX_ENTRIES);
        let mut entries = Vec::new();
        let _held = reads.hold();
        let dir = reads.place()?;
        walk(&dir, &store, from, &mut |read| {
            if entries.len() < limit && sight.sees(&read) {
                entries.push(read.entry);
            }
            entries.len() < limit
        })?;
        Ok(entries)
    }
}

/// Goes through the entries from this number on, until it is told to end.
fn walk(dir: &Path, store: &[u8; 16], from: u64, take: &mut dyn FnMut(Read) -> bool) -> Result<()> {
    let numbers = segment::numbers(dir)?;
    let starts = numbers.iter().map(|number| segment::start_of(dir, *number, store));
    let starts: Vec<Start> = starts.collect::<Result<_>>().map_err(|error| error.within(dir))?;
    let begin = starts.iter().rposition(|start| start.at.count <= from).unwrap_or_default();
    for start in starts.iter().skip(begin) {
        let bytes = segment::bytes_of(dir, start.number)?;
        let mut frames = Frames::of(&bytes, start);
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

/// Which entries a session is shown.
struct Sight {
    /// The namespace, and where names lie in the open how those below it begin.
    namespace: Option<(String, Option<String>)>,
    user: Option<String>,
    actor: Option<String>,
}

impl Sight {
    fn of(session: &Session, chain: &Chain, actor: Option<&str>) -> Self {
        let own = session.options();
        let namespace = own.namespace.as_deref().map(|name| {
            let below = chain.vault().keyring().is_none().then(|| format!("{name}:"));
            (group::namespace_in(name, chain), below)
        });
        let user = own.user_id.as_deref().map(|user| chain.reader(user));
        let limited =
            namespace.is_some() || user.is_some() || session.author().standing.is_operator();
        let actor = actor.or(own.actor.as_deref().filter(|_| !limited));
        let actor = actor.map(|actor| chain.pseudonym(Some(actor)));
        Self { namespace, user, actor }
    }

    fn sees(&self, read: &Read) -> bool {
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
