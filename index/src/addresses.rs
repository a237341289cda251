//! The addresses of the log in ascending order, tables and tail merged.

use crate::error::Result;
use crate::merge::{MergeIter, SortedInput};
use crate::part::AddressEntry;
use crate::posting::Sequence;
use crate::reader::IndexReader;

/// Addresses with their sequences, ascending, without duplicates, read lazily.
///
/// ```
/// # use grainstore_index::{Tables, Tail, reset};
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, None, [0; 16])?;
/// # txn.commit()?;
/// # let tables = Tables::open(db.begin_read()?, None);
/// # let mut tail = Tail::after(&tables)?;
/// # use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef};
/// # use grainstore_index::{IndexedFields, Sequence};
/// # for (sequence, subject) in [(0, "alice"), (1, "ann"), (2, "alice")] {
/// #     let time = EpochMs::new(1_768_471_200_000 + sequence);
/// #     let grain = BeliefBuilder::new(time, subject, "mg:prefers", "tea", 0.9).build()?;
/// #     let blob = grain.encode(Encoding::MessagePack)?;
/// #     let (address, fields) = (*blob.address().as_bytes(), GrainRef::new(blob.bytes())?);
/// #     let fields = IndexedFields::from_grain(&fields);
/// #     tail.push(&tables, Sequence::new(sequence as u64), address, &fields)?;
/// # }
/// use grainstore_index::IndexReader;
///
/// // `tables` and `tail` hold three grains.
/// let reader = IndexReader::new(&tables, &tail);
/// for found in reader.addresses_from([0; 32])? {
///     let (address, sequence) = found?;
///     assert_eq!(reader.sequence_of(&address)?, Some(sequence));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AddressIter<'v> {
    merged: MergeIter<'v, AddressEntry>,
}

impl<'v> IndexReader<'v> {
    /// Iterates over the addresses from `start` on.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`, also for each item.
    pub fn addresses_from(&self, start: [u8; 32]) -> Result<AddressIter<'v>> {
        let folded = self.dictionary.tables.addresses_from(&start)?;
        let mut sources: Vec<SortedInput<'v, AddressEntry>> = Vec::new();
        folded.into_iter().for_each(|input| sources.push(input));
        for run in self.dictionary.tail.parts().flat_map(|part| part.addresses.iter()) {
            let (_, from) = run.split_at(run.partition_point(|(address, _)| *address < start));
            sources.push(Box::new(from.iter().map(|addressed| Ok(*addressed))));
        }
        Ok(AddressIter { merged: MergeIter::new(sources)? })
    }
}

impl Iterator for AddressIter<'_> {
    type Item = Result<([u8; 32], Sequence)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.merged.next()?;
        Some(next.map(|(address, sequence)| (address, Sequence::new(sequence))))
    }
}

impl std::fmt::Debug for AddressIter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "addresses_tests.rs"]
mod tests;
