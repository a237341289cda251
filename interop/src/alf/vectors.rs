//! Embeddings of records as vectors of their grains, so that searches find them.

use std::collections::BTreeMap;

use grainstore::Session;
use grainstore::embed::{Embedding, Metric};
use grainstore::format::{Map, Value as Field};

use crate::error::Result;
use crate::json::Value;

/// The lengths of the vectors of each model.
#[derive(Debug, Default)]
pub(super) struct VectorSpaces {
    dimensions: BTreeMap<String, usize>,
}

impl VectorSpaces {
    /// Those of a store.
    ///
    /// # Errors
    /// Those of [`grainstore::Store::stats`].
    pub(super) fn of(session: &Session) -> Result<Self> {
        let spaces = session.store().stats()?.vectors;
        let spaces = spaces.into_iter().map(|space| (space.model, space.dimension));
        Ok(Self { dimensions: spaces.collect() })
    }

    /// Returns the vectors that a search can use, and how many embeddings it cannot.
    pub(super) fn vectors(&mut self, embeddings: Option<&Value>) -> (Vec<Embedding>, u64) {
        let (mut vectors, mut unused) = (Vec::<Embedding>::new(), 0);
        for embedding in embeddings.and_then(Value::as_array).into_iter().flatten() {
            match vector_of(embedding).filter(|vector| self.fits(vector)) {
                Some(vector) => {
                    let same = vectors.iter().filter(|other| other.space() == vector.space());
                    let chunk = u32::try_from(same.count()).unwrap_or(u32::MAX);
                    vectors.push(vector.of_chunk(chunk));
                }
                None => unused += 1,
            }
        }
        (vectors, unused)
    }

    /// Vectors of a model all have the length of the first.
    fn fits(&mut self, vector: &Embedding) -> bool {
        let length = vector.values().len();
        let model = vector.space().model();
        match self.dimensions.get(model) {
            Some(known) => *known == length,
            None => {
                self.dimensions.insert(model.to_owned(), length);
                true
            }
        }
    }
}

fn vector_of(embedding: &Value) -> Option<Embedding> {
    let model = embedding.get("model")?.as_str()?;
    let numbers = embedding.get("vector")?.as_array()?.iter();
    #[expect(clippy::cast_possible_truncation, reason = "searches compare single precision")]
    let numbers = numbers.map(|number| number.as_f64().map(|number| number as f32));
    Embedding::new(model, Metric::Cosine, numbers.collect::<Option<Vec<_>>>()?).ok()
}

/// Returns the `embedding_refs` of the grain of a record (OMS 7.2); none for embeddings that lack what they need.
pub(super) fn references(id: &str, embeddings: Option<&Value>) -> Option<Field> {
    let embeddings = embeddings.and_then(Value::as_array)?;
    let references = embeddings.iter().enumerate().filter_map(|(number, embedding)| {
        let dimensions = embedding.get("dimensions")?.as_u64().filter(|length| *length > 0)?;
        Some(Map::from([
            ("vector_id".to_owned(), Field::from(format!("alf:{id}:{number}"))),
            ("model".to_owned(), Field::from(embedding.get("model")?.as_str()?)),
            ("dimensions".to_owned(), Field::from(i64::try_from(dimensions).ok()?)),
        ]))
    });
    let references: Vec<Map> = references.collect();
    (!references.is_empty()).then(|| Field::from(references))
}
