//! Tests of `rows`.

use std::collections::BTreeMap;

use super::*;
use crate::vectors::space::Metric;
use crate::vectors::test_kit::{Random, space, vector};

fn key(sequence: u64, chunk: u32) -> VectorKey {
    VectorKey { sequence: Sequence::new(sequence), chunk }
}

/// Every live row by its key.
fn contents(rows: &VectorRows) -> BTreeMap<VectorKey, Vec<f32>> {
    let live = rows.ids().filter(|row| !rows.is_dead(*row));
    live.map(|row| (rows.key(row).unwrap(), rows.values(row).unwrap().0.to_vec())).collect()
}

#[test]
fn rows_are_what_was_pushed_and_not_removed_in_any_order() {
    for late in [false, true] {
        let mut random = Random(if late { 5 } else { 3 });
        let mut rows = VectorRows::new(space(3, Metric::L2));
        let mut model = BTreeMap::new();
        for step in 0..1500_u64 {
            let sequence = if late { random.below(300) } else { step / 2 };
            let chunk = u32::try_from(step % 2).unwrap();
            let values = random.vector(3);
            rows.push(key(sequence, chunk), &vector(&values)).unwrap();
            model.insert(key(sequence, chunk), values);
            if step % 5 == 0 {
                let gone = Sequence::new(random.below(sequence + 1));
                let held = model.keys().any(|key| key.sequence == gone);
                assert_eq!(rows.remove(gone), held);
                model.retain(|key, _| key.sequence != gone);
            }
        }
        assert_eq!(contents(&rows), model);
        assert_eq!(rows.live_count(), model.len());
        assert_eq!(contents(&rows.compact()), model);
        assert_eq!(rows.compact().dead_count(), 0);
        let asked: Vec<Sequence> = (0..800).step_by(7).map(Sequence::new).collect();
        for rows in [&rows, &rows.compact()] {
            let found: Vec<VectorKey> =
                rows.of(&asked).into_iter().map(|row| rows.key(row).unwrap()).collect();
            let wanted: Vec<VectorKey> =
                model.keys().filter(|key| asked.contains(&key.sequence)).copied().collect();
            assert_eq!(found, wanted);
        }
    }
}

#[test]
fn a_snapshot_never_changes() {
    let mut rows = VectorRows::new(space(2, Metric::Dot));
    for sequence in 0..300 {
        rows.push(key(sequence, 0), &vector(&[1.0, sequence as f32])).unwrap();
    }
    let before = rows.clone();
    let held = contents(&before);
    for sequence in 0..300 {
        rows.push(key(sequence, 1), &vector(&[2.0, 2.0])).unwrap();
        rows.remove(Sequence::new(sequence / 2));
    }
    assert_eq!(contents(&before), held);
    assert_ne!(contents(&rows), held);
}

#[test]
fn a_vector_of_another_space_is_refused_and_changes_nothing() {
    let mut rows = VectorRows::new(space(2, Metric::Cosine));
    for (values, code) in [(vec![1.0; 3], "ERR_DIMENSION"), (vec![0.0; 2], "ERR_SCHEMA")] {
        assert_eq!(rows.push(key(1, 0), &vector(&values)).unwrap_err().code(), code);
    }
    assert_eq!(rows.len(), 0);
}

#[test]
fn what_lies_beyond_the_last_row_is_nothing() {
    let rows = VectorRows::new(space(2, Metric::Cosine));
    assert!(rows.key(0).is_none() && rows.values(u32::MAX).is_none());
    assert!(rows.codes(u32::MAX).0.is_empty());
    assert!(rows.of(&[Sequence::new(0), Sequence::new(u64::MAX)]).is_empty());
}
