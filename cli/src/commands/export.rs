//! `grain export`: writes grains with their state into a portable `.mg` file.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::{thread, time::Duration};

use clap::Args;
use grainstore::cal::{CancelHandle, Query};
use grainstore::{ExportOptions, ExportReport};
use indicatif::ProgressBar;
use serde_json::json;

use super::followed::followed_call;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::interrupt::Interrupt;
use crate::names::{COMPRESSIONS, named};
use crate::reach::{Reach, as_named, file_name, set};
use grainstore::format::container::Compression;
use grainstore_rpc::conditions_of;

/// Time between two looks at whether the process is to end.
#[cfg(unix)]
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Write the grains the session sees, with their history and state, into a portable .mg file
///
/// The file is replaced once the new one is whole. More than 4 GiB of grains go into several
/// files: memory.mg, memory.2.mg, and so on. With - the file goes to stdout once it is whole, and what became
/// of it to stderr.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The file, such as memory.mg; - for stdout
    #[arg(value_name = "FILE|-")]
    to: PathBuf,
    /// Only grains that meet these conditions, as CAL has them behind WHERE
    #[arg(long = "where", value_name = "CONDITIONS")]
    conditions: Option<String>,
    /// How the grains are packed; those of an unpacked file can be read one by one
    #[arg(long, value_name = "HOW", value_parser = named::<Compression>(COMPRESSIONS), default_value = "zstd")]
    compress: Compression,
}

impl Export {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        let to_stdout = self.to.as_os_str() == "-";
        let Some(session) = reach.session() else {
            return self.relayed(&reach, to_stdout, context);
        };
        let query = match &self.conditions {
            None => Query::default(),
            Some(conditions) => conditions_of(&session, conditions)?,
        };
        if to_stdout {
            check_stdout(context)?;
        }
        let bar = progress_bar(context);
        let progress = |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        };
        let exported = stoppable(|cancel| -> grainstore::Result<_> {
            let compression = self.compress;
            let progress = Some(&progress as &dyn Fn(u64, u64));
            let how = ExportOptions { compression, progress, cancel, ..ExportOptions::default() };
            match to_stdout {
                true => {
                    let (file, exported) = session.export_unnamed(&query, &how)?;
                    Ok((Some(file), exported))
                }
                false => Ok((None, session.export(&self.to, &query, &how)?)),
            }
        });
        bar.finish_and_clear();
        let (file, exported) = exported??;
        if let Some(file) = file {
            // Who reads slowly holds no store.
            drop(session);
            context.close()?;
            return write_to_stdout(file, &exported, context);
        }
        write_exported(&exported, context)
    }

    /// Has the process that has the store open write the file; what goes to stdout by way of a temporary one.
    fn relayed(self, reach: &Reach, to_stdout: bool, context: &mut Context<'_>) -> Result<()> {
        if to_stdout {
            check_stdout(context)?;
        }
        let directory = tempfile::tempdir().map_err(|error| {
            Error::new(Code::Io, format!("no temporary directory: {error}"), "set TMPDIR")
        })?;
        let to = if to_stdout { directory.path().join("exported.mg") } else { self.to };
        let mut asked = json!({ "path": file_name(&to)?, "compress": self.compress.name() });
        if let Some(conditions) = &self.conditions {
            set(&mut asked, "where", json!(conditions));
        }
        let told = followed_call(context, reach, "export", &asked);
        let told = told.map_err(|error| match &self.conditions {
            Some(conditions) => error.of_query(conditions.as_bytes()),
            None => error,
        })?;
        let mut exported: ExportReport = told.read()?;
        exported.files.iter_mut().for_each(|file| *file = as_named(&to, file));
        if !to_stdout {
            return write_exported(&exported, context);
        }
        if exported.files.len() > 1 {
            let message =
                format!("the grains take {} files, and this is one", exported.files.len());
            let hint = "export to a file with a name, or fewer grains";
            return Err(Error::new(Code::TooLarge, message, hint));
        }
        let file = File::open(&to).map_err(|error| {
            Error::new(Code::Io, format!("cannot read {}: {error}", to.display()), "set TMPDIR")
        })?;
        write_to_stdout(file, &exported, context)
    }
}

/// Prints what was written into which files.
fn write_exported(exported: &ExportReport, context: &mut Context<'_>) -> Result<()> {
    context.output.answer(exported, |output| {
        output.line(&format!("{}, {} bytes", written(exported), exported.bytes))?;
        refusal_note(exported.refused, &exported.rules).map_or(Ok(()), |told| output.line(&told))
    })
}

/// Runs what Ctrl-C and a request to end stop, so that nothing half written is left.
pub(super) fn stoppable<T>(run: impl FnOnce(CancelHandle) -> T) -> Result<T> {
    let caught = Interrupt::install()?;
    let over = end_once_over();
    let done = caught.run_cancellable(|cancel| {
        stop_at_end(&cancel);
        run(cancel)
    });
    // What comes now may wait for a reader that has stopped reading.
    over.store(true, Ordering::SeqCst);
    Ok(done)
}

/// Has Ctrl-C and a request to end do what they do by default once the flag is set.
#[cfg(unix)]
fn end_once_over() -> Arc<AtomicBool> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let over = Arc::new(AtomicBool::new(false));
    for end in [SIGINT, SIGTERM, SIGHUP] {
        // Where one cannot be registered it is caught for good, as before.
        let _ = signal_hook::flag::register_conditional_default(end, Arc::clone(&over));
    }
    over
}

/// Elsewhere there is no such signal.
#[cfg(not(unix))]
fn end_once_over() -> Arc<AtomicBool> {
    Arc::default()
}

/// Has a request to end the process stop what runs first.
#[cfg(unix)]
fn stop_at_end(cancel: &CancelHandle) {
    let asked = Arc::new(AtomicBool::new(false));
    let ends = [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP];
    // Where one cannot be registered the system does what it did before.
    let registered = ends.map(|end| signal_hook::flag::register(end, Arc::clone(&asked)));
    if registered.iter().any(Result::is_ok) {
        let cancel = cancel.clone();
        thread::spawn(move || {
            while !asked.load(Ordering::SeqCst) {
                thread::sleep(LOOK_EVERY);
            }
            cancel.cancel();
        });
    }
}

/// Elsewhere there is no such signal.
#[cfg(not(unix))]
fn stop_at_end(_: &CancelHandle) {}

/// Returns how many grains were written into which files.
pub(super) fn written(exported: &ExportReport) -> String {
    let files: Vec<_> = exported.files.iter().map(|file| file.display().to_string()).collect();
    format!("{} grains in {}", exported.exported, files.join(", "))
}

/// Returns a note about grains that rules kept back, `None` if there are none.
pub(super) fn refusal_note(refused: u64, rules: &[String]) -> Option<String> {
    let rules = rules.join(", ");
    (refused > 0).then(|| format!("{refused} grains were left out, by the rules {rules}"))
}

/// Refuses a terminal.
fn check_stdout(context: &Context<'_>) -> Result<()> {
    if context.output.is_terminal() {
        let message = "a portable file is no text, and stdout is a terminal";
        return Err(Error::new(Code::Conflict, message, "send it elsewhere, or name a file"));
    }
    Ok(())
}

/// Copies a file to stdout, and notes its figures on stderr.
fn write_to_stdout(
    mut file: File,
    exported: &ExportReport,
    context: &mut Context<'_>,
) -> Result<()> {
    io::copy(&mut file, context.output.raw())?;
    let (grains, bytes, refused) = (exported.exported, exported.bytes, exported.refused);
    if context.output.is_json() {
        let rules = &exported.rules;
        let told =
            json!({ "exported": grains, "bytes": bytes, "refused": refused, "rules": rules });
        context.output.note(&told.to_string());
        return Ok(());
    }
    context.output.note(&format!("{grains} grains, {bytes} bytes"));
    if let Some(told) = refusal_note(exported.refused, &exported.rules) {
        context.output.note(&told);
    }
    Ok(())
}

/// Returns a progress bar, hidden unless stderr is a terminal.
pub(super) fn progress_bar(context: &Context<'_>) -> ProgressBar {
    match io::stderr().is_terminal() && !context.output.is_json() {
        true => ProgressBar::new(0),
        false => ProgressBar::hidden(),
    }
}
