//! Damage: whatever happens to the bytes of a container, it is noticed, told with a code and a place,
//! and nothing panics.

use grainstore_format::container::{Compression, ManifestEntry};
use grainstore_format::{ContentAddress, GrainState};

use crate::kit::{blobs, container, read, refusal, seal};

/// Small containers of every compression, with a manifest.
fn samples() -> Vec<(Compression, Vec<u8>)> {
    let given = blobs(3);
    let state = GrainState { contradicted: true, ..GrainState::default() };
    let manifest =
        [(ContentAddress::of(&given[1]), ManifestEntry { state, ..ManifestEntry::default() })];
    Compression::ALL.map(|way| (way, container(&given, &manifest, way))).to_vec()
}

#[test]
fn every_flipped_byte_is_noticed() {
    for (compression, whole) in samples() {
        for at in 0..whole.len() {
            for bits in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= bits;
                let (code, place) = refusal(&bytes);
                let expected = match at {
                    0 | 1 => "ERR_CORRUPT",
                    2 => "ERR_VERSION",
                    _ => "ERR_INTEGRITY",
                };
                assert_eq!(code, expected, "{compression:?} byte {at}");
                assert!(!place.is_empty(), "{compression:?} byte {at}");
            }
        }
    }
}

#[test]
fn every_cut_and_every_addition_is_noticed() {
    for (compression, whole) in samples() {
        for len in 0..whole.len() {
            let expected = if len < 48 { "ERR_CORRUPT" } else { "ERR_INTEGRITY" };
            assert_eq!(refusal(&whole[..len]).0, expected, "{compression:?} {len} bytes");
        }
        for more in [1, 32, 1000] {
            let mut bytes = whole.clone();
            bytes.resize(whole.len() + more, 0);
            assert_eq!(refusal(&bytes).0, "ERR_INTEGRITY", "{compression:?} and {more} bytes");
        }
    }
}

/// Somebody who can change bytes can also make the checksum fit.
#[test]
fn damage_under_a_fitting_checksum_is_an_error_or_another_valid_container() {
    for (compression, whole) in samples() {
        let covered = &whole[..whole.len() - 32];
        let (given, manifest) = read(&whole).unwrap();
        let mut refused = 0;
        for at in 0..covered.len() {
            for bit in 0..8 {
                let mut bytes = covered.to_vec();
                bytes[at] ^= 1 << bit;
                // A flag that is clear promises nothing.
                let harmless = at == 3 && bit < 2;
                match read(&seal(bytes)) {
                    Err(error) => {
                        assert!(error.code().starts_with("ERR_"));
                        assert!(!error.place().is_empty(), "{compression:?} byte {at}: {error}");
                        assert!(!harmless, "{compression:?} byte {at} bit {bit}: {error}");
                        refused += 1;
                    }
                    Ok(other) => {
                        let front = 16 + 4 * given.len();
                        assert!(at >= front || harmless, "{compression:?} byte {at} bit {bit}");
                        // A frame may be written in other ways; what is in it has no slack.
                        let same = other == (given.clone(), manifest.clone());
                        assert!(!same || harmless || compression != Compression::None, "byte {at}");
                    }
                }
            }
        }
        assert!(refused > covered.len() * 4, "{compression:?}: {refused} refused");
    }
}

#[test]
fn cuts_and_additions_under_a_fitting_checksum_are_noticed() {
    for (compression, whole) in samples() {
        let covered = &whole[..whole.len() - 32];
        for len in 16..covered.len() {
            let (code, place) = refusal(&seal(covered[..len].to_vec()));
            // What is left of the last grain may be less than a header.
            assert!(
                ["ERR_CORRUPT", "ERR_TOO_SHORT"].contains(&code),
                "{compression:?} {len} bytes"
            );
            assert!(!place.is_empty(), "{compression:?} {len} bytes");
        }
        for more in [vec![0], vec![0x80], vec![0xff; 100], covered.to_vec()] {
            let bytes = [covered, &more].concat();
            assert_eq!(refusal(&seal(bytes)).0, "ERR_CORRUPT", "{compression:?} and {more:?}");
        }
    }
}
