//! Files in memory, for tests of segments that are read by pages.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::PageCache;
use super::segment_store::{SegmentFile, SegmentFiles, SegmentOutput, SegmentStore};

type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A disk of files by their names.
#[derive(Debug, Default)]
pub(super) struct MemoryDisk {
    pub(super) files: Files,
    /// True while nothing can be written.
    pub(super) full: AtomicBool,
    /// True while nothing can be read, which passes.
    pub(super) unreadable: Arc<AtomicBool>,
}

impl MemoryDisk {
    /// Its files, read through a cache.
    pub(super) fn store(self: &Arc<Self>, cache: &Arc<PageCache>) -> SegmentStore {
        SegmentStore::new(Arc::clone(self) as Arc<dyn SegmentFiles>, Arc::clone(cache))
    }
}

impl SegmentFiles for MemoryDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn SegmentFile>> {
        let file = self.files.lock().unwrap().get(name).cloned();
        let bytes = file.ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(MemoryFile { bytes, unreadable: Arc::clone(&self.unreadable) }))
    }

    fn create(&self, name: &str) -> io::Result<Option<Box<dyn SegmentOutput>>> {
        let full = self.full.load(Ordering::Relaxed);
        Ok(Some(Box::new(MemoryOutput(Arc::clone(&self.files), name.to_owned(), Vec::new(), full))))
    }

    fn tag(&self, _: &str, _: u64, _: &[u8]) -> Option<[u8; 16]> {
        None
    }
}

#[derive(Debug)]
struct MemoryFile {
    bytes: Vec<u8>,
    unreadable: Arc<AtomicBool>,
}

impl SegmentFile for MemoryFile {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, from: u64, to: &mut [u8]) -> io::Result<()> {
        if self.unreadable.load(Ordering::Relaxed) {
            const EIO: i32 = 5;
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let from = usize::try_from(from).unwrap();
        let bytes = self.bytes.get(from..from + to.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        to.copy_from_slice(bytes);
        Ok(())
    }
}

struct MemoryOutput(Files, String, Vec<u8>, bool);

impl Write for MemoryOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.3 && self.2.len() + bytes.len() > 200 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.2.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SegmentOutput for MemoryOutput {
    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.lock().unwrap().insert(self.1, self.2);
        Ok(())
    }
}
