//! Lookup of terms in all parts, with their document frequencies as one reader may know them.
//!
//! Scores follow from document frequencies, so a frequency tells of documents the reader does not see. Where
//! such documents exist, a term that at most [`RARE`] documents have counts by those the reader sees alone.
//! Beyond that a term is common, and counts by all documents.

use super::cancel::CancelCheck;
use super::part::{TermRef, TextPart};
use crate::error::Result;
use crate::posting::Sequence;

/// The most documents of a term that a [`PreparedSearch`](super::PreparedSearch) checks one by one for
/// whether the reader sees them.
pub const RARE: u64 = if cfg!(test) { 4 } else { 32 };

/// Returns `true` if the reader of an answer of a [`PreparedSearch`](super::PreparedSearch) sees a grain.
pub type SeenFilter<'a> = dyn Fn(Sequence) -> bool + 'a;

/// Looks up terms in all parts, for one reader.
pub(super) struct TermLookup<'l> {
    pub(super) parts: &'l [TextPart<'l>],
    pub(super) watch: &'l CancelCheck<'l>,
    /// `None` for a reader who sees every document.
    pub(super) seen: Option<&'l SeenFilter<'l>>,
}

impl TermLookup<'_> {
    /// A term in each part, `None` where a part does not have it, and its document frequency.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read; `ERR_TIMEOUT`.
    pub(super) fn find(&self, term: &str) -> Result<(Vec<Option<TermRef>>, u64)> {
        self.watch.step(self.parts.len())?;
        let mut found = Vec::with_capacity(self.parts.len());
        let mut frequency = 0_u64;
        for part in self.parts {
            let here = part.find(term)?;
            let live = here.as_ref().map_or(0, |here| part.frequency(here));
            frequency = frequency.saturating_add(live);
            found.push(here);
        }
        if let Some(seen) = self.seen
            && (1..=RARE).contains(&frequency)
        {
            frequency = self.count(&found, seen)?;
        }
        Ok((found, frequency))
    }

    /// The document frequency of a term as the reader may know it, given its frequency among all documents.
    ///
    /// # Errors
    /// Those of [`find`](Self::find).
    pub(super) fn frequency(&self, term: &str, of_all: u64) -> Result<u64> {
        match self.seen {
            Some(_) if of_all <= RARE => Ok(self.find(term)?.1),
            _ => Ok(of_all),
        }
    }

    /// The number of live documents of a term that the reader sees.
    fn count(&self, found: &[Option<TermRef>], seen: &SeenFilter<'_>) -> Result<u64> {
        let mut count = 0_u64;
        for (part, found) in self.parts.iter().zip(found) {
            let Some(found) = found else { continue };
            let mut documents = Vec::new();
            part.cursor(found)?.visit_until(part.end(), |document, _| documents.push(document));
            self.watch.step(documents.len())?;
            for document in documents.into_iter().filter(|document| part.is_live(*document)) {
                count = count.saturating_add(u64::from(seen(part.sequence(document)?)));
            }
        }
        Ok(count)
    }
}
