//! Compression of blobs for the log: zstd with a dictionary that is part of the program.
//!
//! The dictionary was trained on synthetic grains (`cargo run -p grainstore-bench --bin dictionary`), never
//! on users' data, which would outlive its erasure in it. Every frame needs its dictionary for good, so this
//! one never changes; another one gets another protection byte (docs/format.md).

use std::cell::RefCell;
use std::sync::LazyLock;

use grainstore_format::DeviceProfile;
use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe;

use crate::base::error::Result;

/// The zstd level, the same as that of portable containers.
const ZSTD_LEVEL: i32 = 3;

/// Most bytes that a frame may hold: those of the largest blob of the log.
pub(crate) const MAX_FRAME_BYTES: usize = DeviceProfile::EXTENDED.max_blob_bytes;

static DICTIONARY: &[u8] = include_bytes!("compression/dictionary-1");
static ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, ZSTD_LEVEL));
static DECODER: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn compressor() -> Option<Compressor<'static>> {
    let mut compressor = Compressor::with_prepared_dictionary(&ENCODER).ok()?;
    // The envelope says which dictionary was used.
    compressor.include_dictid(false).ok()?;
    Some(compressor)
}

/// Compresses a blob into one zstd frame with its content size. `None` if that is not shorter.
pub(crate) fn compress(blob: &[u8]) -> Option<Vec<u8>> {
    let frame = COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = compressor();
        }
        kept.as_mut()?.compress(blob).ok()
    })?;
    (frame.len() < blob.len()).then_some(frame)
}

/// Returns the blob in a frame. `None` for bytes that are not exactly one frame with a content size, and for
/// a blob over the size limit ([`DeviceProfile::EXTENDED`]); for those no memory is allocated.
///
/// # Errors
/// `ERR_IO` if no decompressor can be made.
pub(crate) fn decompress(frame: &[u8]) -> Result<Option<Vec<u8>>> {
    let most = MAX_FRAME_BYTES;
    let told = zstd_safe::get_frame_content_size(frame).ok().flatten();
    let told = told.and_then(|told| usize::try_from(told).ok());
    let length = zstd_safe::find_frame_compressed_size(frame).ok();
    if told.is_none_or(|told| told == 0 || told > most) || length != Some(frame.len()) {
        return Ok(None);
    }
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::with_prepared_dictionary(&DECODER)?),
        };
        Ok(decompressor.decompress(frame, most).ok())
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use data_encoding::HEXLOWER;
    use grainstore_format::{BeliefBuilder, Encoding, EpochMs};
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_dictionary_never_changes() {
        let digest = HEXLOWER.encode(&Sha256::digest(DICTIONARY));
        assert_eq!(digest, "3ad9675983e18a25e5b07507f4364d2f1ff33813070a3ee751392b441440fcbe");
    }

    #[test]
    fn blobs_come_back_and_get_shorter() {
        let belief = BeliefBuilder::new(EpochMs::new(1), "Alice", "prefers", "black tea", 0.9);
        let blob =
            belief.namespace("shared").build().unwrap().encode(Encoding::MessagePack).unwrap();
        let frame = compress(blob.bytes()).unwrap();
        assert!(frame.len() < blob.bytes().len());
        assert_eq!(decompress(&frame).unwrap().as_deref(), Some(blob.bytes()));
    }

    #[test]
    fn what_does_not_get_shorter_stays_as_it_is() {
        let noise: Vec<u8> = (0..8_u64).flat_map(|n| Sha256::digest(n.to_be_bytes())).collect();
        for blob in [&noise[..], b"", b"x"] {
            assert_eq!(compress(blob), None);
        }
    }

    #[test]
    fn longer_than_a_blob_may_be_is_refused_whether_the_frame_says_so_or_not() {
        let most = MAX_FRAME_BYTES;
        let told = zstd::bulk::compress(&vec![0; most + 1], ZSTD_LEVEL).unwrap();
        let mut untold = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL).unwrap();
        untold.write_all(&vec![0; 64 * most]).unwrap();
        let untold = untold.finish().unwrap();
        assert_eq!(decompress(&told).unwrap(), None);
        assert_eq!(decompress(&untold).unwrap(), None);
        let longest = vec![7; most];
        assert_eq!(decompress(&compress(&longest).unwrap()).unwrap(), Some(longest));
    }

    #[test]
    fn garbage_is_no_frame() {
        let frame = compress(&[b'a'; 300]).unwrap();
        let twice = [&frame[..], &frame].concat();
        let cut = &frame[..frame.len() - 1];
        for garbage in [&frame[1..], cut, &twice, b"", b"garbage that is no frame"] {
            assert_eq!(decompress(garbage).unwrap(), None, "{garbage:?}");
        }
        let whole = decompress(&frame).unwrap();
        assert_eq!(whole.unwrap(), [b'a'; 300], "nothing is left of what failed");
    }
}
