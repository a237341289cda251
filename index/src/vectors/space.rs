//! Spaces of vectors, and the vectors that fit a space. Knows nothing of storage.

use crate::error::{Error, Result};

/// The most numbers of a [`Vector`].
pub const MAX_DIMENSION: usize = 4096;
/// The most bytes of a model's name.
const MAX_MODEL_BYTES: usize = 256;
/// The greatest magnitude of a number: the sum of 4,096 such squares is still an `f32`.
const MAX_NUMBER: f32 = 1e17;

/// A measure of similarity.
///
/// ```
/// use grainstore_index::vectors::Metric;
///
/// assert_eq!(Metric::named("cosine"), Some(Metric::Cosine));
/// assert_eq!(Metric::ALL.map(Metric::name), ["cosine", "dot", "l2"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// The cosine of the angle between the vectors; their lengths do not matter.
    Cosine,
    /// The inner product.
    Dot,
    /// The Euclidean distance.
    L2,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 3] = [Self::Cosine, Self::Dot, Self::L2];

    /// The name of the metric as in names of spaces: `cosine`, `dot` or `l2`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::Dot => "dot",
            Self::L2 => "l2",
        }
    }

    /// The metric with a name; `None` for an unknown name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}

/// A space: the vectors of one model, one length and one metric, which are comparable.
///
/// ```
/// use grainstore_index::vectors::{Metric, Space, Vector};
///
/// let space = Space::new("a-model", 3, Metric::Cosine)?;
/// assert!(space.admit(&Vector::new([1.0, 0.0, 0.0])?).is_ok());
/// let short = space.admit(&Vector::new([1.0])?);
/// assert!(short.is_err_and(|error| error.code() == "ERR_DIMENSION"));
/// # Ok::<(), grainstore_index::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space {
    model: Box<str>,
    dimension: usize,
    metric: Metric,
}

impl Space {
    /// Creates the space of a model.
    ///
    /// # Errors
    /// `ERR_DIMENSION` unless the dimension is 1 to 4,096; `ERR_SCHEMA` unless the name of the model has 1 to
    /// 256 bytes.
    pub fn new(model: &str, dimension: usize, metric: Metric) -> Result<Self> {
        check_dimension(dimension)?;
        if model.is_empty() || model.len() > MAX_MODEL_BYTES {
            let message = format!("the name of a model has 1 to {MAX_MODEL_BYTES} bytes");
            return Err(Error::vector(message));
        }
        Ok(Self { model: model.into(), dimension, metric })
    }

    /// The model of its vectors.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The number of numbers in each vector.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The measure its vectors are compared by.
    #[must_use]
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Checks that a vector can be stored in this space or be a query to it.
    ///
    /// # Errors
    /// `ERR_DIMENSION` for another length; `ERR_SCHEMA` for all zeros if the metric is cosine.
    pub fn admit(&self, vector: &Vector) -> Result<()> {
        if vector.dimension() != self.dimension {
            let Self { model, dimension, .. } = self;
            let given = vector.dimension();
            let message = format!("vectors of {model} have {dimension} numbers, this has {given}");
            return Err(Error::dimension(message));
        }
        if self.metric == Metric::Cosine && vector.length == 0.0 {
            return Err(Error::vector("a vector of zeros has no direction"));
        }
        Ok(())
    }
}

/// A vector of finite numbers.
///
/// ```
/// use grainstore_index::vectors::Vector;
///
/// let vector = Vector::new([0.6, 0.8])?;
/// assert_eq!((vector.dimension(), vector.values()), (2, &[0.6, 0.8][..]));
/// assert!(Vector::new([]).is_err() && Vector::new([f32::NAN]).is_err());
/// # Ok::<(), grainstore_index::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    values: Box<[f32]>,
    /// The Euclidean length.
    length: f64,
}

impl Vector {
    /// Creates a vector.
    ///
    /// # Errors
    /// `ERR_DIMENSION` unless there are 1 to 4,096 numbers; `ERR_SCHEMA` for one that is not finite or whose
    /// magnitude is over 10^17.
    pub fn new(values: impl Into<Box<[f32]>>) -> Result<Self> {
        let values = values.into();
        check_dimension(values.len())?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::vector(format!("number {at} of the vector is not finite")));
        }
        if let Some(at) = values.iter().position(|value| value.abs() > MAX_NUMBER) {
            let message = format!("number {at} of the vector is beyond {MAX_NUMBER:e}");
            return Err(Error::vector(message));
        }
        let length = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        Ok(Self { values, length })
    }

    /// Its numbers.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The number of its numbers.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.values.len()
    }

    /// Its Euclidean length.
    pub(crate) fn length(&self) -> f64 {
        self.length
    }
}

fn check_dimension(dimension: usize) -> Result<()> {
    if (1..=MAX_DIMENSION).contains(&dimension) {
        return Ok(());
    }
    let other = if dimension == 0 { "none" } else { "more" };
    let message = format!("a vector has 1 to {MAX_DIMENSION} numbers, and this has {other}");
    Err(Error::dimension(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_that_mean_nothing_are_refused_with_a_code() {
        let cases: [(Vec<f32>, &str); 6] = [
            (vec![], "ERR_DIMENSION"),
            (vec![0.5; MAX_DIMENSION + 1], "ERR_DIMENSION"),
            (vec![1.0, f32::NAN], "ERR_SCHEMA"),
            (vec![f32::INFINITY], "ERR_SCHEMA"),
            (vec![f32::NEG_INFINITY, 0.0], "ERR_SCHEMA"),
            (vec![1e18], "ERR_SCHEMA"),
        ];
        for (values, code) in cases {
            assert_eq!(Vector::new(values).unwrap_err().code(), code);
        }
    }

    #[test]
    fn a_space_admits_its_own_length_and_needs_a_direction_for_angles_alone() {
        for (metric, zeros_code) in
            [(Metric::Cosine, Some("ERR_SCHEMA")), (Metric::Dot, None), (Metric::L2, None)]
        {
            let space = Space::new("m", 3, metric).unwrap();
            space.admit(&Vector::new(vec![0.0, 1e-30, 0.0]).unwrap()).unwrap();
            let zeros = space.admit(&Vector::new(vec![0.0; 3]).unwrap());
            assert_eq!(zeros.err().map(|error| error.code()), zeros_code);
            let long = space.admit(&Vector::new(vec![1.0; 4]).unwrap()).unwrap_err();
            assert_eq!(long.code(), "ERR_DIMENSION");
            assert_eq!(Metric::named(metric.name()), Some(metric));
        }
    }

    #[test]
    fn a_space_without_a_model_or_a_length_is_refused() {
        for (model, dimension, code) in
            [("", 3, "ERR_SCHEMA"), ("m", 0, "ERR_DIMENSION"), ("m", 4097, "ERR_DIMENSION")]
        {
            assert_eq!(Space::new(model, dimension, Metric::L2).unwrap_err().code(), code);
        }
        let long = "m".repeat(257);
        assert_eq!(Space::new(&long, 3, Metric::L2).unwrap_err().code(), "ERR_SCHEMA");
    }
}
