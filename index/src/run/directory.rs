//! The runs of an index: one row of the table `index.meta`.
//!
//! | bytes | content |
//! |---|---|
//! | 16 | random bytes of this index, which tell its runs from those of another one |
//! | 4 | number of the next run |
//! | each run: 4 | its number |
//! | 4 | the only namespace of its grains; 0 if there are several |
//! | 8 for each list | rows |
//!
//! Numbers are big-endian. The oldest run comes first.

use redb::{ReadableTable, TableDefinition};

use super::lists::RunList;
use crate::error::{Error, Result};
use crate::meta::RUNS;
use crate::term::TermId;

/// The prefix of the names of runs.
pub(crate) const RUN_PREFIX: &str = "index.run.";

/// Key of a block (see [`table`](super::table)) -> block.
pub(crate) type RunTableDefinition<'n> = TableDefinition<'n, u64, &'static [u8]>;

const RUN_BYTES: usize = 8 + 8 * RunList::COUNT;

/// The runs of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RunDirectory {
    pub(crate) nonce: [u8; 16],
    pub(crate) next: u32,
    pub(crate) runs: Vec<RunInfo>,
}

/// A run and its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunInfo {
    pub(crate) number: u32,
    /// The namespace of all its grains, if they have the same; then it has no rows under the namespace 0.
    pub(crate) namespace: Option<TermId>,
    /// Rows of each list.
    pub(crate) rows: [u64; RunList::COUNT],
}

impl RunInfo {
    /// The name of its table.
    pub(crate) fn table(&self) -> String {
        table_name(self.number)
    }

    /// Rows of all lists.
    pub(crate) fn size(&self) -> u64 {
        self.rows.iter().fold(0, |sum: u64, rows| sum.saturating_add(*rows))
    }

    /// Rows of a list.
    pub(crate) fn rows_of(&self, list: RunList) -> u64 {
        self.rows.get(list.index()).copied().unwrap_or_default()
    }
}

/// The name of the table of a run.
pub(crate) fn table_name(number: u32) -> String {
    format!("{RUN_PREFIX}{number:08x}")
}

impl RunDirectory {
    /// The directory of an index without runs.
    pub(crate) fn empty(nonce: [u8; 16]) -> Self {
        Self { nonce, next: 1, runs: Vec::new() }
    }

    /// Takes the number of a new run.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if they are used up.
    pub(crate) fn take_number(&mut self) -> Result<u32> {
        let number = self.next;
        self.next = number.checked_add(1).ok_or_else(Error::full)?;
        Ok(number)
    }

    /// Reads the row.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it is missing or malformed; `ERR_IO`.
    pub(crate) fn stored(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Self> {
        let row = meta.get(RUNS)?;
        let runs = row.and_then(|row| Self::decode(row.value()));
        runs.ok_or_else(|| Error::integrity("the index has no readable list of runs"))
    }

    /// Writes the row.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn store(
        &self,
        meta: &mut redb::Table<'_, &'static str, &'static [u8]>,
    ) -> Result<()> {
        meta.insert(RUNS, self.encode().as_slice())?;
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.nonce.to_vec();
        bytes.extend(self.next.to_be_bytes());
        for run in &self.runs {
            bytes.extend(run.number.to_be_bytes());
            let [_, _, _, _, namespace @ ..] =
                run.namespace.unwrap_or(TermId::NONE).get().to_be_bytes();
            bytes.extend(namespace);
            bytes.extend(run.rows.iter().flat_map(|rows| rows.to_be_bytes()));
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (nonce, rest) = bytes.split_first_chunk::<16>()?;
        let (next, rest) = rest.split_first_chunk::<4>()?;
        let (runs, []) = rest.as_chunks::<RUN_BYTES>() else { return None };
        let runs = runs.iter().map(|bytes| {
            let (number, rest) = bytes.split_first_chunk::<4>()?;
            let (namespace, rest) = rest.split_first_chunk::<4>()?;
            let mut rows = [0; RunList::COUNT];
            for (rows, bytes) in rows.iter_mut().zip(rest.as_chunks::<8>().0) {
                *rows = u64::from_be_bytes(*bytes);
            }
            let namespace = TermId::new(u64::from(u32::from_be_bytes(*namespace)));
            Some(RunInfo {
                number: u32::from_be_bytes(*number),
                namespace: (namespace != TermId::NONE).then_some(namespace),
                rows,
            })
        });
        Some(Self {
            nonce: *nonce,
            next: u32::from_be_bytes(*next),
            runs: runs.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_kit::hex;

    #[test]
    fn a_directory_has_these_bytes() {
        let mut rows = [0; RunList::COUNT];
        (rows[0], rows[12]) = (5, 6);
        let run = RunInfo { number: 7, namespace: Some(TermId::new(1)), rows };
        let directory = RunDirectory { nonce: [0xab; 16], next: 8, runs: vec![run] };
        let bytes = directory.encode();
        let golden = [
            &"ab".repeat(16),
            "00000008",
            "00000007",
            "00000001",
            "0000000000000005",
            &"00".repeat(8 * 11),
            "0000000000000006",
        ];
        assert_eq!(hex(&bytes), golden.concat());
        assert_eq!(RunDirectory::decode(&bytes), Some(directory));
        for end in (0..bytes.len()).filter(|end| *end != 20) {
            assert_eq!(RunDirectory::decode(&bytes[..end]), None, "{end}");
        }
    }
}
