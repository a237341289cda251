//! Folding: the tail becomes a segment, merged with the segments that are due for a rewrite.
//!
//! A fold starts from a snapshot, runs on any thread while the writer thread continues, and is adopted by the
//! writer thread: changes made in the meantime are kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::deleted::DeletedDocs;
use super::inverted_index::{InvertedIndex, SegmentEntry, TextStats};
use super::merge::merge;
use super::policy::{SegmentSize, segments_to_merge};
use super::segment::{MERGE_BYTES_OF_A_DOCUMENT, Segment};
use super::segment_store::SegmentStore;
use super::sources::MergeSource;
use super::tail::TextTail;
use crate::error::{Error, ErrorKind, Result};

/// The number of documents at which a tail is to be folded by a [`FoldJob`].
pub const MAX_TAIL_DOCUMENTS: u64 = 4_096;
/// The number of terms and positions at which a tail is to be folded by a [`FoldJob`] even with fewer
/// documents: some 100 MB if each were a distinct term. Documents of a hundred words reach the other limit
/// first.
pub const MAX_TAIL_SIZE: u64 = 1 << 20;

/// The input of a fold. Cheap to make, and independent of the index it was made from.
///
/// ```
/// # use grainstore_format::{Encoding, EpochMs, EventBuilder, GrainRef};
/// # use grainstore_index::Sequence;
/// # use grainstore_index::text::{Document, IndexedDocument, InvertedIndex, Language, Settings};
/// # let settings = Settings::new(Language::English);
/// # let mut index = InvertedIndex::new(settings.fingerprint())?;
/// # for (sequence, text) in [(0, "Alice plans her travels"), (1, "the budget of the travel")] {
/// #     let grain = EventBuilder::new(EpochMs::new(1_768_471_200_000), text).build()?;
/// #     let blob = grain.encode(Encoding::MessagePack)?;
/// #     let document = Document::of(&GrainRef::new(blob.bytes())?, &settings);
/// #     index.set(Sequence::new(sequence), Some(IndexedDocument::join(&document, &[])))?;
/// # }
/// use grainstore_index::text::Manifest;
///
/// // `index` holds two events in its tail.
/// let fold = index.freeze(b"position 2")?;
/// let changes = index.adopt(fold.run()?)?;
/// assert_eq!((index.stats().tail, index.stats().segments), (0, 1));
/// assert_eq!(changes.write.into_iter().collect::<Vec<_>>(), index.file_names());
/// assert_eq!(Manifest::decode(&changes.manifest)?.log_position(), b"position 2");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FoldJob {
    number: u32,
    tail: TextTail,
    merged: Vec<SegmentEntry>,
    log_position: Arc<[u8]>,
    store: SegmentStore,
}

/// The output of a fold, from a [`FoldJob`].
#[derive(Debug)]
pub struct FoldOutput {
    number: u32,
    tail: TextTail,
    merged: Vec<SegmentEntry>,
    stamp: Arc<[u8]>,
    /// The new segment; `None` if no document was left.
    segment: Option<Arc<Segment>>,
}

/// The file operations after the output of a [`FoldJob`] was adopted, in this order: write the new file, then
/// the manifest, then remove the old files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChanges {
    /// The name of the new segment, if there is one. Unless it is in a file already, its bytes are in
    /// [`InvertedIndex::file`].
    pub write: Option<String>,
    /// The bytes of the manifest.
    pub manifest: Vec<u8>,
    /// The names of files that are no longer used.
    pub remove: Vec<String>,
}

impl TextStats {
    /// Returns `true` if the tail should be folded: it has many documents, or many terms.
    #[must_use]
    pub fn is_tail_full(&self) -> bool {
        self.tail >= MAX_TAIL_DOCUMENTS || self.tail_size >= MAX_TAIL_SIZE
    }

    /// Returns `true` if the tail has twice the size at which it should be folded.
    #[must_use]
    pub fn is_tail_overfull(&self) -> bool {
        self.tail >= 2 * MAX_TAIL_DOCUMENTS || self.tail_size >= 2 * MAX_TAIL_SIZE
    }
}

impl InvertedIndex {
    /// Returns `true` if a fold is due: the tail is full, or a segment still has an erased document.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.stats().is_tail_full() || self.segments.iter().any(|kept| kept.gone.is_erased())
    }

    /// Starts a fold of the whole tail and of the segments due for a rewrite: small ones, those with many
    /// deleted documents, and all with erased ones. `stamp` is the log position of this snapshot; it is
    /// stored in the manifest, and the log after it is to be indexed again when the files are opened.
    ///
    /// Only one fold may run at a time. A fold that is dropped leaves no trace.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the log position is longer than [`super::MAX_LOG_POSITION_BYTES`], or segment
    /// numbers are used up.
    pub fn freeze(&mut self, stamp: &[u8]) -> Result<FoldJob> {
        if stamp.len() > super::MAX_LOG_POSITION_BYTES {
            return Err(Error::integrity("a stamp of the full text is too long"));
        }
        let number = self.next_segment;
        self.next_segment = number.checked_add(1).ok_or_else(Error::full)?;
        self.erased = imbl::OrdSet::new();
        let sizes: Vec<SegmentSize> = self.segments.iter().map(SegmentEntry::size).collect();
        let chosen = segments_to_merge(&sizes, self.tail.collection_stats().documents);
        let merged = chosen.iter().filter_map(|at| self.segments.get(*at)).cloned().collect();
        Ok(FoldJob {
            number,
            tail: self.tail.clone(),
            merged,
            log_position: stamp.into(),
            store: self.store.clone(),
        })
    }

    /// Replaces the inputs of a fold by its output.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read, or if this is not the last fold started on this index.
    /// The index is then unchanged.
    pub fn adopt(&mut self, folded: FoldOutput) -> Result<FileChanges> {
        let replaced: BTreeSet<u32> = folded.merged.iter().map(|kept| kept.number).collect();
        let here = self.segments.iter().filter(|kept| replaced.contains(&kept.number)).count();
        if here != replaced.len() || self.next_segment != folded.number.saturating_add(1) {
            return Err(Error::integrity("a fold of the full text is not of this state"));
        }
        let mut next = self.clone();
        next.segments.retain(|kept| !replaced.contains(&kept.number));
        let mut write = None;
        if let Some(segment) = &folded.segment {
            let gone = self.changed_since(&folded, segment)?;
            let kept = SegmentEntry { number: folded.number, segment: Arc::clone(segment), gone };
            write = Some(kept.name());
            next.segments.push(kept);
        }
        next.tail = TextTail::default();
        for (_, entry) in self.tail.entries() {
            let before = folded.tail.get(entry.sequence);
            if before.is_none_or(|(_, before)| !Arc::ptr_eq(&before.joined, &entry.joined)) {
                next.tail.set(entry.sequence, Arc::clone(&entry.joined));
            }
        }
        next.segments.sort_by_key(|kept| std::cmp::Reverse(kept.segment.documents()));
        next.log_position = folded.stamp;
        next.erased = imbl::OrdSet::new();
        *self = next;
        let remove = folded.merged.iter().map(SegmentEntry::name).collect();
        Ok(FileChanges { write, manifest: self.manifest(), remove })
    }

    /// The documents of the new segment that changed after the fold was started.
    fn changed_since(&self, folded: &FoldOutput, segment: &Segment) -> Result<DeletedDocs> {
        let mut gone = DeletedDocs::default();
        for (_, before) in folded.tail.entries() {
            let now = self.tail.get(before.sequence);
            if now.is_none_or(|(_, now)| !Arc::ptr_eq(&before.joined, &now.joined))
                && let Some(document) = segment.doc_id(before.sequence)?
            {
                gone.remove(segment, document)?;
            }
        }
        for before in &folded.merged {
            let Some(now) = self.segments.iter().find(|kept| kept.number == before.number) else {
                continue;
            };
            for document in now.gone.iter().filter(|document| !before.gone.contains(*document)) {
                // A grain deleted from this segment before the fold may be in the new one from the tail; one
                // deleted since is in the new one from here.
                let sequence = before.segment.sequence(document)?;
                if let Some(document) = segment.doc_id(sequence)? {
                    gone.remove(segment, document)?;
                }
            }
        }
        for sequence in &self.erased {
            if segment.doc_id(*sequence)?.is_some() {
                gone.mark_erased();
            }
        }
        Ok(gone)
    }
}

impl FoldJob {
    /// Returns `true` if there is nothing to write. Running and adopting the fold then only advances the log
    /// position.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.merged.is_empty() && self.tail.collection_stats().documents == 0
    }

    /// About the bytes of memory that running it takes, without the segment where that is made in memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        let tail = usize::try_from(self.tail.collection_stats().documents).unwrap_or(usize::MAX);
        let merged = self.merged.iter().map(|kept| kept.segment.merge_bytes());
        merged.fold(tail.saturating_mul(MERGE_BYTES_OF_A_DOCUMENT), usize::saturating_add)
    }

    /// Writes the segment, into its file where there are files. Takes time proportional to the documents, and holds no
    /// locks. Where the file cannot be written the segment is made in memory.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read or the written one cannot be opened.
    pub fn run(self) -> Result<FoldOutput> {
        let Self { number, tail, merged, log_position: stamp, store } = self;
        let segments = merged
            .iter()
            .map(|kept| MergeSource::Segment(Arc::clone(&kept.segment), kept.gone.clone()));
        let sources: Vec<MergeSource> =
            std::iter::once(MergeSource::Tail(tail.clone())).chain(segments).collect();
        let segment = match write_file(&sources, &store, &file_name(number)) {
            Err(error) if error.kind() == ErrorKind::Io => None,
            written => written?,
        };
        let segment = match segment {
            Some(segment) => segment,
            None => write_memory(&sources, &store, &file_name(number))?,
        };
        Ok(FoldOutput { number, tail, merged, stamp, segment: segment.map(Arc::new) })
    }
}

/// Merges into a file. `None` where there are no files, `Some(None)` if there are no documents.
fn write_file(
    sources: &[MergeSource],
    store: &SegmentStore,
    name: &str,
) -> Result<Option<Option<Segment>>> {
    let Some(files) = store.files.as_ref().filter(|_| !store.is_in_memory()) else {
        return Ok(None);
    };
    let Some(mut out) = files.create(name).map_err(Error::output)? else { return Ok(None) };
    if !merge(sources, &mut out, &|page, bytes| store.tag(name, page, bytes))? {
        return Ok(Some(None));
    }
    out.finish().map_err(Error::output)?;
    Segment::open_file(store, name).map(|segment| Some(Some(segment)))
}

fn write_memory(
    sources: &[MergeSource],
    store: &SegmentStore,
    name: &str,
) -> Result<Option<Segment>> {
    let mut bytes = Vec::new();
    let tag = |page: u64, bytes: &[u8]| store.tag(name, page, bytes);
    let any = merge(sources, &mut bytes, &tag)?;
    bytes.shrink_to_fit();
    any.then(|| Segment::open_memory(bytes, &tag)).transpose()
}

impl SegmentEntry {
    /// The name of the segment's file.
    pub(super) fn name(&self) -> String {
        file_name(self.number)
    }

    fn size(&self) -> SegmentSize {
        SegmentSize {
            documents: self.segment.documents().into(),
            gone: self.gone.documents().into(),
            erased: self.gone.is_erased(),
        }
    }
}

/// The file name of a segment.
pub(super) fn file_name(number: u32) -> String {
    format!("{number:08}.seg")
}
