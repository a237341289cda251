//! The files of the read log on disk: where to continue, when a file is full, and which files to delete.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use grainstore_format::EpochMs;

use super::group::{self, ReadRecord};
use super::head;
use super::segment::{self, FULL_FILE_BYTES, FileHeader, GroupIter, HEADER_BYTES};
use crate::base::error::{Error, Result};
use crate::disk::directory;
use crate::disk::layout::AuditHead;
use crate::disk::pinned_directory::PinnedDirectory;
use crate::state::audit::{AuditHashChain, ReadLogSummary};

/// The files of one store.
#[derive(Debug)]
pub(super) struct ReadLogFiles {
    pub(super) dir: PathBuf,
    pub(super) store: [u8; 16],
    pub(super) chain: AuditHashChain,
    bounds: SizeLimits,
    /// The directory of the store, to detect that it was moved; `None` in tests.
    anchor: Option<PinnedDirectory>,
    tail: Option<CurrentFile>,
    /// The first entry to keep, once the audit log has recorded that older files go.
    to_trim: Option<u64>,
    /// True if entries were written since the head was signed.
    unsigned: bool,
    /// True if entries were written since the audit log recorded the head.
    untold: bool,
}

/// Size limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizeLimits {
    /// Size of a file in bytes beyond which it takes no further group.
    pub(super) file_bytes: u64,
    /// Total size of all files in bytes, unless all are to be kept.
    pub(super) total_bytes: u64,
}

impl Default for SizeLimits {
    fn default() -> Self {
        Self { file_bytes: FULL_FILE_BYTES, total_bytes: 64 << 20 }
    }
}

/// The file being written.
#[derive(Debug)]
struct CurrentFile {
    file: File,
    number: u32,
    bytes: u64,
    end: AuditHead,
}

impl ReadLogFiles {
    pub(super) fn new(
        dir: PathBuf,
        store: [u8; 16],
        chain: AuditHashChain,
        bounds: SizeLimits,
    ) -> Self {
        let (tail, to_trim) = (None, None);
        let (anchor, unsigned, untold) = (None, false, false);
        Self { dir, store, chain, bounds, anchor, tail, to_trim, unsigned, untold }
    }

    /// Sets the directory of an open store.
    pub(super) fn anchored(self, anchor: PinnedDirectory) -> Self {
        Self { anchor: Some(anchor), ..self }
    }

    /// Refuses to continue if the store was moved: its path may belong to another one.
    fn check_here(&self) -> Result<()> {
        self.anchor.as_ref().map_or(Ok(()), PinnedDirectory::check)
    }

    /// The directory of the files, for readers.
    ///
    /// # Errors
    /// `ERR_IO` if the store was moved.
    pub(super) fn place(&self) -> Result<&Path> {
        self.check_here()?;
        Ok(&self.dir)
    }

    /// Writes one group. Returns the state to record in the audit log if a file was full. `keeps_all` keeps
    /// all files; else the newest up to the size limit.
    ///
    /// # Errors
    /// `ERR_IO`; a partially written group is cut off by the next write at the latest.
    pub(super) fn append(
        &mut self,
        notes: &[ReadRecord],
        lost: u64,
        keeps_all: bool,
    ) -> Result<Option<ReadLogSummary>> {
        let mut tail = match self.tail.take() {
            Some(tail) => tail,
            None => {
                self.check_here()?;
                self.opened(notes.first().map_or(EpochMs::new(0), |note| note.time))?
            }
        };
        let told = match tail.bytes >= self.bounds.file_bytes {
            true => {
                self.check_here()?;
                tail.file.sync_data()?;
                let first = self.first_kept(keeps_all)?;
                self.to_trim = Some(first);
                let note = ReadLogSummary::new(&tail.end, first);
                tail = self.begun(tail.number.saturating_add(1), tail.end)?;
                Some(note)
            }
            false => None,
        };
        let body = group::encode(notes, lost, &self.chain);
        let (frame, end) = segment::frame(&tail.end, &body)?;
        // After a partial write the file is reopened, which cuts off the partial group.
        tail.file.write_all(&frame)?;
        tail.bytes = tail.bytes.saturating_add(group::as_u64(frame.len()));
        tail.end = end;
        self.tail = Some(tail);
        (self.unsigned, self.untold) = (true, true);
        Ok(told)
    }

    /// Syncs what was written, and signs its end.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(super) fn settle(&mut self, now: EpochMs) -> Result<()> {
        if let Some(tail) = self.tail.as_ref().filter(|_| self.unsigned) {
            tail.file.sync_data()?;
            self.check_here()?;
            head::write(&self.dir, &self.store, &tail.end, now, &self.chain)?;
            self.unsigned = false;
        }
        Ok(())
    }

    /// Returns `true` if entries were written since the end was signed.
    pub(super) fn is_unsigned(&self) -> bool {
        self.unsigned
    }

    /// Returns the state to record in the audit log when the store is closed; `None` if it has not changed
    /// since it was last recorded.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(super) fn farewell(&mut self) -> Result<Option<ReadLogSummary>> {
        let Some(tail) = self.tail.as_ref().filter(|_| self.untold) else { return Ok(None) };
        let end = tail.end;
        self.untold = false;
        Ok(Some(ReadLogSummary::new(&end, self.first_kept(true)?)))
    }

    /// Deletes the files that the audit log has recorded as deleted.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(super) fn trim(&mut self) -> Result<()> {
        let Some(first) = self.to_trim.take() else { return Ok(()) };
        self.check_here()?;
        for number in segment::file_numbers(&self.dir)? {
            let start = segment::read_header(&self.dir, number, &self.store);
            // An unreadable file is evidence, and stays.
            if start.is_ok_and(|start| start.at.count < first) {
                directory::remove(&segment::path_of(&self.dir, number))?;
            }
        }
        Ok(())
    }

    /// The first entry that is kept when a further file is begun.
    fn first_kept(&self, keeps_all: bool) -> Result<u64> {
        let mut kept = u64::MAX;
        let mut room = self.bounds.total_bytes.saturating_sub(self.bounds.file_bytes);
        for number in segment::file_numbers(&self.dir)?.into_iter().rev() {
            let bytes = fs::metadata(segment::path_of(&self.dir, number))?.len();
            if bytes > room && !keeps_all {
                break;
            }
            room = room.saturating_sub(bytes);
            if let Ok(start) = segment::read_header(&self.dir, number, &self.store) {
                kept = start.at.count;
            }
        }
        let end = self.tail.as_ref().map_or(0, |tail| tail.end.count);
        Ok(if kept == u64::MAX { end } else { kept })
    }

    /// Opens the last file. A partial group that a crash left after what was signed is cut off; damage before
    /// that is left as it is, and a further file begun.
    fn opened(&self, now: EpochMs) -> Result<CurrentFile> {
        let signed = head::read(&self.dir, &self.store, &self.chain);
        let Some(number) = segment::file_numbers(&self.dir)?.last().copied() else {
            return self.first(signed.ok().flatten(), now);
        };
        let signed = match signed {
            Ok(Some(signed)) => signed,
            // It is signed before there is a file, so somebody took it away.
            Ok(None) => return self.behind_what_is_missing(number, now),
            Err(error) if error.is_integrity() => {
                return self.behind_what_is_missing(number, now);
            }
            Err(error) => return Err(error),
        };
        let after = || self.begun(number.saturating_add(1), signed);
        let Ok(bytes) = segment::read_file(&self.dir, number) else { return after() };
        let path = segment::path_of(&self.dir, number);
        let Ok(start) = FileHeader::decode(&bytes, &self.store, number) else {
            // A file that a crash left without its header has no group.
            return match bytes.len() < HEADER_BYTES {
                true => {
                    directory::remove(&path)?;
                    self.opened(now)
                }
                false => after(),
            };
        };
        let mut frames = GroupIter::of(&bytes, &start);
        frames.by_ref().for_each(drop);
        if frames.end.count < signed.count {
            return after();
        }
        let file = File::options().append(true).open(&path)?;
        let whole = group::as_u64(frames.read_bytes);
        if !frames.is_at_end() {
            file.set_len(whole)?;
        }
        Ok(CurrentFile { file, number, bytes: whole, end: frames.end })
    }

    /// The first file, behind a signed head that says so: from then on one that is missing was taken away.
    fn first(&self, signed: Option<AuditHead>, now: EpochMs) -> Result<CurrentFile> {
        fs::create_dir_all(&self.dir)?;
        if let Some(above) = self.dir.parent() {
            directory::sync_directory(above)?;
        }
        let at = signed.unwrap_or_else(|| segment::genesis(&self.store));
        head::write(&self.dir, &self.store, &at, now, &self.chain)?;
        directory::sync_directory(&self.dir)?;
        self.begun(1, at)
    }

    /// Goes on in a further file where nobody can say how far the log went. It begins with what no file
    /// before it ends with, so that the break is found for good.
    fn behind_what_is_missing(&self, last: u32, now: EpochMs) -> Result<CurrentFile> {
        let bytes = segment::read_file(&self.dir, last);
        if bytes.as_ref().is_ok_and(|bytes| bytes.len() < HEADER_BYTES) {
            // A file that a crash has left without its header has no group either.
            directory::remove(&segment::path_of(&self.dir, last))?;
            return self.opened(now);
        }
        let end = bytes.and_then(|read_bytes| {
            let start = FileHeader::decode(&read_bytes, &self.store, last)?;
            let mut frames = GroupIter::of(&read_bytes, &start);
            frames.by_ref().for_each(drop);
            Ok(frames.end)
        });
        let end = end.or_else(|error: Error| match error.is_integrity() {
            true => Ok(segment::genesis(&self.store)),
            false => Err(error),
        })?;
        let at = segment::broken(&end);
        let tail = self.begun(last.saturating_add(1), at)?;
        // Only behind the file, which a crash would leave to be broken off from once more.
        head::write(&self.dir, &self.store, &at, now, &self.chain)?;
        Ok(tail)
    }

    /// Creates a file.
    fn begun(&self, number: u32, at: AuditHead) -> Result<CurrentFile> {
        let path = segment::path_of(&self.dir, number);
        let mut file = File::options().append(true).create_new(true).open(&path)?;
        file.write_all(&FileHeader { number, at }.encode(&self.store))?;
        file.sync_data()?;
        directory::sync_directory(&self.dir)?;
        Ok(CurrentFile { file, number, bytes: group::as_u64(HEADER_BYTES), end: at })
    }
}

/// Copies the files of a read log into a directory, durably.
///
/// # Errors
/// `ERR_IO`.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let numbers = segment::file_numbers(from)?;
    if numbers.is_empty() {
        return Ok(());
    }
    fs::create_dir(to)?;
    let files = numbers.iter().map(|number| segment::path_of(from, *number));
    for file in files.chain([head::path_of(from)]) {
        let Some(name) = file.file_name().filter(|_| file.exists()) else { continue };
        let copy = to.join(name);
        fs::copy(&file, &copy)?;
        File::open(&copy)?.sync_all()?;
    }
    directory::sync_directory(to)
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
