//! Stdout with a reader that may be slow: writes wait for it, and no longer than they may.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time that the reader of a stream is waited for, as long as a listener of the library is.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time that the reader has for what is left once a signal has asked to stop.
const AFTER_STOP: Duration = Duration::from_secs(1);
/// Time between two looks at whether a signal has asked to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The time that writes may wait for their reader, all of them together, while it is counted.
///
/// ```
/// use grainstore_rpc::Patience;
/// use std::sync::atomic::Ordering;
///
/// let patience = Patience::of(std::time::Duration::from_secs(5));
/// patience.begin();
/// assert!(!patience.idle().load(Ordering::SeqCst));
/// patience.end();
/// assert!(patience.idle().load(Ordering::SeqCst));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Patience {
    time: Duration,
    left: Rc<Cell<Option<Duration>>>,
    idle: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    given_up: Rc<Cell<bool>>,
}

impl Default for Patience {
    fn default() -> Self {
        Self::of(PATIENCE)
    }
}

impl Patience {
    /// A patience of this much time, which is not counted yet.
    pub fn of(time: Duration) -> Self {
        let idle = Arc::new(AtomicBool::new(true));
        Self {
            time,
            left: Rc::default(),
            idle,
            stopped: Arc::default(),
            signal: Arc::default(),
            given_up: Rc::default(),
        }
    }

    /// Starts to count, from the whole of it.
    pub fn begin(&self) {
        self.left.set(Some(self.time));
        self.idle.store(false, Ordering::SeqCst);
    }

    /// Stops to count: writes wait as long as it takes.
    pub fn end(&self) {
        self.left.set(None);
        self.idle.store(true, Ordering::SeqCst);
    }

    /// A flag that is set while nothing is counted: a signal may end the process then.
    #[must_use]
    pub fn idle(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.idle)
    }

    /// A flag for a signal handler to set: the stream that goes on is cancelled, no request is
    /// read after it, and a reader that takes nothing is waited for no more than a second.
    #[must_use]
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }

    /// A place for a signal handler to put the number of its signal.
    #[must_use]
    pub fn signal(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.signal)
    }

    /// The signal that has the process end by it: nobody read what was left after it.
    #[must_use]
    pub fn ended_by(&self) -> Option<i32> {
        let signal = i32::try_from(self.signal.load(Ordering::SeqCst)).ok()?;
        (signal != 0 && self.given_up.get()).then_some(signal)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// The time that a write may take, `None` for as long as it takes.
    fn left(&self) -> Option<Duration> {
        if self.is_stopped() {
            let most = self.left.get().unwrap_or(AFTER_STOP);
            self.left.set(Some(most.min(AFTER_STOP)));
        }
        self.left.get()
    }

    fn spend(&self, time: Duration) {
        self.left.set(self.left.get().map(|left| left.saturating_sub(time)));
    }
}

/// The error of a write whose reader took nothing for too long.
#[derive(Debug)]
pub(crate) struct Stalled;

impl std::fmt::Display for Stalled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads it")
    }
}

impl std::error::Error for Stalled {}

impl Stalled {
    /// Returns `true` for the error of such a write.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Self>)
    }

    fn error() -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, Self)
    }
}

/// A writer that ends with a timeout once patience is over, and writes nothing from then on.
///
/// Nothing portable interrupts a write, so a thread writes while patience is counted. A write that never ends
/// keeps that thread until the process is over.
///
/// ```
/// use grainstore_rpc::{Patience, PatientWriter};
/// use std::io::Write;
///
/// let patience = Patience::default();
/// let mut writer = PatientWriter::new(std::io::stdout(), &patience);
/// writeln!(writer, "tea")?;
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug)]
pub struct PatientWriter<W> {
    patience: Patience,
    state: State<W>,
}

#[derive(Debug)]
enum State<W> {
    /// Patience was never counted: no thread is needed.
    Direct(W),
    Threaded(Thread),
    Stalled,
}

#[derive(Debug)]
struct Thread {
    pieces: SyncSender<Vec<u8>>,
    written: Receiver<io::Result<()>>,
}

impl<W: Write + Send + 'static> PatientWriter<W> {
    /// A writer to `to`.
    pub fn new(to: W, patience: &Patience) -> Self {
        Self { patience: patience.clone(), state: State::Direct(to) }
    }

    /// Hands the writer to a thread, unless it has one.
    fn start_thread(&mut self) -> io::Result<()> {
        if matches!(self.state, State::Direct(_))
            && let State::Direct(to) = std::mem::replace(&mut self.state, State::Stalled)
        {
            self.state = State::Threaded(Thread::start(to)?);
        }
        Ok(())
    }
}

impl<W: Write + Send + 'static> Write for PatientWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.patience.left().is_some() {
            self.start_thread()?;
        }
        let written = match &mut self.state {
            State::Direct(to) => return to.write(bytes),
            State::Threaded(thread) => thread.write(bytes, &self.patience),
            State::Stalled => None,
        };
        match written {
            Some(written) => written.map(|()| bytes.len()),
            None => {
                self.patience.given_up.set(true);
                self.state = State::Stalled;
                Err(Stalled::error())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Direct(to) => to.flush(),
            // The thread flushes what it writes.
            State::Threaded(_) => Ok(()),
            State::Stalled => Err(Stalled::error()),
        }
    }
}

impl Thread {
    fn start(mut to: impl Write + Send + 'static) -> io::Result<Self> {
        let (pieces, given) = sync_channel::<Vec<u8>>(1);
        let (done, written) = sync_channel(1);
        let run = move || {
            for piece in given {
                let outcome = to.write_all(&piece).and_then(|()| to.flush());
                if done.send(outcome).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("stdout".to_owned()).spawn(run)?;
        Ok(Self { pieces, written })
    }

    /// Writes and flushes; `None` if that takes longer than there is patience.
    fn write(&self, bytes: &[u8], patience: &Patience) -> Option<io::Result<()>> {
        // Only one piece is on its way, so there is room.
        self.pieces.send(bytes.to_vec()).ok()?;
        loop {
            let left = patience.left();
            let look = left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
            let began = Instant::now();
            let written = self.written.recv_timeout(look);
            patience.spend(began.elapsed());
            match written {
                Ok(written) => return Some(written),
                Err(RecvTimeoutError::Timeout) if left.is_none_or(|left| left > look) => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A pipe that takes everything up to the first write with these bytes in it, and then nothing until the
    /// sender is dropped.
    pub(crate) struct Stuck {
        pub(crate) from: &'static str,
        pub(crate) taken: Arc<Mutex<Vec<u8>>>,
        pub(crate) until: Receiver<()>,
    }

    impl Stuck {
        pub(crate) fn from(from: &'static str) -> (Self, Arc<Mutex<Vec<u8>>>, Sender<()>) {
            let (sender, until) = channel();
            let taken = Arc::<Mutex<Vec<u8>>>::default();
            (Self { from, taken: Arc::clone(&taken), until }, taken, sender)
        }
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if String::from_utf8_lossy(bytes).contains(self.from) {
                let _ = self.until.recv();
            }
            self.taken.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_write_nobody_reads_ends_and_so_does_each_behind_it() {
        let patience = Patience::of(Duration::from_millis(20));
        let (stuck, taken, open) = Stuck::from("stuck");
        let mut out = PatientWriter::new(stuck, &patience);
        out.write_all(b"one ").unwrap();
        out.flush().unwrap();
        assert_eq!(*taken.lock().unwrap(), b"one ");
        patience.begin();
        let ended = out.write_all(b"stuck").unwrap_err();
        assert!(Stalled::is(&ended), "{ended}");
        patience.end();
        assert!(Stalled::is(&out.write_all(b"three").unwrap_err()));
        assert!(Stalled::is(&out.flush().unwrap_err()));
        drop(open);
    }

    #[test]
    fn what_is_read_in_time_is_written_in_order() {
        let patience = Patience::of(Duration::MAX);
        let (stuck, taken, _open) = Stuck::from("stuck");
        let mut out = PatientWriter::new(stuck, &patience);
        for (piece, is_counted) in [("one ", false), ("two ", true), ("three", false)] {
            match is_counted {
                true => patience.begin(),
                false => patience.end(),
            }
            out.write_all(piece.as_bytes()).unwrap();
            out.flush().unwrap();
        }
        assert_eq!(*taken.lock().unwrap(), b"one two three");
    }

    #[test]
    fn a_pipe_that_is_full_is_waited_for_as_long_as_it_may() {
        let patience = Patience::of(Duration::from_millis(20));
        let (reader, writer) = io::pipe().unwrap();
        let mut out = PatientWriter::new(writer, &patience);
        patience.begin();
        // More than any pipe holds.
        let ended = out.write_all(&vec![b'x'; 8 << 20]).unwrap_err();
        assert!(Stalled::is(&ended), "{ended}");
        drop(reader);
    }

    #[test]
    fn who_is_only_slow_gets_everything_once_it_is_not_counted() {
        let patience = Patience::of(Duration::ZERO);
        let (stuck, taken, open) = Stuck::from("stuck");
        let mut out = PatientWriter::new(stuck, &patience);
        patience.begin();
        out.start_thread().unwrap();
        patience.end();
        let late = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            drop(open);
        });
        out.write_all(b"stuck").unwrap();
        late.join().unwrap();
        assert_eq!(*taken.lock().unwrap(), b"stuck");
    }

    #[test]
    fn a_stalled_reader_is_waited_for_no_more_than_a_second_once_it_is_to_stop() {
        let patience = Patience::of(Duration::from_secs(60));
        let (stuck, _taken, open) = Stuck::from("stuck");
        let mut out = PatientWriter::new(stuck, &patience);
        patience.begin();
        let (stop, signal) = (patience.stop(), patience.signal());
        let late = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            signal.store(15, Ordering::SeqCst);
            stop.store(true, Ordering::SeqCst);
        });
        assert!(Stalled::is(&out.write_all(b"stuck").unwrap_err()));
        assert_eq!(patience.ended_by(), Some(15));
        late.join().unwrap();
        drop(open);
    }

    #[test]
    fn who_is_only_slow_gets_what_is_left_after_a_stop() {
        let patience = Patience::of(Duration::from_secs(60));
        let (stuck, taken, open) = Stuck::from("stuck");
        let mut out = PatientWriter::new(stuck, &patience);
        patience.begin();
        patience.signal().store(15, Ordering::SeqCst);
        patience.stop().store(true, Ordering::SeqCst);
        let late = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(open);
        });
        out.write_all(b"stuck").unwrap();
        patience.end();
        out.write_all(b" and more").unwrap();
        late.join().unwrap();
        assert_eq!(*taken.lock().unwrap(), b"stuck and more");
        assert_eq!(patience.ended_by(), None);
    }

    #[test]
    fn a_reader_that_is_gone_is_told_as_such() {
        let patience = Patience::of(Duration::MAX);
        let (reader, writer) = io::pipe().unwrap();
        let mut out = PatientWriter::new(writer, &patience);
        patience.begin();
        drop(reader);
        assert_eq!(out.write_all(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
