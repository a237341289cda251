//! Files that are none, are damaged, or lie: a code, a place, and nothing changed.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use grainstore::cal::CancelHandle;
use grainstore::format::container::Compression;
use grainstore::{ImportOptions, Offer};

use crate::import::kit::{Place, address, belief, blob, container, sealed, signed, superseded};

fn good() -> Vec<u8> {
    let (old, new) = (belief("tea", 1000, ""), belief("coffee", 2000, ""));
    container(&[blob(&old), blob(&new)], &[superseded(address(&old), address(&new), 3000)])
}

/// With a checksum that is right in the place of the one there is.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 32);
    sealed(bytes)
}

fn changed(at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = good();
    bytes[at] = byte;
    resealed(bytes)
}

/// One grain that inflates to far more than a grain may have.
fn bomb() -> Vec<u8> {
    let mut bytes = vec![0x4d, 0x47, 1, 0b111, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut packed = zstd::Encoder::new(Vec::new(), 19).unwrap();
    for _ in 0..1024 {
        packed.write_all(&[0; 64 << 10]).unwrap();
    }
    bytes.extend(packed.finish().unwrap());
    sealed(bytes)
}

#[test]
fn a_file_that_is_wrong_anywhere_changes_nothing() {
    let place = Place::new();
    place.session.put(belief("here", 1, "")).unwrap();
    let before = place.figures();
    let whole = good();
    let mut twisted = whole.clone();
    twisted.swap(16, 20);
    twisted.swap(17, 21);
    twisted.swap(18, 22);
    twisted.swap(19, 23);
    for (name, bytes, code) in [
        ("nothing", Vec::new(), "ERR_CORRUPT"),
        ("half written", whole[..whole.len() / 2].to_vec(), "ERR_INTEGRITY"),
        ("a byte more", [whole.as_slice(), &[0]].concat(), "ERR_INTEGRITY"),
        (
            "another checksum",
            [&whole[..whole.len() - 1], &[!whole[whole.len() - 1]]].concat(),
            "ERR_INTEGRITY",
        ),
        ("a single blob", blob(&belief("tea", 1, "")), "ERR_CORRUPT"),
        ("a count that lies", changed(7, 3), "ERR_CORRUPT"),
        ("a huge count", changed(4, 255), "ERR_CORRUPT"),
        ("offsets that overlap", resealed(twisted), "ERR_CORRUPT"),
        ("a flag that is not there", changed(3, 0b1001_0011), "ERR_CORRUPT"),
        ("a later version", changed(2, 2), "ERR_VERSION"),
        ("a grain of a later version", changed(24, 2), "ERR_VERSION"),
        ("a zip bomb", bomb(), "ERR_TOO_LARGE"),
    ] {
        let file = place.dir.path().join("bad.mg");
        fs::write(&file, bytes).unwrap();
        let error = place.session.import([&file], &ImportOptions::default()).unwrap_err();
        assert_eq!(error.code(), code, "{name}: {error}");
        assert!(error.to_string().contains("bad.mg: "), "{name}: {error}");
        assert_eq!(place.figures(), before, "{name}");
    }
    place.verify();
}

/// A small file of each compression, with a signed grain and a manifest.
fn small() -> Vec<Vec<u8>> {
    let from = Place::new();
    from.session.put(Offer::Signed(signed(&belief("signed", 500, ""), 3).0)).unwrap();
    let old = from.session.put(belief("tea", 1000, "")).unwrap().address();
    from.session.supersede(&old, belief("coffee", 2000, ""), None).unwrap();
    Compression::ALL.map(|way| from.export("small.mg", way).1).to_vec()
}

#[test]
fn a_file_with_any_byte_flipped_or_cut_at_any_length_is_refused_with_its_name() {
    let place = Place::new();
    place.session.put(belief("here", 1, "")).unwrap();
    let before = place.figures();
    let file = place.dir.path().join("bad.mg");
    let mut refused = 0;
    let mut check = |bytes: &[u8], what: &str| {
        fs::write(&file, bytes).unwrap();
        let error = place.session.import([&file], &ImportOptions::default()).unwrap_err();
        let known = ["ERR_CORRUPT", "ERR_VERSION", "ERR_INTEGRITY"].contains(&error.code());
        assert!(known, "{what}: {error}");
        assert!(error.to_string().contains("bad.mg: "), "{what}: {error}");
        refused += 1;
    };
    let mut bytes = 0;
    for whole in small() {
        bytes += whole.len();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            check(&flipped, &format!("byte {at} of {}", whole.len()));
            check(&whole[..at], &format!("cut at {at} of {}", whole.len()));
        }
        let sound = Place::new();
        let file = sound.dir.path().join("good.mg");
        fs::write(&file, &whole).unwrap();
        assert_eq!(sound.session.import([&file], &ImportOptions::default()).unwrap().added, 3);
    }
    assert_eq!(refused, 2 * bytes);
    assert_eq!(place.figures(), before);
    place.verify();
}

/// Whoever can make the checksum fit as well changes what a file says, but no grain under its address.
#[test]
fn a_flipped_byte_under_a_fitting_checksum_is_refused_or_another_grain() {
    let whole = small().remove(0);
    let from = Place::new();
    let file = from.dir.path().join("bad.mg");
    fs::write(&file, &whole).unwrap();
    from.session.import([&file], &ImportOptions::default()).unwrap();
    let known = from.everything();
    let (mut refused, mut others) = (0, 0);
    let mut place = Place::new();
    for at in 0..whole.len() - 32 {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&file, resealed(flipped)).unwrap();
        match place.session.import([&file], &ImportOptions::default()) {
            Err(error) => {
                assert!(error.to_string().contains("bad.mg: "), "byte {at}: {error}");
                assert_eq!(place.store.stats().unwrap().grains, 0, "byte {at}");
                refused += 1;
            }
            Ok(_) => {
                for (address, blob, _) in place.everything() {
                    let same = known.iter().find(|(other, ..)| *other == address);
                    assert!(same.is_none_or(|(_, other, _)| *other == blob), "byte {at}");
                }
                others += 1;
                place = Place::new();
            }
        }
    }
    assert!(refused > 100 && others > 10, "{refused} refused, {others} others");
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let place = Place::new();
    let pipe = place.dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe, place.dir.path().to_owned(), PathBuf::from("/no/such/file.mg")] {
        let error = place.session.import([&path], &ImportOptions::default()).unwrap_err();
        assert_eq!(error.code(), "ERR_IO", "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn an_import_that_is_cancelled_changes_nothing() {
    let place = Place::new();
    let file = place.dir.path().join("good.mg");
    fs::write(&file, good()).unwrap();
    let cancel = CancelHandle::new();
    cancel.cancel();
    let how = ImportOptions { cancel, ..ImportOptions::default() };
    assert_eq!(place.session.import([&file], &how).unwrap_err().code(), "ERR_TIMEOUT");
    assert_eq!(place.store.stats().unwrap().grains, 0);
    assert_eq!(place.session.import([&file], &ImportOptions::default()).unwrap().added, 2);
}
