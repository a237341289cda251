//! Golden bytes of terms, counters and watermarks. A change here is a new layout version.

use super::*;
use crate::test_kit::hex;

fn plain(kind: TermKind, text: &str) -> Term<'_> {
    Term { kind, value: TermValue::Plain(text) }
}

#[test]
fn terms_have_these_bytes() {
    let long = "x".repeat(257);
    let digest = "15eb95a462ee20bd91a415ae2d4aed341288186ddaa2b37908f7d592f0c3f85f";
    let fits = "x".repeat(256);
    let token = Term { kind: TermKind::Subject, value: TermValue::Token([7; 32]) };
    let id = TermId::new(0x01_0203_0405);
    for (term, key, text) in [
        (plain(TermKind::Namespace, "a:b"), "0100613a62".to_owned(), ""),
        (plain(TermKind::Subject, "é"), "0200c3a9".to_owned(), ""),
        (plain(TermKind::Relation, ""), "0300".to_owned(), ""),
        (plain(TermKind::Relation, &fits), format!("0300{}", "78".repeat(256)), ""),
        (token, format!("0201{}", "07".repeat(32)), ""),
        (plain(TermKind::Subject, &long), format!("0202{digest}"), long.as_str()),
    ] {
        assert_eq!(hex(&term_key(&term)), key);
        let row = term_row(id, &term);
        assert_eq!(hex(&row), format!("0102030405{}", hex(text.as_bytes())));
        assert_eq!(split_term_row(&row), Some((id, text.as_bytes())));
    }
    assert_eq!(hex(&relation_id_key(id)), "03030102030405");
    assert_eq!(split_term_row(&[0; 4]), None);
}

#[test]
fn only_the_forms_there_are_are_read() {
    for (key, expected) in [
        (&b"\x01\x00a:b"[..], Some((TermForm::Plain, &b"a:b"[..]))),
        (b"\x01\x01a", Some((TermForm::Token, b"a"))),
        (b"\x01\x02a", Some((TermForm::Digest, b"a"))),
        (b"\x03\x03a", Some((TermForm::Id, b"a"))),
        (b"\x01\x00", Some((TermForm::Plain, b""))),
        (b"\x01\x04a", None),
        (b"\x01", None),
        (b"", None),
    ] {
        assert_eq!(split_term_key(key), expected, "{key:?}");
    }
}

#[test]
fn the_key_after_a_start_is_the_least_above_all_that_start_so() {
    for (start, after) in [
        (&[1, 0, b':'][..], vec![1, 0, b';']),
        (&[1, 0, 0xff], vec![1, 1]),
        (&[0xff, 0xff], vec![]),
    ] {
        assert_eq!(prefix_end(start), after);
    }
}

#[test]
fn counters_have_these_bytes() {
    let ids = NextIds {
        namespace: TermId::new(1),
        subject: TermId::new(2),
        relation: TermId::new(0x01_0203_0405),
    };
    let row = next_ids_row(&ids);
    assert_eq!(hex(&row), "000000000000000100000000000000020000000102030405");
    assert_eq!(decode_next_ids(&row), Some(ids));
    for wrong in [&row[..23], &[0; 25], &[0; 16], &[0; 32], &[]] {
        assert_eq!(decode_next_ids(wrong), None);
    }
}

#[test]
fn watermarks_have_these_bytes() {
    let mark = Watermark { sequence: Sequence::new(258), address: [0xC0; 32] };
    let row = watermark_row(&mark);
    assert_eq!(hex(&row), format!("0000000000000102{}", "c0".repeat(32)));
    assert_eq!(decode_watermark(&row), Some(mark));
    for wrong in [&row[..39], &[0; 41], &[0; 8], &[]] {
        assert_eq!(decode_watermark(wrong), None);
    }
}
