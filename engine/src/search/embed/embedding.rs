//! Vectors that are given with a grain: what made them, and what of the grain they stand for.

use grainstore_format::ContentAddress;
use grainstore_index::vectors::{Metric, Space, Vector};

use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::handle::session::Session;
use crate::write::writer::Write;

/// Vectors one grain comes with.
pub const MAX_VECTORS: usize = 1_024;

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

impl Session {
    /// Gives a stored grain vectors, in place of those it has in the same spaces. They are beside the
    /// grain: its address and its state know nothing of them. That one was replaced is in the audit log.
    ///
    /// What a policy or a hold protects keeps its place in search: the operator gives it vectors, and
    /// whom its policy would let replace it.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` where there is none this session can see, `ERR_WITHDRAWN` as [`Session::get`];
    /// `ERR_INVALIDATION_DENIED` for one that is protected; `ERR_DIMENSION`; `ERR_LIMIT` beyond
    /// [`MAX_VECTORS`], and for the first vector of a model where the store has those of 64, or of 8 and
    /// the session a namespace; `ERR_IO`.
    pub fn embed(&self, address: &ContentAddress, vectors: Vec<Embedding>) -> Result<()> {
        let view = self.view()?;
        if guarded(|| self.visible(&view, address))?.is_none() {
            return Err(self.unseen(&view, address));
        }
        drop(view);
        check_count(&vectors)?;
        let (address, author) = (*address, self.author());
        let write = |vectors, reply| Write::Embed { address, vectors, author, reply };
        self.send(Ok(vectors), write).wait()
    }
}

/// Refuses more vectors than a grain comes with.
pub(crate) fn check_count(vectors: &[Embedding]) -> Result<()> {
    if vectors.len() > MAX_VECTORS {
        let message = format!("a grain comes with {MAX_VECTORS} vectors at most");
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok(())
}
