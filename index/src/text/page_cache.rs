//! The cache of pages of segments: at most so many bytes, the longest unused go first (a clock). Segments that are kept
//! whole count as well, and stay. Knows neither files nor what pages hold.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

/// Who holds pages that the cache counts.
pub(super) trait PageHolder: Send + Sync {
    /// Takes a page out, unless it was used since the last time, or at any rate if `even_used`. Returns its size;
    /// `None` if it stays.
    fn evict(&self, page: usize, even_used: bool) -> Option<usize>;
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
        self.shrink(&mut self.lock());
    }

    /// Gives up all pages.
    pub fn clear(&self) {
        for (file, page) in self.lock().drain(..) {
            let freed = file.upgrade().and_then(|file| file.evict(page, true));
            self.forget(freed.unwrap_or_default());
        }
    }

    /// Takes room for a segment that is kept whole; `false` if there is not enough beside others that are. Pages give
    /// way.
    pub(super) fn reserve(&self, size: usize) -> bool {
        let mut ring = self.lock();
        let reserved = self.reserved.load(Ordering::Relaxed).saturating_add(size);
        let fits = reserved <= self.capacity();
        if fits {
            self.reserved.store(reserved, Ordering::Relaxed);
            self.bytes.fetch_add(size, Ordering::Relaxed);
            self.shrink(&mut ring);
        }
        fits
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
        while ring.front().is_some_and(|(file, _)| file.strong_count() == 0) {
            ring.pop_front();
        }
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
