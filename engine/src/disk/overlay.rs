//! A copy-on-write storage backend: writes stay in memory, the file is never changed.
//!
//! So a store can be read on a full disk or on read-only media, and be repaired in memory after a crash.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

use crate::base::error::Result;

/// Bytes of a page, the unit of copying.
const PAGE_BYTES: u64 = PAGE_LEN_USIZE as u64;
/// [`PAGE_BYTES`] as a `usize`.
const PAGE_LEN_USIZE: usize = 4096;

/// A file and the pages that were written over it.
#[derive(Debug)]
pub(crate) struct OverlayFile(Mutex<OverlayState>);

#[derive(Debug)]
struct OverlayState {
    file: File,
    /// Current length in bytes.
    len: u64,
    /// Length of the prefix that still comes from the file where no page was written.
    of_file: u64,
    /// Pages that were written, by page number.
    written: BTreeMap<u64, Box<[u8]>>,
}

impl OverlayFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self(Mutex::new(OverlayState { file, len, of_file: len, written: BTreeMap::new() })))
    }

    fn state(&self) -> MutexGuard<'_, OverlayState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OverlayState {
    /// Fills `out` from the file at `offset`, with zeros past its end.
    fn read_file(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        out.fill(0);
        let there = self.of_file.saturating_sub(offset);
        let count = usize::try_from(there).unwrap_or(usize::MAX).min(out.len());
        let Some(out) = out.get_mut(..count).filter(|out| !out.is_empty()) else { return Ok(()) };
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(out)
    }

    /// Splits a range by pages: page number, offset in the page, and range within the input.
    fn pages(
        offset: u64,
        len: usize,
    ) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let at = offset.checked_add(done as u64).filter(|_| done < len)?;
            let within = usize::try_from(at % PAGE_BYTES).ok()?;
            let count = (PAGE_LEN_USIZE - within).min(len - done);
            let range = done..done + count;
            done += count;
            Some((at / PAGE_BYTES, within, range))
        })
    }
}

impl StorageBackend for OverlayFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.state();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        state.read_file(offset, out)?;
        for (page, within, range) in OverlayState::pages(offset, out.len()) {
            if let Some(written) = state.written.get(&page)
                && let Some(from) = written.get(within..within + range.len())
                && let Some(to) = out.get_mut(range)
            {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.len = len;
        state.of_file = state.of_file.min(len);
        // Bytes past the end must read as zeros if the file grows again.
        let _ = state.written.split_off(&len.div_ceil(PAGE_BYTES));
        let end = usize::try_from(len % PAGE_BYTES).unwrap_or_default();
        if let Some(last) = state.written.get_mut(&(len / PAGE_BYTES))
            && let Some(behind) = last.get_mut(end..)
        {
            behind.fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        for (page, within, range) in OverlayState::pages(offset, data.len()) {
            if !state.written.contains_key(&page) {
                let mut bytes = vec![0; PAGE_LEN_USIZE].into_boxed_slice();
                state.read_file(page * PAGE_BYTES, &mut bytes)?;
                state.written.insert(page, bytes);
            }
            if let Some(bytes) = state.written.get_mut(&page)
                && let Some(to) = bytes.get_mut(within..within + range.len())
                && let Some(from) = data.get(range)
            {
                to.copy_from_slice(from);
            }
        }
        state.len = state.len.max(offset.saturating_add(data.len() as u64));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Change {
        Write(u64, Vec<u8>),
        Length(u64),
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let change = prop_oneof![
            (0..20_000_u64, vec(any::<u8>(), 0..6000))
                .prop_map(|(at, data)| Change::Write(at, data)),
            (0..20_000_u64).prop_map(Change::Length),
        ];
        vec(change, 0..12)
    }

    proptest! {
        #[test]
        fn it_reads_as_a_file_that_was_written_and_the_file_stays(
            first in vec(any::<u8>(), 0..15_000),
            changes in changes(),
        ) {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), &first).unwrap();
            let overlay = OverlayFile::open(file.path()).unwrap();
            let mut model = first.clone();
            for change in changes {
                match change {
                    Change::Write(at, data) => {
                        let from = usize::try_from(at).unwrap();
                        let end = from + data.len();
                        model.resize(model.len().max(end), 0);
                        model[from..end].copy_from_slice(&data);
                        overlay.write(at, &data).unwrap();
                    }
                    Change::Length(len) => {
                        model.resize(usize::try_from(len).unwrap(), 0);
                        overlay.set_len(len).unwrap();
                    }
                }
                prop_assert_eq!(overlay.len().unwrap(), model.len() as u64);
                let mut all = vec![7; model.len()];
                overlay.read(0, &mut all).unwrap();
                prop_assert!(all == model);
                let half = model.len() / 2;
                let mut part = vec![7; model.len() - half];
                overlay.read(half as u64, &mut part).unwrap();
                prop_assert!(part == model[half..]);
            }
            prop_assert!(overlay.read(model.len() as u64, &mut [0]).is_err());
            prop_assert_eq!(fs::read(file.path()).unwrap(), first);
        }
    }
}
