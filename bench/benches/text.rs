//! Full text beside the search library it stands on: the same documents and the same questions.
//!
//! `cargo bench -p grainstore-bench --bench text`; `GRAINSTORE_BENCH_DOCUMENTS` sets the size
//! (100,000). Words are spread as in texts: the n-th most frequent is about 1/n as frequent as the
//! first. The library has one segment and commits before it searches; ours has what folds leave,
//! with a full tail and without. Answers of the library have no address and no exact order.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first surprise and prints what it did"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;
use grainstore_index::Sequence;
use grainstore_index::text::{
    Clause, Document, DocumentTerm, FullTextQuery, IndexedDocument, InvertedIndex,
    MAX_TAIL_DOCUMENTS, Occur, TermMatch,
};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexSettings, Searcher, TantivyDocument, Term};

/// Distinct words there can be.
const VOCABULARY: f64 = 200_000.0;

fn main() {
    let count = std::env::var("GRAINSTORE_BENCH_DOCUMENTS").ok().and_then(|n| n.parse().ok());
    let count: u64 = count.unwrap_or(100_000);
    let documents: Vec<Vec<String>> = Words(1).documents(count);
    let (texts, folded) = ingest(&documents, false);
    println!("ingest, set + fold + merge: {:.0} documents a s", rate(count, folded));
    println!("{:?}", texts.stats());
    println!("{:.0} bytes a document", texts.stats().bytes as f64 / count as f64);
    let (full, _) = ingest(&documents, true);
    println!("{:?}", full.stats());
    let (raw, field, built) = library(&documents);
    println!("raw, one thread, one segment: {:.0} documents a s", rate(count, built));
    open(&texts);
    let mut criterion = Criterion::default().configure_from_args();
    for (name, question) in questions() {
        let mut group = criterion.benchmark_group(name);
        group.bench_function("ours", |b| b.iter(|| black_box(search(&texts, &question, 1))));
        group.bench_function("ours, tail full", |b| {
            b.iter(|| black_box(search(&full, &question, 1)));
        });
        group.bench_function("ours, filter keeps 1 %", |b| {
            b.iter(|| black_box(search(&texts, &question, 100)));
        });
        if let Some(query) = query(&question, field) {
            group.bench_function("raw", |b| {
                let top = TopDocs::with_limit(10).order_by_score();
                b.iter(|| black_box(raw.search(&query, &top).unwrap()));
            });
        }
        group.finish();
    }
    criterion.final_summary();
}

fn rate(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

/// Words at random, always the same.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        let step = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = step.wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn word(&mut self) -> String {
        let random = self.next() as f64 / f64::from(1_u32 << 31);
        format!("w{:.0}", VOCABULARY.powf(random))
    }

    /// Documents of 10 to 49 words.
    fn documents(&mut self, count: u64) -> Vec<Vec<String>> {
        let mut document = || (0..10 + self.next() % 40).map(|_| self.word()).collect();
        (0..count).map(|_| document()).collect()
    }
}

fn joined(words: &[String]) -> IndexedDocument {
    let word = |(place, term): (u32, &String)| DocumentTerm {
        term: term.as_str().into(),
        weight: 1,
        lent: 0,
        places: [place].into(),
    };
    IndexedDocument::join(&(0..).zip(words).map(word).collect::<Document>(), &[])
}

/// Sets all documents, a thousand a commit, and folds when the tail is full, on this thread. With
/// `keep` the tail is left as full as it can be.
fn ingest(documents: &[Vec<String>], keep: bool) -> (InvertedIndex, Duration) {
    let start = Instant::now();
    let mut texts = InvertedIndex::new(0).unwrap();
    let mut snapshot = texts.clone();
    let room = usize::try_from(MAX_TAIL_DOCUMENTS - 1).unwrap();
    let last = if keep { documents.len() - room } else { documents.len() };
    for (sequence, words) in (0_u64..).zip(documents) {
        texts.set(Sequence::new(sequence), Some(joined(words))).unwrap();
        if sequence % 1_000 == 999 {
            snapshot = texts.clone();
        }
        let done = usize::try_from(sequence).unwrap() + 1;
        if texts.is_due() || done == last {
            let fold = texts.freeze(b"").unwrap();
            texts.adopt(fold.run().unwrap()).unwrap();
        }
    }
    black_box(snapshot);
    (texts, start.elapsed())
}

/// The same documents in one segment of the library.
fn library(documents: &[Vec<String>]) -> (Searcher, Field, Duration) {
    let start = Instant::now();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("whitespace")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let mut schema = Schema::builder();
    let options = TextOptions::default().set_indexing_options(indexing);
    let field = schema.add_text_field("words", options);
    let writer = Index::builder().schema(schema.build()).settings(IndexSettings::default());
    let directory = tantivy::directory::RamDirectory::default();
    let mut writer = writer.single_segment_index_writer(directory, 500_000_000).unwrap();
    for words in documents {
        let mut document = TantivyDocument::new();
        document.add_text(field, words.join(" "));
        writer.add_document(document).unwrap();
    }
    let index = writer.finalize().unwrap();
    let elapsed = start.elapsed();
    let reader = index.reader_builder().reload_policy(tantivy::ReloadPolicy::Manual);
    let reader: tantivy::IndexReader = reader.try_into().unwrap();
    (reader.searcher(), field, elapsed)
}

/// How long it takes until what was saved can be searched.
fn open(texts: &InvertedIndex) {
    let manifest = texts.manifest();
    let files: Vec<(String, Vec<u8>)> = texts
        .file_names()
        .into_iter()
        .map(|name| (name.clone(), texts.file(&name).unwrap().to_vec()))
        .collect();
    let start = Instant::now();
    let manifest = grainstore_index::text::Manifest::decode(&manifest).unwrap();
    let mut files = files.into_iter();
    let opened = InvertedIndex::open(&manifest, &mut |_| Ok(files.next().unwrap().1)).unwrap();
    println!("open: {:?}", start.elapsed());
    assert_eq!(opened.stats(), texts.stats());
}

fn questions() -> Vec<(&'static str, FullTextQuery)> {
    let word = |n: u64| Clause {
        occur: Occur::Should,
        ask: TermMatch::Word(vec![format!("w{n}").into()]),
    };
    let must = |n: u64| Clause { occur: Occur::Must, ..word(n) };
    let one = |ask| vec![Clause { occur: Occur::Should, ask }];
    let all = [
        ("two rare words", vec![word(20_000), word(30_001)]),
        ("two common words", vec![word(2), word(5)]),
        ("a rare and a common word", vec![word(2), word(20_000)]),
        ("one common word", vec![word(3)]),
        ("five words", vec![word(2), word(17), word(450), word(9_000), word(30_000)]),
        ("both of two common words", vec![must(2), must(5)]),
        ("a phrase", one(TermMatch::Phrase(vec![("w2".into(), 0), ("w5".into(), 1)]))),
        ("a prefix", one(TermMatch::Prefix("w123".into()))),
        ("a misspelt word", one(TermMatch::Fuzzy("w1234".into(), 1))),
    ];
    all.into_iter().map(|(name, clauses)| (name, clauses.into_iter().collect())).collect()
}

/// The ten best, of the grains that a filter lets through.
fn search(texts: &InvertedIndex, question: &FullTextQuery, one_in: u64) -> usize {
    let mut judge = |sequence: Sequence| {
        let mut address = [0; 32];
        address.first_chunk_mut::<8>().unwrap().copy_from_slice(&sequence.get().to_be_bytes());
        Ok(sequence.get().is_multiple_of(one_in).then_some(address))
    };
    texts.prepare(question).unwrap().search(10, None, &mut judge).unwrap().len()
}

/// The question in the words of the library; `None` where it has no like.
fn query(question: &FullTextQuery, field: Field) -> Option<Box<dyn Query>> {
    let term = |term: &str| Term::from_field_text(field, term);
    let mut clauses: Vec<(tantivy::query::Occur, Box<dyn Query>)> = Vec::new();
    for clause in question.clauses() {
        let query: Box<dyn Query> = match &clause.ask {
            TermMatch::Word(terms) => {
                let term = term(terms.first()?);
                Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
            }
            TermMatch::Phrase(terms) => {
                Box::new(PhraseQuery::new(terms.iter().map(|(word, _)| term(word)).collect()))
            }
            _ => return None,
        };
        let must = clause.occur == Occur::Must;
        let occur = if must { tantivy::query::Occur::Must } else { tantivy::query::Occur::Should };
        clauses.push((occur, query));
    }
    match clauses.len() {
        1 => clauses.pop().map(|(_, query)| query),
        _ => Some(Box::new(BooleanQuery::new(clauses))),
    }
}
