//! Tests of seeking; `model_tests` compares whole scans with a naive model.

use grainstore_format::EpochMs;

use super::*;
use crate::lookup::{IndexLookup, Scope};
use crate::posting::{Sequence, TieBreaker};
use crate::test_kit::{Note, Store, tie};

/// A store with 300 grains about alice in two namespaces, a third each folded, frozen and active.
/// Grain `n` has time `n / 3`.
fn store_of_300() -> Store {
    let mut store = Store::new();
    for sequence in 1..=300_u64 {
        let namespace = if sequence % 2 == 0 { "a" } else { "b" };
        let time = i64::try_from(sequence / 3).unwrap();
        store.push(sequence, &Note::about("alice", namespace, time).facts()).unwrap();
        match sequence {
            100 => store.fold().unwrap(),
            200 => store.freeze(),
            _ => {}
        }
    }
    store
}

fn posting(sequence: u64) -> Posting {
    let time = EpochMs::new(i64::try_from(sequence / 3).unwrap());
    Posting { time, tie: tie(sequence), sequence: Sequence::new(sequence) }
}

fn scan(store: &Store, order: TimeOrder) -> Scan<'_> {
    // the list of types has no rows for the whole store: it is merged from the namespaces
    let shape = IndexLookup::Type(grainstore_format::GrainType::Belief);
    store.reader().scan(&Scope::All, &shape, TimeRange::default(), order).unwrap()
}

#[test]
fn a_seek_lands_at_or_after_its_place_and_never_goes_back() {
    let store = store_of_300();
    let mut from_oldest: Vec<Posting> = (1..=300).map(posting).collect();
    from_oldest.sort_unstable();
    let at_place = |place: usize| from_oldest[place - 1];
    for steps in [1, 2, 5, 7, 40, 150, 301] {
        let mut newest = scan(&store, TimeOrder::Newest);
        let mut oldest = scan(&store, TimeOrder::Oldest);
        for at in (1..=300).step_by(steps) {
            let down = 301 - at;
            newest.seek(at_place(down)).unwrap();
            assert_eq!(newest.next().unwrap().unwrap(), at_place(down), "{steps}");
            oldest.seek(at_place(at)).unwrap();
            assert_eq!(oldest.next().unwrap().unwrap(), at_place(at), "{steps}");
            newest.seek(at_place(300)).unwrap();
            oldest.seek(at_place(1)).unwrap();
        }
    }
}

#[test]
fn a_place_nothing_stands_at_leads_to_the_next() {
    let store = store_of_300();
    let place =
        Posting { time: EpochMs::new(50), tie: TieBreaker::FIRST, sequence: Sequence::new(1_000) };
    let mut newest = scan(&store, TimeOrder::Newest);
    newest.seek(place).unwrap();
    assert_eq!(newest.next().unwrap().unwrap(), posting(152));
    let mut oldest = scan(&store, TimeOrder::Oldest);
    oldest.seek(place).unwrap();
    assert_eq!(oldest.next().unwrap().unwrap(), posting(153));
}

#[test]
fn a_place_beyond_the_end_is_the_end() {
    let store = store_of_300();
    for (order, time) in [(TimeOrder::Newest, i64::MIN), (TimeOrder::Oldest, i64::MAX)] {
        let mut scan = scan(&store, order);
        scan.seek(Posting {
            time: EpochMs::new(time),
            tie: TieBreaker::LAST,
            sequence: Sequence::new(0),
        })
        .unwrap();
        assert!(scan.next().is_none());
        assert!(scan.next().is_none());
    }
}

#[test]
fn a_run_is_cut_at_both_ends() {
    let prefix = KeyPrefix::all(TermId::FIRST);
    let key = |sequence| {
        let (time, sequence) = (EpochMs::new(0), Sequence::new(sequence));
        prefix.key(OrderKey::clamped(Posting { time, tie: TieBreaker::FIRST, sequence }))
    };
    let run: Vec<PostingKey> = (1..=5).rev().map(key).collect();
    assert_eq!(keys_between(&run, &key(4), &key(2)), &run[1..4]);
    assert_eq!(keys_between(&run, &key(9), &key(6)), &run[..0]);
    assert_eq!(keys_between(&run, &key(9), &key(0)), run.as_slice());
}
