//! Following the truth: which grains have other words than the full text knows, and what they are.
//!
//! Everything is read from one view: new grains from the log, changes of state from the audit log.
//! Whether it is one write behind, or the whole log when a store opens without a full text, makes no
//! difference here. Knows nothing of how words are kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::thread;

use grainstore_index::Sequence;
use grainstore_index::text::{Document, Joined, Language, Reader, Settings};

use super::turns::Around;
use super::wording::Wording;
use crate::base::error::{Error, Result};
use crate::disk::keys;
use crate::state::audit::AuditEntry;
use crate::state::truth::whole;
use crate::state::view::{View, with_fields};

/// Grains that are read on two threads, from here on.
const WORTH_A_THREAD: usize = 64;
/// Documents that are kept in case a neighbour wants to borrow from them, and words and places they
/// have together: 50 MB or so, were each a word of its own.
const REMEMBERED: usize = 8192;
const REMEMBERED_SIZE: usize = 1 << 19;

/// How far a full text has followed the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    /// The last place of the log whose grain it has.
    pub(super) sequence: u64,
    /// The last place of the log that the grains it has could borrow from.
    pub(super) considered: u64,
    /// Audit entries whose effects it knows.
    pub(super) entries: u64,
}

/// How much is followed at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// Grains of the log, at most.
    pub(super) grains: u64,
    /// Bytes of them, at most, but for a first grain that is larger: what a grain has of words is bound by
    /// its bytes.
    pub(super) bytes: usize,
}

/// What a grain is found by from now on; nothing for one that has no words.
pub(super) type Change = (Sequence, Joined);

/// What reads the words of each language.
type Readers = HashMap<Language, Reader>;

/// Documents that were read lately, and what reads them.
#[derive(Default)]
pub(super) struct Lately {
    documents: HashMap<Sequence, Arc<Document>>,
    /// Their words and places.
    size: usize,
    readers: Readers,
    /// Those of a second thread.
    more_readers: Readers,
}

impl std::fmt::Debug for Lately {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lately({} documents)", self.documents.len())
    }
}

impl Position {
    /// Whether there is nothing in a view that it has not followed.
    pub(super) fn has_reached(&self, view: &View) -> Result<bool> {
        Ok(self.sequence >= view.last_sequence()?.get() && self.entries >= view.audit_len()?)
    }

    /// Whether a view has everything it has followed.
    pub(super) fn is_within(&self, view: &View) -> Result<bool> {
        Ok(self.sequence <= view.last_sequence()?.get() && self.entries <= view.audit_len()?)
    }

    /// Grains of a view that it does not have.
    pub(super) fn behind(&self, view: &View) -> Result<u64> {
        Ok(view.last_sequence()?.get().saturating_sub(self.sequence))
    }

    /// Follows a view by one step: where that leads, and what changes on the way. Some grains are read
    /// again, if it has them.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where the log or the index cannot be walked; `ERR_IO`. A row of the log that
    /// is damaged has no words.
    pub(super) fn follow(
        self,
        view: &View,
        (step, again): (Step, BTreeSet<Sequence>),
        wording: &Wording,
        lately: &mut Lately,
    ) -> Result<(Self, Vec<Change>)> {
        let end = view.last_sequence()?.get();
        let last = end.min(self.sequence.saturating_add(step.grains));
        let last = self.within(view, last, step.bytes)?;
        let mut around = Around::of(view);
        let mut touched = again;
        touched.retain(|at| at.get() <= self.sequence);
        for at in self.sequence + 1..=last {
            let at = Sequence::new(at);
            touched.insert(at);
            if at.get() > self.considered {
                self.touch_borrowers(&mut around, at, &mut touched)?;
            }
        }
        for at in self.restated(view)? {
            self.touch_borrowers(&mut around, at, &mut touched)?;
        }
        lately.read_ahead(view, &touched, wording)?;
        let mut changes = Vec::with_capacity(touched.len());
        for at in touched {
            changes.push((at, lately.joined((view, &mut around), at, wording)?));
        }
        let entries = view.audit_len()?;
        Ok((Self { sequence: last, considered: end, entries }, changes))
    }

    /// The last place up to another whose grains, from the next one on, have no more bytes than these.
    fn within(&self, view: &View, last: u64, bytes: usize) -> Result<u64> {
        let mut left = bytes;
        for at in self.sequence + 1..=last {
            let size = whole(view.with_blob(Sequence::new(at), |blob| Ok(blob.len())))?;
            match left.checked_sub(size.unwrap_or(0)) {
                Some(rest) => left = rest,
                None => return Ok((at - 1).max(self.sequence + 1)),
            }
        }
        Ok(last)
    }

    /// Adds the grains it has that borrow from one.
    fn touch_borrowers(
        &self,
        around: &mut Around<'_>,
        of: Sequence,
        touched: &mut BTreeSet<Sequence>,
    ) -> Result<()> {
        let borrowers = around.borrowers(of)?;
        touched.extend(borrowers.into_iter().filter(|at| at.get() <= self.sequence));
        Ok(())
    }

    /// The grains whose states have changed since.
    fn restated(&self, view: &View) -> Result<BTreeSet<Sequence>> {
        let mut found = BTreeSet::new();
        let mut imported = None;
        for row in view.audit()?.range(self.entries..keys::AUDIT_HEAD)? {
            let (at, entry) = row?;
            // One that is damaged is for `verify` to name.
            let Some(entry) = whole(AuditEntry::decode(entry.value()))? else { continue };
            match entry.operation.as_str() {
                _ if entry.decision != "done" => {}
                "create" | "put" | "sign" => {}
                "import" => imported = imported.or(Some(at.value())),
                _ => {
                    for address in &entry.subjects {
                        found.extend(view.place_of_subject(address)?);
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

/// Whether something was erased behind so many audit entries. What a full text that was saved before has
/// of it nobody can tell any more.
pub(super) fn has_erased_since(view: &View, entries: u64) -> Result<bool> {
    if !view.has_erased()? {
        return Ok(false);
    }
    for row in view.audit()?.range(entries..keys::AUDIT_HEAD)? {
        let Some(entry) = whole(AuditEntry::decode(row?.1.value()))? else { continue };
        if entry.decision == "done" && entry.is_erasure() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Lately {
    /// Reads the words of many grains on two threads.
    fn read_ahead(
        &mut self,
        view: &View,
        grains: &BTreeSet<Sequence>,
        wording: &Wording,
    ) -> Result<()> {
        let unread = grains.iter().filter(|at| !self.documents.contains_key(at));
        let unread: Vec<Sequence> = unread.copied().collect();
        if unread.len() < WORTH_A_THREAD {
            return Ok(());
        }
        let (own, others) = unread.split_at(unread.len() / 2);
        let read = |readers: &mut Readers, grains: &[Sequence]| -> Result<Vec<Document>> {
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
            self.remember(*at, &Arc::new(document));
        }
        Ok(())
    }

    /// The words of a grain with what is lent to it.
    fn joined(
        &mut self,
        (view, around): (&View, &mut Around<'_>),
        at: Sequence,
        wording: &Wording,
    ) -> Result<Joined> {
        let own = self.document(view, at, wording)?;
        let lenders = around.lenders(at)?;
        let mut lent = Vec::with_capacity(lenders.len());
        for lender in lenders {
            lent.push(self.document(view, lender, wording)?);
        }
        let lent: Vec<&Document> = lent.iter().map(AsRef::as_ref).collect();
        Ok(Joined::of(&own, &lent))
    }

    fn document(&mut self, view: &View, at: Sequence, wording: &Wording) -> Result<Arc<Document>> {
        if let Some(document) = self.documents.get(&at) {
            return Ok(Arc::clone(document));
        }
        let document = Arc::new(document(&mut self.readers, view, at, wording)?);
        self.remember(at, &document);
        Ok(document)
    }

    /// Keeps a document, in place of all others where they have become many, or large.
    fn remember(&mut self, at: Sequence, document: &Arc<Document>) {
        if self.documents.len() >= REMEMBERED || self.size >= REMEMBERED_SIZE {
            self.documents.clear();
            self.size = 0;
        }
        self.size = self.size.saturating_add(document.size());
        self.documents.insert(at, Arc::clone(document));
    }
}

/// The words of a grain; none where its row is damaged.
fn document(
    readers: &mut Readers,
    view: &View,
    at: Sequence,
    wording: &Wording,
) -> Result<Document> {
    let read = view.with_blob(at, |blob| {
        with_fields(blob, |grain| {
            let reader = |language| Reader::new(Settings::new(language));
            Ok(wording.of(grain).map(|language| {
                readers.entry(language).or_insert_with(|| reader(language)).document(grain)
            }))
            .and_then(|words: Option<Document>| {
                match (words, view.vault().blind_of(grain)?) {
                    (Some(words), Some(blind)) => Ok(Some(words.blinded(blind.as_ref()))),
                    (words, _) => Ok(words),
                }
            })
        })
    });
    Ok(whole(read)?.flatten().unwrap_or_default())
}

#[cfg(test)]
#[path = "catching_tests.rs"]
mod tests;
