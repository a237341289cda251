//! Golden bytes of every layout. A change here is a new layout version.

use super::*;
use crate::test_kit::hex;

const NAMESPACE: TermId = TermId::new(1);

fn rank(ms: i64, sequence: u64) -> Rank {
    Rank::of(Posting { time: EpochMs::new(ms), sequence: Sequence::new(sequence) })
}

/// 2026-01-15T10:00:00Z and sequence 7, inverted.
const WHEN: &str = concat!("7ffffe643ee6feff", "fffffffffffffff8");

#[test]
fn posting_rows_have_these_bytes() {
    let rank = rank(1_768_471_200_000, 7);
    let (two, three) = (TermId::new(2), TermId::new(0x0102_0304_0506_0708));
    for (row, expected) in [
        (namespace_row(NAMESPACE, rank).to_vec(), "0000000000000001"),
        (byte_row(NAMESPACE, 0x0A, rank).to_vec(), "00000000000000010a"),
        (term_row(NAMESPACE, three, rank).to_vec(), "00000000000000010102030405060708"),
        (
            pair_row(NAMESPACE, (two, three), rank).to_vec(),
            "000000000000000100000000000000020102030405060708",
        ),
    ] {
        assert_eq!(hex(&row), format!("{expected}{WHEN}"));
        assert_eq!(Rank::of_row(&row), Some(rank));
    }
    assert_eq!(Rank::of_row(&[0; 15]), None);
}

#[test]
fn ranks_order_newest_first_and_give_their_posting_back() {
    let newest_first = [
        (i64::MAX, u64::MAX),
        (i64::MAX, 0),
        (1, 3),
        (0, 9),
        (0, 8),
        (-1, 4),
        (i64::MIN, 1),
        (i64::MIN, 0),
    ];
    let ranks: Vec<Rank> = newest_first.iter().map(|(ms, seq)| rank(*ms, *seq)).collect();
    assert!(ranks.is_sorted(), "{ranks:?}");
    for (rank, (ms, sequence)) in ranks.iter().zip(newest_first) {
        let posting = Posting { time: EpochMs::new(ms), sequence: Sequence::new(sequence) };
        assert_eq!(rank.posting(), posting);
    }
}

#[test]
fn time_ranges_become_ranks_with_both_ends_inside() {
    let at = |from: Option<i64>, to: Option<i64>| {
        Rank::bounds(TimeRange { from: from.map(EpochMs::new), to: to.map(EpochMs::new) })
    };
    assert_eq!(at(None, None), Some((rank(i64::MAX, u64::MAX), rank(i64::MIN, 0))));
    assert_eq!(at(Some(5), Some(5)), Some((rank(5, u64::MAX), rank(5, 0))));
    assert_eq!(at(Some(6), Some(5)), None);
}

#[test]
fn terms_have_these_bytes() {
    let long = "x".repeat(257);
    let digest = "15eb95a462ee20bd91a415ae2d4aed341288186ddaa2b37908f7d592f0c3f85f";
    let fits = "x".repeat(256);
    let plain = |kind, text| Term::plain(kind, text);
    for (term, key, row) in [
        (plain(TermKind::Namespace, "a:b"), "0100613a62".to_owned(), None),
        (plain(TermKind::Subject, "é"), "0200c3a9".to_owned(), None),
        (plain(TermKind::Relation, ""), "0300".to_owned(), None),
        (plain(TermKind::Session, "s"), "040073".to_owned(), None),
        (plain(TermKind::Tag, &fits), format!("0500{}", "78".repeat(256)), None),
        (Term::token(TermKind::Tag, [7; 32]), format!("0501{}", "07".repeat(32)), None),
        (
            plain(TermKind::Subject, &long),
            format!("0202{digest}"),
            Some(format!("0202{}", "78".repeat(257))),
        ),
    ] {
        assert_eq!(hex(&term_key(&term)), key);
        assert_eq!(hex(&term_row_of(&term)), row.unwrap_or(key));
    }
}

#[test]
fn only_text_is_read_as_text() {
    for (key, expected) in [
        (&b"\x01\x00a:b"[..], Some("a:b")),
        (b"\x01\x02a:b", Some("a:b")),
        (b"\x01\x01a:b", None),
        (b"\x01\x00\xff", None),
        (b"\x01\x00", Some("")),
        (b"\x01", None),
        (b"", None),
    ] {
        assert_eq!(plain_text(key), expected, "{key:?}");
    }
}

#[test]
fn the_key_after_a_start_is_the_least_above_all_that_start_so() {
    for (start, after) in [
        (&[1, 0, b':'][..], vec![1, 0, b';']),
        (&[1, 0, 0xff], vec![1, 1]),
        (&[0xff, 0xff], vec![]),
    ] {
        assert_eq!(key_after(start), after);
    }
}

#[test]
fn watermarks_have_these_bytes() {
    let mark = Watermark { sequence: Sequence::new(258), address: [0xC0; 32] };
    let row = watermark_row(&mark);
    assert_eq!(hex(&row), format!("0000000000000102{}", "c0".repeat(32)));
    assert_eq!(watermark_of(&row), Some(mark));
    for wrong in [&row[..39], &[0; 41], &[0; 8], &[]] {
        assert_eq!(watermark_of(wrong), None);
    }
}

#[test]
fn kinds_of_terms_have_distinct_bytes() {
    let mut bytes: Vec<u8> = KIND_BYTES.iter().map(|(_, byte)| *byte).collect();
    bytes.dedup();
    assert_eq!(bytes, [1, 2, 3, 4, 5]);
}
