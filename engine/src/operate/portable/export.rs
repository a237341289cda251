//! Export: what a session sees of a query, with its history and state, as one `.mg` file or several.
//!
//! All grains come from one view, regardless of concurrent writes. They are found once and sorted, read once
//! to plan a file, and read once to write it: memory does not grow with their number, except for the four
//! bytes a grain of a file's offset table.

use std::ffi::OsString;
use std::fs;
use std::io::{BufWriter, Seek, Write};
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use grainstore_cal::{CancelHandle, Query, Visibility};
use grainstore_format::container::{
    Compression, ContainerPlan, ContainerReport, ContainerWriter, MAX_REGION_BYTES, ManifestEntry,
    PlannedEntry,
};
use grainstore_format::{ContentAddress, EpochMs, GrainRef};
use grainstore_index::Sequence;
use serde::{Deserialize, Serialize};
use tempfile::{NamedTempFile, TempPath};

use super::export_filter::{ExportFilter, Recipient};
use super::external_sort::{ExternalSorter, GrainPosition, RunMerge, SortedGrains};
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::blob::with_fields;
use crate::disk::directory;
use crate::handle::session::Session;
use crate::read::query::{CandidateScan, ScanError};
use crate::state::view::View;
use crate::write::plan::own_protection;

/// Grains between two checks for cancellation, and two reports of progress.
const CHECK_INTERVAL_GRAINS: u64 = 256;

/// Options of [`Session::export`].
#[derive(Clone)]
pub struct ExportOptions<'p> {
    /// Compression of the grains.
    pub compression: Compression,
    /// Most bytes of header, offsets and uncompressed grains in one file; further grains go into the next. At
    /// most [`MAX_REGION_BYTES`], the limit of the format.
    pub file_bytes: u64,
    /// Cancels the export.
    pub cancel: CancelHandle,
    /// Called from time to time with the number of grains written, and of all.
    pub progress: Option<&'p dyn Fn(u64, u64)>,
}

impl Default for ExportOptions<'_> {
    /// Compressed with zstd, in as few files as possible.
    fn default() -> Self {
        Self {
            compression: Compression::Zstd,
            file_bytes: MAX_REGION_BYTES,
            cancel: CancelHandle::new(),
            progress: None,
        }
    }
}

impl std::fmt::Debug for ExportOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Exporting({:?}, {} bytes)", self.compression, self.file_bytes)
    }
}

/// The result of [`Session::export`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExportReport {
    /// Grains in all files.
    pub exported: u64,
    /// The files, in the order of their grains.
    pub files: Vec<PathBuf>,
    /// Total size of the files, in bytes.
    pub bytes: u64,
    /// Grains that were left out, because a rule of the store refuses their export.
    pub refused: u64,
    /// The names of those rules.
    pub rules: Vec<String>,
}

impl Session {
    /// Writes the matching grains that this session sees, superseded, contradicted and retracted ones
    /// included, with their state, into a self-contained container (OMS 11.7).
    ///
    /// The file is renamed once it is complete and durable, and replaces one of that name. What does not fit
    /// goes into further files: `memory.mg`, `memory.2.mg`, `memory.3.mg`. No access is counted.
    ///
    /// Grains whose export a rule of the store refuses (OMS Appendix A) are left out and counted, and an
    /// audit entry names the rules.
    ///
    /// ```
    /// use grainstore::ExportOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path().join("memory"), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// session.put(grain)?;
    /// let file = dir.path().join("alice.mg");
    /// let alice = Query::default().when(Predicate::text_is("subject", "alice")?);
    /// let report = session.export(&file, &alice, &ExportOptions::default())?;
    /// assert_eq!((report.exported, report.files), (1, vec![file]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_POLICY` if rules refuse every matching grain; `ERR_ACCESS` for a namespace outside the session's;
    /// `ERR_CONFLICT` for a file within a store; `ERR_TIMEOUT` if it was cancelled; `ERR_INTEGRITY`;
    /// `ERR_IO`. On an error no file is left, and no existing one is changed, unless renaming one of several
    /// files failed.
    pub fn export(
        &self,
        to: impl AsRef<Path>,
        query: &Query,
        how: &ExportOptions<'_>,
    ) -> Result<ExportReport> {
        self.check_scope(query)?;
        let to = to.as_ref();
        let target = ExportTarget::of(to).map_err(|error| error.at_path(to))?;
        let export = ExportPlace { directory: &target.directory, name: Some(&target.file) };
        let named = || target.rename_files(self.exported(export, query, how)?);
        catch_storage_panic(named).map_err(|error| error.at_path(to))
    }

    /// Exports like [`Session::export`] into one file that has no name and is gone once it is closed: what
    /// ends the process, even at once, leaves nothing of it. It lies in the directory for temporary files.
    /// Returns it open at its beginning.
    ///
    /// # Errors
    /// As [`Session::export`]; `ERR_TOO_LARGE` for what takes several files.
    pub fn export_unnamed(
        &self,
        query: &Query,
        how: &ExportOptions<'_>,
    ) -> Result<(fs::File, ExportReport)> {
        self.check_scope(query)?;
        let directory = std::env::temp_dir();
        let export = ExportPlace { directory: &directory, name: None };
        let unnamed = || {
            let (files, report) = self.exported(export, query, how)?;
            let count = files.len();
            let mut files = files.into_iter();
            let (Some(UnnamedFile { mut file, .. }), None) = (files.next(), files.next()) else {
                let message = format!("the grains take {count} files, and this is one");
                let kind = ErrorKind::Format(grainstore_format::ErrorKind::TooLarge);
                return Err(Error::new(kind, message)
                    .with_hint("export to a file with a name, or fewer grains"));
            };
            file.rewind()?;
            Ok((file, report))
        };
        catch_storage_panic(unnamed).map_err(|error| error.at_path(&directory))
    }

    /// Writes the files of an export, and reports them without their names.
    fn exported(
        &self,
        place: ExportPlace<'_>,
        query: &Query,
        how: &ExportOptions<'_>,
    ) -> Result<(Vec<UnnamedFile>, ExportReport)> {
        let view = self.view_with_named_users(self.view()?, query)?;
        let all = Visibility { superseded: true, contradicted: true, retracted: true };
        let query = query.clone().seeing(all).of_any_type();
        let export = Exporter { session: self, view: &view, how, place };
        let mut leaving = ExportFilter::new(self, &view);
        let grains = export.select(&query, &mut leaving)?;
        let (refused, rules) = (leaving.refused, leaving.rules());
        leaving.audit(grains.len())?;
        let (files, exported) = export.write_selected(&query, grains)?;
        let report = report(&files, exported, (refused, rules));
        Ok((files, report))
    }

    /// Exports like [`Session::export`] those of the grains at these sequences that the recipient may get.
    pub(crate) fn export_sequences(
        &self,
        to: &Path,
        view: &View,
        (places, recipient): (&[Sequence], Recipient),
        how: &ExportOptions<'_>,
    ) -> Result<ExportReport> {
        let target = ExportTarget::of(to).map_err(|error| error.at_path(to))?;
        let place = ExportPlace { directory: &target.directory, name: Some(&target.file) };
        let export = Exporter { session: self, view, how, place };
        catch_storage_panic(|| {
            let mut sorter = ExternalSorter::new(place.directory);
            let mut leaving = ExportFilter::new(self, view).for_recipient(recipient);
            for at in places {
                let place = view.with_blob(*at, |blob| {
                    with_fields(blob, |grain| {
                        let address = ContentAddress::of(blob);
                        let may = leaving.allows_sequence(address, *at, grain)?;
                        may.then(|| export.position_of(address, grain)).transpose()
                    })
                })?;
                place.map_or(Ok(()), |place| sorter.push(place))?;
            }
            let grains = sorter.finish();
            let (refused, rules) = (leaving.refused, leaving.rules());
            leaving.audit(grains.len())?;
            let files = export.write(&grains)?;
            let report = report(&files, grains.len(), (refused, rules));
            target.rename_files((files, report))
        })
        .map_err(|error| error.at_path(to))
    }
}

/// The name and directory of the files.
struct ExportTarget {
    directory: PathBuf,
    file: PathBuf,
}

/// Where the files are written, before they have their names.
#[derive(Clone, Copy)]
struct ExportPlace<'e> {
    directory: &'e Path,
    /// The name of the first; `None` where they get none.
    name: Option<&'e Path>,
}

/// A complete file that has not its name yet.
struct UnnamedFile {
    file: fs::File,
    /// The name it has until then; `None` if it gets none.
    on_the_way: Option<TempPath>,
    written: ContainerReport,
}

/// The report of an export whose files have no names yet.
fn report(files: &[UnnamedFile], exported: u64, left: (u64, Vec<String>)) -> ExportReport {
    let bytes = files.iter().map(|file| file.written.bytes).sum();
    let (refused, rules) = left;
    ExportReport { exported, files: Vec::new(), bytes, refused, rules }
}

impl ExportTarget {
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
        fs::canonicalize(directory).map_err(|error| {
            Error::from(error).with_hint("make the directory of the file first, or name another")
        })?;
        directory::check_outside(to)?;
        let target = Self { directory: directory.to_owned(), file: to.to_owned() };
        clear_partials(&target)?;
        Ok(target)
    }

    /// Renames the files to their names, durably.
    fn rename_files(
        &self,
        (files, report): (Vec<UnnamedFile>, ExportReport),
    ) -> Result<ExportReport> {
        let mut named = report;
        for number in 1..=files.len() {
            check_replaceable(&self.numbered(number))?;
        }
        for (number, UnnamedFile { on_the_way, .. }) in files.into_iter().enumerate() {
            let name = self.numbered(number + 1);
            if let Some(on_the_way) = on_the_way {
                on_the_way.persist(&name).map_err(|failed| failed.error)?;
            }
            named.files.push(name);
        }
        directory::sync_directory(&self.directory)?;
        Ok(named)
    }

    /// Returns the name of the nth file: `memory.mg`, then `memory.2.mg`.
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

/// An export from one view.
struct Exporter<'e, 'p> {
    session: &'e Session,
    view: &'e View,
    how: &'e ExportOptions<'p>,
    place: ExportPlace<'e>,
}

impl Exporter<'_, '_> {
    /// Finds the matching grains, in the order of a container.
    fn select(&self, query: &Query, leaving: &mut ExportFilter<'_>) -> Result<SortedGrains> {
        let mut sorter = ExternalSorter::new(self.place.directory);
        if query.is_impossible() {
            return Ok(sorter.finish());
        }
        let mut walk = CandidateScan::new((self.session, self.view), query, &self.how.cancel, 0)?;
        let mut failed = None;
        let ended = walk.run(&mut |candidate| {
            let may = leaving.allows(candidate.address, candidate.grain, candidate.state);
            let taken = may.and_then(|may| match may {
                true => sorter.push(self.position_of(candidate.address, candidate.grain)?),
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

    fn position_of(&self, address: ContentAddress, grain: &GrainRef<'_>) -> Result<GrainPosition> {
        let second = i64::from(grain.header().created_at_sec) * 1000;
        let created_at = EpochMs::new(grain.int("created_at").unwrap_or(second));
        match self.view.sequence_of(&address)? {
            Some(sequence) => Ok(GrainPosition { created_at, address, sequence }),
            None => Err(Error::integrity(format!("the index does not know {address}"))),
        }
    }

    /// Writes the selected grains. If a user is erased meanwhile, it starts again without that user's grains.
    fn write_selected(
        &self,
        query: &Query,
        grains: SortedGrains,
    ) -> Result<(Vec<UnnamedFile>, u64)> {
        let mut grains = grains;
        loop {
            match self.write(&grains) {
                Err(error) if error.is_erased() => {
                    self.how.cancel.check().map_err(ScanError::Stopped)?;
                    let left =
                        self.select(query, &mut ExportFilter::new(self.session, self.view))?;
                    if left.len() >= grains.len() {
                        return Err(error);
                    }
                    grains = left;
                }
                written => return Ok((written?, grains.len())),
            }
        }
    }

    /// Writes the grains into unnamed files.
    fn write(&self, grains: &SortedGrains) -> Result<Vec<UnnamedFile>> {
        let mut planning = grains.iter()?.peekable();
        let mut writing = CountedGrains { grains: grains.iter()?, done: 0, total: grains.len() };
        let mut files = Vec::new();
        loop {
            let (plan, stated) = self.plan_file(&mut planning)?;
            files.push(self.write_file(plan, &mut writing, &stated)?);
            if planning.peek().is_none() {
                return Ok(files);
            }
        }
    }

    /// Plans the next file: its grains, and which of them have a state for the manifest.
    fn plan_file(
        &self,
        grains: &mut Peekable<RunMerge<'_>>,
    ) -> Result<(ContainerPlan, SortedGrains)> {
        let mut plan = ContainerPlan::new(self.how.compression).with_limit(self.how.file_bytes);
        let mut stated = ExternalSorter::new(self.place.directory);
        while let Some(next) = grains.peek() {
            let place = *next.as_ref().map_err(Clone::clone)?;
            let planned = with_exported_bytes(self.view, place.sequence, |entry| {
                Ok(PlannedEntry::of(entry, place.created_at)?)
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
            if !self.manifest_entry(place.sequence)?.is_default() {
                // A manifest is sorted by address only.
                stated.push(GrainPosition { created_at: EpochMs::new(0), ..place })?;
            }
            grains.next();
            self.check_cancelled(plan.len() as u64)?;
        }
        let entries = u32::try_from(stated.len()).unwrap_or(u32::MAX);
        Ok((plan.with_manifest(entries), stated.finish()))
    }

    /// Writes one file.
    fn write_file(
        &self,
        plan: ContainerPlan,
        grains: &mut CountedGrains<'_>,
        stated: &SortedGrains,
    ) -> Result<UnnamedFile> {
        let (mut file, on_the_way) = self.place.begin(self.session.store().is_encrypted())?;
        let count = plan.len();
        let mut writer = ContainerWriter::new(BufWriter::new(&mut file), plan)?;
        for _ in 0..count {
            let Some(place) = grains.next() else { break };
            with_exported_bytes(self.view, place?.sequence, |entry| Ok(writer.push(entry)?))?;
            if grains.done.is_multiple_of(CHECK_INTERVAL_GRAINS) || grains.done == grains.total {
                self.report_progress(grains);
                self.check_cancelled(0)?;
            }
        }
        let manifest = stated.iter()?.map(|place| {
            let GrainPosition { address, sequence, .. } = place?;
            Ok::<_, Error>((address, self.manifest_entry(sequence)?))
        });
        let (mut buffered, written) = writer.finish(manifest)?;
        buffered.flush()?;
        drop(buffered);
        if on_the_way.is_some() {
            file.sync_all()?;
        }
        Ok(UnnamedFile { file, on_the_way, written })
    }

    /// Returns the manifest entry of a grain.
    fn manifest_entry(&self, sequence: Sequence) -> Result<ManifestEntry> {
        let access = self.session.store().inner().access_of(self.view, sequence)?;
        let state = self.view.state_at(sequence)?;
        // A grain whose policy declares a hold is among its own roots.
        let hold_lifted = !state.held
            && self.view.roots_at(sequence)?.contains(&sequence)
            && self.view.with_blob(sequence, |blob| Ok(own_protection(blob)?.1))?;
        Ok(ManifestEntry {
            state,
            access_count: access.count,
            last_accessed_at: access.last_accessed_at,
            hold_lifted,
            embedded: self.view.embeddings_at(sequence)?,
        })
    }

    fn report_progress(&self, grains: &CountedGrains<'_>) {
        if let Some(progress) = self.how.progress {
            progress(grains.done, grains.total);
        }
    }

    /// Checks for cancellation from time to time.
    fn check_cancelled(&self, done: u64) -> Result<()> {
        if done.is_multiple_of(CHECK_INTERVAL_GRAINS) {
            self.how.cancel.check().map_err(ScanError::Stopped)?;
        }
        Ok(())
    }
}

/// The grains in the order of writing, counted.
struct CountedGrains<'s> {
    grains: RunMerge<'s>,
    done: u64,
    total: u64,
}

impl Iterator for CountedGrains<'_> {
    type Item = Result<GrainPosition>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.grains.next();
        self.done += u64::from(next.is_some());
        next
    }
}

/// Passes the exported bytes of a grain to `read`: its blob, or the envelope of a signed one (ruling 15).
fn with_exported_bytes<T>(
    view: &View,
    sequence: Sequence,
    read: impl FnOnce(&[u8]) -> Result<T>,
) -> Result<T> {
    view.with_blob(sequence, |blob| match view.envelope(sequence, blob)? {
        Some(envelope) => read(envelope.bytes()),
        None => read(blob),
    })
}

/// Refuses a name that is taken by anything but a regular file: a device, a pipe or a link would be replaced.
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

/// How the names of files end that are being written.
const PARTIAL: &str = ".mg.partial";
/// Characters between that and the name of the target.
const RANDOM: usize = 6;
/// Bytes of the name of the target that stand before them: a name has 255 at most.
const MAX_NAMED: usize = 200;

/// How the names of files begin that are on their way to this one.
fn on_the_way_to(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let end = name.floor_char_boundary(MAX_NAMED);
    format!(".{}.", name.get(..end).unwrap_or_default())
}

impl ExportPlace<'_> {
    /// Begins a file: one that nobody sees, or one beside the target that goes away unless it is given its name.
    fn begin(&self, encrypted: bool) -> Result<(fs::File, Option<TempPath>)> {
        let Some(name) = self.name else {
            return Ok((tempfile::tempfile_in(self.directory)?, None));
        };
        let (file, on_the_way) = beside(self.directory, name, encrypted)?.into_parts();
        Ok((file, Some(on_the_way)))
    }
}

/// A file beside the target. What comes out of an encrypted store is its owner's alone; else it has the
/// permissions any new file has. Its lock says that somebody is at work on it.
fn beside(directory: &Path, target: &Path, encrypted: bool) -> Result<NamedTempFile> {
    let prefix = on_the_way_to(target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(PARTIAL).rand_bytes(RANDOM);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(match encrypted {
        true => 0o600,
        false => 0o666,
    }));
    #[cfg(not(unix))]
    let _ = encrypted;
    let file = builder.tempfile_in(directory)?;
    // A file system without locks has nobody who looks for them.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Removes what exports to this target have left that were killed: what nobody is at work on.
fn clear_partials(target: &ExportTarget) -> Result<()> {
    let prefix = on_the_way_to(&target.file);
    for entry in fs::read_dir(&target.directory)? {
        let file = entry?;
        let name = file.file_name();
        let random =
            name.to_str().and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(PARTIAL));
        let is_ours = random.is_some_and(|random| {
            random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        if is_ours && file.file_type()?.is_file() {
            let opened = fs::File::open(file.path());
            if opened.is_ok_and(|opened| opened.try_lock().is_ok()) {
                directory::remove(&file.path())?;
            }
        }
    }
    Ok(())
}
