//! The figures of a store, and reads of its audit log.

use crate::handle::session::MAX_AUDIT_ENTRIES;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use data_encoding::HEXLOWER;
use grainstore_cal::CancelHandle;
use grainstore_index::IndexStats;
use serde::Serialize;

use crate::base::error::Result;
use crate::disk::directory;
use crate::disk::layout;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::handle::upgrade::format_of;
use crate::read::query::ScanError;
use crate::search::embed::EmbeddingStatus;
use crate::search::texts::{ObserverDomain, TextIndexStatus};
use crate::search::vectors::VectorSpaceStats;
use crate::state::audit::AuditEntry;
use crate::state::powers::Power;
use crate::state::view::View;

/// Bytes of reasons after which an answer of [`Session::audit`](crate::Session::audit) takes no further
/// entry; it ends there without an error.
pub const MAX_REASONS_BYTES: usize = 8 << 20;
/// Number of subjects after which an answer of [`Session::audit`] ends, with one entry at least.
pub const MAX_AUDIT_SUBJECTS: usize = 100_000;

/// Figures of an open store: [`Store::stats`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoreStats {
    /// The format version of the directory.
    pub format: u32,
    /// True if it has a keyring, without whose master key nothing in it can be read.
    pub encrypted: bool,
    /// True if it was opened read-only: no file is written and no read is audited.
    pub read_only: bool,
    /// True if new grains are stored compressed.
    pub compressed: bool,
    /// The preset it was created with.
    pub preset: &'static str,
    /// Grains in the log, superseded ones included.
    pub grains: u64,
    /// Log entries whose grains were erased.
    pub erased_grains: u64,
    /// Users who were erased.
    pub erased_users: u64,
    /// Erasures whose data may still be on disk.
    pub unscrubbed: usize,
    /// Grains whose state was changed since they were stored: superseded, held, under review and so on.
    pub states: u64,
    /// Side blobs that applications keep beside grains ([`Session::put_side_blob`]).
    pub side_blobs: u64,
    /// Rows of applications ([`Session::write_rows`]).
    pub application_rows: u64,
    /// Entries of the audit log, genesis included.
    pub audit_entries: u64,
    /// Grains not yet folded into the derived indexes.
    pub tail_grains: usize,
    /// Approximate memory of the tail, in bytes.
    pub tail_bytes: usize,
    /// Last sequence that is folded into the derived indexes; 0 for none.
    pub folded_to: u64,
    /// Last sequence of the log; 0 for an empty store.
    pub last_sequence: u64,
    /// Size of the truth on disk, in bytes.
    pub disk_bytes: u64,
    /// Size of the derived indexes on disk, in bytes.
    pub index_bytes: u64,
    /// Sorted runs of the derived indexes: a look-up reads each, and they are merged in the background.
    pub index_runs: usize,
    /// Documents in the full text as it is now.
    pub text_documents: u64,
    /// Segments of the full text.
    pub text_segments: usize,
    /// Bytes of its segments; in a store with files, of those.
    pub text_bytes: u64,
    /// Documents in segments that were replaced or removed since and still take space.
    pub text_gone: u64,
    /// Documents that are in memory only.
    pub text_tail: u64,
    /// Grains of the log not yet in the full text.
    pub text_behind: u64,
    /// Observer domains, as they are set.
    pub observer_domains: BTreeMap<String, ObserverDomain>,
    /// Figures of the vectors of each space.
    pub vectors: Vec<VectorSpaceStats>,
    /// Progress of the store's embedder.
    pub embedding: Option<EmbeddingStatus>,
    /// Progress of the former embedder, while the store is moved to another model.
    pub former_embedding: Option<EmbeddingStatus>,
    /// The model of the serving space: that of text searches, and of vector searches that name no model.
    pub serving_model: Option<String>,
    /// Models whose vectors are being removed; after a crash, interrupted removals.
    pub leaving_models: Vec<String>,
    /// Grains of the tail that are being folded now.
    pub folding_grains: usize,
    /// Grains whose access counts are not yet stored.
    pub waiting_counts: usize,
    /// Most memory of the page caches of both files, in bytes.
    pub cache_bytes: usize,
    /// The memory the store may take for all but vectors ([`OpenOptions::memory_bytes`](crate::OpenOptions::memory_bytes)).
    pub memory_bytes: usize,
    /// The memory that each part takes now, in bytes: `truth_cache` and `index_cache` (at the most:
    /// their share, or the file), `text_cache` (pages in use), `text_terms` (dictionaries and lengths of segments, and segments that are in no file), `run_directory` (filters
    /// of runs, and where their blocks begin), `tails` and `merges` (estimated from counts), `vectors`.
    pub memory: BTreeMap<&'static str, u64>,
    /// Rows of each table of the truth and of each list of the derived indexes, as far as they are folded. Rows that stand
    /// for every namespace count only in runs with grains of several.
    pub rows: BTreeMap<&'static str, u64>,
}

impl Store {
    /// Returns `true` if the store was created with a key ([`KeyProvider`](crate::KeyProvider)) and so has a
    /// keyring, without whose master key nothing in it can be read.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        directory::keyring_path(self.path()).exists()
    }

    /// Returns the current figures of the store.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// session.put(grain)?;
    /// let stats = store.stats()?;
    /// assert_eq!((stats.grains, stats.audit_entries, stats.encrypted), (1, 2, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn stats(&self) -> Result<StoreStats> {
        let view = self.inner().view()?;
        let last_sequence = view.last_sequence()?.get();
        let tail_grains = view.tail().grains();
        let behind = u64::try_from(tail_grains).unwrap_or(u64::MAX);
        let bytes_of = |file: &Path| fs::metadata(file).map_or(0, |file| file.len());
        let disk_bytes = bytes_of(&self.truth_path());
        let index_bytes = bytes_of(&directory::index_path(self.path()));
        let mut rows = view.row_counts()?;
        let index = view.index().stats()?;
        rows.extend(index.tables.iter().map(|table| (table.table, table.rows)));
        let folding = view.tail().frozen().map_or(0, |frozen| frozen.grains());
        let text = self.inner().library().status(&view)?;
        let former = self.inner().former().map(|former| former.status(&view)).transpose()?;
        let leaving = view.retired_spaces()?;
        let erasures = view.erasures()?;
        let vectors = self.inner().vectors().stats(&view)?;
        let memory = self.memory_parts(&text, (&index, disk_bytes, index_bytes), &vectors);
        Ok(StoreStats {
            format: format_of(view.transaction())?,
            encrypted: self.is_encrypted(),
            read_only: self.is_read_only(),
            compressed: view.vault().compresses(),
            preset: self.rules().preset,
            grains: view.log_len()?.saturating_sub(erasures.stubs),
            erased_grains: erasures.stubs,
            erased_users: view.tombstone_count()?,
            unscrubbed: erasures.pending.len(),
            states: view.state_len()?,
            side_blobs: view.keyed_len(layout::BLOBS)?,
            application_rows: view.keyed_len(layout::APPLICATION_ROWS)?,
            audit_entries: view.audit_len()?,
            tail_grains,
            tail_bytes: view.tail().approx_bytes(),
            folded_to: last_sequence.saturating_sub(behind),
            last_sequence,
            disk_bytes,
            index_bytes,
            index_runs: index.runs,
            text_documents: text.texts.documents,
            text_segments: text.texts.segments,
            text_bytes: text.texts.bytes,
            text_gone: text.texts.gone,
            text_tail: text.texts.tail,
            text_behind: text.behind,
            observer_domains: self.inner().library().settings().domains.by_domain(),
            vectors,
            embedding: self.inner().keeping().map(|keeping| keeping.status(&view)).transpose()?,
            former_embedding: former.filter(|former| former.serves),
            serving_model: view.serving_space()?.map(|space| space.model().to_owned()),
            leaving_models: leaving.values().map(|space| space.model().to_owned()).collect(),
            folding_grains: folding,
            waiting_counts: self.inner().waiting_counts(),
            cache_bytes: self.cache_bytes(),
            memory_bytes: self.inner().memory().total,
            memory,
            rows,
        })
    }
}

impl Store {
    /// The memory that each part takes.
    fn memory_parts(
        &self,
        text: &TextIndexStatus,
        (index, truth, derived): (&IndexStats, u64, u64),
        vectors: &[VectorSpaceStats],
    ) -> BTreeMap<&'static str, u64> {
        let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        // No page is in the cache twice, and most of those of the file that were read stay.
        let cache = |file: u64| file.min(bytes(self.inner().memory().page_cache));
        let vectors = vectors.iter().map(|space| space.bytes).fold(0, usize::saturating_add);
        BTreeMap::from([
            ("truth_cache", cache(truth)),
            ("index_cache", cache(derived)),
            ("text_cache", bytes(text.cached)),
            ("text_terms", text.texts.resident),
            ("run_directory", bytes(index.run_bytes)),
            ("tails", bytes(index.tail_bytes.saturating_add(text.tail_bytes))),
            ("merges", bytes(text.folding)),
            ("vectors", bytes(vectors)),
        ])
    }
}

impl Session {
    /// Returns entries of the audit log after a sequence, oldest first. A session with a namespace or a user
    /// gets the entries about grains it can see, without the addresses of others, and a reason only if it can
    /// see all of them.
    ///
    /// There may be fewer than `limit` before the log ends: an answer has at most [`MAX_AUDIT_ENTRIES`], and
    /// takes no further entry after [`MAX_REASONS_BYTES`] or [`MAX_AUDIT_SUBJECTS`]. An empty answer means the end.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// let mut after = None;
    /// let mut entries = Vec::new();
    /// loop {
    ///     let page = session.audit(after, 100)?;
    ///     let Some(last) = page.last() else { break };
    ///     after = Some(last.sequence);
    ///     entries.extend(page);
    /// }
    /// let operations: Vec<_> = entries.iter().map(|entry| entry.operation.as_str()).collect();
    /// assert_eq!(operations, ["create", "put"]);
    /// assert_eq!(entries[1].subjects, [tea]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn audit(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.audit_entries((after, u64::MAX), limit, &CancelHandle::new(), |_| true)
    }

    /// Returns entries like [`Session::audit`], of a part of the log: none after `to` is looked at. A session that sees
    /// few of the entries looks at all of that part, until it has as many as it asked for, or is cancelled.
    ///
    /// # Errors
    /// `CAL-E082` once it is cancelled; `ERR_IO`, `ERR_INTEGRITY`.
    pub fn audit_to(
        &self,
        after: Option<u64>,
        to: u64,
        limit: usize,
        cancel: &CancelHandle,
    ) -> Result<Vec<AuditEntry>> {
        self.audit_entries((after, to), limit, cancel, |_| true)
    }

    /// Returns entries like [`Session::audit`], but only those of one actor. Entries name actors by
    /// pseudonyms, which the store can compute from the actor but not reverse.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn audit_by(
        &self,
        actor: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        let pseudonym = self.view()?.chain_before_genesis()?.pseudonym(Some(actor));
        let never = CancelHandle::new();
        self.audit_entries((after, u64::MAX), limit, &never, |entry| entry.actor == pseudonym)
    }

    /// Returns entries like [`Session::audit`], as they stand in the log, which is what evidence is made of: in an
    /// encrypted store the token of each grain, and never a reason. An erasure changes none of it.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// assert_eq!(session.audit_evidence(None, 10)?, session.audit(None, 10)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS` unless the session is the operator's, without a namespace and a user; `ERR_IO`, `ERR_INTEGRITY`.
    pub fn audit_evidence(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.check_power(Power::Evidence)?;
        self.flush_buffered_records()?;
        let view = self.view()?;
        let from = after.map_or(0, |after| after.saturating_add(1));
        let rows = view.audit_rows()?;
        let rows = rows.since(from)?.take(limit.min(MAX_AUDIT_ENTRIES));
        rows.map(|row| AuditEntry::decode(&row?.1)).collect()
    }

    fn audit_entries(
        &self,
        (after, to): (Option<u64>, u64),
        limit: usize,
        cancel: &CancelHandle,
        wanted: impl Fn(&AuditEntry) -> bool,
    ) -> Result<Vec<AuditEntry>> {
        self.flush_buffered_records()?;
        let view = self.view()?;
        let from = after.map_or(0, |after| after.saturating_add(1));
        let mut entries = Vec::new();
        let (mut reasons, mut subjects) = (0_usize, 0_usize);
        for row in view.audit_rows()?.since(from)? {
            if entries.len() >= limit.min(MAX_AUDIT_ENTRIES) || reasons >= MAX_REASONS_BYTES {
                break;
            }
            let (at, bytes) = row?;
            if at > to {
                break;
            }
            cancel.check().map_err(ScanError::Stopped)?;
            let entry = view.decode_audit_entry(&bytes)?;
            subjects = subjects.saturating_add(entry.subjects.len());
            // One entry is given whatever it has.
            if subjects > MAX_AUDIT_SUBJECTS && !entries.is_empty() {
                break;
            }
            if wanted(&entry) {
                let reason = match view.is_reason_erased(at)? {
                    true => None,
                    false => view.reason(at)?,
                };
                let seen = self.visible_entry(&view, AuditEntry { reason, ..entry })?;
                let reason = seen.as_ref().and_then(|entry| entry.reason.as_ref());
                reasons = reasons.saturating_add(reason.map_or(0, String::len));
                entries.extend(seen);
            }
        }
        Ok(entries)
    }

    /// Reduces an entry to what this session may know of it, `None` if that is empty.
    fn visible_entry(&self, view: &View, mut entry: AuditEntry) -> Result<Option<AuditEntry>> {
        if self.viewer().is_unrestricted() {
            return Ok(Some(entry));
        }
        let mut seen = Vec::new();
        let mut hidden = false;
        for address in std::mem::take(&mut entry.subjects) {
            let stored = view.sequence_in_audit(&address)?.is_some();
            if self.lookup(view, &address)?.is_some() {
                seen.push(address);
            } else {
                // A refused grain was never stored, so its absence reveals no other namespace.
                hidden |= stored;
            }
        }
        if let Some(by) = entry.refused_by
            && self.lookup(view, &by)?.is_none()
        {
            entry.refused_by = None;
        }
        entry.reason = entry.reason.filter(|_| !hidden);
        // The actor is a pseudonym to others, and a key would name who it is.
        entry.kid = None;
        // These tell of the rest of the store.
        (entry.segment, entry.latency_ms) = (None, 0);
        let told = u64::try_from(seen.len()).unwrap_or(u64::MAX);
        entry.call = entry.call.filter(|call| {
            // A count above the number of shown grains would reveal the others.
            !hidden && call.result_count.is_none_or(|count| count <= told)
        });
        entry.subjects = seen;
        Ok((!entry.subjects.is_empty()).then_some(entry))
    }

    /// Returns the end of the audit log ([`Session::audit`]): its number of entries, and the SHA-256 of the
    /// last one in hex.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn audit_head(&self) -> Result<(u64, String)> {
        let head = self.view()?.audit_head()?;
        Ok((head.count, HEXLOWER.encode(&head.hash)))
    }
}
