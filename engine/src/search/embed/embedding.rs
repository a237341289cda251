//! Vectors given with a grain: their space, and the part of the grain they stand for.

use grainstore_index::vectors::{Metric, Space, Vector};

use crate::base::error::{Error, ErrorKind, Result};

/// Most vectors of one grain: [`Session::embed`](crate::Session::embed) and puts of more are `ERR_LIMIT`.
pub const MAX_VECTORS: usize = 1_024;

/// The vector of a grain, or of a part of it.
///
/// ```
/// use grainstore::embed::{Embedding, Metric};
///
/// let vector = Embedding::new("my-model", Metric::Cosine, vec![0.6, 0.8])?.of_chunk(2);
/// assert_eq!((vector.chunk(), vector.values().len()), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub(crate) space: Space,
    pub(crate) chunk: u32,
    pub(crate) vector: Vector,
}

impl Embedding {
    /// A vector of a whole grain: 1 to 4,096 finite numbers.
    ///
    /// # Errors
    /// `ERR_DIMENSION` for none or too many numbers; `ERR_SCHEMA` for numbers that are not finite or beyond
    /// 10^17, for a vector of zeros where the metric compares angles, and for a model name that is empty or
    /// longer than 256 bytes.
    pub fn new(model: &str, metric: Metric, values: Vec<f32>) -> Result<Self> {
        let vector = Vector::new(values)?;
        let space = Space::new(model, vector.dimension(), metric)?;
        space.admit(&vector)?;
        Ok(Self { space, chunk: 0, vector })
    }

    /// Makes this the vector of a numbered part of the grain, such as a chunk of its text. Each part has a
    /// vector of its own, and a search counts the nearest of them.
    #[must_use]
    pub fn of_chunk(self, chunk: u32) -> Self {
        Self { chunk, ..self }
    }

    /// The space: model, dimension and metric.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The number of the part it stands for; 0 for the whole grain.
    #[must_use]
    pub fn chunk(&self) -> u32 {
        self.chunk
    }

    /// The numbers.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        self.vector.values()
    }
}

/// Refuses more than [`MAX_VECTORS`] vectors.
pub(crate) fn check_count(vectors: &[Embedding]) -> Result<()> {
    if vectors.len() > MAX_VECTORS {
        let message = format!("a grain comes with {MAX_VECTORS} vectors at most");
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok(())
}
