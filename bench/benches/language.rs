//! CAL and SML, and the LoCoMo conversations end to end where they are beside the project.
//! `cargo bench -p grainstore-bench --bench language`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints what it did"
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use grainstore_bench::{fact, fill, locomo, store};
use grainstore_format::EpochMs;
use grainstore_sml::{Clock, Estimator, Format, Item, Level, TokenCounter, render};
use tempfile::TempDir;

const TYPICAL: &str = r#"RECALL beliefs WHERE subject = "alice" AND relation = "prefers" AND confidence >= 0.8 RECENT 5 AS sml"#;
const ASSEMBLE: &str = r#"ASSEMBLE brief FOR "the next reply" FROM facts: (RECALL beliefs WHERE subject = "person-7" LIMIT 20), recent: (RECALL beliefs RECENT 30) BUDGET 1000 tokens PRIORITY facts > recent"#;

fn language(c: &mut Criterion) {
    let mut group = c.benchmark_group("cal");
    group.bench_function("parse_typical", |b| {
        b.iter(|| grainstore_cal::parse(black_box(TYPICAL)).unwrap());
    });
    let dir = TempDir::new().unwrap();
    let (_store, session) = store(dir.path()).unwrap();
    fill(&session, 10_000).unwrap();
    group.bench_function("assemble_1000_tokens_of_10000_grains", |b| {
        b.iter(|| session.ask(black_box(ASSEMBLE)).unwrap());
    });
    group.finish();

    let items: Vec<Item> = (0..100)
        .map(|n| Item { grain: fact(n).unwrap(), verification: None, chosen: None, score: None })
        .collect();
    let clock = Clock { now: EpochMs::new(1_800_000_000_000), iso_timestamps: false };
    let text = render(&items, Format::Sml, Level::Standard, &clock);
    let mut group = c.benchmark_group("sml");
    group.throughput(Throughput::Elements(100));
    group.bench_function("render_100_beliefs", |b| {
        b.iter(|| render(black_box(&items), Format::Sml, Level::Standard, &clock));
    });
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("count_tokens", |b| b.iter(|| Estimator.count(black_box(&text))));
    group.finish();
}

fn conversations(c: &mut Criterion) {
    let Some(data) = locomo::folder() else {
        println!("LoCoMo is not beside the project (GRAINSTORE_SHARED): skipped");
        return;
    };
    let grains = locomo::linked_turns(&data).unwrap();
    let mut group = c.benchmark_group("locomo");
    group.sample_size(10);
    group.throughput(Throughput::Elements(grains.len() as u64));
    group.bench_function("ingest_2760_turns", |b| {
        b.iter_batched(
            || {
                let dir = TempDir::new().unwrap();
                (store(dir.path()).unwrap(), dir, grains.clone())
            },
            |((store, session), dir, grains)| {
                session.put_batch(grains).unwrap();
                (store, dir)
            },
            BatchSize::PerIteration,
        );
    });
    let dir = TempDir::new().unwrap();
    let (_store, session) = store(dir.path()).unwrap();
    session.put_batch(grains).unwrap();
    group.throughput(Throughput::Elements(1));
    group.bench_function("thread", |b| {
        b.iter(|| session.ask(r#"RECALL events THREAD "conv-26/s1""#).unwrap());
    });
    group.bench_function("assemble_2000_tokens", |b| {
        b.iter(|| {
            let query = r#"ASSEMBLE FROM said: (RECALL events WHERE subject = "Caroline" RECENT 100) BUDGET 2000 tokens"#;
            session.ask(query).unwrap()
        });
    });
    group.finish();
}

criterion_group!(benches, language, conversations);
criterion_main!(benches);
