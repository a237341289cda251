//! Random access to the bytes a container is read from. Opens no files.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A source of known size whose bytes can be read at any offset, repeatedly.
///
/// ```
/// use grainstore_format::container::ReadAt;
///
/// let source = b"grainstore".to_vec();
/// let mut buffer = [0; 5];
/// source.read_exact_at(5, &mut buffer)?;
/// assert_eq!((&buffer, source.size()?), (b"store", 10));
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ReadAt {
    /// Returns the size in bytes.
    ///
    /// # Errors
    /// The errors of the storage.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes at offset `at`.
    ///
    /// # Errors
    /// `UnexpectedEof` if they end before the buffer is full; the errors of the storage.
    fn read_exact_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        match from.get(..buffer.len()) {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        self.as_slice().size()
    }

    fn read_exact_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_exact_at(at, buffer)
    }
}

impl<S: ReadAt + ?Sized> ReadAt for &S {
    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn read_exact_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_exact_at(at, buffer)
    }
}

/// Random access ([`ReadAt`]) through `Seek`, for example to a file. Concurrent reads are serialised by
/// a lock.
#[derive(Debug)]
pub struct SeekSource<R>(Mutex<R>);

impl<R: Read + Seek> SeekSource<R> {
    /// Wraps a source. Its position must not be used elsewhere.
    pub fn new(inner: R) -> Self {
        Self(Mutex::new(inner))
    }

    fn lock(&self) -> MutexGuard<'_, R> {
        // Every read seeks first, so a panic during another read leaves no state that matters.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Read + Seek> ReadAt for SeekSource<R> {
    fn size(&self) -> io::Result<u64> {
        self.lock().seek(SeekFrom::End(0))
    }

    fn read_exact_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut inner = self.lock();
        inner.seek(SeekFrom::Start(at))?;
        inner.read_exact(buffer)
    }
}

/// A range of a source as a sequential reader.
#[derive(Debug)]
pub(super) struct RangeReader<'s, S: ?Sized> {
    source: &'s S,
    at: u64,
    end: u64,
}

impl<'s, S: ReadAt + ?Sized> RangeReader<'s, S> {
    /// Creates a reader of the bytes `from..to`.
    pub(super) fn new(source: &'s S, from: u64, to: u64) -> Self {
        Self { source, at: from, end: to.max(from) }
    }

    /// Returns the number of bytes left.
    pub(super) fn remaining(&self) -> u64 {
        self.end - self.at
    }
}

impl<S: ReadAt + ?Sized> Read for RangeReader<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len =
            usize::try_from(self.remaining()).map_or(buffer.len(), |left| left.min(buffer.len()));
        let Some(wanted) = buffer.get_mut(..len) else { return Ok(0) };
        self.source.read_exact_at(self.at, wanted)?;
        self.at += len as u64;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn slices_and_files_answer_alike_at_every_place() {
        let bytes = b"0123456789".to_vec();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let file = SeekSource::new(file);
        let sources: [&dyn ReadAt; 2] = [&bytes, &file];
        for source in sources {
            assert_eq!(source.size().unwrap(), 10);
            for (at, len, expected) in [
                (0, 3, Some("012")),
                (7, 3, Some("789")),
                (10, 0, Some("")),
                (8, 3, None),
                (11, 1, None),
            ] {
                let mut buffer = vec![0; len];
                let read = source.read_exact_at(at, &mut buffer).is_ok();
                let read = read.then(|| String::from_utf8(buffer).unwrap());
                assert_eq!(read.as_deref(), expected, "{len} bytes at {at}");
            }
            let mut middle = String::new();
            RangeReader::new(source, 2, 5).read_to_string(&mut middle).unwrap();
            assert_eq!(middle, "234");
        }
    }
}
