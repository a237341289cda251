//! The tags of pages of a segment: what a page is compared with when it is read. Holds no keys; the engine does.

use twox_hash::XxHash64;

/// Bytes of a page; the last one of a segment has fewer.
#[cfg(not(test))]
pub(super) const MAX_PAGE_BYTES: usize = 1 << 12;
#[cfg(test)]
pub(super) const MAX_PAGE_BYTES: usize = 1 << 7;
/// Bytes of a tag; a checksum takes the first eight.
pub(super) const TAG_BYTES: usize = 16;

/// Computes the tag of a page by its number.
pub(super) type PageTag<'t> = &'t dyn Fn(u64, &[u8]) -> [u8; TAG_BYTES];

/// The checksum of a page, as a tag.
pub(super) fn checksum(page: u64, bytes: &[u8]) -> [u8; TAG_BYTES] {
    let mut tag = [0; TAG_BYTES];
    let hash = XxHash64::oneshot(page, bytes).to_be_bytes();
    tag.iter_mut().zip(hash).for_each(|(to, byte)| *to = byte);
    tag
}
