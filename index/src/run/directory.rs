//! The runs of an index: one row of the table `index.meta`.
//!
//! | bytes | content |
//! |---|---|
//! | 16 | random bytes of this index, which tell its runs from those of another one |
//! | 4 | number of the next run |
//! | each run: 4 | its number |
//! | 4 | the only namespace of its grains; 0 if there are several |
//! | 16 | random bytes of an encrypted store, to which its blocks are bound; zeros otherwise |
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

const RUN_BYTES: usize = 8 + NONCE_BYTES + 8 * RunList::COUNT;
const NONCE_BYTES: usize = 16;
/// More runs than there ever are: a list of more was not written by this code.
const MAX_LISTED_RUNS: usize = 1_024;

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
    /// Random bytes to which its blocks are bound in an encrypted store: a number may come again after a crash.
    pub(crate) nonce: [u8; NONCE_BYTES],
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
            bytes.extend(run.nonce);
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
            let (nonce, rest) = rest.split_first_chunk::<NONCE_BYTES>()?;
            let mut rows = [0; RunList::COUNT];
            for (rows, bytes) in rows.iter_mut().zip(rest.as_chunks::<8>().0) {
                *rows = u64::from_be_bytes(*bytes);
            }
            let namespace = TermId::new(u64::from(u32::from_be_bytes(*namespace)));
            Some(RunInfo {
                number: u32::from_be_bytes(*number),
                namespace: (namespace != TermId::NONE).then_some(namespace),
                nonce: *nonce,
                rows,
            })
        });
        let runs: Vec<RunInfo> = runs.collect::<Option<_>>()?;
        let next = u32::from_be_bytes(*next);
        let mut numbers: Vec<u32> = runs.iter().map(|run| run.number).collect();
        numbers.sort_unstable();
        let is_sound = runs.len() <= MAX_LISTED_RUNS
            && numbers.iter().all(|number| (1..next).contains(number))
            && numbers.windows(2).all(|pair| pair.first() != pair.last());
        is_sound.then_some(Self { nonce: *nonce, next, runs })
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
        let run = RunInfo { number: 7, namespace: Some(TermId::new(1)), nonce: [0xcd; 16], rows };
        let directory = RunDirectory { nonce: [0xab; 16], next: 8, runs: vec![run] };
        let bytes = directory.encode();
        let golden = [
            &"ab".repeat(16),
            "00000008",
            "00000007",
            "00000001",
            &"cd".repeat(16),
            "0000000000000005",
            &"00".repeat(8 * 11),
            "0000000000000006",
        ];
        assert_eq!(hex(&bytes), golden.concat());
        assert_eq!(RunDirectory::decode(&bytes).as_ref(), Some(&directory));
        for (next, numbers) in [(7, vec![7]), (9, vec![7, 7]), (9, vec![0])] {
            let runs =
                numbers.into_iter().map(|number| RunInfo { number, ..directory.runs[0].clone() });
            let other = RunDirectory { next, runs: runs.collect(), ..directory.clone() };
            assert_eq!(RunDirectory::decode(&other.encode()), None, "{other:?}");
        }
        for end in (0..bytes.len()).filter(|end| *end != 20) {
            assert_eq!(RunDirectory::decode(&bytes[..end]), None, "{end}");
        }
    }
}
