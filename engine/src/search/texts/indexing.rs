//! Following the truth: which grains have other terms than the full text knows, and the new terms.
//!
//! Everything is read from one view: new grains from the log, changes of state from the audit log. One write
//! behind and a whole log behind (a store opened without a full text) take the same path. Must not know how
//! terms are stored.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::thread;

use grainstore_index::Sequence;
use grainstore_index::text::{Document, DocumentReader, IndexedDocument, Language, Settings};

use super::settings::TextSettings;
use super::turns::ConversationWindow;
use crate::base::error::{Error, Result};
use crate::disk::blob::with_fields;
use crate::state::audit::AuditEntry;
use crate::state::truth::ok_if_readable;
use crate::state::view::View;

/// Unread grains from which they are read on two threads.
const MIN_PARALLEL_GRAINS: usize = 64;
/// Most documents in the cache, kept because a neighbouring turn may take terms from them, and most terms and
/// positions they have together: about 25 MB if every term were distinct.
const MAX_CACHED_DOCUMENTS: usize = 2048;
const MAX_CACHED_SIZE: usize = 1 << 18;

/// Progress of a full text in following the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TextIndexPosition {
    /// The last sequence whose grain is indexed.
    pub(super) sequence: u64,
    /// The last sequence whose terms the indexed grains could have taken.
    pub(super) considered: u64,
    /// Number of audit entries whose effects are applied.
    pub(super) entries: u64,
}

/// Bounds of one indexing step.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepLimits {
    /// Most grains of the log.
    pub(super) grains: u64,
    /// Most bytes of grains; a first grain that is larger is still taken. The bytes of a grain bound its
    /// terms.
    pub(super) bytes: usize,
}

/// The terms a grain is found by from now on; empty for a grain that is not indexed.
pub(super) type DocumentChange = (Sequence, IndexedDocument);

/// A document reader for each language.
type DocumentReaders = HashMap<Language, DocumentReader>;

/// A cache of recently read documents, with the document readers of each language.
#[derive(Default)]
pub(super) struct DocumentCache {
    documents: HashMap<Sequence, Arc<Document>>,
    /// Terms and positions of the cached documents.
    size: usize,
    readers: DocumentReaders,
    /// Readers of the second thread.
    more_readers: DocumentReaders,
}

impl std::fmt::Debug for DocumentCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lately({} documents)", self.documents.len())
    }
}

impl TextIndexPosition {
    /// Returns `true` if everything in the view has been followed.
    pub(super) fn is_up_to_date(&self, view: &View) -> Result<bool> {
        Ok(self.sequence >= view.last_sequence()?.get() && self.entries >= view.audit_len()?)
    }

    /// Returns `true` if the view has everything that was followed.
    pub(super) fn is_covered_by(&self, view: &View) -> Result<bool> {
        Ok(self.sequence <= view.last_sequence()?.get() && self.entries <= view.audit_len()?)
    }

    /// Number of grains of the view that are not indexed.
    pub(super) fn behind(&self, view: &View) -> Result<u64> {
        Ok(view.last_sequence()?.get().saturating_sub(self.sequence))
    }

    /// Follows a view by one step. Returns the new position and the changed documents. Grains of `again` that
    /// are indexed already are read once more.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the log or the index cannot be read, or a row of an encrypted store is damaged;
    /// `ERR_IO`. A damaged row of a plain store has no terms.
    pub(super) fn follow(
        self,
        view: &View,
        (step, again): (StepLimits, BTreeSet<Sequence>),
        wording: &TextSettings,
        cache: &mut DocumentCache,
    ) -> Result<(Self, Vec<DocumentChange>)> {
        let end = view.last_sequence()?.get();
        let last = end.min(self.sequence.saturating_add(step.grains));
        let last = self.last_within_bytes(view, last, step.bytes)?;
        let mut window = ConversationWindow::of(view);
        let mut touched = again;
        touched.retain(|at| at.get() <= self.sequence);
        for at in self.sequence + 1..=last {
            let at = Sequence::new(at);
            touched.insert(at);
            if at.get() > self.considered {
                self.add_dependents(&mut window, at, &mut touched)?;
            }
        }
        for at in self.changed_states(view)? {
            self.add_dependents(&mut window, at, &mut touched)?;
        }
        cache.read_ahead(view, &touched, wording)?;
        let mut changes = Vec::with_capacity(touched.len());
        for at in touched {
            changes.push((at, cache.indexed_document((view, &mut window), at, wording)?));
        }
        let entries = view.audit_len()?;
        Ok((Self { sequence: last, considered: end, entries }, changes))
    }

    /// The last sequence, up to `last`, for which the grains after this position fit into `bytes`; one grain
    /// at least.
    fn last_within_bytes(&self, view: &View, last: u64, bytes: usize) -> Result<u64> {
        let mut left = bytes;
        for at in self.sequence + 1..=last {
            let size = ok_if_readable(view.with_blob(Sequence::new(at), |blob| Ok(blob.len())))?;
            match left.checked_sub(size.unwrap_or(0)) {
                Some(rest) => left = rest,
                None => return Ok((at - 1).max(self.sequence + 1)),
            }
        }
        Ok(last)
    }

    /// Adds the indexed grains that take terms from this one.
    fn add_dependents(
        &self,
        window: &mut ConversationWindow<'_>,
        of: Sequence,
        touched: &mut BTreeSet<Sequence>,
    ) -> Result<()> {
        let borrowers = window.dependents(of)?;
        touched.extend(borrowers.into_iter().filter(|at| at.get() <= self.sequence));
        Ok(())
    }

    /// The grains whose state changed since this position.
    fn changed_states(&self, view: &View) -> Result<BTreeSet<Sequence>> {
        let mut found = BTreeSet::new();
        let mut imported = None;
        for row in view.audit_rows()?.since(self.entries)? {
            let (at, entry) = row?;
            // A damaged entry is for `verify` to report.
            let Some(entry) = ok_if_readable(AuditEntry::decode(&entry))? else { continue };
            match entry.operation.as_str() {
                _ if entry.decision != "done" => {}
                "create" | "put" | "sign" => {}
                "import" => imported = imported.or(Some(at)),
                _ => {
                    for address in &entry.subjects {
                        found.extend(view.sequence_of_subject(address)?);
                    }
                }
            }
        }
        if let Some(entry) = imported {
            found.extend(view.ended_since(entry)?);
        }
        Ok(found)
    }
}

impl DocumentCache {
    /// Terms and positions of the cached documents.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Reads many grains into the cache on two threads.
    fn read_ahead(
        &mut self,
        view: &View,
        grains: &BTreeSet<Sequence>,
        wording: &TextSettings,
    ) -> Result<()> {
        let unread = grains.iter().filter(|at| !self.documents.contains_key(at));
        let unread: Vec<Sequence> = unread.copied().collect();
        if unread.len() < MIN_PARALLEL_GRAINS {
            return Ok(());
        }
        let (own, others) = unread.split_at(unread.len() / 2);
        let read = |readers: &mut DocumentReaders, grains: &[Sequence]| -> Result<Vec<Document>> {
            grains.iter().map(|at| document(readers, view, *at, wording)).collect()
        };
        let Self { readers, more_readers, .. } = self;
        let (first, second) = thread::scope(|scope| {
            let other = scope.spawn(|| read(more_readers, others));
            let first = read(readers, own);
            let ended = || Err(Error::integrity("a thread that read words has ended"));
            (first, other.join().unwrap_or_else(|_| ended()))
        });
        for (at, document) in unread.iter().zip(first?.into_iter().chain(second?)) {
            self.cache_document(*at, &Arc::new(document));
        }
        Ok(())
    }

    /// The terms of a grain joined with those its neighbouring turns contribute.
    fn indexed_document(
        &mut self,
        (view, window): (&View, &mut ConversationWindow<'_>),
        at: Sequence,
        wording: &TextSettings,
    ) -> Result<IndexedDocument> {
        let own = self.document(view, at, wording)?;
        let lenders = window.contributors(at)?;
        let mut lent = Vec::with_capacity(lenders.len());
        for lender in lenders {
            lent.push(self.document(view, lender, wording)?);
        }
        let lent: Vec<&Document> = lent.iter().map(AsRef::as_ref).collect();
        Ok(IndexedDocument::join(&own, &lent))
    }

    fn document(
        &mut self,
        view: &View,
        at: Sequence,
        wording: &TextSettings,
    ) -> Result<Arc<Document>> {
        if let Some(document) = self.documents.get(&at) {
            return Ok(Arc::clone(document));
        }
        let document = Arc::new(document(&mut self.readers, view, at, wording)?);
        self.cache_document(at, &document);
        Ok(document)
    }

    /// Caches a document. Clears the cache first if it is full.
    fn cache_document(&mut self, at: Sequence, document: &Arc<Document>) {
        if self.documents.len() >= MAX_CACHED_DOCUMENTS || self.size >= MAX_CACHED_SIZE {
            self.documents.clear();
            self.size = 0;
        }
        self.size = self.size.saturating_add(document.size());
        self.documents.insert(at, Arc::clone(document));
    }
}

/// The terms of a grain, blinded where its user has a blinding key; empty if its row is damaged in a plain
/// store, or the slot of its key.
///
/// # Errors
/// `ERR_INTEGRITY` for a row of an encrypted store that is damaged though its key is not; `ERR_IO`.
fn document(
    readers: &mut DocumentReaders,
    view: &View,
    at: Sequence,
    wording: &TextSettings,
) -> Result<Document> {
    let mut opened = false;
    let read = view.with_blob(at, |blob| {
        opened = true;
        with_fields(blob, |grain| {
            let reader = |language| DocumentReader::new(Settings::new(language));
            Ok(wording.language_of(grain).map(|language| {
                readers.entry(language).or_insert_with(|| reader(language)).document(grain)
            }))
            .and_then(|words: Option<Document>| {
                match (words, view.vault().blinder_for_grain(grain)?) {
                    (Some(words), Some(blind)) => Ok(Some(words.blinded(blind.as_ref()))),
                    (words, _) => Ok(words),
                }
            })
        })
    });
    let read = match read {
        // In an encrypted store somebody without the key may have edited the row, to have it not found.
        Err(error) if error.is_integrity() && !opened && view.has_sound_key(at)? => {
            return Err(error);
        }
        read => ok_if_readable(read)?,
    };
    Ok(read.flatten().unwrap_or_default())
}

#[cfg(test)]
#[path = "indexing_tests.rs"]
mod tests;
