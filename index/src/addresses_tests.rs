//! Tests that addresses are found, and listed in order, in every part of a view.

use super::*;
use crate::test_kit::{Note, Store, address};

/// A store with ten grains: three folded, three frozen, four in the active part.
fn store_of_ten() -> Store {
    let mut store = Store::new();
    for sequence in 1..=10 {
        store.push(sequence, &Note::about("alice", "a", 0).facts()).unwrap();
        match sequence {
            3 => store.fold().unwrap(),
            6 => store.freeze(),
            _ => {}
        }
    }
    store
}

#[test]
fn an_address_leads_to_its_sequence() {
    let mut store = store_of_ten();
    for _ in 0..2 {
        for sequence in 1..=10 {
            let found = store.reader().sequence_of(&address(sequence)).unwrap();
            assert_eq!(found, Some(Sequence::new(sequence)));
        }
        assert_eq!(store.reader().sequence_of(&address(11)).unwrap(), None);
        store.fold().unwrap();
    }
}

#[test]
fn addresses_come_in_order_each_once_from_a_start() {
    let mut store = store_of_ten();
    let mut expected: Vec<_> = (1..=10).map(|at| (address(at), Sequence::new(at))).collect();
    expected.sort_unstable();
    for state in ["mixed", "folded twice over", "folded"] {
        for start in 0..expected.len() {
            let from = store.reader().addresses_from(expected[start].0).unwrap();
            let found: Vec<_> = from.map(Result::unwrap).collect();
            assert_eq!(found, expected[start..], "{state} from {start}");
        }
        let after = store.reader().addresses_from([0xFF; 32]).unwrap();
        assert_eq!(after.count(), 0);
        if state == "mixed" {
            store.fold_frozen().unwrap();
            store.reopen();
        } else {
            store.fold().unwrap();
        }
    }
}
