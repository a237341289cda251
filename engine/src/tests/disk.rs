//! A disk in memory that can lose power, fail, and stand still: the backend of the durability tests.
//!
//! It holds the two files of a store. Writes reach the platter when their file is synced; until then
//! a power cut may take any part of them. The disk keeps both, and on request the story of
//! everything that happened. It knows nothing of what is stored on it.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redb::StorageBackend;

use super::kit::random::Random;

/// What a disk writes whole or not at all, in bytes.
const SECTOR: usize = 512;
/// How long a test waits for something that must happen before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The files of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    Truth,
    Index,
}

/// The bytes of both files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Image {
    pub(crate) truth: Vec<u8>,
    pub(crate) index: Vec<u8>,
}

impl Image {
    fn of(&self, file: File) -> &[u8] {
        match file {
            File::Truth => &self.truth,
            File::Index => &self.index,
        }
    }

    fn of_mut(&mut self, file: File) -> &mut Vec<u8> {
        match file {
            File::Truth => &mut self.truth,
            File::Index => &mut self.index,
        }
    }
}

/// A disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What a reader sees.
    live: Image,
    /// What a power cut cannot take.
    synced: Image,
    /// What came since the last sync.
    unsynced: Vec<Change>,
    story: Option<Vec<Event>>,
    operations: u64,
    syncs: u64,
    fault: Option<Fault>,
    /// Whether a fault has struck.
    struck: bool,
    gate: Gate,
}

/// A change to the bytes of a file.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    file: File,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Write { offset: usize, bytes: Arc<[u8]> },
    Length(usize),
}

/// Something that happened, in the order it did.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Changed(Change),
    /// A sync of this file was completed.
    Synced(File),
    /// A call of this number was about to be made.
    Called(usize),
    /// The call of this number had its answer.
    Answered(usize),
}

/// Which operations fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The one of this number, counted from 1.
    Once(u64),
    /// This one and all that follow.
    From(u64),
    /// All syncs.
    Syncs,
}

/// A disk whose syncs of the truth are held. Dropping it lets them all through.
#[derive(Debug)]
#[must_use]
pub(crate) struct Shut(Disk);

impl Drop for Shut {
    fn drop(&mut self) {
        self.0.state().gate = Gate::default();
        self.0.0.changed.notify_all();
    }
}

/// Whether syncs are held, and how many may pass all the same.
#[derive(Debug, Default)]
struct Gate {
    shut: bool,
    waiting: bool,
    passes: usize,
}

/// What a power cut leaves of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nothing.
    Dropped,
    /// Some of it, in any order, sector by sector.
    Torn(u64),
    /// All of it.
    Applied,
}

impl Change {
    pub(crate) fn is_of(&self, file: File) -> bool {
        self.file == file
    }

    pub(crate) fn apply(&self, image: &mut Image) {
        let bytes = image.of_mut(self.file);
        match &self.what {
            What::Write { offset, bytes: new } => {
                let end = offset + new.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(new);
            }
            What::Length(length) => bytes.resize(*length, 0),
        }
    }

    /// The sectors of a write that reach the disk when it is interrupted.
    fn torn(&self, random: &mut Random) -> Vec<Self> {
        let What::Write { offset, bytes } = &self.what else { return Vec::new() };
        let (mut start, end) = (*offset, offset + bytes.len());
        let mut parts = Vec::new();
        while start < end {
            let stop = end.min((start / SECTOR + 1) * SECTOR);
            if random.percent(50) {
                let bytes = bytes[start - offset..stop - offset].into();
                let what = What::Write { offset: start, bytes };
                parts.push(Self { file: self.file, what });
            }
            start = stop;
        }
        parts
    }
}

impl Cut {
    /// What is on the disk when power comes back.
    pub(crate) fn image(self, synced: &Image, unsynced: &[Change]) -> Image {
        let mut image = synced.clone();
        match self {
            Self::Dropped => {}
            Self::Applied => unsynced.iter().for_each(|change| change.apply(&mut image)),
            Self::Torn(seed) => {
                let mut random = Random::new(seed);
                let kept = random.pick(&[15, 50, 85]);
                for change in unsynced {
                    if random.percent(kept) {
                        change.apply(&mut image);
                    } else if random.percent(50) {
                        let parts = change.torn(&mut random);
                        parts.iter().for_each(|part| part.apply(&mut image));
                    }
                }
            }
        }
        image
    }
}

impl Disk {
    /// A disk with these bytes on it, all synced.
    pub(crate) fn new(image: Image) -> Self {
        let disk = Self::default();
        let mut state = disk.state();
        state.synced = image.clone();
        state.live = image;
        drop(state);
        disk
    }

    /// The same, with a record of everything that happens.
    pub(crate) fn recording(image: Image) -> Self {
        let disk = Self::new(image);
        disk.state().story = Some(Vec::new());
        disk
    }

    /// The same, with operations that fail.
    pub(crate) fn failing(image: Image, fault: Fault) -> Self {
        let disk = Self::new(image);
        disk.fail(fault);
        disk
    }

    /// Lets operations fail from now on, counted from the first of all.
    pub(crate) fn fail(&self, fault: Fault) {
        self.state().fault = Some(fault);
    }

    /// What is on it after a power cut.
    pub(crate) fn after(&self, cut: Cut) -> Image {
        let state = self.state();
        cut.image(&state.synced, &state.unsynced)
    }

    /// What a reader sees.
    pub(crate) fn live(&self) -> Image {
        self.state().live.clone()
    }

    /// The file with the truth.
    pub(crate) fn truth(&self) -> OnDisk {
        OnDisk { disk: self.clone(), file: File::Truth }
    }

    /// The file with the index.
    pub(crate) fn index(&self) -> OnDisk {
        OnDisk { disk: self.clone(), file: File::Index }
    }

    /// What has happened since it began to record.
    pub(crate) fn story(&self) -> Vec<Event> {
        self.state().story.clone().unwrap_or_default()
    }

    pub(crate) fn note(&self, event: Event) {
        if let Some(story) = &mut self.state().story {
            story.push(event);
        }
    }

    /// Whether an operation has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().struck
    }

    /// Operations there were so far.
    pub(crate) fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Syncs that were completed.
    pub(crate) fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Holds every sync of the truth until it is let through, or the gate opens.
    pub(crate) fn shut(&self) -> Shut {
        self.state().gate.shut = true;
        Shut(self.clone())
    }

    /// Whether a sync is being held.
    pub(crate) fn is_holding(&self) -> bool {
        self.state().gate.waiting
    }

    /// Waits until a sync is held.
    pub(crate) fn await_sync(&self) {
        let state = self.state();
        let (state, timeout) = self
            .0
            .changed
            .wait_timeout_while(state, PATIENCE, |state| !state.gate.waiting)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "no sync came");
        drop(state);
    }

    /// Lets one held sync pass.
    pub(crate) fn pass(&self) {
        let mut state = self.state();
        state.gate.passes += 1;
        state.gate.waiting = false;
        drop(state);
        self.0.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the gate lets a sync through.
    fn pass_gate<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.gate.waiting = true;
        self.0.changed.notify_all();
        let mut state = self
            .0
            .changed
            .wait_while(state, |state| state.gate.shut && state.gate.passes == 0)
            .unwrap_or_else(PoisonError::into_inner);
        state.gate.passes = state.gate.passes.saturating_sub(1);
        state.gate.waiting = false;
        state
    }

    /// Counts an operation, and fails it if it is to fail.
    fn operate(&self, is_sync: bool) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        state.operations += 1;
        let fails = match state.fault {
            None => false,
            Some(Fault::Once(number)) => state.operations == number,
            Some(Fault::From(number)) => state.operations >= number,
            Some(Fault::Syncs) => is_sync,
        };
        state.struck |= fails;
        if fails { Err(io::Error::other("the disk failed")) } else { Ok(state) }
    }

    fn change(&self, change: Change) -> io::Result<()> {
        match self.operate(false) {
            Ok(mut state) => {
                state.take(change);
                Ok(())
            }
            Err(error) => {
                // A write that fails may have written some of it.
                let mut state = self.state();
                let mut random = Random::new(state.operations);
                change.torn(&mut random).into_iter().for_each(|part| state.take(part));
                Err(error)
            }
        }
    }
}

impl State {
    fn take(&mut self, change: Change) {
        change.apply(&mut self.live);
        if let Some(story) = &mut self.story {
            story.push(Event::Changed(change.clone()));
        }
        self.unsynced.push(change);
    }

    fn sync(&mut self, file: File) {
        let Self { synced, unsynced, .. } = self;
        unsynced.iter().filter(|change| change.is_of(file)).for_each(|change| change.apply(synced));
        unsynced.retain(|change| !change.is_of(file));
        self.syncs += 1;
        if let Some(story) = &mut self.story {
            story.push(Event::Synced(file));
        }
    }
}

/// A file of a disk, as a database uses it.
#[derive(Debug)]
pub(crate) struct OnDisk {
    disk: Disk,
    file: File,
}

impl OnDisk {
    fn change(&self, what: What) -> io::Result<()> {
        self.disk.change(Change { file: self.file, what })
    }
}

impl StorageBackend for OnDisk {
    fn len(&self) -> io::Result<u64> {
        let state = self.disk.operate(false)?;
        u64::try_from(state.live.of(self.file).len()).map_err(io::Error::other)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.disk.operate(false)?;
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        match state.live.of(self.file).get(start..start.saturating_add(out.len())) {
            Some(bytes) => out.copy_from_slice(bytes),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(What::Length(usize::try_from(len).map_err(io::Error::other)?))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        self.change(What::Write { offset, bytes: data.into() })
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.operate(true)?;
        if state.gate.shut && self.file == File::Truth {
            state = self.disk.pass_gate(state);
        }
        state.sync(self.file);
        Ok(())
    }
}
