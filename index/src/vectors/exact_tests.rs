//! Tests of the exact search against a scan of all numbers.

use proptest::prelude::*;

use crate::error::Result;
use crate::posting::Sequence;
use crate::vectors::test_kit::{Random, address, anyone, naive, space, vector};
use crate::vectors::{Metric, NearestQuery, Neighbour, SearchEffort, SearchMethod, VectorIndex};

/// Vectors of which many are equally near, or nearly so.
fn rows(random: &mut Random, count: usize, dimension: usize) -> Vec<(Sequence, u32, Vec<f32>)> {
    let mut rows: Vec<(Sequence, u32, Vec<f32>)> = Vec::new();
    for at in 0..count {
        let values = match random.below(4) {
            0 => (0..dimension).map(|_| [-1.0, 0.0, 1.0, 2.0][random.place(4)]).collect(),
            1 if at > 0 => rows[random.place(at)].2.clone(),
            2 if at > 0 => {
                let near = &rows[random.place(at)].2;
                near.iter().zip(random.vector(dimension)).map(|(a, b)| a + 1e-4 * b).collect()
            }
            _ => random.vector(dimension),
        };
        let zeros = values.iter().all(|value| *value == 0.0);
        let values = if zeros { vec![1.0; dimension] } else { values };
        rows.push((Sequence::new(at as u64 / 3), u32::try_from(at % 3).unwrap(), values));
    }
    rows
}

fn vector_index(
    metric: Metric,
    dimension: usize,
    rows: &[(Sequence, u32, Vec<f32>)],
) -> VectorIndex {
    let mut vector_index = VectorIndex::new();
    for (sequence, chunk, values) in rows {
        vector_index.add(&space(dimension, metric), *sequence, *chunk, &vector(values)).unwrap();
    }
    vector_index
}

fn told(near: &[Neighbour]) -> Vec<(u64, u32, f32)> {
    near.iter().map(|near| (near.sequence.get(), near.chunk, near.score)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_answer_is_that_of_a_scan(
        seed in 1_u64..u64::MAX,
        count in 1_usize..700,
        dimension in 1_usize..40,
        limit in prop_oneof![1_usize..20, Just(1000), Just(1_000_000_000)],
    ) {
        let mut random = Random(seed);
        let all = rows(&mut random, count, dimension);
        let list: Vec<Sequence> =
            (0..count as u64 / 3 + 2).filter(|_| random.below(3) == 0).map(Sequence::new).collect();
        let query = rows(&mut random, 1, dimension)[0].2.clone();
        let hidden = |sequence: Sequence| sequence.get().is_multiple_of(5);
        for metric in Metric::ALL {
            let view = vector_index(metric, dimension, &all).view();
            for within in [None, Some(list.as_slice())] {
                let ask = NearestQuery { vector: &vector(&query), limit, within, care: SearchEffort::Usual };
                let mut judge = |sequence| -> Result<Option<[u8; 32]>> {
                    Ok((!hidden(sequence)).then(|| address(sequence)))
                };
                let found = view.search(&space(dimension, metric), &ask, &mut judge).unwrap();
                let may = |sequence: Sequence| {
                    !hidden(sequence) && within.is_none_or(|list| list.contains(&sequence))
                };
                let wanted = naive(metric, &query, &all, limit, may);
                prop_assert_eq!(told(&found.near), told(&wanted), "{:?}", metric);
            }
        }
    }
}

#[test]
fn equal_scores_come_in_the_order_of_addresses() {
    let all: Vec<_> = (0..50).map(|at| (Sequence::new(at), 0, vec![1.0, 2.0])).collect();
    let view = vector_index(Metric::Cosine, 2, &all).view();
    let ask = NearestQuery {
        vector: &vector(&[2.0, 4.0]),
        limit: 7,
        within: None,
        care: SearchEffort::Usual,
    };
    let found = view.search(&space(2, Metric::Cosine), &ask, &mut anyone).unwrap();
    let mut addresses: Vec<[u8; 32]> = (0..50).map(|at| address(Sequence::new(at))).collect();
    addresses.sort_unstable();
    let got: Vec<[u8; 32]> = found.near.iter().map(|near| address(near.sequence)).collect();
    assert_eq!(got, addresses[..7]);
    assert!(found.near.iter().all(|near| near.score == 1.0 && near.chunk == 0));
    assert_eq!(found.way, SearchMethod::Exact { rows: 50 });
}

#[test]
fn a_refused_grain_is_asked_about_once_and_never_answered() {
    let all: Vec<_> =
        (0..600_u32).map(|at| (Sequence::new((at / 4).into()), at % 4, vec![1.0])).collect();
    let view = vector_index(Metric::Dot, 1, &all).view();
    let mut asked = Vec::new();
    let mut nobody = |sequence| -> Result<Option<[u8; 32]>> {
        asked.push(sequence);
        Ok(None)
    };
    let ask =
        NearestQuery { vector: &vector(&[1.0]), limit: 3, within: None, care: SearchEffort::Usual };
    let found = view.search(&space(1, Metric::Dot), &ask, &mut nobody).unwrap();
    assert!(found.near.is_empty());
    asked.sort_unstable();
    let everyone: Vec<Sequence> = (0..150).map(Sequence::new).collect();
    assert_eq!(asked, everyone);
}

#[test]
fn a_judge_that_fails_ends_the_search_with_its_error() {
    let view = vector_index(Metric::Dot, 1, &[(Sequence::new(1), 0, vec![1.0])]).view();
    let mut failing = |_| Err(crate::error::Error::integrity("the judge"));
    let ask =
        NearestQuery { vector: &vector(&[1.0]), limit: 3, within: None, care: SearchEffort::Usual };
    let error = view.search(&space(1, Metric::Dot), &ask, &mut failing).unwrap_err();
    assert_eq!(error.to_string(), "the judge");
}

#[test]
fn questions_that_do_not_fit_the_space_are_refused_and_empty_ones_are_answered() {
    let view = vector_index(Metric::Cosine, 2, &[(Sequence::new(1), 0, vec![1.0, 0.0])]).view();
    let search = |values: &[f32], limit, within| {
        let ask =
            NearestQuery { vector: &vector(values), limit, within, care: SearchEffort::Usual };
        view.search(&space(2, Metric::Cosine), &ask, &mut anyone)
    };
    assert_eq!(search(&[1.0], 1, None).unwrap_err().code(), "ERR_DIMENSION");
    assert_eq!(search(&[0.0, 0.0], 1, None).unwrap_err().code(), "ERR_SCHEMA");
    assert!(search(&[1.0, 1.0], 0, None).unwrap().near.is_empty());
    assert!(search(&[1.0, 1.0], 5, Some(&[])).unwrap().near.is_empty());
    let twice = [Sequence::new(9), Sequence::new(1), Sequence::new(1)];
    assert_eq!(search(&[1.0, 1.0], 5, Some(&twice)).unwrap().near.len(), 1);
    let other =
        NearestQuery { vector: &vector(&[1.0]), limit: 1, within: None, care: SearchEffort::Usual };
    let nobody = view.search(&space(1, Metric::Cosine), &other, &mut anyone).unwrap();
    assert!(nobody.near.is_empty());
}
