//! The addresses of the log in ascending order, tables and tail merged.

use crate::error::Result;
use crate::merge::{MergeIter, SortedInput};
use crate::part::AddressEntry;
use crate::posting::Sequence;
use crate::reader::IndexReader;

/// Addresses with their sequences, ascending, without duplicates, read lazily.
pub struct AddressIter<'v> {
    merged: MergeIter<'v, AddressEntry>,
}

impl<'v> IndexReader<'v> {
    /// Iterates over the addresses from `start` on.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`, also for each item.
    pub fn addresses_from(&self, start: [u8; 32]) -> Result<AddressIter<'v>> {
        let folded =
            self.dictionary.tables.addresses()?.range::<&[u8; 32]>(&start..)?.map(|entry| {
                let (address, sequence) = entry?;
                Ok((*address.value(), sequence.value()))
            });
        let mut sources = vec![Box::new(folded) as SortedInput<'v, AddressEntry>];
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
