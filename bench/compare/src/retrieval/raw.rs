//! The search library by itself: the same texts and subjects in one segment, in memory. It gives ten
//! addresses of documents, no grains.

use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::query::{BooleanQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexReader, ReloadPolicy, Searcher, TantivyDocument, Term};

use super::data::SUBJECTS;
use crate::Result;

/// Memory for building.
const BUDGET: usize = 500_000_000;

/// An index of texts.
pub(crate) struct Raw {
    searcher: Searcher,
    words: Field,
    subject: Field,
}

impl Raw {
    /// Indexes texts; the subject of each is by its place.
    pub(crate) fn of(texts: &[String]) -> Result<Self> {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("whitespace")
            .set_index_option(IndexRecordOption::WithFreqs);
        let options = |indexing| TextOptions::default().set_indexing_options(indexing);
        let mut schema = Schema::builder();
        let words = schema.add_text_field("words", options(indexing.clone()));
        let subject = schema.add_text_field("subject", options(indexing.set_fieldnorms(false)));
        let builder = Index::builder().schema(schema.build());
        let mut writer = builder.single_segment_index_writer(RamDirectory::default(), BUDGET)?;
        for (at, text) in texts.iter().enumerate() {
            let mut document = TantivyDocument::new();
            document.add_text(words, text);
            document.add_text(subject, format!("s{}", at % SUBJECTS));
            writer.add_document(document)?;
        }
        let index = writer.finalize()?;
        let reader: IndexReader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { searcher: reader.searcher(), words, subject })
    }

    /// How many of the ten best there are for either word, of one subject or of all.
    pub(crate) fn ask(&self, words: &[String; 2], subject: Option<usize>) -> Result<usize> {
        let either = words.iter().map(|word| term(self.words, word)).collect();
        let either = BooleanQuery::union(either);
        let top = TopDocs::with_limit(10).order_by_score();
        let found = match subject {
            None => self.searcher.search(&either, &top)?,
            Some(subject) => {
                let subject = term(self.subject, &format!("s{subject}"));
                let both = BooleanQuery::intersection(vec![Box::new(either), subject]);
                self.searcher.search(&both, &top)?
            }
        };
        Ok(found.len())
    }
}

fn term(field: Field, word: &str) -> Box<dyn Query> {
    let term = Term::from_field_text(field, word);
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}
