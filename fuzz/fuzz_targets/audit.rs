//! The audit log: no bytes are too odd to be no entry, and whatever is done to a chain whose head is
//! kept is found.
//!
//! The first byte says how many entries the chain has, and the bytes behind it what they tell; the rest
//! says what is done to the rows, three bytes a time.
#![no_main]

use grainstore::fuzzing::{AuditChain, audit_entry};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = audit_entry(bytes);
    let Some((length, rest)) = bytes.split_first() else { return };
    let Some((script, harm)) = rest.split_at_checked(usize::from(length % 16)) else { return };
    let whole = AuditChain::of(script);
    let found = whole.problems().expect("a chain in memory is read");
    assert!(found.is_empty(), "a chain as it was written: {found:?}");
    let mut harmed = whole.clone();
    for harm in harm.chunks_exact(3).take(16) {
        do_harm(&mut harmed, harm);
    }
    let problems = harmed.problems().expect("damage is a problem and no error");
    assert_eq!(problems.is_empty(), harmed == whole, "{problems:?}");
    // One entry that was edited where it stands is the one that is named.
    let rows = whole.rows.iter().zip(&harmed.rows).filter(|(one, other)| one != other);
    let edited: Vec<_> = rows.map(|(row, _)| row.0).collect();
    let keys = |chain: &AuditChain| chain.rows.iter().map(|row| row.0).collect::<Vec<_>>();
    let is_in_place = keys(&whole) == keys(&harmed) && whole.head == harmed.head;
    if let ([entry], true) = (edited.as_slice(), is_in_place) {
        assert!(problems.contains(&format!("audit {entry}")), "{entry}: {problems:?}");
    }
});

/// Edits, removes, repeats or moves a row; or changes the head.
fn do_harm(chain: &mut AuditChain, harm: &[u8]) {
    let &[what, which, how] = harm else { return };
    let count = chain.rows.len();
    let Some(at) = usize::from(which).checked_rem(count) else { return };
    let row = chain.rows[at].clone();
    match what % 6 {
        0 => {
            let entry = &mut chain.rows[at].1;
            if let Some(byte) = usize::from(how).checked_rem(entry.len()) {
                entry[byte] ^= what | 1;
            }
        }
        1 => chain.rows[at].1.truncate(usize::from(how)),
        2 => drop(chain.rows.remove(at)),
        3 => {
            let last = chain.rows.last().map_or(0, |row| row.0);
            chain.rows.push((last + 1, row.1));
        }
        4 => {
            let other = usize::from(how) % count;
            let entry = std::mem::replace(&mut chain.rows[other].1, row.1);
            chain.rows[at].1 = entry;
        }
        _ => match how.checked_rem(40) {
            Some(byte @ 0..32) => chain.head.1[usize::from(byte)] ^= what | 1,
            _ => chain.head.0 = u64::from(how),
        },
    }
}
