//! Golden bytes of every posting key. A change here is a new layout version.

use super::*;
use crate::field::Field;
use crate::term::TermValue;
use crate::test_kit::{code, hex};

const NAMESPACE: TermId = TermId::new(1);

fn posting(ms: i64, sequence: u64) -> Posting {
    Posting {
        time: EpochMs::new(ms),
        tie: TieBreaker([0xA1, 0xB2]),
        sequence: Sequence::new(sequence),
    }
}

fn rank(ms: i64, sequence: u64) -> OrderKey {
    OrderKey::from_posting(posting(ms, sequence)).unwrap()
}

/// 2026-01-15T10:00:00Z inverted, the start of the address, and sequence 7 inverted.
const WHEN: &str = concat!("7ffffe643ee6feff", "a1b2", "fffffff8");

#[test]
fn posting_keys_have_these_bytes() {
    let rank = rank(1_768_471_200_000, 7);
    let (two, three) = (TermId::new(2), TermId::new(0x01_0203_0405));
    let object = Digest([0xD0; 8]);
    let tag = FieldValue::of(Field::Tag, TermValue::Plain("t"));
    for (prefix, list, expected) in [
        (KeyPrefix::all(NAMESPACE), "00", "00000001".to_owned()),
        (KeyPrefix::grain_type(NAMESPACE, GrainType::Consent), "01", "000000010a".to_owned()),
        (KeyPrefix::subject(NAMESPACE, three), "02", "000000010102030405".to_owned()),
        (KeyPrefix::relation(NAMESPACE, three), "03", "000000010102030405".to_owned()),
        (KeyPrefix::object(NAMESPACE, object), "04", "00000001d0d0d0d0d0d0d0d0".to_owned()),
        (
            KeyPrefix::subject_relation(NAMESPACE, two, three),
            "05",
            "0000000100000000020102030405".to_owned(),
        ),
        (
            KeyPrefix::subject_object(NAMESPACE, three, object),
            "06",
            "000000010102030405d0d0d0d0".to_owned(),
        ),
        (
            KeyPrefix::relation_object(NAMESPACE, three, object),
            "07",
            "000000010102030405d0d0d0d0".to_owned(),
        ),
        (
            KeyPrefix::triple(NAMESPACE, two, three, object),
            "08",
            "0000000100000000020102030405d0d0d0d0".to_owned(),
        ),
        (KeyPrefix::value(NAMESPACE, &tag), "09", format!("0000000101{}", hex(&tag.digest.0))),
    ] {
        let key = prefix.key(rank);
        let width = prefix.list().def().width;
        assert_eq!(hex(&key[..=width]), format!("{list}{expected}{WHEN}"));
        assert!(key[width + 1..].iter().all(|byte| *byte == 0), "{key:?}");
        assert_eq!(prefix.order_key(&key), Some(rank));
        assert_eq!(order_key_of(&key), Some(rank));
        assert_eq!(prefix.namespace_of(&key), Some(NAMESPACE));
        let moved = prefix.with_namespace(TermId::new(0xFFFF_FFFF)).key(rank);
        assert_eq!(hex(&moved[1..5]), "ffffffff");
        assert_eq!(moved[5..], key[5..]);
    }
    assert_eq!(OrderKey::from_row(&[0; 10]), None);
}

#[test]
fn rows_are_keys_without_their_list() {
    let key = KeyPrefix::all(NAMESPACE).key(rank(0, 0));
    assert_eq!(key_of(PostingList::All, &key[1..19]), key);
    assert_eq!(namespace_of(&key), Some(NAMESPACE));
    assert_eq!(hex(&with_namespace(&key, TermId::new(7))[..5]), "0000000007");
    assert_eq!(KeyPrefix::all(NAMESPACE).namespace_of(&key_of(PostingList::Type, &[0; 19])), None);
}

#[test]
fn ranks_order_newest_first_and_give_their_posting_back() {
    const FIRST: i64 = i64::MIN;
    const LAST: i64 = i64::MAX;
    let newest_first = [
        (LAST, Sequence::MAX.get()),
        (LAST, 0),
        (1, 3),
        (0, 9),
        (0, 8),
        (-1, 4),
        (FIRST, 1),
        (FIRST, 0),
    ];
    let ranks: Vec<OrderKey> = newest_first.iter().map(|(ms, seq)| rank(*ms, *seq)).collect();
    assert!(ranks.is_sorted(), "{ranks:?}");
    for (rank, (ms, sequence)) in ranks.iter().zip(newest_first) {
        assert_eq!(rank.posting(), posting(ms, sequence));
        assert_eq!(OrderKey::from_number(rank.number()), *rank);
    }
}

#[test]
fn ranks_of_one_time_order_by_address() {
    let at = |first: u8, sequence| {
        let mut address = [0; 32];
        address[0] = first;
        let tie = TieBreaker::from_address(&address);
        OrderKey::clamped(Posting { time: EpochMs::new(5), tie, sequence: Sequence::new(sequence) })
    };
    let ranks = [at(0, 1), at(1, 9), at(1, 8), at(255, 40)];
    assert!(ranks.is_sorted(), "{ranks:?}");
    let postings = ranks.map(OrderKey::posting);
    assert!(postings.is_sorted_by(|a, b| a > b), "{postings:?}");
}

#[test]
fn a_sequence_beyond_the_keys_is_refused() {
    assert!(OrderKey::from_posting(posting(0, (1 << 32) - 1)).is_ok());
    assert_eq!(code(OrderKey::from_posting(posting(0, 1 << 32))), "ERR_INTEGRITY");
    assert_eq!(OrderKey::clamped(posting(0, u64::MAX)), rank(0, (1 << 32) - 1));
}

#[test]
fn time_ranges_become_ranks_with_both_ends_inside() {
    let at = |from: Option<i64>, to: Option<i64>| {
        OrderKey::bounds(TimeRange { from: from.map(EpochMs::new), to: to.map(EpochMs::new) })
    };
    let end =
        |ms, tie, sequence| OrderKey::clamped(Posting { time: EpochMs::new(ms), tie, sequence });
    let between = |newest, oldest| {
        let first = end(newest, TieBreaker::FIRST, Sequence::MAX);
        Some((first, end(oldest, TieBreaker::LAST, Sequence::new(0))))
    };
    let everything = between(i64::MAX, i64::MIN);
    assert_eq!(at(None, None), everything);
    assert_eq!(at(Some(i64::MIN), Some(i64::MAX)), everything);
    assert_eq!(at(Some(5), Some(5)), between(5, 5));
    assert_eq!(at(Some(6), Some(5)), None);
    assert_eq!(at(Some(i64::MAX), Some(i64::MAX - 1)), None);
    assert_eq!(at(Some(1 << 60), None), between(i64::MAX, 1 << 60));
}

#[test]
fn the_relation_is_read_from_its_key() {
    let relation = TermId::new(0x01_0203_0405);
    let key = KeyPrefix::subject_relation(NAMESPACE, TermId::new(2), relation).key(rank(0, 0));
    assert_eq!(relation_of(&key), Some(relation));
}
