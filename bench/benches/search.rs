//! Searching a store, everything included, beside the search library with the same words: ingest with
//! structure and text, questions answered with their grains decoded, opening until the first answer.
//!
//! `cargo bench -p grainstore-bench --bench search`; `GRAINSTORE_BENCH_GRAINS` sets the size (100,000).
//! Words are spread as in texts: the n-th most frequent is about 1/n as frequent as the first. The
//! library has one segment of the same texts and gives ten addresses of documents, no grains.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a benchmark stops at the first surprise and prints what it did"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use grainstore::cal::{Predicate, Query};
use grainstore::{OpenOptions, Page, Session, SessionOptions, Store};
use grainstore_format::{BeliefBuilder, EpochMs, Grain};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexSettings, Searcher, TantivyDocument, Term};

const VOCABULARY: f64 = 200_000.0;
const BATCH: usize = 1_000;
/// Subjects, so that one of them keeps one grain in a hundred.
const SUBJECTS: usize = 100;
const RUNS: usize = 300;

fn main() {
    let count = std::env::var("GRAINSTORE_BENCH_GRAINS").ok().and_then(|n| n.parse().ok());
    let count: usize = count.unwrap_or(100_000);
    let texts = texts(count);
    let dir = tempfile::TempDir::new().unwrap();
    let session = session(dir.path());
    let start = Instant::now();
    for (batch, texts) in texts.chunks(BATCH).enumerate() {
        let grains = texts.iter().enumerate().map(|(at, text)| grain(batch * BATCH + at, text));
        session.put_batch(grains.collect::<Vec<_>>()).unwrap();
    }
    let written = start.elapsed();
    session.store().flush().unwrap();
    let flushed = start.elapsed();
    let rate = |elapsed: Duration| count as f64 / elapsed.as_secs_f64();
    println!("batches of {BATCH}: {:.0} a s acknowledged", rate(written));
    println!("with structure and text on disk: {:.0} a s", rate(flushed));
    let stats = session.store().stats().unwrap();
    println!(
        "text: {} segments, {} bytes a grain",
        stats.text_segments,
        stats.text_bytes / count as u64
    );
    single(&session);
    let library = library(&texts);
    for (name, words) in [
        ("two rare words", ["w20000", "w30001"]),
        ("two common words", ["w2", "w5"]),
        ("a rare and a common word", ["w2", "w20000"]),
    ] {
        questions(&session, &library, name, words);
    }
    session.store().close();
    drop(session);
    open(dir.path());
}

fn session(path: &std::path::Path) -> Session {
    let options = OpenOptions::new().create(true);
    Store::open(path, &options).unwrap().session(SessionOptions::default())
}

/// Texts of 8 to 31 words at random, always the same.
fn texts(count: usize) -> Vec<String> {
    let mut state = 1_u64;
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut text = || {
        let words = 8 + next() % 24;
        let word = |random: u64| {
            format!("w{:.0}", VOCABULARY.powf(random as f64 / f64::from(1_u32 << 31)))
        };
        (0..words).map(|_| word(next())).collect::<Vec<_>>().join(" ")
    };
    (0..count).map(|_| text()).collect()
}

fn grain(at: usize, text: &str) -> Grain {
    let time = EpochMs::new(1_700_000_000_000 + i64::try_from(at).unwrap());
    let subject = format!("subject {}", at % SUBJECTS);
    BeliefBuilder::new(time, subject, "says", text, 0.9).build().unwrap()
}

/// A durable put of one grain, beside a full store.
fn single(session: &Session) {
    let mut times = Vec::new();
    for at in 0..RUNS {
        let grain = grain(1_000_000_000 + at, "one more grain of some words");
        let start = Instant::now();
        session.put(grain).unwrap();
        times.push(start.elapsed());
    }
    println!("durable put of one grain: {:.0} us", median(times));
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn timed(mut run: impl FnMut() -> usize) -> (f64, usize) {
    let mut found = 0;
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        found = black_box(run());
        start.elapsed()
    });
    (median(times.collect()), found)
}

struct Library {
    searcher: Searcher,
    words: Field,
}

/// The same texts in one segment of the library.
fn library(texts: &[String]) -> Library {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("whitespace")
        .set_index_option(IndexRecordOption::WithFreqs);
    let mut schema = Schema::builder();
    let words = schema
        .add_text_field("words", TextOptions::default().set_indexing_options(indexing.clone()));
    let subject = schema.add_text_field(
        "subject",
        TextOptions::default().set_indexing_options(indexing.set_fieldnorms(false)),
    );
    let number = schema.add_u64_field("number", FAST);
    let builder = Index::builder().schema(schema.build()).settings(IndexSettings::default());
    let directory = tantivy::directory::RamDirectory::default();
    let mut writer = builder.single_segment_index_writer(directory, 500_000_000).unwrap();
    for (at, text) in (0_u64..).zip(texts) {
        let mut document = TantivyDocument::new();
        document.add_text(words, text);
        document.add_text(subject, format!("s{}", at % SUBJECTS as u64));
        document.add_u64(number, at);
        writer.add_document(document).unwrap();
    }
    let index = writer.finalize().unwrap();
    let reader = index.reader_builder().reload_policy(tantivy::ReloadPolicy::Manual);
    let reader: tantivy::IndexReader = reader.try_into().unwrap();
    Library { searcher: reader.searcher(), words }
}

fn questions(session: &Session, library: &Library, name: &str, words: [&str; 2]) {
    let query = Query::default().searching(words.join(" "));
    let ours =
        |query: &Query| timed(|| session.query(query, &Page::first(10)).unwrap().results.len());
    let (whole, found) = ours(&query);
    let third = Predicate::text_is("subject", "subject 3").unwrap();
    let (filtered, kept) = ours(&query.when(third));
    let term = |word: &str, field| {
        Box::new(TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs))
            as Box<dyn tantivy::query::Query>
    };
    let either = BooleanQuery::union(words.iter().map(|word| term(word, library.words)).collect());
    let top = TopDocs::with_limit(10).order_by_score();
    let (raw, _) = timed(|| library.searcher.search(&either, &top).unwrap().len());
    let subject = library.searcher.schema().get_field("subject").unwrap();
    let both = BooleanQuery::intersection(vec![Box::new(either.clone()), term("s3", subject)]);
    let (raw_filtered, _) = timed(|| library.searcher.search(&both, &top).unwrap().len());
    println!(
        "{name}: {whole:.1} us for {found} grains, {:.2} x raw ({raw:.1}); one subject: {filtered:.1} us for {kept}, {:.2} x raw ({raw_filtered:.1})",
        whole / raw,
        filtered / raw_filtered
    );
}

/// How long it takes from a closed store to its first answers.
fn open(path: &std::path::Path) {
    let start = Instant::now();
    let session = session(path);
    let opened = start.elapsed();
    let subject = Query::default().when(Predicate::text_is("subject", "subject 7").unwrap());
    session.query(&subject, &Page::first(10)).unwrap();
    let structural = start.elapsed();
    session.query(&Query::default().searching("w20000"), &Page::first(10)).unwrap();
    let text = start.elapsed();
    println!(
        "open {opened:.1?}, first structural answer {structural:.1?}, first text answer {text:.1?}"
    );
    session.store().close();
}
