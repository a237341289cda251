//! Signed grains in containers: the envelope is the entry, the blob in it is the grain.

use grainstore_format::container::{Compression, Container};
use grainstore_format::{ContentAddress, DecodeOptions, Encoding};

use crate::kit::{Raw, blob, container, read, refusal};

/// The blob with its signed flag set.
fn flagged(created_at: i64) -> Vec<u8> {
    let mut blob = blob(created_at, Encoding::MessagePack);
    blob[1] |= 1;
    blob
}

/// A COSE_Sign1 around these bytes; nothing here looks at its signature.
fn envelope(payload: &[u8], tag: &[u8], unprotected: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let signature = [&[0x58, 64][..], &[7; 64]].concat();
    let protected = [0x43, 0xa1, 0x01, 0x27];
    [tag, &[0x84], &protected, unprotected, &[0x58, length], payload, &signature].concat()
}

#[test]
fn an_envelope_is_one_entry_under_the_address_of_its_blob() {
    let (first, second) = (flagged(1000), flagged(2000));
    // With iat, and with something that nests, has tags and floats: none of it is looked at.
    let iat = [0xa1, 0x63, b'i', b'a', b't', 0x01];
    let odd = [0xa1, 0x18, 0x21, 0xc1, 0x82, 0xfb, 0, 0, 0, 0, 0, 0, 0, 0, 0xf7];
    let given = [
        envelope(&first, &[0xd2], &iat),
        envelope(&second, &[], &odd),
        blob(3000, Encoding::MessagePack),
    ];
    for compression in Compression::ALL {
        let bytes = container(&given, &[], compression);
        assert_eq!(read(&bytes).map(|(entries, _)| entries), Ok(given.to_vec()));
        let container = Container::open(bytes.as_slice(), &DecodeOptions::default()).unwrap();
        let entry = container.entry(0).unwrap();
        assert_eq!(entry.blob(), first);
        assert_eq!(entry.address(), ContentAddress::of(&first));
        assert_eq!(entry.envelope(), Some(given[0].as_slice()));
        assert_eq!(entry.grain().text("subject"), Some("s1000"));
        assert_eq!(container.entry(2).unwrap().envelope(), None);
    }
}

#[test]
fn a_malformed_envelope_is_refused_wherever_it_stands() {
    let good = envelope(&flagged(1000), &[0xd2], &[0xa0]);
    let change = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed.splice(at..=at, bytes.iter().copied());
        changed
    };
    for (name, bad, code) in [
        (
            "the flag is clear",
            envelope(&blob(1000, Encoding::MessagePack), &[], &[0xa0]),
            "ERR_SIGNED_MISMATCH",
        ),
        ("an array of three", change(1, &[0x83]), "ERR_CORRUPT"),
        ("an array of five", change(1, &[0x85]), "ERR_CORRUPT"),
        ("indefinite length", change(1, &[0x9f]), "ERR_CORRUPT"),
        ("headers are text", change(2, &[0x63]), "ERR_CORRUPT"),
        ("unprotected without end", change(6, &[0xbf]), "ERR_CORRUPT"),
        (
            "unprotected declares 2^64-1",
            change(6, &[0xbb, 255, 255, 255, 255, 255, 255, 255, 255]),
            "ERR_CORRUPT",
        ),
        ("nested without end", change(6, &[0x81; 400]), "ERR_CORRUPT"),
        ("payload is nil", envelope(&[], &[], &[0xa0]), "ERR_SIGNED_MISMATCH"),
        ("cut", good[..good.len() - 1].to_vec(), "ERR_CORRUPT"),
        ("bytes behind it", [good.clone(), vec![0]].concat(), "ERR_CORRUPT"),
        ("an envelope in an envelope", envelope(&good[..100], &[], &[0xa0]), "ERR_SIGNED_MISMATCH"),
    ] {
        let plain = blob(3000, Encoding::MessagePack);
        for given in [vec![bad.clone(), plain], vec![bad.clone()]] {
            let (found, place) = refusal(&Raw::of(&given).bytes());
            assert_eq!(found, code, "{name}");
            assert!(place.contains("grain 0") || place.contains("byte"), "{name}: {place}");
        }
    }
}
