//! The engine beside raw redb with the same bytes, in one run: durable put, batch, get, recall.
//!
//! `cargo bench -p grainstore-bench --bench store`; `GRAINSTORE_BENCH_FACTS` sets the size (100,000).
//! Temporary directories are on the disk `TMPDIR` names.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints what it did"
)]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use grainstore::{Session, Store};
use grainstore_bench::{RAW, blob, fact, fill, raw, raw_put, store};
use grainstore_cal::{CancelHandle, Memory, Predicate, Query};
use grainstore_format::{BeliefBuilder, Blob, ContentAddress, Encoding, EpochMs, Map, Value};
use redb::{Database, ReadableDatabase};
use tempfile::TempDir;

/// Both sides with the same facts.
struct Sides {
    _dir: TempDir,
    _store: Store,
    session: Session,
    raw: Database,
    addresses: Vec<ContentAddress>,
}

fn facts() -> usize {
    std::env::var("GRAINSTORE_BENCH_FACTS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000)
}

fn sides(count: usize) -> Sides {
    let dir = TempDir::new().unwrap();
    let (store, session) = store(&dir.path().join("store")).unwrap();
    let blobs: Vec<Blob> = (0..count).map(|n| blob(n).unwrap()).collect();
    let start = Instant::now();
    fill(&session, count).unwrap();
    store.flush().unwrap();
    let ours = start.elapsed();
    let raw = raw(dir.path()).unwrap();
    let start = Instant::now();
    for chunk in blobs.chunks(1000) {
        raw_put(&raw, chunk).unwrap();
    }
    let theirs = start.elapsed();
    println!(
        "fill: {count} facts in batches of 1000: store {:.0}/s, raw redb {:.0}/s",
        rate(count, ours),
        rate(count, theirs)
    );
    let addresses = blobs.iter().map(Blob::address).collect();
    Sides { _dir: dir, _store: store, session, raw, addresses }
}

fn rate(count: usize, time: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap()) / time.as_secs_f64()
}

/// A walk through `0..len` that visits everything in no obvious order.
fn walk(len: usize) -> impl FnMut() -> usize {
    let mut at = 0;
    move || {
        at = (at + 7919) % len;
        at
    }
}

fn gets(c: &mut Criterion, sides: &Sides) {
    let mut group = c.benchmark_group("get");
    let mut next = walk(sides.addresses.len());
    group.bench_function("store_hash_checked", |b| {
        b.iter(|| black_box(sides.session.get(&sides.addresses[next()]).unwrap()));
    });
    group.bench_function("raw_redb", |b| {
        b.iter(|| {
            let txn = sides.raw.begin_read().unwrap();
            let table = txn.open_table(RAW).unwrap();
            let row = table.get(sides.addresses[next()].as_bytes().as_slice()).unwrap();
            black_box(row.unwrap().value().to_vec())
        });
    });
    group.finish();
}

fn recalls(c: &mut Criterion, sides: &Sides) {
    let mut group = c.benchmark_group("recall");
    let subjects = sides.addresses.len() / grainstore_bench::FACTS_PER_SUBJECT;
    let mut next = walk(subjects.max(1));
    group.bench_function("subject_20_of_20", |b| {
        b.iter(|| {
            let subject = format!("person-{}", next());
            let query = Query::default().when(Predicate::text_is("subject", subject).unwrap());
            let mut found = 0;
            let cancel = CancelHandle::new();
            sides
                .session
                .reading()
                .unwrap()
                .recall(&query, &cancel, &mut |_| {
                    found += 1;
                    ControlFlow::Continue(())
                })
                .unwrap();
            black_box(found)
        });
    });
    group.finish();
}

fn puts(c: &mut Criterion, sides: &Sides) {
    let count = sides.addresses.len();
    let mut group = c.benchmark_group("durable_put");
    group.sample_size(60).measurement_time(Duration::from_secs(8));
    let mut n = count;
    group.bench_function("store", |b| {
        b.iter_batched(
            || {
                n += 1;
                blob(n).unwrap()
            },
            |blob| sides.session.put(blob).unwrap(),
            BatchSize::PerIteration,
        );
    });
    let mut n = count;
    group.bench_function("raw_redb", |b| {
        b.iter_batched(
            || {
                n += 1;
                [blob(n).unwrap()]
            },
            |blob| raw_put(&sides.raw, &blob).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn batches(c: &mut Criterion) {
    let dir = TempDir::new().unwrap();
    let (_store, session) = store(&dir.path().join("store")).unwrap();
    let raw = raw(dir.path()).unwrap();
    let mut group = c.benchmark_group("batch_of_1000");
    group.sample_size(20);
    let mut n = 0;
    group.bench_function("store", |b| {
        b.iter_batched(
            || {
                n += 1000;
                (n..n + 1000).map(|n| fact(n).unwrap()).collect::<Vec<_>>()
            },
            |grains| session.put_batch(grains).unwrap(),
            BatchSize::PerIteration,
        );
    });
    let mut n = 0;
    group.bench_function("raw_redb", |b| {
        b.iter_batched(
            || {
                n += 1000;
                (n..n + 1000).map(|n| blob(n).unwrap()).collect::<Vec<_>>()
            },
            |blobs| raw_put(&raw, &blobs).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// Ancestors a policy check walks through.
const ANCESTORS: usize = 16;

/// What a supersession costs before it is written: preparing it, and asking every policy. One grain
/// has no ancestors, the other 16 under a policy that reaches them all.
fn policy_checks(c: &mut Criterion) {
    let dir = TempDir::new().unwrap();
    let (store, session) = store(&dir.path().join("store")).unwrap();
    let belief = |subject: &str, parent: Option<ContentAddress>| {
        let parents = parent.into_iter().map(|parent| Value::from(parent.to_string()));
        let builder = BeliefBuilder::new(EpochMs::new(1000), subject, "is", "derived", 1.0);
        builder.derived_from(parents.collect::<Vec<_>>())
    };
    let policy = [("mode", "soft_locked"), ("scope", "subtree")];
    let policy: Map = policy.map(|(name, word)| (name.to_owned(), Value::from(word))).into();
    let root = belief("ancestor 0", None).invalidation_policy(policy).build().unwrap();
    let mut last = session.put(root).unwrap().address();
    for number in 1..=ANCESTORS {
        let next = belief(&format!("ancestor {number}"), Some(last)).build().unwrap();
        last = session.put(next).unwrap().address();
    }
    let alone = session.put(belief("alone", None).build().unwrap()).unwrap().address();
    store.flush().unwrap();
    let mut group = c.benchmark_group("policy_check");
    for (name, old, subject) in
        [("no_ancestor", alone, "alone"), ("16_ancestors", last, "ancestor 16")]
    {
        let new = belief(subject, Some(old)).supersession_justification("measured");
        let new = new.build().unwrap().encode(Encoding::MessagePack).unwrap();
        group.bench_function(name, |b| {
            b.iter(|| {
                let trial = session.try_supersede(&old, new.clone(), None).unwrap();
                assert!(trial.refusal.is_none());
                black_box(trial)
            });
        });
    }
    group.finish();
}

fn engine(c: &mut Criterion) {
    policy_checks(c);
    let sides = sides(facts());
    gets(c, &sides);
    recalls(c, &sides);
    puts(c, &sides);
    batches(c);
}

criterion_group!(benches, engine);
criterion_main!(benches);
