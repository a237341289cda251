//! Diagnosis of a store's environment: directory, lock and permissions, leftovers, clean closing, use of the
//! files, and the CAL self-checks. Gives advice for each finding; `verify` checks the data.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::path::Path;

use grainstore_format::EpochMs;
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::directory;
use crate::handle::options::OpenOptions;
use crate::handle::store::Store;
use crate::operate::erase::DueErasure;
use crate::operate::report::StoreStats;

/// Severity of a finding of [`doctor`](fn@doctor).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// In order.
    Good,
    /// Working, but could be better.
    Notice,
    /// Keeps the store from working.
    Bad,
}

/// One finding of [`doctor`](fn@doctor).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Name of the check.
    pub name: &'static str,
    /// Severity.
    pub health: Health,
    /// Observation, in a sentence.
    pub detail: String,
    /// Error code, if the check failed with an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// Advice, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The findings of [`doctor`](fn@doctor), in the order of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// True if no finding is bad.
    pub ok: bool,
    /// The findings.
    pub findings: Vec<Finding>,
}

/// Bytes written to test for disk space: more than a group of ordinary writes needs.
const PROBE_BYTES: usize = 1 << 20;
/// Free bytes of a file below which a compaction is not worthwhile.
const MIN_SLACK_BYTES: u64 = 4 << 20;

/// Most grains named by a finding.
const MAX_NAMED_GRAINS: usize = 20;

/// Unindexed grains from which the full text gets a notice: a store that is closed cleanly leaves fewer.
const MAX_UNINDEXED_GRAINS: u64 = 1024;
/// Advice for a full text far behind the log.
const UNINDEXED_ADVICE: &str = "nothing is lost: the next search by words reads them first, or run `grain reindex`; \
                      where the files under text/ went away, check why";

/// Advice for a store too damaged to be opened.
const DAMAGED_ADVICE: &str = "copy the directory first; `grain verify` tells what is damaged and needs no \
                       index to do so; then restore a backup";

/// Diagnoses the store in a directory, which must not be open elsewhere, and opens it to do so.
///
/// Errors are findings. If the store cannot be opened, the diagnosis ends there.
///
/// ```
/// # use grainstore::prelude::*;
/// use grainstore::{Health, doctor};
///
/// # let dir = tempfile::tempdir()?;
/// Store::open(dir.path(), &OpenOptions::new().create(true))?.close()?;
/// let diagnosis = doctor(dir.path(), &OpenOptions::new());
/// assert!(diagnosis.ok);
/// for finding in diagnosis.findings.iter().filter(|finding| finding.health != Health::Good) {
///     println!("{}: {}", finding.name, finding.detail);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn doctor(path: &Path, options: &OpenOptions) -> Diagnosis {
    let mut examined = DiagnosisBuilder::default();
    if examined.check_directory(path, options.read_only) {
        if !options.read_only {
            examined.check_leftovers(path);
        }
        match Store::open(path, &options.clone().create(false)) {
            Ok(store) => {
                examined.add("lock", Health::Good, "nobody else has the store open", None);
                examined.check_store(&store);
                if let Err(error) = store.close() {
                    examined.add_error("closing", &error);
                }
            }
            Err(error) if error.kind() == ErrorKind::Busy => examined.add_error("lock", &error),
            Err(error) if error.is_integrity() => {
                examined.add_error("opening", &error.with_hint(DAMAGED_ADVICE));
            }
            Err(error) => examined.add_error("opening", &error),
        }
    }
    examined.finish()
}

impl Store {
    /// Diagnoses this open store: permissions and disk space, whether it was closed cleanly, and the use of
    /// its files. For a closed one there is [`doctor`](fn@doctor).
    #[must_use]
    pub fn doctor(&self) -> Diagnosis {
        let mut examined = DiagnosisBuilder::default();
        if examined.check_directory(self.path(), self.is_read_only()) {
            examined.check_store(self);
        }
        examined.finish()
    }
}

/// A diagnosis in progress.
#[derive(Debug, Default)]
struct DiagnosisBuilder {
    findings: Vec<Finding>,
}

impl DiagnosisBuilder {
    fn add(
        &mut self,
        name: &'static str,
        health: Health,
        detail: impl Into<String>,
        advice: Option<&str>,
    ) {
        let (detail, advice) = (detail.into(), advice.map(str::to_owned));
        self.findings.push(Finding { name, health, detail, code: None, advice });
    }

    fn finish(self) -> Diagnosis {
        let ok = self.findings.iter().all(|finding| finding.health < Health::Bad);
        Diagnosis { ok, findings: self.findings }
    }

    /// Adds a finding for an error.
    fn add_error(&mut self, name: &'static str, error: &Error) {
        self.findings.push(Finding {
            name,
            health: Health::Bad,
            detail: error.to_string(),
            code: Some(error.code()),
            advice: Some(error.hint().to_owned()),
        });
    }

    /// Checks the directory and its files. Returns `true` if there is a store to open.
    fn check_directory(&mut self, path: &Path, read_only: bool) -> bool {
        match directory::has_store(path) {
            Ok(true) => {}
            Ok(false) => {
                let message = format!("there is no store at {}", path.display());
                self.add_error("directory", &Error::new(ErrorKind::NotFound, message));
                return false;
            }
            Err(error) => {
                self.add_error("directory", &error.with_hint("check the rights to the path"));
                return false;
            }
        }
        if read_only {
            let detail =
                format!("{} is read alone: whether it takes more is not tried", path.display());
            self.add("directory", Health::Good, detail, None);
            return true;
        }
        match check_disk_space(path) {
            Ok(()) => {
                let detail = format!("{} takes {PROBE_BYTES} bytes and syncs them", path.display());
                self.add("directory", Health::Good, detail, None);
            }
            Err(error) => {
                let hint = "check the rights to the directory, and the free space of its disk";
                self.add_error("directory", &error.with_hint(hint));
            }
        }
        self.check_permissions(path);
        true
    }

    /// Checks the permissions of the files.
    fn check_permissions(&mut self, path: &Path) {
        let named = [path.to_owned(), directory::truth_path(path), directory::index_path(path)];
        for file in named {
            let Ok(rights) = fs::metadata(&file).map(|metadata| metadata.permissions()) else {
                continue;
            };
            let name = file.display();
            if rights.readonly() {
                let advice = "give yourself the right to write to it";
                self.add("rights", Health::Bad, format!("{name} is read-only"), Some(advice));
            } else if let Some(mode) = foreign_write_mode(&rights) {
                let detail = format!("{name} can be written by others (mode {mode:o})");
                self.add("rights", Health::Notice, detail, Some("chmod go-w"));
            }
        }
        if self.findings.iter().all(|finding| finding.name != "rights") {
            self.add("rights", Health::Good, "the files can be written by their owner alone", None);
        }
    }

    /// Checks for files of interrupted work; opening the store removes them.
    fn check_leftovers(&mut self, path: &Path) {
        match directory::leftovers(path) {
            Ok(files) if files.is_empty() => {
                self.add("leftovers", Health::Good, "no unfinished copies", None);
            }
            Ok(files) => {
                let names: Vec<_> = files.iter().filter_map(|file| file.file_name()).collect();
                let detail = format!("unfinished copies, removed now: {names:?}");
                self.add("leftovers", Health::Notice, detail, Some("start again what made them"));
            }
            Err(error) => self.add_error("leftovers", &error),
        }
    }

    /// Checks an open store.
    fn check_store(&mut self, store: &Store) {
        // A store of an earlier format that is opened to be read keeps it.
        match store.stats() {
            Ok(StoreStats { format, .. }) => {
                self.add("format", Health::Good, format!("store format {format}"), None);
            }
            Err(error) => self.add_error("format", &error),
        }
        if store.was_repaired() {
            let detail = "it was not closed the last time, and was put right";
            self.add("closing", Health::Notice, detail, Some("run `grain verify`"));
        } else {
            self.add("closing", Health::Good, "it was closed the last time", None);
        }
        if let Err(error) = self.check_usage(store) {
            self.add_error("reading", &error);
        }
        match store.check_cal() {
            Ok(findings) => self.findings.extend(findings),
            Err(error) => self.add_error("cal", &error),
        }
    }

    fn check_usage(&mut self, store: &Store) -> Result<()> {
        let stats = store.stats()?;
        let detail = format!(
            "{} of {} grains are not folded into the index yet",
            stats.tail_grains, stats.grains
        );
        self.add("tail", Health::Good, detail, None);
        self.check_text(store, &stats)?;
        self.check_vectors(store, &stats);
        if stats.unscrubbed > 0 {
            let detail = format!("of {} erasures something is still on the disk", stats.unscrubbed);
            let advice = "it goes when nobody writes, or when the store is closed; if it stays, run \
                          `grain verify`";
            self.add("erasure", Health::Notice, detail, Some(advice));
        }
        self.check_due_erasures(&store.due_erasures()?, store.inner().clock().now());
        let pages = store.pages()?;
        for (name, file) in [("truth", pages.truth), ("index", pages.index)] {
            let slack = file.slack_bytes();
            let detail = format!(
                "{} of {} bytes of the {name} are in use",
                file.file_bytes.saturating_sub(slack),
                file.file_bytes
            );
            let wasteful = slack >= MIN_SLACK_BYTES && slack > file.file_bytes / 2;
            match wasteful {
                true => self.add("pages", Health::Notice, detail, Some("run `grain compact`")),
                false => self.add("pages", Health::Good, detail, None),
            }
        }
        Ok(())
    }

    /// Checks for grains to be erased because the consent they rest on was withdrawn.
    fn check_due_erasures(&mut self, all: &[DueErasure], now: EpochMs) {
        let named = |which: &dyn Fn(&&DueErasure) -> bool| {
            let found: Vec<_> = all.iter().filter(which).collect();
            let names: Vec<_> =
                found.iter().take(MAX_NAMED_GRAINS).map(|it| it.address.to_string()).collect();
            let more = found.len().saturating_sub(names.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!found.is_empty()).then(|| (found.len(), format!("{}{more}", names.join(", "))))
        };
        if let Some((count, names)) = named(&|it| !it.kept && it.latest <= now) {
            let detail = format!("{count} grains are overdue for erasure: {names}");
            self.add("erasure", Health::Notice, detail, Some("run `grain sweep`"));
        }
        if let Some((count, names)) = named(&|it| !it.kept && it.due <= now && now < it.latest) {
            let detail = format!("{count} grains are due for erasure: {names}");
            self.add("erasure", Health::Notice, detail, Some("run `grain sweep`"));
        }
        if let Some((count, names)) = named(&|it| !it.kept && now < it.due) {
            let detail = format!("{count} grains rest on consent that others withdrew: {names}");
            let advice = "look at the withdrawals, which are marked for review; what is not granted anew \
                          is erased when its time is over";
            self.add("erasure", Health::Notice, detail, Some(advice));
        }
        if let Some((count, names)) = named(&|it| it.kept && it.due <= now) {
            let detail = format!("{count} grains are due for erasure and have to be kept: {names}");
            self.add("erasure", Health::Notice, detail, Some("see who holds them, and until when"));
        }
    }

    /// Checks the vectors.
    fn check_vectors(&mut self, store: &Store, stats: &StoreStats) {
        let remade = store.remade_graphs();
        if remade > 0 {
            let detail =
                format!("{remade} saved graphs of vectors were of no use and are made again");
            self.add("vectors", Health::Notice, detail, Some("check the disk under vectors/"));
        }
        let outdated: usize = stats.vectors.iter().map(|space| space.outdated).sum();
        if outdated > 0 {
            let detail = format!(
                "{outdated} vectors are others than those their saved graph was made of; it serves \
                 without them until it has taken them in"
            );
            let advice = "files under vectors/ belong to the store as it was when they were saved: \
                          restore them with it, or not at all";
            self.add("vectors", Health::Notice, detail, Some(advice));
        }
        for model in &stats.leaving_models {
            let detail = format!("the removal of the vectors of {model} has not ended");
            self.add("vectors", Health::Notice, detail, Some("run `grain remove-vectors` again"));
        }
        if let (Some(serving), [_, _, ..]) = (&stats.serving_model, &*stats.vectors) {
            let detail = format!(
                "of {} models {serving} answers what is asked without naming one",
                stats.vectors.len()
            );
            self.add("vectors", Health::Good, detail, None);
        }
    }

    /// Checks the full text.
    fn check_text(&mut self, store: &Store, stats: &StoreStats) -> Result<()> {
        if let Some(reason) = store.rebuilt_text()? {
            let detail = format!("the full text was built anew: {reason}");
            self.add("text", Health::Notice, detail, Some("check the disk under text/"));
            return Ok(());
        }
        let detail = format!(
            "{} documents in {} segments; {} grains are not followed yet",
            stats.text_documents, stats.text_segments, stats.text_behind
        );
        match stats.text_behind >= MAX_UNINDEXED_GRAINS {
            true => self.add("text", Health::Notice, detail, Some(UNINDEXED_ADVICE)),
            false => self.add("text", Health::Good, detail, None),
        }
        Ok(())
    }
}

/// Writes a file beside the store's, syncs it and removes it.
fn check_disk_space(path: &Path) -> Result<()> {
    let file = directory::probe_path(path, std::process::id());
    let written = File::create(&file).and_then(|mut probe| {
        probe.write_all(&vec![0; PROBE_BYTES])?;
        probe.sync_all()
    });
    directory::remove(&file)?;
    Ok(written?)
}

/// Returns the mode of a file that users other than its owner may write to.
#[cfg(unix)]
fn foreign_write_mode(rights: &Permissions) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = rights.mode() & 0o777;
    (mode & 0o022 != 0).then_some(mode)
}

/// Other systems have no such mode bits.
#[cfg(not(unix))]
fn foreign_write_mode(_: &Permissions) -> Option<u32> {
    None
}
