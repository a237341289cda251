//! Export: what a session sees of a query, with its history and state, as one `.mg` file or several.
//!
//! The grains are those of one view, whatever is written meanwhile. They are found once to be
//! put in order, looked at once to plan a file, and read once to write it: what is in memory does
//! not grow with their number, but for the four bytes a grain that the offsets of a file take.

use std::ffi::OsString;
use std::fs;
use std::io::{BufWriter, Write};
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grainstore_cal::{Cancel, Query, Visibility};
use grainstore_format::container::{
    Carried, Compression, MAX_REGION_BYTES, Plan, Planned, Writer, Written,
};
use grainstore_format::{ContentAddress, EpochMs, GrainRef};
use grainstore_index::Sequence;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::leaving::{Leaving, Recipient};
use super::order::{Merge, Place, Sorted, Sorter};
use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::disk::directory;
use crate::handle::session::Session;
use crate::read::query::{Halt, Walk};
use crate::state::view::{View, with_fields};
use crate::write::plan::own_terms;

/// Grains between two looks at whether to stop, and two words of progress.
const CHECK_EVERY: u64 = 256;

/// How an export is made.
#[derive(Clone)]
pub struct Exporting<'p> {
    /// How the grains are packed.
    pub compression: Compression,
    /// Bytes of header, offsets and inflated grains of one file at most; what is more goes into the
    /// next. No more than [`MAX_REGION_BYTES`], the limit of the format.
    pub file_bytes: u64,
    /// Stops the work when the host says so.
    pub cancel: Cancel,
    /// Told now and then how many grains of how many are written.
    pub progress: Option<&'p dyn Fn(u64, u64)>,
}

impl Default for Exporting<'_> {
    /// Packed with zstd, in as few files as can be.
    fn default() -> Self {
        Self {
            compression: Compression::Zstd,
            file_bytes: MAX_REGION_BYTES,
            cancel: Cancel::new(),
            progress: None,
        }
    }
}

impl std::fmt::Debug for Exporting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Exporting({:?}, {} bytes)", self.compression, self.file_bytes)
    }
}

/// What an export came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Exported {
    /// Grains in all files.
    pub exported: u64,
    /// The files, in the order of the grains in them.
    pub files: Vec<PathBuf>,
    /// Their bytes.
    pub bytes: u64,
    /// Grains that were left out, because a rule of the store keeps them.
    pub refused: u64,
    /// The names of those rules.
    pub rules: Vec<String>,
}

impl Session {
    /// Writes the grains this session sees that match, superseded, contradicted and retracted ones
    /// too, into a container beside which nothing is needed: it carries their state (OMS 11.7).
    ///
    /// The file takes its name when it is whole and durable, in the place of one that had it. What
    /// does not fit goes into files beside it: `memory.mg`, `memory.2.mg`, `memory.3.mg`. No access
    /// is counted.
    ///
    /// What a rule of the store keeps (OMS Appendix A) is left out and counted, and there is an entry
    /// in the audit log with the rules.
    ///
    /// # Errors
    /// `ERR_POLICY` where rules leave nothing of what matches; `ERR_ACCESS` for a namespace outside the session's; `ERR_CONFLICT` for a file within a store;
    /// `ERR_TIMEOUT` where it was cancelled; `ERR_INTEGRITY`; `ERR_IO`. No file is left then, and
    /// none that was there before is touched, unless the failure was in naming several.
    pub fn export(
        &self,
        to: impl AsRef<Path>,
        query: &Query,
        how: &Exporting<'_>,
    ) -> Result<Exported> {
        self.check_reach(query)?;
        let to = to.as_ref();
        let target = Target::of(to).map_err(|error| error.within(to))?;
        let view = self.view_of_named(self.view()?, query)?;
        let all = Visibility { superseded: true, contradicted: true, retracted: true };
        let query = query.clone().seeing(all).of_any_type();
        let export = Export { session: self, view: &view, how, directory: &target.directory };
        guarded(|| {
            let mut leaving = Leaving::new(self, &view);
            let grains = export.select(&query, &mut leaving)?;
            let (refused, rules) = (leaving.refused, leaving.rules());
            leaving.tell(grains.len())?;
            let (files, exported) = export.write_selected(&query, grains)?;
            Ok(Exported { refused, rules, ..target.name(files, exported)? })
        })
        .map_err(|error| error.within(to))
    }

    /// As [`Session::export`], of the grains at these places of the log those that may leave for whom it is.
    pub(crate) fn export_places(
        &self,
        to: &Path,
        view: &View,
        (places, recipient): (&[Sequence], Recipient),
        how: &Exporting<'_>,
    ) -> Result<Exported> {
        let target = Target::of(to).map_err(|error| error.within(to))?;
        let export = Export { session: self, view, how, directory: &target.directory };
        guarded(|| {
            let mut sorter = Sorter::new(export.directory);
            let mut leaving = Leaving::new(self, view).to(recipient);
            for at in places {
                let place = view.with_blob(*at, |blob| {
                    with_fields(blob, |grain| {
                        let address = ContentAddress::of(blob);
                        let may = leaving.may_of(address, *at, grain)?;
                        may.then(|| export.place(address, grain)).transpose()
                    })
                })?;
                place.map_or(Ok(()), |place| sorter.push(place))?;
            }
            let grains = sorter.finish();
            let (refused, rules) = (leaving.refused, leaving.rules());
            leaving.tell(grains.len())?;
            let files = export.write(&grains)?;
            Ok(Exported { refused, rules, ..target.name(files, grains.len())? })
        })
        .map_err(|error| error.within(to))
    }
}

/// Where the files go.
struct Target {
    directory: PathBuf,
    file: PathBuf,
}

/// A file that is written and has no name yet.
struct Finished {
    file: NamedTempFile,
    written: Written,
}

impl Target {
    fn of(to: &Path) -> Result<Self> {
        let refused = |message: &str| {
            Error::new(ErrorKind::Conflict, message)
                .with_hint("name a file outside of every store, such as memory.mg")
        };
        if to.file_name().is_none() {
            return Err(refused("this names no file"));
        }
        check_replaceable(to)?;
        let directory = match to.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            _ => Path::new("."),
        };
        let real = fs::canonicalize(directory).map_err(|error| {
            Error::from(error).with_hint("make the directory of the file first, or name another")
        })?;
        for above in real.ancestors() {
            if directory::has_store(above)? {
                return Err(refused("this lies in a store, whose files must not be replaced"));
            }
        }
        Ok(Self { directory: directory.to_owned(), file: to.to_owned() })
    }

    /// Gives files their names, durably.
    fn name(&self, files: Vec<Finished>, exported: u64) -> Result<Exported> {
        let list = Vec::with_capacity(files.len());
        let mut named = Exported { exported, files: list, bytes: 0, refused: 0, rules: Vec::new() };
        for number in 1..=files.len() {
            check_replaceable(&self.numbered(number))?;
        }
        for (number, Finished { file, written }) in files.into_iter().enumerate() {
            let name = self.numbered(number + 1);
            file.persist(&name).map_err(|failed| failed.error)?;
            named.bytes += written.bytes;
            named.files.push(name);
        }
        directory::sync(&self.directory)?;
        Ok(named)
    }

    /// `memory.mg`, then `memory.2.mg`.
    fn numbered(&self, number: usize) -> PathBuf {
        if number == 1 {
            return self.file.clone();
        }
        let mut name = OsString::from(self.file.file_stem().unwrap_or_default());
        name.push(format!(".{number}"));
        if let Some(extension) = self.file.extension() {
            name.push(".");
            name.push(extension);
        }
        self.file.with_file_name(name)
    }
}

/// One export on one view.
struct Export<'e, 'p> {
    session: &'e Session,
    view: &'e View,
    how: &'e Exporting<'p>,
    directory: &'e Path,
}

impl Export<'_, '_> {
    /// The grains that match, in the order of a container.
    fn select(&self, query: &Query, leaving: &mut Leaving<'_>) -> Result<Sorted> {
        let mut sorter = Sorter::new(self.directory);
        if query.is_impossible() {
            return Ok(sorter.finish());
        }
        let mut walk = Walk::new((self.session, self.view), query, &self.how.cancel, 0)?;
        let mut failed = None;
        let ended = walk.run(&mut |candidate| {
            let may = leaving.may(candidate.address, candidate.grain, candidate.state);
            let taken = may.and_then(|may| match may {
                true => sorter.push(self.place(candidate.address, candidate.grain)?),
                false => Ok(()),
            });
            match taken {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        ended.map(drop)?;
        failed.map_or_else(|| Ok(sorter.finish()), Err)
    }

    fn place(&self, address: ContentAddress, grain: &GrainRef<'_>) -> Result<Place> {
        let second = i64::from(grain.header().created_at_sec) * 1000;
        let created_at = EpochMs::new(grain.int("created_at").unwrap_or(second));
        match self.view.sequence_of(&address)? {
            Some(sequence) => Ok(Place { created_at, address, sequence }),
            None => Err(Error::integrity(format!("the index does not know {address}"))),
        }
    }

    /// Writes what was selected. Where somebody's key is destroyed meanwhile it begins again, without what
    /// was theirs.
    fn write_selected(&self, query: &Query, grains: Sorted) -> Result<(Vec<Finished>, u64)> {
        let mut grains = grains;
        loop {
            match self.write(&grains) {
                Err(error) if error.is_erased() => {
                    self.how.cancel.check().map_err(Halt::Stopped)?;
                    let left = self.select(query, &mut Leaving::new(self.session, self.view))?;
                    if left.len() >= grains.len() {
                        return Err(error);
                    }
                    grains = left;
                }
                written => return Ok((written?, grains.len())),
            }
        }
    }

    /// Writes them into files without names.
    fn write(&self, grains: &Sorted) -> Result<Vec<Finished>> {
        let mut planning = grains.iter()?.peekable();
        let mut writing = Counted { grains: grains.iter()?, done: 0, total: grains.len() };
        let mut files = Vec::new();
        loop {
            let (plan, stated) = self.plan(&mut planning)?;
            files.push(self.file(plan, &mut writing, &stated)?);
            if planning.peek().is_none() {
                return Ok(files);
            }
        }
    }

    /// What goes into the next file, and which grains of it have a state to carry.
    fn plan(&self, grains: &mut Peekable<Merge<'_>>) -> Result<(Plan, Sorted)> {
        let mut plan = Plan::new(self.how.compression).limited_to(self.how.file_bytes);
        let mut stated = Sorter::new(self.directory);
        while let Some(next) = grains.peek() {
            let place = *next.as_ref().map_err(Clone::clone)?;
            let planned = portable(self.view, place.sequence, |entry| {
                Ok(Planned::of(entry, place.created_at)?)
            })?;
            if planned.address != place.address {
                return Err(Error::integrity(format!(
                    "the log has another grain for {}",
                    place.address
                )));
            }
            if !plan.add(&planned)? {
                break;
            }
            if !self.carried(place.sequence)?.is_default() {
                // A manifest is in the order of addresses alone.
                stated.push(Place { created_at: EpochMs::new(0), ..place })?;
            }
            grains.next();
            self.tick(plan.len() as u64)?;
        }
        let entries = u32::try_from(stated.len()).unwrap_or(u32::MAX);
        Ok((plan.with_manifest(entries), stated.finish()))
    }

    /// Writes one file.
    fn file(&self, plan: Plan, grains: &mut Counted<'_>, stated: &Sorted) -> Result<Finished> {
        let mut temporary = unnamed(self.directory)?;
        let count = plan.len();
        let mut writer = Writer::new(BufWriter::new(temporary.as_file_mut()), plan)?;
        for _ in 0..count {
            let Some(place) = grains.next() else { break };
            portable(self.view, place?.sequence, |entry| Ok(writer.push(entry)?))?;
            if grains.done.is_multiple_of(CHECK_EVERY) || grains.done == grains.total {
                self.tell(grains);
                self.tick(0)?;
            }
        }
        let manifest = stated.iter()?.map(|place| {
            let Place { address, sequence, .. } = place?;
            Ok::<_, Error>((address, self.carried(sequence)?))
        });
        let (mut buffered, written) = writer.finish(manifest)?;
        buffered.flush()?;
        drop(buffered);
        temporary.as_file().sync_all()?;
        Ok(Finished { file: temporary, written })
    }

    /// What the manifest says of a grain.
    fn carried(&self, sequence: Sequence) -> Result<Carried> {
        let access = self.session.store().inner().access_of(self.view, sequence)?;
        let state = self.view.state_at(sequence)?;
        // A grain whose policy declares a hold is among those that protect it.
        let hold_lifted = !state.held
            && self.view.roots_at(sequence)?.contains(&sequence)
            && self.view.with_blob(sequence, |blob| Ok(own_terms(blob)?.1))?;
        Ok(Carried {
            state,
            access_count: access.count,
            last_accessed_at: access.last_accessed_at,
            hold_lifted,
            embedded: self.view.embedded_at(sequence)?,
        })
    }

    fn tell(&self, grains: &Counted<'_>) {
        if let Some(progress) = self.how.progress {
            progress(grains.done, grains.total);
        }
    }

    /// Looks now and then whether to stop.
    fn tick(&self, done: u64) -> Result<()> {
        if done.is_multiple_of(CHECK_EVERY) {
            self.how.cancel.check().map_err(Halt::Stopped)?;
        }
        Ok(())
    }
}

/// The grains that are being written, counted.
struct Counted<'s> {
    grains: Merge<'s>,
    done: u64,
    total: u64,
}

impl Iterator for Counted<'_> {
    type Item = Result<Place>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.grains.next();
        self.done += u64::from(next.is_some());
        next
    }
}

/// The bytes a grain leaves the store with: its blob, or the envelope it came in (ruling 15).
fn portable<T>(
    view: &View,
    sequence: Sequence,
    read: impl FnOnce(&[u8]) -> Result<T>,
) -> Result<T> {
    view.with_blob(sequence, |blob| match view.envelope(sequence, blob)? {
        Some(envelope) => read(envelope.bytes()),
        None => read(blob),
    })
}

/// Whether a name is free, or that of a regular file: a device, a pipe or a link would give way to the file
/// that takes its name.
fn check_replaceable(name: &Path) -> Result<()> {
    let kind = match fs::symlink_metadata(name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        found => found?.file_type(),
    };
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a link",
        _ => "a pipe, a device or a socket",
    };
    let message = format!("{} is {what}, which is not replaced", name.display());
    let hint = "name a file that is not there, or a regular one to be replaced";
    Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
}

/// A file in this directory that goes away unless it is given a name, with the permissions any
/// new file has.
fn unnamed(directory: &Path) -> Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".mg.partial");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    Ok(builder.tempfile_in(directory)?)
}
