//! A stream whose writes are watched, so that a connection whose answer nobody reads can be told from one at work.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a connection has waited for who reads its answer.
#[derive(Debug)]
pub(super) struct Writing {
    began: Instant,
    /// When a write began that is not done, in nanoseconds after `began`; 0 if none.
    since: AtomicU64,
}

impl Writing {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), since: AtomicU64::new(0) }
    }

    /// A stream whose writes are noted here.
    pub(super) fn watch<'w>(&'w self, stream: &'w UnixStream) -> Watched<'w> {
        Watched { stream, writing: self }
    }

    /// Time since the write began that is not done; nothing if there is none.
    pub(super) fn waited(&self) -> Duration {
        match self.since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self.began.elapsed().saturating_sub(Duration::from_nanos(since)),
        }
    }
}

/// A stream whose writes are watched.
pub(super) struct Watched<'w> {
    stream: &'w UnixStream,
    writing: &'w Writing,
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let since = self.writing.began.elapsed().as_nanos();
        let since = u64::try_from(since).unwrap_or(u64::MAX).max(1);
        self.writing.since.store(since, Ordering::Relaxed);
        let mut stream = self.stream;
        let written = stream.write(bytes);
        self.writing.since.store(0, Ordering::Relaxed);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
