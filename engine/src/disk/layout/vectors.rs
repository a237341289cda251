//! The byte layout of vectors in the truth: spaces by number, vectors in the order they were given, the
//! vectors of each grain, the serving space, and removals in progress.

use grainstore_index::Sequence;
use grainstore_index::vectors::{Metric, Space, Vector};
use redb::TableDefinition;

use super::{PlainEnvelope, RowKey};
use crate::base::error::{Error, Result};
use crate::disk::vault::{EncryptionKey, Vault};

/// Number of a space, from 1 -> envelope of its record. Created with the first vector.
pub(crate) const SPACES: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("vector_spaces");
/// Row, from 1, in the order they were given -> envelope of a [`StoredVector`] vector. Of two rows for the
/// same chunk of a grain in the same space the later one counts.
pub(crate) const VECTORS: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("vectors");
/// Sequence -> the rows of its vectors, ascending, 8 bytes each.
pub(crate) const VECTOR_ROWS: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("vector_rows");

/// Number of a space whose vectors are being removed -> its record, moved here from [`SPACES`]. Created with
/// the first removal.
pub(crate) const REMOVED_SPACES: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("vector_leaving");

/// Row of the meta table with the number of the serving space: an envelope in row 0 of a u32. Written with
/// the first vectors that the store's embedder makes.
pub(crate) const META_SERVING: &str = "serving";
/// Row of the meta table with the numbers used by removed vectors: an envelope in row 0 of a
/// [`RemovedVectors`].
pub(crate) const META_REMOVED_VECTORS: &str = "vectors_gone";

pub(crate) fn seal_serving(space: u32) -> Vec<u8> {
    PlainEnvelope::seal(0, &space.to_be_bytes())
}

/// Decodes the number of the serving space.
///
/// # Errors
/// As [`PlainEnvelope::open`]; `ERR_INTEGRITY` for bytes no version wrote.
pub(crate) fn open_serving(row: &[u8]) -> Result<u32> {
    let number = PlainEnvelope::open(0, row)?.try_into();
    number.map(u32::from_be_bytes).map_err(|_| Error::truth_damaged("the serving space is damaged"))
}

/// Row and space numbers that are never reused, because an index that follows the rows would take new vectors
/// for old ones.
///
/// | byte | meaning |
/// |---|---|
/// | 0..8 | the row of the last removal, u64: each has one of its own, in the order of the vectors |
/// | 8..12 | the highest number a space had then, u32 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RemovedVectors {
    pub(crate) row: u64,
    pub(crate) space: u32,
}

impl RemovedVectors {
    pub(crate) fn seal(self) -> Vec<u8> {
        let mut body = self.row.to_be_bytes().to_vec();
        body.extend_from_slice(&self.space.to_be_bytes());
        PlainEnvelope::seal(0, &body)
    }

    /// Decodes the row.
    ///
    /// # Errors
    /// As [`PlainEnvelope::open`]; `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn open(row: &[u8]) -> Result<Self> {
        let damaged = || Error::truth_damaged("what removed vectors had is damaged");
        let body = PlainEnvelope::open(0, row)?;
        let (row, space) = body.split_first_chunk::<8>().ok_or_else(damaged)?;
        let space = space.try_into().map_err(|_| damaged())?;
        Ok(Self { row: u64::from_be_bytes(*row), space: u32::from_be_bytes(space) })
    }
}

/// Encodes the record of a space.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | metric: 0 cosine, 1 dot, 2 l2 |
/// | 1..5 | dimension, u32 |
/// | 5.. | the model, UTF-8 |
pub(crate) fn seal_space(number: u64, space: &Space) -> Result<Vec<u8>> {
    let metric = Metric::ALL.iter().position(|metric| *metric == space.metric());
    let metric = metric.and_then(|at| u8::try_from(at).ok());
    let dimension = u32::try_from(space.dimension()).ok();
    let Some((metric, dimension)) = metric.zip(dimension) else {
        return Err(Error::integrity("a space cannot be written"));
    };
    let mut body = vec![metric];
    body.extend_from_slice(&dimension.to_be_bytes());
    body.extend_from_slice(space.model().as_bytes());
    Ok(PlainEnvelope::seal(number, &body))
}

/// Decodes the record of a space.
///
/// # Errors
/// As [`PlainEnvelope::open`]; `ERR_INTEGRITY` for bytes no version wrote.
pub(crate) fn open_space(number: u64, row: &[u8]) -> Result<Space> {
    let damaged = || Error::truth_damaged("a space of vectors is damaged");
    let body = PlainEnvelope::open(number, row)?;
    let ([metric, dimension @ ..], model) = body.split_first_chunk::<5>().ok_or_else(damaged)?;
    let metric = Metric::ALL.get(usize::from(*metric)).ok_or_else(damaged)?;
    let dimension = usize::try_from(u32::from_be_bytes(*dimension)).map_err(|_| damaged())?;
    let model = std::str::from_utf8(model).map_err(|_| damaged())?;
    Space::new(model, dimension, *metric).map_err(|_| damaged())
}

/// A vector with the grain it belongs to.
///
/// | byte | meaning |
/// |---|---|
/// | 0..4 | number of its space, u32 |
/// | 4..12 | sequence of its grain, u64 |
/// | 12..16 | the chunk of the grain, u32; 0 for the whole grain |
/// | 16.. | the components, f32 each |
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredVector {
    pub(crate) space: u32,
    pub(crate) sequence: Sequence,
    pub(crate) chunk: u32,
    pub(crate) vector: Vector,
}

impl StoredVector {
    pub(crate) fn seal(
        &self,
        row: u64,
        vault: &Vault,
        encryption_key: &EncryptionKey,
    ) -> Result<Vec<u8>> {
        let mut body = Vec::with_capacity(16 + 4 * self.vector.dimension());
        body.extend_from_slice(&self.space.to_be_bytes());
        body.extend_from_slice(&self.sequence.get().to_be_bytes());
        body.extend_from_slice(&self.chunk.to_be_bytes());
        for value in self.vector.values() {
            body.extend_from_slice(&value.to_be_bytes());
        }
        vault.seal(RowKey::vector(row), &body, encryption_key)
    }

    /// Decrypts and decodes a vector.
    ///
    /// # Errors
    /// As [`Vault::open`]; `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn open(row: u64, bytes: &[u8], vault: &Vault) -> Result<Self> {
        let damaged = || Error::truth_damaged("a vector is damaged");
        let body = vault.open(RowKey::vector(row), bytes)?;
        let (space, rest) = body.split_first_chunk::<4>().ok_or_else(damaged)?;
        let (sequence, rest) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        let (chunk, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        let (numbers, []) = rest.as_chunks::<4>() else { return Err(damaged()) };
        let values: Vec<f32> = numbers.iter().map(|bytes| f32::from_be_bytes(*bytes)).collect();
        Ok(Self {
            space: u32::from_be_bytes(*space),
            sequence: Sequence::new(u64::from_be_bytes(*sequence)),
            chunk: u32::from_be_bytes(*chunk),
            vector: Vector::new(values).map_err(|_| damaged())?,
        })
    }
}

/// Encodes the vector rows of a grain.
pub(crate) fn encode_rows(rows: &[u64]) -> Vec<u8> {
    rows.iter().flat_map(|row| row.to_be_bytes()).collect()
}

/// Decodes the vector rows of a grain.
///
/// # Errors
/// `ERR_INTEGRITY` for bytes no version wrote.
pub(crate) fn decode_rows(bytes: &[u8]) -> Result<Vec<u64>> {
    match bytes.as_chunks::<8>() {
        (rows, []) => Ok(rows.iter().map(|row| u64::from_be_bytes(*row)).collect()),
        _ => Err(Error::truth_damaged("the list of a grain's vectors is damaged")),
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    #[test]
    fn the_bytes_are_these() {
        let space = Space::new("m", 2, Metric::Dot).unwrap();
        let sealed = seal_space(3, &space).unwrap();
        assert_eq!(HEXLOWER.encode(&sealed[6..]), "01000000026d");
        assert_eq!(open_space(3, &sealed).unwrap(), space);
        assert!(open_space(4, &sealed).is_err(), "it is of another row");
        let vector = Vector::new(vec![1.0, -0.5]).unwrap();
        let placed = StoredVector { space: 3, sequence: Sequence::new(9), chunk: 1, vector };
        let (vault, encryption_key) = (Vault::default(), EncryptionKey::default());
        let sealed = placed.seal(7, &vault, &encryption_key).unwrap();
        let expected = "000000030000000000000009000000013f800000bf000000";
        assert_eq!(HEXLOWER.encode(&sealed[6..]), expected);
        assert_eq!(StoredVector::open(7, &sealed, &vault).unwrap(), placed);
        for at in 0..sealed.len() {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert!(StoredVector::open(7, &other, &vault).is_err(), "byte {at}");
            assert!(StoredVector::open(7, &sealed[..at], &vault).is_err(), "cut at {at}");
        }
        assert_eq!(decode_rows(&encode_rows(&[1, 2])).unwrap(), [1, 2]);
        assert!(decode_rows(&[0; 7]).is_err());
    }

    #[test]
    fn the_serving_space_and_what_is_gone_have_these_bytes() {
        let serving = seal_serving(3);
        assert_eq!(HEXLOWER.encode(&serving), "0100e2dc97d500000003");
        assert_eq!(open_serving(&serving).unwrap(), 3);
        let gone = RemovedVectors { row: 0x0102, space: 5 };
        let sealed = gone.seal();
        assert_eq!(HEXLOWER.encode(&sealed), "0100ce23efc7000000000000010200000005");
        assert_eq!(RemovedVectors::open(&sealed).unwrap(), gone);
        for at in 0..sealed.len() {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert!(
                RemovedVectors::open(&other).is_err()
                    && RemovedVectors::open(&sealed[..at]).is_err(),
                "byte {at}"
            );
        }
        for at in 0..serving.len() {
            let mut other = serving.clone();
            other[at] ^= 1;
            assert!(open_serving(&other).is_err() && open_serving(&serving[..at]).is_err(), "{at}");
        }
        assert!(open_serving(&sealed).is_err() && RemovedVectors::open(&serving).is_err());
    }
}
