//! The inverted index of a store's full text: segments and a tail, searched as one.
//!
//! A value is a snapshot: clones are cheap, and a change to one is not seen in another. The writer keeps one,
//! changes it with every commit and gives clones to readers. Results depend on the live documents alone, not
//! on their distribution over segments and tail.

use std::fmt;
use std::sync::Arc;

use tantivy::{Index, ReloadPolicy, Searcher};

use super::deleted::DeletedDocs;
use super::indexed_document::IndexedDocument;
use super::part::TextPart;
use super::score::CollectionStats;
use super::segment::{Segment, schema};
use super::segment_store::SegmentStore;
use super::tail::TextTail;
use crate::error::Result;
use crate::posting::Sequence;

/// The full text of a store: documents by grain, and queries on them.
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
/// use grainstore_index::text::FullTextQuery;
///
/// // `index` holds two events: "Alice plans her travels" and "the budget of the travel".
/// let query = FullTextQuery::parse("budget travel", Language::English)?;
/// let mut everyone = |sequence: Sequence| Ok(Some([sequence.get() as u8; 32]));
/// let hits = index.prepare(&query)?.search(10, None, &mut everyone)?;
/// let found: Vec<u64> = hits.iter().map(|hit| hit.sequence.get()).collect();
/// assert_eq!((found, index.stats().documents), (vec![1, 0], 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct InvertedIndex {
    pub(super) tail: TextTail,
    pub(super) segments: Vec<SegmentEntry>,
    /// The fingerprint of the analysis: its version and settings.
    pub(super) analysis: u64,
    /// The number of the next segment.
    pub(super) next_segment: u32,
    /// The grains erased since the last fold was started: its output may contain them.
    pub(super) erased: imbl::OrdSet<Sequence>,
    /// The log position of the segments, opaque to this crate.
    pub(super) log_position: Arc<[u8]>,
    /// Where its segments lie.
    pub(super) store: SegmentStore,
    /// An empty searcher, which the library needs to compile a query.
    searcher: Searcher,
}

/// A segment of the index.
#[derive(Debug, Clone)]
pub(super) struct SegmentEntry {
    /// Its number, which names its file.
    pub(super) number: u32,
    /// Its documents.
    pub(super) segment: Arc<Segment>,
    /// Its deleted documents.
    pub(super) gone: DeletedDocs,
}

/// The size of an [`InvertedIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextStats {
    /// The number of live documents: grains with at least one term.
    pub documents: u64,
    /// The number of segments.
    pub segments: usize,
    /// The bytes of the segments, in memory or as files.
    pub bytes: u64,
    /// The bytes that segments take in memory, beside pages in the cache.
    pub resident: u64,
    /// The number of deleted documents still in segments.
    pub gone: u64,
    /// The number of documents in the tail.
    pub tail: u64,
    /// The number of their terms and positions.
    pub tail_size: u64,
}

impl InvertedIndex {
    /// An empty index. `analysis` is the fingerprint of the analyser's version and settings.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the search library does not start.
    pub fn new(analysis: u64) -> Result<Self> {
        Self::with_store(analysis, SegmentStore::default())
    }

    /// An empty index whose segments are written into files, and read from there.
    ///
    /// # Errors
    /// As [`InvertedIndex::new`].
    pub fn with_store(analysis: u64, store: SegmentStore) -> Result<Self> {
        let reader = Index::create_in_ram(schema()).reader_builder();
        let reader = reader.reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self {
            tail: TextTail::default(),
            segments: Vec::new(),
            analysis,
            next_segment: 1,
            erased: imbl::OrdSet::new(),
            log_position: Arc::default(),
            store,
            searcher: reader.searcher(),
        })
    }

    /// Returns `true` if a grain has at least one term.
    #[must_use]
    pub fn contains(&self, sequence: Sequence) -> bool {
        self.parts().any(|part| matches!(part.document(sequence), Ok(Some(_))))
    }

    /// Sets the terms of a grain, or removes it. A grain without terms is not stored.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read.
    pub fn set(&mut self, sequence: Sequence, joined: Option<IndexedDocument>) -> Result<()> {
        self.delete_from_segments(sequence, false)?;
        match joined.filter(|joined| !joined.is_empty()) {
            Some(joined) => self.tail.set(sequence, Arc::new(joined)),
            None => {
                self.tail.remove(sequence);
            }
        }
        Ok(())
    }

    /// Removes a grain so that the next fold rewrites its segment without it, even if the grain was removed
    /// or replaced before.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read.
    pub fn erase(&mut self, sequence: Sequence) -> Result<()> {
        self.delete_from_segments(sequence, true)?;
        self.tail.remove(sequence);
        self.erased.insert(sequence);
        Ok(())
    }

    /// The size of the index.
    #[must_use]
    pub fn stats(&self) -> TextStats {
        let segments = self.segments.iter();
        TextStats {
            documents: self.collection_stats().documents,
            segments: self.segments.len(),
            bytes: segments.clone().map(|kept| kept.segment.size()).sum(),
            resident: segments.clone().map(|kept| kept.segment.resident()).sum(),
            gone: segments.map(|kept| u64::from(kept.gone.documents())).sum(),
            tail: self.tail.collection_stats().documents,
            tail_size: self.tail.size(),
        }
    }

    /// Returns `true` once a segment could not be read: the index has to be made anew.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.store.has_failed()
    }

    /// The tail, then the segments.
    pub(super) fn parts(&self) -> impl Iterator<Item = TextPart<'_>> {
        let segments =
            self.segments.iter().map(|kept| TextPart::Segment(&kept.segment, &kept.gone));
        std::iter::once(TextPart::Tail(&self.tail)).chain(segments)
    }

    pub(super) fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    /// The number of live documents and their total length.
    pub(super) fn collection_stats(&self) -> CollectionStats {
        let mut extent = self.tail.collection_stats();
        for kept in &self.segments {
            let documents = kept.segment.documents().saturating_sub(kept.gone.documents());
            let length = kept.segment.length().saturating_sub(kept.gone.length());
            extent.documents = extent.documents.saturating_add(documents.into());
            extent.total_length = extent.total_length.saturating_add(length);
        }
        extent
    }

    fn delete_from_segments(&mut self, sequence: Sequence, erased: bool) -> Result<()> {
        for kept in &mut self.segments {
            if let Some(document) = kept.segment.doc_id(sequence)? {
                kept.gone.remove(&kept.segment, document)?;
                if erased {
                    kept.gone.mark_erased();
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for InvertedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
