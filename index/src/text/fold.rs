//! Folding: the tail becomes a segment, together with segments it is time to write anew.
//!
//! A fold is started from a snapshot, runs on any thread while the writer goes on, and is adopted
//! by the writer: what changed meanwhile stays changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::gone::Gone;
use super::merge::merge;
use super::policy::{Size, choose};
use super::segment::Segment;
use super::sources::Source;
use super::tail::Tail;
use super::texts::{Kept, TextStats, Texts};
use crate::error::{Error, Result};

/// Documents after which a tail is to be folded.
pub const MAX_TAIL: u64 = 4_096;
/// Words and places of them after which it is too, however few documents have them: 100 MB or so, were
/// each a word of its own. Documents of a hundred words are as many before.
pub const MAX_TAIL_SIZE: u64 = 1 << 20;

/// What is to be folded. Cheap to make, and independent of what it was made from.
#[derive(Debug)]
pub struct Fold {
    number: u32,
    tail: Tail,
    merged: Vec<Kept>,
    stamp: Arc<[u8]>,
}

/// A fold that has run.
#[derive(Debug)]
pub struct Folded {
    number: u32,
    tail: Tail,
    merged: Vec<Kept>,
    stamp: Arc<[u8]>,
    /// What was written, if any document was left.
    segment: Option<Arc<Segment>>,
}

/// What has to be done to the files after a fold is adopted: first all is written, then the
/// manifest, then the old files are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saving {
    /// The name of the new file, if there is one; [`Texts::file`] has its bytes.
    pub write: Option<String>,
    /// The bytes of the manifest.
    pub manifest: Vec<u8>,
    /// The names of files that are of no use any more.
    pub remove: Vec<String>,
}

impl TextStats {
    /// Whether it is time for the tail to be folded: it has many documents, or many words.
    #[must_use]
    pub fn is_tail_full(&self) -> bool {
        self.tail >= MAX_TAIL || self.tail_size >= MAX_TAIL_SIZE
    }

    /// Whether the tail is twice what it is folded at.
    #[must_use]
    pub fn is_tail_overfull(&self) -> bool {
        self.tail >= 2 * MAX_TAIL || self.tail_size >= 2 * MAX_TAIL_SIZE
    }
}

impl Texts {
    /// Whether it is time for a fold: the tail is full, or something erased is still in a segment.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.stats().is_tail_full() || self.segments.iter().any(|kept| kept.gone.is_erased())
    }

    /// Starts a fold of the whole tail, and of the segments it is time to write anew: small ones,
    /// those with many documents gone, and all with erased ones. `stamp` says where in the log this
    /// snapshot stands; it comes back with the manifest, and whatever comes after it in the log is
    /// to be set again when the files are opened.
    ///
    /// One fold at a time. A fold that is dropped leaves nothing behind.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the stamp is longer than [`super::MOST_STAMP`] bytes, or numbers for
    /// segments are used up.
    pub fn freeze(&mut self, stamp: &[u8]) -> Result<Fold> {
        if stamp.len() > super::MOST_STAMP {
            return Err(Error::integrity("a stamp of the full text is too long"));
        }
        let number = self.next;
        self.next = number.checked_add(1).ok_or_else(Error::full)?;
        self.erased = imbl::OrdSet::new();
        let sizes: Vec<Size> = self.segments.iter().map(Kept::size).collect();
        let chosen = choose(&sizes, self.tail.extent().documents);
        let merged = chosen.iter().filter_map(|at| self.segments.get(*at)).cloned().collect();
        Ok(Fold { number, tail: self.tail.clone(), merged, stamp: stamp.into() })
    }

    /// Takes over what a fold wrote, in place of what it was made from.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read, or if the fold was not the last one started on
    /// this full text. The full text is unchanged then.
    pub fn adopt(&mut self, folded: Folded) -> Result<Saving> {
        let replaced: BTreeSet<u32> = folded.merged.iter().map(|kept| kept.number).collect();
        let here = self.segments.iter().filter(|kept| replaced.contains(&kept.number)).count();
        if here != replaced.len() || self.next != folded.number.saturating_add(1) {
            return Err(Error::integrity("a fold of the full text is not of this state"));
        }
        let mut next = self.clone();
        next.segments.retain(|kept| !replaced.contains(&kept.number));
        let mut write = None;
        if let Some(segment) = &folded.segment {
            let gone = self.changed_since(&folded, segment)?;
            let kept = Kept { number: folded.number, segment: Arc::clone(segment), gone };
            write = Some(kept.name());
            next.segments.push(kept);
        }
        next.tail = Tail::default();
        for (_, entry) in self.tail.entries() {
            let before = folded.tail.get(entry.sequence);
            if before.is_none_or(|(_, before)| !Arc::ptr_eq(&before.joined, &entry.joined)) {
                next.tail.set(entry.sequence, Arc::clone(&entry.joined));
            }
        }
        next.segments.sort_by_key(|kept| std::cmp::Reverse(kept.segment.documents()));
        next.stamp = folded.stamp;
        next.erased = imbl::OrdSet::new();
        *self = next;
        let remove = folded.merged.iter().map(Kept::name).collect();
        Ok(Saving { write, manifest: self.manifest(), remove })
    }

    /// What is gone from a new segment because it changed after the fold was started.
    fn changed_since(&self, folded: &Folded, segment: &Segment) -> Result<Gone> {
        let mut gone = Gone::default();
        for (_, before) in folded.tail.entries() {
            let now = self.tail.get(before.sequence);
            if now.is_none_or(|(_, now)| !Arc::ptr_eq(&before.joined, &now.joined))
                && let Some(document) = segment.document(before.sequence)
            {
                gone.remove(segment, document)?;
            }
        }
        for before in &folded.merged {
            let Some(now) = self.segments.iter().find(|kept| kept.number == before.number) else {
                continue;
            };
            for document in now.gone.iter().filter(|document| !before.gone.has(*document)) {
                // A grain that left this segment before the fold may be in the new one from the
                // tail; one that left it since is in the new one from here.
                let sequence = before.segment.sequence(document);
                if let Some(document) = sequence.and_then(|sequence| segment.document(sequence)) {
                    gone.remove(segment, document)?;
                }
            }
        }
        if self.erased.iter().any(|sequence| segment.document(*sequence).is_some()) {
            gone.mark_erased();
        }
        Ok(gone)
    }
}

impl Fold {
    /// Whether there is nothing to write. Running and adopting it moves the stamp, no more.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.merged.is_empty() && self.tail.extent().documents == 0
    }

    /// Writes the segment. Takes as long as the documents are many, and no locks.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read or what was written cannot be opened.
    pub fn run(self) -> Result<Folded> {
        let Self { number, tail, merged, stamp } = self;
        let segments =
            merged.iter().map(|kept| Source::Segment(Arc::clone(&kept.segment), kept.gone.clone()));
        let sources: Vec<Source> =
            std::iter::once(Source::Tail(tail.clone())).chain(segments).collect();
        let bytes = merge(&sources)?;
        let segment = bytes.map(Segment::open).transpose()?.map(Arc::new);
        Ok(Folded { number, tail, merged, stamp, segment })
    }
}

impl Kept {
    /// The name of its file.
    pub(super) fn name(&self) -> String {
        file_name(self.number)
    }

    fn size(&self) -> Size {
        Size {
            documents: self.segment.documents().into(),
            gone: self.gone.documents().into(),
            erased: self.gone.is_erased(),
        }
    }
}

/// The name of the file of a segment.
pub(super) fn file_name(number: u32) -> String {
    format!("{number:08}.seg")
}
