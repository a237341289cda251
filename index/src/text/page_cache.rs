//! The cache of pages of segments: at most so many bytes, the longest unused go first (a clock). Segments that are kept
//! whole take three quarters of it at the most, and give way when it gets smaller. Knows neither files nor what pages
//! hold.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use super::page_tag::MAX_PAGE_BYTES;

/// Entries of the ring below which those of pages that are gone are left there.
const MIN_RING: usize = 1_024;

/// Who holds pages that the cache counts.
pub(super) trait PageHolder: Send + Sync {
    /// Takes a page out, unless it was used since the last time, or at any rate if `even_used`. Returns its size;
    /// `None` if it stays.
    fn evict(&self, page: usize, even_used: bool) -> Option<usize>;

    /// Returns `true` if it has this page.
    fn has(&self, page: usize) -> bool;

    /// Gives up what it keeps whole, and releases the room.
    fn evict_whole(&self);
}

/// The pages in the order in which the clock comes by; some of segments that are gone.
type Ring = VecDeque<(Weak<dyn PageHolder>, usize)>;

/// The pages of all segments of a store that are in memory. A page that a search reads from counts no longer once it
/// was taken out.
#[derive(Default)]
pub struct PageCache {
    capacity: AtomicUsize,
    /// Bytes of pages and of whole segments.
    bytes: AtomicUsize,
    /// Those of whole segments.
    reserved: AtomicUsize,
    ring: Mutex<Ring>,
    /// Who keeps something whole; some of them gone.
    wholes: Mutex<Vec<Weak<dyn PageHolder>>>,
}

impl PageCache {
    /// A cache of so many bytes.
    ///
    /// ```
    /// use grainstore_index::text::PageCache;
    ///
    /// let cache = PageCache::new(1 << 20);
    /// assert_eq!((cache.bytes(), cache.capacity()), (0, 1 << 20));
    /// ```
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { capacity: bytes.into(), ..Self::default() }
    }

    /// The bytes of the pages it has, those of segments that are kept whole included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The most bytes it has.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Sets the most bytes it has, and gives up what is more.
    pub fn set_capacity(&self, bytes: usize) {
        self.capacity.store(bytes, Ordering::Relaxed);
        self.shrink_wholes();
        self.shrink(&mut self.lock());
    }

    /// Gives up all pages, and all that is kept whole.
    pub fn clear(&self) {
        let wholes = std::mem::take(&mut *self.lock_wholes());
        wholes.iter().filter_map(Weak::upgrade).for_each(|holder| holder.evict_whole());
        for (file, page) in self.lock().drain(..) {
            let freed = file.upgrade().and_then(|file| file.evict(page, true));
            self.forget(freed.unwrap_or_default());
        }
    }

    /// Takes room for a segment that is kept whole; `false` if there is not enough beside others that are. Pages give
    /// way.
    pub(super) fn reserve(&self, size: usize) -> bool {
        let most = self.most_whole();
        let more = |reserved: usize| reserved.checked_add(size).filter(|sum| *sum <= most);
        let fits = self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if fits {
            self.bytes.fetch_add(size, Ordering::Relaxed);
            self.shrink(&mut self.lock());
        }
        fits
    }

    /// Bytes of what is kept whole.
    #[cfg(test)]
    pub(super) fn whole_bytes(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Takes note of who keeps something whole, in room that was reserved.
    pub(super) fn keeps_whole(&self, holder: Weak<dyn PageHolder>) {
        self.lock_wholes().push(holder);
        self.shrink_wholes();
    }

    /// Gives up the room of a segment that was kept whole.
    pub(super) fn release(&self, size: usize) {
        self.reserved.fetch_sub(size, Ordering::Relaxed);
        self.forget(size);
    }

    /// Takes note of a page that was read.
    pub(super) fn admit(&self, holder: Weak<dyn PageHolder>, page: usize, size: usize) {
        self.bytes.fetch_add(size, Ordering::Relaxed);
        let mut ring = self.lock();
        ring.push_back((holder, page));
        self.shrink(&mut ring);
    }

    /// Takes note that pages of so many bytes are gone.
    pub(super) fn forget(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The most bytes that may be kept whole, so that pages always have room.
    fn most_whole(&self) -> usize {
        self.capacity() / 4 * 3
    }

    fn shrink_wholes(&self) {
        let mut wholes = self.lock_wholes();
        wholes.retain(|holder| holder.strong_count() > 0);
        while self.reserved.load(Ordering::Relaxed) > self.most_whole() {
            let Some(holder) = wholes.pop() else { break };
            if let Some(holder) = holder.upgrade() {
                holder.evict_whole();
            }
        }
    }

    fn shrink(&self, ring: &mut Ring) {
        let mut chances = ring.len();
        while self.bytes() > self.capacity() {
            let Some((file, page)) = ring.pop_front() else { break };
            let Some(open) = file.upgrade() else { continue };
            match open.evict(page, chances == 0) {
                Some(freed) => self.forget(freed),
                None => ring.push_back((file, page)),
            }
            chances = chances.saturating_sub(1);
        }
        // Pages of segments that are gone leave the ring only here while the cache has room.
        let live = self.bytes() / MAX_PAGE_BYTES;
        if ring.len() > live.saturating_mul(2).saturating_add(MIN_RING) {
            ring.retain(|(file, page)| file.upgrade().is_some_and(|file| file.has(*page)));
        }
    }

    fn lock_wholes(&self) -> MutexGuard<'_, Vec<Weak<dyn PageHolder>>> {
        self.wholes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PageCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, capacity) = (self.bytes(), self.capacity());
        write!(f, "PageCache({bytes} of {capacity} bytes)")
    }
}
