//! External sort of grains: sorted runs in memory and in one temporary file, merged on each read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use grainstore_format::{ContentAddress, EpochMs};
use grainstore_index::Sequence;

use crate::base::error::{Error, Result};

/// Grains of one run: 12 MiB.
const RUN_GRAINS: usize = 1 << 18;
/// Grains read at once from a run in the file: 48 KiB.
const BLOCK_GRAINS: u64 = 1 << 10;

/// Sort key of a grain in a container, with its sequence in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GrainPosition {
    pub(super) created_at: EpochMs,
    pub(super) address: ContentAddress,
    pub(super) sequence: Sequence,
}

impl GrainPosition {
    /// Bytes of one position in the temporary file.
    const BYTES: usize = 48;

    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.created_at.get().to_be_bytes());
        to.extend_from_slice(self.address.as_bytes());
        to.extend_from_slice(&self.sequence.get().to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (created_at, rest) = bytes.split_first_chunk()?;
        let (address, rest) = rest.split_first_chunk()?;
        let (sequence, _) = rest.split_first_chunk()?;
        Some(Self {
            created_at: EpochMs::new(i64::from_be_bytes(*created_at)),
            address: ContentAddress::from_bytes(*address),
            sequence: Sequence::new(u64::from_be_bytes(*sequence)),
        })
    }
}

/// Collects positions in any order.
#[derive(Debug)]
pub(super) struct ExternalSorter {
    directory: PathBuf,
    run_capacity: usize,
    run: Vec<GrainPosition>,
    spilled: Option<SpilledRuns>,
}

/// Runs that did not fit into memory.
#[derive(Debug)]
struct SpilledRuns {
    file: File,
    /// Byte range of each run.
    runs: Vec<Range<u64>>,
}

impl ExternalSorter {
    /// An empty sorter, which spills into an unnamed file in this directory.
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            run_capacity: RUN_GRAINS,
            run: Vec::new(),
            spilled: None,
        }
    }

    /// Adds a position.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(super) fn push(&mut self, place: GrainPosition) -> Result<()> {
        if self.run.len() == self.run_capacity {
            self.spill()?;
        }
        self.run.push(place);
        Ok(())
    }

    /// Number of positions added.
    pub(super) fn len(&self) -> u64 {
        let spilled = self.spilled.iter().flat_map(|spilled| &spilled.runs);
        let spilled: u64 =
            spilled.map(|run| (run.end - run.start) / GrainPosition::BYTES as u64).sum();
        spilled + self.run.len() as u64
    }

    /// Sorts all of them.
    pub(super) fn finish(mut self) -> SortedGrains {
        let len = self.len();
        self.run.sort_unstable();
        SortedGrains { len, run: self.run, spilled: self.spilled }
    }

    fn spill(&mut self) -> Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(SpilledRuns {
                file: tempfile::tempfile_in(&self.directory)?,
                runs: Vec::new(),
            }),
        };
        self.run.sort_unstable();
        let mut bytes = Vec::with_capacity(self.run.len() * GrainPosition::BYTES);
        self.run.drain(..).for_each(|place| place.write(&mut bytes));
        spilled.file.write_all(&bytes)?;
        let start = spilled.runs.last().map_or(0, |run| run.end);
        spilled.runs.push(start..start + bytes.len() as u64);
        Ok(())
    }
}

/// Sorted positions, which can be read several times.
#[derive(Debug)]
pub(super) struct SortedGrains {
    len: u64,
    run: Vec<GrainPosition>,
    spilled: Option<SpilledRuns>,
}

impl SortedGrains {
    /// Number of positions.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Iterates from the first to the last.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(super) fn iter(&self) -> Result<RunMerge<'_>> {
        let kept: RunIter<'_> = Box::new(self.run.iter().copied().map(Ok));
        let mut runs = vec![kept];
        if let Some(spilled) = &self.spilled {
            let of =
                |bytes: &Range<u64>| -> RunIter<'_> { Box::new(read_run(&spilled.file, bytes)) };
            runs.extend(spilled.runs.iter().map(of));
        }
        let mut merge = RunMerge { heads: BinaryHeap::with_capacity(runs.len()), runs };
        (0..merge.runs.len()).try_for_each(|run| merge.advance(run))?;
        Ok(merge)
    }
}

/// An iterator over one run.
type RunIter<'s> = Box<dyn Iterator<Item = Result<GrainPosition>> + 's>;

/// A k-way merge of runs.
pub(super) struct RunMerge<'s> {
    runs: Vec<RunIter<'s>>,
    /// The next position of each run that is not exhausted.
    heads: BinaryHeap<Reverse<(GrainPosition, usize)>>,
}

impl RunMerge<'_> {
    fn advance(&mut self, run: usize) -> Result<()> {
        if let Some(place) = self.runs.get_mut(run).and_then(Iterator::next) {
            self.heads.push(Reverse((place?, run)));
        }
        Ok(())
    }
}

impl Iterator for RunMerge<'_> {
    type Item = Result<GrainPosition>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((place, run)) = self.heads.pop()?;
        Some(self.advance(run).map(|()| place))
    }
}

/// Reads a run from the file, one block at a time.
fn read_run<'f>(
    file: &'f File,
    bytes: &Range<u64>,
) -> impl Iterator<Item = Result<GrainPosition>> + 'f {
    let block = BLOCK_GRAINS * GrainPosition::BYTES as u64;
    let (mut at, end) = (bytes.start, bytes.end);
    let mut buffer = Vec::new();
    let mut waiting = Vec::new().into_iter();
    std::iter::from_fn(move || {
        if waiting.len() == 0 && at < end {
            let len = block.min(end - at);
            buffer.resize(usize::try_from(len).unwrap_or_default(), 0);
            // The runs share one file, so each read seeks first.
            let mut file = file;
            let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut buffer));
            if let Err(error) = read {
                at = end;
                return Some(Err(Error::from(error)));
            }
            at += len;
            let places: Vec<_> =
                buffer.chunks_exact(GrainPosition::BYTES).filter_map(GrainPosition::read).collect();
            waiting = places.into_iter();
        }
        waiting.next().map(Ok)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_do_not_fit_come_back_as_one_order_however_often() {
        let place = |n: u64| {
            let address = ContentAddress::of(&n.to_be_bytes());
            let created_at = EpochMs::new(i64::try_from(n % 7).unwrap() - 3);
            GrainPosition { created_at, address, sequence: Sequence::new(n) }
        };
        let dir = tempfile::TempDir::new().unwrap();
        for (count, most) in [(0, 10), (9, 10), (10, 10), (11, 10), (5000, 1500), (3000, 7)] {
            let mut sorter =
                ExternalSorter { run_capacity: most, ..ExternalSorter::new(dir.path()) };
            (0..count).for_each(|n| sorter.push(place(n)).unwrap());
            let mut expected: Vec<_> = (0..count).map(place).collect();
            expected.sort_unstable();
            let sorted = sorter.finish();
            assert_eq!(sorted.len(), count);
            for _ in 0..2 {
                let merged = sorted.iter().unwrap().collect::<Result<Vec<_>>>().unwrap();
                assert_eq!(merged, expected, "{count} in runs of {most}");
            }
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file has no name");
    }
}
