//! Nearest neighbours among 20,000 vectors of 384 numbers that stand in crowds.
//! `cargo bench -p grainstore-bench --bench vectors`.
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;
use std::sync::atomic::AtomicBool;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use grainstore_index::Sequence;
use grainstore_index::vectors::{
    BuildOptions, Metric, NearestQuery, SearchEffort, Space, Vector, VectorIndex, VectorView,
};

const COUNT: usize = 20_000;
const DIMENSION: usize = 384;
const QUERIES: usize = 64;

/// Numbers in -1..1 that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 32).unwrap() % end
    }

    fn around(&mut self, middle: &[f32], share: f32) -> Vec<f32> {
        let mut number = || f32::from(u16::try_from(self.below(1 << 16)).unwrap()) / 32_768.0 - 1.0;
        middle.iter().map(|value| share.mul_add(number() + number(), *value)).collect()
    }
}

fn vectors() -> Vec<Vector> {
    let mut random = Random(5);
    let topics: Vec<_> = (0..10).map(|_| random.around(&[0.0; DIMENSION], 1.0)).collect();
    let crowds: Vec<Vec<f32>> = (0..200)
        .map(|_| {
            let topic = random.below(topics.len());
            random.around(topics.get(topic).unwrap(), 1.0)
        })
        .collect();
    let mut one = || {
        let crowd = random.below(crowds.len());
        Vector::new(random.around(crowds.get(crowd).unwrap(), 1.2)).unwrap()
    };
    (0..COUNT + QUERIES).map(|_| one()).collect()
}

fn search(
    view: &VectorView,
    space: &Space,
    vector: &Vector,
    care: SearchEffort,
    within: Option<&[Sequence]>,
) {
    let ask = NearestQuery { vector, limit: 10, within, care };
    let mut judge = |sequence: Sequence| -> grainstore_index::Result<Option<[u8; 32]>> {
        let mut address = [0; 32];
        address.split_at_mut(8).0.copy_from_slice(&sequence.get().to_be_bytes());
        Ok(Some(address))
    };
    black_box(view.search(space, &ask, &mut judge).unwrap());
}

fn nearest(c: &mut Criterion) {
    let all = vectors();
    let (rows, queries) = all.split_at(COUNT);
    let space = Space::new("bench", DIMENSION, Metric::Cosine).unwrap();
    let mut keeper = VectorIndex::new();
    for (sequence, vector) in (0..).zip(rows) {
        keeper.add(&space, Sequence::new(sequence), 0, vector).unwrap();
    }
    let stop = AtomicBool::new(false);
    while let Some(work) = keeper.next_work() {
        keeper.adopt(work.run(&BuildOptions { threads: 2, stop: &stop }));
    }
    let view = keeper.view();
    let some: Vec<Sequence> = (0..COUNT as u64).step_by(100).map(Sequence::new).collect();
    let mut group = c.benchmark_group("vectors");
    for (name, care, within) in [
        ("exact", SearchEffort::Exact, None),
        ("exact_one_percent", SearchEffort::Usual, Some(some.as_slice())),
        ("graph", SearchEffort::Usual, None),
    ] {
        let mut queries = queries.iter().cycle();
        group.bench_function(name, |b| {
            b.iter(|| search(&view, &space, queries.next().unwrap(), care, within));
        });
    }
    let mut sequence = COUNT as u64;
    group.bench_function("add", |b| {
        b.iter_batched(
            || queries.first().unwrap().clone(),
            |vector| {
                sequence += 1;
                keeper.add(&space, Sequence::new(sequence), 0, &vector).unwrap();
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, nearest);
criterion_main!(benches);
