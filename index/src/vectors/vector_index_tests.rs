//! Tests of the vector index: added vectors are found and removed ones are not, during any work.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::error::Result;
use crate::vectors::approximate::BuildOptions;
use crate::vectors::neighbour::SearchMethod;
use crate::vectors::space::Metric;
use crate::vectors::test_kit::{Random, address, anyone, clustered, naive, settle, space, vector};
use crate::vectors::view::{NearestAnswer, NearestQuery, SearchEffort};

const DIMENSION: usize = 8;

static GO: AtomicBool = AtomicBool::new(false);

fn ours() -> Space {
    space(DIMENSION, Metric::Cosine)
}

fn ask(view: &VectorView, values: &[f32], limit: usize, care: SearchEffort) -> NearestAnswer {
    let ask = NearestQuery { vector: &vector(values), limit, within: None, care };
    view.search(&ours(), &ask, &mut anyone).unwrap()
}

fn filled(count: usize, few: usize) -> (VectorIndex, Vec<Vec<f32>>) {
    let vectors = clustered(&mut Random(31), count, DIMENSION);
    let mut vector_index = VectorIndex::with_scan_up_to(few);
    for (sequence, values) in (0..).zip(&vectors) {
        vector_index.add(&ours(), Sequence::new(sequence), 0, &vector(values)).unwrap();
    }
    (vector_index, vectors)
}

#[test]
fn a_space_is_scanned_while_it_is_small_and_until_its_graph_serves() {
    let (mut small, vectors) = filled(100, 100);
    assert!(small.next_work().is_none());
    assert_eq!(
        ask(&small.view(), &vectors[0], 3, SearchEffort::Usual).way,
        SearchMethod::Exact { rows: 100 }
    );
    let (mut vector_index, vectors) = filled(900, 100);
    let before = vector_index.view();
    let (outcomes, saved) = settle(&mut vector_index);
    assert_eq!(outcomes, [WorkOutcome::Built(900), WorkOutcome::Saved]);
    assert!(saved.unwrap().name.ends_with(".graph"));
    for (view, is_exact) in [(before, true), (vector_index.view(), false)] {
        let found = ask(&view, &vectors[7], 3, SearchEffort::Usual);
        assert_eq!(found.near[0].sequence, Sequence::new(7));
        assert_eq!(matches!(found.way, SearchMethod::Exact { .. }), is_exact, "{:?}", found.way);
    }
}

#[test]
fn what_comes_and_goes_while_work_is_done_is_not_lost() {
    let (mut vector_index, vectors) = filled(700, 100);
    for sequence in 0..200 {
        vector_index.remove(Sequence::new(sequence));
    }
    let work = vector_index.next_work().unwrap();
    let late = vec![5.0, -4.0, 3.0, -2.0, 1.0, 0.5, -9.0, 7.0];
    vector_index.add(&ours(), Sequence::new(5000), 0, &vector(&late)).unwrap();
    vector_index.add(&ours(), Sequence::new(300), 1, &vector(&late)).unwrap();
    vector_index.remove(Sequence::new(400));
    let done = work.run(&BuildOptions { threads: 2, stop: &GO });
    assert_eq!(vector_index.adopt(done).0, WorkOutcome::Built(500));
    let view = vector_index.view();
    let found = ask(&view, &late, 2, SearchEffort::Ef(50));
    let mut sequences: Vec<u64> = found.near.iter().map(|near| near.sequence.get()).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, [300, 5000]);
    assert!(matches!(found.way, SearchMethod::Graph { beside: 2, .. }), "{:?}", found.way);
    for gone in [0, 199, 400] {
        for care in [SearchEffort::Exact, SearchEffort::Ef(64)] {
            let found = ask(&view, &vectors[gone], 20, care);
            assert!(found.near.iter().all(|near| near.sequence.get() != gone as u64));
        }
    }
    assert_eq!(view.stats(&ours()).unwrap().vectors, 501);
}

#[test]
fn random_changes_and_work_never_show_what_is_dead_nor_hide_what_is_new() {
    let mut random = Random(32);
    let mut vector_index = VectorIndex::with_scan_up_to(64);
    let mut model: BTreeMap<u64, Vec<f32>> = BTreeMap::new();
    let mut work = None;
    let mut file = None;
    for step in 0..1500_u64 {
        match random.below(10) {
            0..=6 => {
                let values = random.vector(DIMENSION);
                vector_index.add(&ours(), Sequence::new(step), 0, &vector(&values)).unwrap();
                model.insert(step, values);
            }
            7 => {
                let gone = random.below(step + 1);
                let named = vector_index.remove(Sequence::new(gone));
                assert_eq!(named.len(), usize::from(model.remove(&gone).is_some()));
            }
            8 if step % 3 == 0 => work = work.or_else(|| vector_index.next_work()),
            _ => {
                if let Some(work) = work.take() {
                    let done: WorkResult =
                        SpaceWork::run(work, &BuildOptions { threads: 1, stop: &GO });
                    file = vector_index.adopt(done).1.or(file);
                }
            }
        }
        if step % 50 == 49 {
            check_against(&vector_index.view(), &model, &mut random);
        }
    }
    assert!(file.is_some());
}

/// Scans return what a model does; a graph returns only live rows, with their true scores.
fn check_against(view: &VectorView, model: &BTreeMap<u64, Vec<f32>>, random: &mut Random) {
    let rows: Vec<(Sequence, u32, Vec<f32>)> =
        model.iter().map(|(at, values)| (Sequence::new(*at), 0, values.clone())).collect();
    let query = random.vector(DIMENSION);
    let all = naive(Metric::Cosine, &query, &rows, rows.len(), |_| true);
    assert_eq!(ask(view, &query, 12, SearchEffort::Exact).near, all[..12.min(all.len())]);
    let found = ask(view, &query, 12, SearchEffort::Ef(24)).near;
    assert_eq!(found.len(), 12.min(all.len()));
    assert!(found.iter().all(|near| all.contains(near)));
    let (newest, values) = model.last_key_value().unwrap();
    let found = ask(view, values, 1, SearchEffort::Ef(24)).near;
    assert_eq!(found[0].sequence.get(), *newest);
}

#[test]
fn a_saved_graph_serves_after_reopening_and_a_damaged_one_is_made_anew() {
    let (mut vector_index, vectors) = filled(600, 100);
    let saved = settle(&mut vector_index).1.unwrap();
    let mut damaged = saved.bytes.clone();
    damaged[1000] ^= 1;
    let cases = [
        (saved.bytes, vec![WorkOutcome::Loaded { outdated: 0 }]),
        (damaged, vec![WorkOutcome::Unusable, WorkOutcome::Built(600), WorkOutcome::Saved]),
        (Vec::new(), vec![WorkOutcome::Unusable, WorkOutcome::Built(600), WorkOutcome::Saved]),
    ];
    for (bytes, wanted) in cases {
        let (mut opened, _) = filled(600, 100);
        opened.restore(&ours(), bytes);
        let exact = ask(&opened.view(), &vectors[9], 5, SearchEffort::Usual);
        assert_eq!(exact.way, SearchMethod::Exact { rows: 600 });
        assert_eq!(settle(&mut opened).0, wanted);
        let found = ask(&opened.view(), &vectors[9], 5, SearchEffort::Ef(40));
        assert!(matches!(found.way, SearchMethod::Graph { .. }));
        assert_eq!(found.near[0], exact.near[0]);
        assert!(opened.closing_work().is_none());
    }
}

#[test]
fn a_judge_is_asked_about_whatever_a_graph_proposes() {
    let (mut vector_index, vectors) = filled(900, 100);
    settle(&mut vector_index);
    let visible = |sequence: Sequence| sequence.get().is_multiple_of(50);
    let mut judge =
        |sequence| -> Result<Option<[u8; 32]>> { Ok(visible(sequence).then(|| address(sequence))) };
    let list: Vec<Sequence> = (0..900).step_by(2).map(Sequence::new).collect();
    for (within, wanted) in [(None, 18), (Some(list.as_slice()), 18)] {
        for care in [SearchEffort::Usual, SearchEffort::Ef(30)] {
            let ask = NearestQuery { vector: &vector(&vectors[3]), limit: 40, within, care };
            let found = vector_index.view().search(&ours(), &ask, &mut judge).unwrap();
            assert_eq!(found.near.len(), wanted);
            assert!(found.near.iter().all(|near| visible(near.sequence)));
        }
    }
}

#[test]
fn a_graph_grows_and_dead_rows_are_left_behind() {
    let (mut vector_index, _) = filled(600, 100);
    settle(&mut vector_index);
    let more = clustered(&mut Random(33), 700, DIMENSION);
    for (sequence, values) in (1000..).zip(&more) {
        vector_index.add(&ours(), Sequence::new(sequence), 0, &vector(values)).unwrap();
    }
    assert_eq!(settle(&mut vector_index).0, [WorkOutcome::Extended(700), WorkOutcome::Saved]);
    for sequence in 0..400 {
        vector_index.remove(Sequence::new(sequence));
    }
    assert_eq!(settle(&mut vector_index).0, [WorkOutcome::Built(900), WorkOutcome::Saved]);
    let stats = vector_index.view().stats(&ours()).unwrap();
    assert_eq!((stats.vectors, stats.dead, stats.unindexed), (900, 0, 0));
    assert_eq!(stats.audit.unwrap().orphans, 0);
    for sequence in 1000..1650 {
        vector_index.remove(Sequence::new(sequence));
    }
    for sequence in 400..600 {
        vector_index.remove(Sequence::new(sequence));
    }
    assert_eq!(settle(&mut vector_index).0, [WorkOutcome::Compacted(50)]);
}

#[test]
fn a_graph_that_names_what_was_removed_while_it_was_saved_is_not_written() {
    let (mut vector_index, _) = filled(300, 100);
    let done = vector_index.next_work().unwrap().run(&BuildOptions { threads: 1, stop: &GO });
    vector_index.adopt(done);
    let save = vector_index.next_work().unwrap();
    assert_eq!(vector_index.remove(Sequence::new(5)).len(), 1);
    let done = save.run(&BuildOptions { threads: 1, stop: &GO });
    assert_eq!(vector_index.adopt(done), (WorkOutcome::Dropped, None));
    assert_eq!(settle(&mut vector_index).0, [WorkOutcome::Saved]);
}

#[test]
fn work_that_was_stopped_or_comes_too_late_changes_nothing() {
    let (mut vector_index, _) = filled(300, 100);
    let stop = AtomicBool::new(true);
    let done = vector_index.next_work().unwrap().run(&BuildOptions { threads: 1, stop: &stop });
    assert_eq!(vector_index.adopt(done).0, WorkOutcome::Dropped);
    let (first, second) = (vector_index.next_work().unwrap(), vector_index.next_work().unwrap());
    let (first, second) = (
        first.run(&BuildOptions { threads: 1, stop: &GO }),
        second.run(&BuildOptions { threads: 1, stop: &GO }),
    );
    assert_eq!(vector_index.adopt(first).0, WorkOutcome::Built(300));
    assert_eq!(vector_index.adopt(second).0, WorkOutcome::Dropped);
    let gone = vector_index.next_work().unwrap();
    vector_index.remove_space(&ours());
    assert_eq!(
        vector_index.adopt(gone.run(&BuildOptions { threads: 1, stop: &GO })).0,
        WorkOutcome::Dropped
    );
    assert!(vector_index.view().stats(&ours()).is_none());
}

#[test]
fn spaces_do_not_mix() {
    let mut vector_index = VectorIndex::new();
    let other = Space::new("other", DIMENSION, Metric::Cosine).unwrap();
    vector_index.add(&ours(), Sequence::new(1), 0, &vector(&[1.0; DIMENSION])).unwrap();
    vector_index.add(&other, Sequence::new(2), 0, &vector(&[1.0; DIMENSION])).unwrap();
    let refused = vector_index.add(&ours(), Sequence::new(3), 0, &vector(&[1.0; 3])).unwrap_err();
    assert_eq!(refused.code(), "ERR_DIMENSION");
    let found = ask(&vector_index.view(), &[1.0; DIMENSION], 10, SearchEffort::Usual);
    let sequences: Vec<u64> = found.near.iter().map(|near| near.sequence.get()).collect();
    assert_eq!(sequences, [1]);
    assert_eq!(vector_index.view().spaces().count(), 2);
    assert_eq!(
        vector_index.view().closeness(&ours(), Sequence::new(1), Sequence::new(1)),
        Some(1.0)
    );
    assert_eq!(vector_index.view().closeness(&ours(), Sequence::new(1), Sequence::new(2)), None);
}
