//! CAL and SML, and the LoCoMo conversations end to end where they are beside the project.
//! `cargo bench -p grainstore-bench --bench language`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints what it did"
)]

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use grainstore::{OpenOptions, PageOptions, Session, SessionOptions, Store};
use grainstore_bench::{CACHE_BYTES, FACTS_PER_SUBJECT, fact, fill, locomo, store};
use grainstore_cal::{ExecuteOptions, Predicate, Query};
use grainstore_format::EpochMs;
use grainstore_sml::{Clock, Estimator, Format, Item, Level, TokenCounter, render};
use tempfile::TempDir;

const TYPICAL: &str = r#"RECALL beliefs WHERE subject = "alice" AND relation = "prefers" AND confidence >= 0.8 RECENT 5 AS sml"#;
/// Three sources of what is known of a person, newest of all, and what one relation says.
const ASSEMBLE: &str = r#"ASSEMBLE brief FOR "the next reply" FROM facts: (RECALL beliefs WHERE subject = "person-7" LIMIT 20), recent: (RECALL beliefs RECENT 30), plays: (RECALL beliefs WHERE relation = "plays" LIMIT 30) BUDGET 2000 tokens PRIORITY facts > recent > plays"#;
/// Grains in the store that is asked.
const GRAINS: usize = 100_000;
/// Answers that are timed together with the read log and without: about a second, so that the log is synced
/// and signed among them; and how many times.
const RECORDED: usize = 25_000;
const TURNS: usize = 12;

/// A statement of four kilobytes: as many values as an IN may have, in words of some length.
fn four_kilobytes() -> String {
    let values: Vec<String> = (0..100).map(|n| format!("{:?}", format!("{n:-<36}"))).collect();
    format!("RECALL beliefs WHERE object IN ({}) AND confidence >= 0.5 LIMIT 9", values.join(", "))
}

/// An ASSEMBLE whose sources all search, for words that every grain has and some that few have.
fn searches(sources: usize) -> String {
    let source = |n| {
        let words = format!("answer number {} to a question", n * 1_013);
        format!("found{n}: (RECALL beliefs LIKE {words:?} LIMIT 20)")
    };
    let sources: Vec<String> = (1..=sources).map(source).collect();
    format!("ASSEMBLE FROM {} BUDGET 2000 tokens", sources.join(", "))
}

fn parsing(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    group.bench_function("typical", |b| {
        b.iter(|| grainstore_cal::parse(black_box(TYPICAL)).unwrap());
    });
    let long = four_kilobytes();
    assert!((4_000..4_200).contains(&long.len()), "{}", long.len());
    group.bench_function("four_kilobytes", |b| {
        b.iter(|| grainstore_cal::parse(black_box(&long)).unwrap());
    });
    let json = grainstore_cal::parse(TYPICAL).unwrap().to_json();
    group.bench_function("typical_in_json", |b| {
        b.iter(|| {
            let source =
                grainstore_cal::QuerySource::read_bytes(black_box(json.as_bytes())).unwrap();
            black_box(source.statement().unwrap().tier())
        });
    });
    group.finish();
}

/// A RECALL from text to text beside the engine's query that it runs, and an ASSEMBLE.
fn asking(c: &mut Criterion) {
    let dir = TempDir::new().unwrap();
    let (store, session) = store(dir.path()).unwrap();
    fill(&session, GRAINS).unwrap();
    // Nothing is folded beside what is measured.
    store.compact().unwrap();
    let mut group = c.benchmark_group("ask");
    let mut n = 0;
    let mut subject = move || {
        n = (n + 7919) % (GRAINS / FACTS_PER_SUBJECT);
        format!("person-{n}")
    };
    group.bench_function("engine_query_16", |b| {
        b.iter(|| {
            let is = Predicate::text_is("subject", subject()).unwrap();
            session.query(&Query::default().when(is), &PageOptions::first(16)).unwrap()
        });
    });
    // Counting all matches looks at each of the twenty again, which the engine's query does not.
    for (name, format, totals) in [
        ("recall_16", "", false),
        ("recall_16_as_sml", " AS sml", false),
        ("recall_16_as_sml_and_count_20", " AS sml", true),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let query = format!("RECALL WHERE subject = {:?} LIMIT 16{format}", subject());
                let options = ExecuteOptions { totals, ..ExecuteOptions::at(session.now()) };
                session.ask_with(query.as_bytes(), &options).unwrap()
            });
        });
    }
    group.bench_function("assemble_2000_tokens_of_three", |b| {
        b.iter(|| session.ask(black_box(ASSEMBLE)).unwrap());
    });
    for sources in [1, 2, 8] {
        let query = searches(sources);
        group.bench_function(format!("assemble_of_{sources}_searches"), |b| {
            b.iter(|| session.ask(black_box(&query)).unwrap());
        });
    }
    group.finish();
}

/// How long so many answers took, each for another subject than the one before.
fn answers(session: &Session) -> Duration {
    let began = Instant::now();
    for n in 0..RECORDED {
        let subject = n * 7919 % (GRAINS / FACTS_PER_SUBJECT);
        let query = format!("RECALL WHERE subject = \"person-{subject}\" LIMIT 16");
        black_box(session.ask(&query).unwrap());
    }
    began.elapsed()
}

/// What the read log costs: the same of two stores that hold the same, in turns.
fn recording(_: &mut Criterion) {
    let dir = TempDir::new().unwrap();
    let open = |name: &str, records: bool| {
        let options = OpenOptions::new().create(true).cache_bytes(CACHE_BYTES);
        let options = options.audit_reads(records);
        let store = Store::open(dir.path().join(name), &options).unwrap();
        let session = store.session(SessionOptions::default());
        fill(&session, GRAINS).unwrap();
        store.compact().unwrap();
        answers(&session);
        (store, session)
    };
    let (without, with) = (open("without", false), open("with", true));
    let mut turns: Vec<(Duration, Duration)> = Vec::new();
    for turn in 0..TURNS {
        // Nothing of the last turn is written beside the next.
        let recorded = || {
            let took = answers(&with.1);
            with.1.reads_head().unwrap();
            took
        };
        with.1.reads_head().unwrap();
        turns.push(match turn % 2 {
            0 => (answers(&without.1), recorded()),
            _ => {
                let took = recorded();
                (answers(&without.1), took)
            }
        });
    }
    let (entries, _) = with.1.reads_head().unwrap().unwrap();
    let files = fs::read_dir(dir.path().join("with").join("reads")).unwrap();
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    let micros = |took: f64| took * 1e6 / RECORDED as f64;
    let mut differences: Vec<f64> =
        turns.iter().map(|(off, on)| micros(on.as_secs_f64() - off.as_secs_f64())).collect();
    let mut ratios: Vec<f64> =
        turns.iter().map(|(off, on)| on.as_secs_f64() / off.as_secs_f64()).collect();
    let mut alone: Vec<f64> = turns.iter().map(|(off, _)| micros(off.as_secs_f64())).collect();
    for list in [&mut differences, &mut ratios, &mut alone] {
        list.sort_by(f64::total_cmp);
    }
    let [difference, ratio, alone] =
        [differences, ratios, alone].map(|list| *list.get(list.len() / 2).unwrap());
    println!(
        "read log: {alone:.1} us a RECALL of 16 without it, {difference:.2} more with it ({ratio:.3}); \
         {:.1} bytes an entry in {entries}",
        bytes as f64 / entries as f64
    );
}

fn rendering(c: &mut Criterion) {
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

criterion_group!(benches, parsing, asking, recording, rendering, conversations);
criterion_main!(benches);
