//! Vectors that are given with a grain: what made them, and what of the grain they stand for.

use grainstore_index::vectors::{Metric, Space, Vector};

use crate::error::Result;

/// The vector of a grain, or of a part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub(crate) space: Space,
    pub(crate) chunk: u32,
    pub(crate) vector: Vector,
}

impl Embedding {
    /// What a model makes of a whole grain: up to 4,096 finite numbers.
    ///
    /// # Errors
    /// `ERR_DIMENSION` for none or too many numbers; `ERR_SCHEMA` for numbers that are not finite or
    /// beyond 10^17, for a vector of zeros where angles are compared, and for a name of a model
    /// that is empty or longer than 256 bytes.
    pub fn new(model: &str, metric: Metric, values: Vec<f32>) -> Result<Self> {
        let vector = Vector::new(values)?;
        let space = Space::new(model, vector.dimension(), metric)?;
        space.admit(&vector)?;
        Ok(Self { space, chunk: 0, vector })
    }

    /// The same for a part of the grain, such as a chunk of its text, by its number: every part has a
    /// vector of its own, and the nearest of them counts.
    #[must_use]
    pub fn of_chunk(self, chunk: u32) -> Self {
        Self { chunk, ..self }
    }

    /// The model, its dimension and how its vectors are compared.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Which part of the grain it stands for; 0 where that is all of it.
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
