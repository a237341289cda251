//! Golden bytes of blobs, rows of applications and their owners (docs/format.md), and bytes that are none.

use data_encoding::HEXLOWER;
use grainstore_format::ContentAddress;
use grainstore_index::Sequence;

use super::*;
use crate::disk::truth_tables::TruthTable;

fn owners() -> [(RowOwner, String); 4] {
    let (user, grain) = (Some(UserToken([0xcd; 32])), Some(Sequence::new(5)));
    let token = "cd".repeat(32);
    [
        (RowOwner::default(), "00".to_owned()),
        (RowOwner { user, grain: None }, format!("01{token}")),
        (RowOwner { user: None, grain }, "020000000000000005".to_owned()),
        (RowOwner { user, grain }, format!("03{token}0000000000000005")),
    ]
}

#[test]
fn owners_and_links_have_these_bytes() {
    for (owner, golden) in owners() {
        let bytes = owner.encode();
        assert_eq!(HEXLOWER.encode(&bytes), golden);
        let row = [&bytes[..], b"rest"].concat();
        assert_eq!(RowOwner::split(&row).unwrap(), (owner, &b"rest"[..]));
        for end in 0..bytes.len() {
            assert!(RowOwner::split(&bytes[..end]).is_err(), "{end} bytes of {golden}");
        }
        let Some(link) = owner.link(TruthTable::ApplicationRows, b"key") else {
            assert_eq!(owner, RowOwner::default());
            continue;
        };
        let shown = [HEXLOWER.encode(&owner.prefix()), "136b6579".to_owned()].concat();
        assert_eq!(HEXLOWER.encode(&link), shown);
        let OwnedLink { prefix, table, key } = OwnedLink::decode(&link).unwrap();
        assert_eq!((prefix, table), (owner.prefix(), TruthTable::ApplicationRows));
        assert_eq!(key, b"key");
    }
    assert!(RowOwner::split(&[4]).is_err());
    assert!(OwnedLink::decode(&[0; 40]).is_err());
    assert!(OwnedLink::decode(&[18; 41]).is_err(), "chunks have no owner of their own");
}

#[test]
fn rows_have_these_bytes() {
    let vault = Vault::default();
    let table = TablePrefix::of(&vault, "notes", 2);
    let place = table.number(7);
    let shown = "32f4e4c9234d1d54e98ae7f013cf1a0202";
    assert_eq!(HEXLOWER.encode(&place), format!("{shown}000000000000000007"));
    let named = table.bytes(&vault, b"color");
    let token = "0a289e55c2fa1b7a70ea900f3d82202ce4bf8f82634d6a1a2a873e1ebe58ee8c";
    assert_eq!(HEXLOWER.encode(&named), format!("{shown}01{token}"));

    let body = RowBody { application: "notes", key: Some(b"color"), value: b"red" };
    assert_eq!(HEXLOWER.encode(&body.encode()), "01056e6f7465730005636f6c6f72726564");
    assert_eq!(RowBody::decode(&body.encode()).unwrap(), body);
    assert!(body.stands_under(&named, &vault) && !body.stands_under(&place, &vault));
    let number = RowBody { key: None, ..body };
    assert_eq!(HEXLOWER.encode(&number.encode()), "01056e6f7465730000726564");
    assert!(number.stands_under(&place, &vault) && !number.stands_under(&named, &vault));
    assert_eq!(RowBody::number_in(&place), Some(7));
    for bad in [&[][..], &[2, 0, 0, 0], &[1, 1], &[1, 1, 0xff, 0, 0], &[1, 0, 0, 1]] {
        let code = RowBody::decode(bad).map_err(|error| error.code());
        assert_eq!(code, Err("ERR_INTEGRITY"), "{bad:?}");
    }
}

#[test]
fn a_row_opens_under_its_key_and_owner_alone() {
    let (vault, encryption_key) = (Vault::default(), EncryptionKey::default());
    let place = (TruthTable::ApplicationRows, &b"key"[..]);
    let [(nobody, _), (user, _), ..] = owners();
    let row = seal_owned(place, &nobody, b"body", (&vault, &encryption_key)).unwrap();
    assert_eq!(HEXLOWER.encode(&row[..3]), "000100");
    assert_eq!(&row[7..], b"body");
    assert_eq!(&open_owned(place, &row, &vault).unwrap().1[..], b"body");
    let elsewhere = (TruthTable::ApplicationRows, &b"other"[..]);
    assert!(open_owned(elsewhere, &row, &vault).is_err(), "under another key");
    let stolen = [&user.encode()[..], &row[1..]].concat();
    assert!(open_owned(place, &stolen, &vault).is_err(), "of another owner");
    for bit in 0..8 * row.len() {
        let mut flipped = row.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(open_owned(place, &flipped, &vault).is_err(), "bit {bit}");
    }
}

#[test]
fn blobs_have_these_bytes() {
    let address = ContentAddress::from_bytes([0xab; 32]);
    let head = BlobHead { address, bytes: 2_088_961 };
    let golden = ["01", &"ab".repeat(32), "00000000001fe001"].concat();
    assert_eq!(HEXLOWER.encode(&head.encode()), golden);
    assert_eq!((BlobHead::decode(&head.encode()).unwrap(), head.chunks()), (head, 3));
    assert_eq!(BlobHead { address, bytes: 0 }.chunks(), 0);
    assert!(BlobHead::decode(&head.encode()[1..]).is_err());
    let vault = Vault::default();
    let keys = owners().map(|(owner, _)| blob_key(&vault, &address, &owner));
    let of_user = "5c2b706024bfe86ccef9fc5f9d4d7803b092a265114dcea0580b4d06f6eab214";
    assert_eq!(HEXLOWER.encode(&keys[1]), of_user);
    let different: std::collections::BTreeSet<_> = keys.into_iter().collect();
    assert_eq!(different.len(), 4, "a blob of each owner");
    assert_eq!(HEXLOWER.encode(&chunk_key(&[1, 2], 3)), "010200000003");
}
