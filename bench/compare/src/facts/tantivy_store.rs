//! tantivy at the work of the facts: an index on the disk of their words, which answers with the
//! times of the best, the number by which each fact is known. It keeps no facts and no language.
//!
//! A commit is synced before it returns. Its segments are merged into one before it is asked.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use compare_facts::{Fact, Peer, Question, Row, Told};
use tantivy::collector::TopDocs;
use tantivy::directory::MmapDirectory;
use tantivy::query::{BooleanQuery, Query, TermQuery};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};

use crate::Result;

/// Memory for building: what a writer of one thread takes if nothing is known of the machine.
const BUDGET: usize = 64 << 20;

/// An index with its writer.
pub(super) struct Tantivy {
    writer: Mutex<IndexWriter>,
    reader: IndexReader,
    words: Field,
    time: Field,
}

impl Tantivy {
    fn writer(&self) -> MutexGuard<'_, IndexWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, writer: &IndexWriter, fact: &Fact) -> Result<()> {
        let Fact { created_at, subject, relation, object } = fact;
        let mut document = TantivyDocument::new();
        document.add_i64(self.time, *created_at);
        document.add_text(self.words, format!("{subject} {relation} {object}"));
        writer.add_document(document)?;
        Ok(())
    }
}

impl Peer for Tantivy {
    type Item = Fact;
    type Key = i64;

    fn open(directory: &Path) -> Result<Self> {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("default")
            .set_index_option(IndexRecordOption::WithFreqs);
        let mut schema = Schema::builder();
        let words = TextOptions::default().set_indexing_options(indexing);
        let words = schema.add_text_field("words", words);
        let time = schema.add_i64_field("time", FAST | INDEXED);
        let index = Index::open_or_create(MmapDirectory::open(directory)?, schema.build())?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let writer = Mutex::new(index.writer_with_num_threads(1, BUDGET)?);
        Ok(Self { writer, reader, words, time })
    }

    fn item(fact: Fact) -> Result<Fact> {
        Ok(fact)
    }

    fn key(fact: Fact) -> Result<i64> {
        Ok(fact.created_at)
    }

    fn put(&self, item: Fact) -> Result<()> {
        self.put_batch(vec![item])
    }

    fn put_batch(&self, items: Vec<Fact>) -> Result<()> {
        let mut writer = self.writer();
        items.iter().try_for_each(|fact| self.add(&writer, fact))?;
        writer.commit()?;
        Ok(())
    }

    fn supersede(&self, old: &i64, new: Fact) -> Result<Option<()>> {
        let mut writer = self.writer();
        writer.delete_term(Term::from_field_i64(self.time, *old));
        self.add(&writer, &new)?;
        writer.commit()?;
        Ok(Some(()))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.reader.reload()?)
    }

    fn settle(&self) -> Result<()> {
        let mut writer = self.writer();
        for last in [false, false, false, false, true] {
            let segments = writer.index().searchable_segment_ids()?;
            if segments.len() <= 1 {
                break;
            }
            match writer.merge(&segments).wait() {
                // A merge of its own has taken some of them meanwhile.
                Err(_) if !last => thread::sleep(Duration::from_secs(1)),
                merged => drop(merged?),
            }
        }
        writer.garbage_collect_files().wait()?;
        drop(writer);
        self.flush()
    }

    fn get(&self, _: &i64) -> Result<Option<Fact>> {
        Ok(None)
    }

    fn latest(&self, _: &str, _: Option<&str>, _: u32) -> Result<Option<Vec<Fact>>> {
        Ok(None)
    }

    fn search(&self, words: &[&str], most: u32) -> Result<Option<Vec<Row>>> {
        let term = |word: &&str| -> Box<dyn Query> {
            let term = Term::from_field_text(self.words, word);
            Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
        };
        let either = BooleanQuery::union(words.iter().map(term).collect());
        let searcher = self.reader.searcher();
        let top = TopDocs::with_limit(usize::try_from(most)?).order_by_score();
        let time = |(_, at): (f32, tantivy::DocAddress)| -> Result<Row> {
            let times = searcher.segment_reader(at.segment_ord).fast_fields().i64("time")?;
            Ok(Row::Time(times.first(at.doc_id).ok_or("a document without its time")?))
        };
        searcher.search(&either, &top)?.into_iter().map(time).collect::<Result<_>>().map(Some)
    }

    fn statement(_: &Question) -> Option<String> {
        None
    }

    fn ask(&self, _: &str) -> Result<Told> {
        Err("it has no such language".into())
    }

    fn compact(&mut self) -> Result<Option<()>> {
        self.settle().map(Some)
    }

    fn close(self) -> Result<()> {
        let writer = self.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(writer.wait_merging_threads()?)
    }
}
