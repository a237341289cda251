//! The pages of a segment: read from its file when they are needed, each compared with its tag, and kept in a cache
//! that all segments share. A segment that is read much is kept whole while the cache has room for it.
//!
//! Does no I/O of its own; the engine gives the files. A segment that was not written to a file yet, and those of a
//! store without files, lie in memory whole.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard, Weak};

use tantivy::directory::OwnedBytes;

use super::page_cache::PageHolder;
use super::page_tag::{MAX_PAGE_BYTES, PageTag, TAG_BYTES};
use super::segment_file::{FOOTER_BYTES, FOOTER_PAGE, Footer};
use super::segment_store::SegmentFile;
use super::segment_store::SegmentStore;
use crate::error::{Error, ErrorKind, Result};

/// Pages from which a range is read around the cache, where it is kept by who reads it.
const MAX_CACHED_PAGES: usize = 8;
/// Pages that are read from a file at once, around the cache.
const PAGES_AT_ONCE: usize = 64;
/// A segment is kept whole once one of so many of its pages was read.
const MUCH_READ: usize = 8;

/// The bytes of a segment.
#[derive(Debug, Clone)]
pub(super) enum SegmentBytes {
    /// In memory, all of it.
    Memory(OwnedBytes),
    /// In a file.
    File(Arc<PagedFile>),
}

/// A file whose pages are read through the cache.
pub(super) struct PagedFile {
    store: SegmentStore,
    file: Arc<dyn SegmentFile>,
    name: String,
    /// The bytes of all sections.
    body: usize,
    tags: Vec<u8>,
    slots: Vec<PageSlot>,
    /// Pages that were read into the cache.
    pages_read: AtomicUsize,
    /// All of it, once it is read much and the cache has room.
    whole: RwLock<Option<OwnedBytes>>,
    /// True from when a merge reads it, which takes its place: it is not kept whole any more.
    merging: AtomicBool,
}

/// A page, if it is in the cache.
#[derive(Default)]
struct PageSlot {
    page: Mutex<Option<OwnedBytes>>,
    /// True if it was read since the cache last came by.
    used: AtomicBool,
}

/// An opened segment: its bytes, its footer, and the tag at its end.
pub(super) type Opened = (SegmentBytes, Footer, [u8; TAG_BYTES]);

/// Opens a segment in memory. Compares every page.
///
/// # Errors
/// `ERR_INTEGRITY` if the bytes are not a segment of this layout.
pub(super) fn open_memory(bytes: Vec<u8>, tag: PageTag<'_>) -> Result<Opened> {
    let parsed = || {
        let split = bytes.len().checked_sub(FOOTER_BYTES)?;
        let footer = Footer::parse(bytes.get(split..bytes.len().checked_sub(TAG_BYTES)?)?)?;
        let body = usize::try_from(footer.body()?).ok()?;
        let (sections, end) = bytes.split_at_checked(body)?;
        let own = check_end(end, body, tag)?;
        let tags = end.as_chunks::<TAG_BYTES>().0;
        let mut pages = (0_u64..).zip(sections.chunks(MAX_PAGE_BYTES)).zip(tags);
        pages.all(|((number, page), wanted)| tag(number, page) == *wanted).then_some((footer, own))
    };
    let (footer, own) = parsed().ok_or_else(damaged)?;
    Ok((SegmentBytes::Memory(OwnedBytes::new(bytes)), footer, own))
}

/// Opens a segment in a file: reads its end.
///
/// # Errors
/// `ERR_INTEGRITY` if it is not a segment of this layout, or missing; `ERR_IO` if it cannot be read now.
pub(super) fn open_file(store: &SegmentStore, name: &str) -> Result<Opened> {
    let files = store.files.as_ref().ok_or_else(damaged)?;
    let file = files.open(name).map_err(Error::input)?;
    let size = usize::try_from(file.size()).map_err(|_| damaged())?;
    let split = size.checked_sub(FOOTER_BYTES).ok_or_else(damaged)?;
    let mut footer = vec![0; FOOTER_BYTES - TAG_BYTES];
    file.read_at(split as u64, &mut footer).map_err(Error::input)?;
    let footer = Footer::parse(&footer).ok_or_else(damaged)?;
    let body = footer.body().and_then(|body| usize::try_from(body).ok());
    let body = body.filter(|body| *body <= split).ok_or_else(damaged)?;
    let tags = body.div_ceil(MAX_PAGE_BYTES).saturating_mul(TAG_BYTES);
    let end = tags.saturating_add(FOOTER_BYTES);
    if body.saturating_add(end) != size {
        return Err(damaged());
    }
    let mut end = vec![0; end];
    file.read_at(body as u64, &mut end).map_err(Error::input)?;
    let tag = |page, bytes: &[u8]| store.tag(name, page, bytes);
    let own = check_end(&end, body, &tag).ok_or_else(damaged)?;
    let pages = body.div_ceil(MAX_PAGE_BYTES);
    end.truncate(pages.saturating_mul(TAG_BYTES));
    end.shrink_to_fit();
    let slots = std::iter::repeat_with(PageSlot::default).take(pages).collect();
    let (store, name) = (store.clone(), name.to_owned());
    let (pages_read, whole) = (AtomicUsize::new(0), RwLock::new(None));
    let merging = AtomicBool::new(false);
    let paged = PagedFile { store, file, name, body, tags: end, slots, pages_read, whole, merging };
    Ok((SegmentBytes::File(Arc::new(paged)), footer, own))
}

/// Checks the length and the tag of what follows the sections, and returns the tag.
fn check_end(end: &[u8], body: usize, tag: PageTag<'_>) -> Option<[u8; TAG_BYTES]> {
    let tags = body.div_ceil(MAX_PAGE_BYTES).checked_mul(TAG_BYTES)?;
    let (tagged, own) = end.split_last_chunk::<TAG_BYTES>()?;
    let sound = end.len() == tags.checked_add(FOOTER_BYTES)? && tag(FOOTER_PAGE, tagged) == *own;
    sound.then_some(*own)
}

impl SegmentBytes {
    /// The bytes of a range. What is long and `kept` by the caller is not put into the cache.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if they were changed; `ERR_IO` if they cannot be read now.
    pub(super) fn read(&self, range: Range<usize>, kept: bool) -> Result<OwnedBytes> {
        match self {
            Self::Memory(bytes) if range.start <= range.end && range.end <= bytes.len() => {
                Ok(bytes.slice(range))
            }
            Self::Memory(_) => Err(damaged()),
            Self::File(file) => {
                let read = file.read(range, kept);
                file.store.note(read)
            }
        }
    }

    /// Looks at a range that is short and lies in one page; `None` where it does not, or the page has to be read.
    pub(super) fn peek<T>(&self, range: Range<usize>, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        match self {
            Self::Memory(bytes) => bytes.as_slice().get(range).map(look),
            Self::File(file) => file.peek(range, |page, at| page.as_slice().get(at).map(look))?,
        }
    }

    /// Takes note that a merge reads all of it and then takes its place. A merge that fails is begun again.
    pub(super) fn begin_merge(&self) {
        if let Self::File(file) = self {
            file.merging.store(true, Ordering::Relaxed);
        }
    }

    /// Bytes that it takes in memory beside the pages in the cache.
    pub(super) fn resident(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File(file) => {
                let slots = size_of::<PageSlot>().saturating_mul(file.slots.len());
                file.tags.len().saturating_add(slots)
            }
        }
    }
}

impl PagedFile {
    fn read(self: &Arc<Self>, range: Range<usize>, kept: bool) -> Result<OwnedBytes> {
        if range.start >= range.end {
            return Ok(OwnedBytes::empty());
        }
        if range.end > self.body {
            return Err(damaged());
        }
        if let Some(part) = self.peek(range.clone(), OwnedBytes::slice) {
            return Ok(part);
        }
        let pages = range.start / MAX_PAGE_BYTES..range.end.div_ceil(MAX_PAGE_BYTES);
        if pages.len() == 1 {
            let page = self.page(pages.start)?;
            return cut(&page, &range, pages.start);
        }
        if kept && pages.len() > MAX_CACHED_PAGES {
            return self.read_around(range);
        }
        let mut all = Vec::with_capacity(range.len());
        for number in pages {
            let page = self.page(number)?;
            all.extend_from_slice(cut(&page, &range, number)?.as_slice());
        }
        Ok(OwnedBytes::new(all))
    }

    /// Looks at a range of a page that is in the cache.
    #[inline]
    fn peek<T>(
        &self,
        range: Range<usize>,
        look: impl FnOnce(&OwnedBytes, Range<usize>) -> T,
    ) -> Option<T> {
        if let Some(whole) = &*self.whole.read().unwrap_or_else(PoisonError::into_inner) {
            return (range.start <= range.end && range.end <= whole.len())
                .then(|| look(whole, range));
        }
        self.peek_page(range, look)
    }

    fn peek_page<T>(
        &self,
        range: Range<usize>,
        look: impl FnOnce(&OwnedBytes, Range<usize>) -> T,
    ) -> Option<T> {
        let number = range.start / MAX_PAGE_BYTES;
        let first = number.saturating_mul(MAX_PAGE_BYTES);
        let slot = self.slots.get(number)?;
        let page = slot.lock();
        let page = page.as_ref()?;
        let at = range.start.saturating_sub(first)..range.end.saturating_sub(first);
        if at.start > at.end || at.end > page.len() {
            return None;
        }
        slot.touch();
        Some(look(page, at))
    }

    /// Reads a range of several pages without the cache.
    fn read_around(&self, range: Range<usize>) -> Result<OwnedBytes> {
        let mut all = Vec::with_capacity(range.len());
        let mut pages = Vec::new();
        let end = range.end.div_ceil(MAX_PAGE_BYTES);
        for first in (range.start / MAX_PAGE_BYTES..end).step_by(PAGES_AT_ONCE) {
            let start = first.saturating_mul(MAX_PAGE_BYTES);
            let last = end.min(first.saturating_add(PAGES_AT_ONCE));
            let stop = last.saturating_mul(MAX_PAGE_BYTES).min(self.body);
            pages.resize(stop.saturating_sub(start), 0);
            self.file.read_at(start as u64, &mut pages).map_err(Error::input)?;
            for (number, page) in (first..).zip(pages.chunks(MAX_PAGE_BYTES)) {
                self.check(number, page)?;
            }
            let from = range.start.saturating_sub(start);
            let to = range.end.saturating_sub(start).min(pages.len());
            all.extend_from_slice(pages.get(from..to).ok_or_else(damaged)?);
        }
        Ok(OwnedBytes::new(all))
    }

    /// A page, from the cache or from the file.
    fn page(self: &Arc<Self>, number: usize) -> Result<OwnedBytes> {
        let slot = self.slots.get(number).ok_or_else(damaged)?;
        if let Some(page) = slot.lock().as_ref() {
            slot.touch();
            return Ok(page.clone());
        }
        let mut bytes = Vec::new();
        self.read_page(number, &mut bytes)?;
        let read = self.pages_read.fetch_add(1, Ordering::Relaxed);
        let is_much = read.saturating_mul(MUCH_READ) >= self.slots.len();
        if is_much && !self.merging.load(Ordering::Relaxed) {
            match self.keep_whole() {
                // The page itself could be read.
                Err(error) if error.kind() == ErrorKind::Io => {}
                kept => kept?,
            }
        }
        let size = bytes.len();
        let page = OwnedBytes::new(bytes);
        if slot.lock().replace(page.clone()).is_none() {
            let own: Weak<Self> = Arc::downgrade(self);
            self.store.cache.admit(own, number, size);
        }
        Ok(page)
    }

    /// Reads all of it, if the cache has room.
    fn keep_whole(self: &Arc<Self>) -> Result<()> {
        let cache = &self.store.cache;
        if self.lock_whole().is_some() || !cache.reserve(self.body) {
            return Ok(());
        }
        let read = self.read_around(0..self.body);
        let all = read.inspect_err(|_| cache.release(self.body))?;
        let before = self.lock_whole().replace(all);
        if before.is_some() {
            // Another thread was faster.
            cache.release(self.body);
            return Ok(());
        }
        self.forget_pages();
        let own: Weak<Self> = Arc::downgrade(self);
        cache.keeps_whole(own);
        Ok(())
    }

    fn lock_whole(&self) -> RwLockWriteGuard<'_, Option<OwnedBytes>> {
        self.whole.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up the pages that are in the cache.
    fn forget_pages(&self) {
        let held = self.slots.iter().filter_map(|slot| slot.lock().take());
        self.store.cache.forget(held.map(|page| page.len()).sum());
    }

    fn read_page(&self, number: usize, to: &mut Vec<u8>) -> Result<()> {
        let first = number.saturating_mul(MAX_PAGE_BYTES);
        to.resize(self.body.saturating_sub(first).min(MAX_PAGE_BYTES), 0);
        self.file.read_at(first as u64, to).map_err(Error::input)?;
        self.check(number, to)
    }

    /// Compares a page with its tag.
    fn check(&self, number: usize, page: &[u8]) -> Result<()> {
        let at = number.saturating_mul(TAG_BYTES);
        let wanted = self.tags.get(at..).and_then(|tags| tags.first_chunk::<TAG_BYTES>());
        match wanted == Some(&self.store.tag(&self.name, number as u64, page)) {
            true => Ok(()),
            false => Err(Error::integrity(format!("page {number} of {} has changed", self.name))),
        }
    }
}

impl PageHolder for PagedFile {
    fn has(&self, number: usize) -> bool {
        self.slots.get(number).is_some_and(|slot| slot.lock().is_some())
    }

    fn evict_whole(&self) {
        if self.lock_whole().take().is_some() {
            self.pages_read.store(0, Ordering::Relaxed);
            self.store.cache.release(self.body);
        }
    }

    fn evict(&self, number: usize, even_used: bool) -> Option<usize> {
        let Some(slot) = self.slots.get(number) else { return Some(0) };
        let mut page = slot.lock();
        if slot.used.swap(false, Ordering::Relaxed) && !even_used {
            return None;
        }
        Some(page.take().map_or(0, |page| page.len()))
    }
}

impl Drop for PagedFile {
    fn drop(&mut self) {
        self.forget_pages();
        self.evict_whole();
    }
}

impl fmt::Debug for PagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagedFile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PageSlot {
    /// Takes note that the page was read. A line that others read, too, is not written to again.
    fn touch(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<OwnedBytes>> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a page that a range has.
fn cut(page: &OwnedBytes, range: &Range<usize>, number: usize) -> Result<OwnedBytes> {
    let first = number.saturating_mul(MAX_PAGE_BYTES);
    let from = range.start.saturating_sub(first);
    let to = range.end.saturating_sub(first).min(page.len());
    match from <= to {
        true => Ok(page.slice(from..to)),
        false => Err(damaged()),
    }
}

fn damaged() -> Error {
    Error::integrity("a segment of the full text is damaged")
}
