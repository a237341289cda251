//! `grain`: the command line of Grainstore.
//!
//! Modules in the order a call goes through them:
//!
//! - `args`, `registry`: the command line, and the list of commands.
//! - `repl`: the prompt. `commands`: one command a file; what it does is an operation of `grainstore-rpc`.
//! - `globals`, `context`: the options of every command, and the store and session it works on; `reach`: where that is.
//!   `interrupt`: Ctrl-C.
//! - `input`, `lines`, `names`: what is read. `statement`, `told`, `output`: what is written.
//! - `error`: how errors are reported.

mod args;
mod commands;
mod context;
mod error;
mod globals;
mod input;
mod interrupt;
mod lines;
mod names;
mod output;
mod reach;
mod registry;
mod repl;
mod statement;
mod text;
mod told;

use std::io::{self, BufWriter, IsTerminal};
use std::process::ExitCode;
#[cfg(unix)]
use std::sync::Arc;

use args::Arguments;
use context::Context;
use error::Error;
use grainstore_rpc::{Patience, PatientWriter};
use interrupt::end_by_signal;
use output::Output;

/// Makes a write beyond the file size limit fail with an error instead of ending the process.
#[cfg(unix)]
fn ignore_file_size_signal() {
    // If the handler cannot be registered, the default action stays.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Other systems have no such signal.
#[cfg(not(unix))]
fn ignore_file_size_signal() {}

/// Says nothing of a panic that becomes an error, as the storage's on a damaged file does: the error is told. With
/// RUST_BACKTRACE set, all of them are.
fn tell_panics_that_are_no_errors() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !grainstore::is_guarded() || std::env::var_os("RUST_BACKTRACE").is_some() {
            tell(panic);
        }
    }));
}

fn main() -> ExitCode {
    ignore_file_size_signal();
    tell_panics_that_are_no_errors();
    let (globals, command) = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(usage) if usage.use_stderr() && asks_for_json() => {
            let error = error::of_arguments(&usage);
            report(&error, true);
            return ExitCode::from(error.exit_code());
        }
        Err(usage) => {
            // Help and usage errors are clap's own text; a failure to print them is ignored.
            let _ = usage.print();
            return u8::try_from(usage.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    let json = globals.json;
    let patience = Patience::default();
    let result = {
        let stdout = PatientWriter::new(io::stdout(), &patience);
        let mut out = BufWriter::with_capacity(64 << 10, stdout);
        let mut notes = io::stderr();
        let output = Output::new(&mut out, &mut notes, json).with_patience(patience.clone());
        let output = output.on_terminal(io::stdout().is_terminal());
        let mut context = Context::new(globals, output);
        let done = command.run(&mut context).and_then(|()| context.output.flush());
        // What was answered stands; that the store could not be closed in order is told beside it.
        done.and(context.close())
    };
    end_by_signal(&patience);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error, json);
            ExitCode::from(error.exit_code())
        }
    }
}

/// Returns `true` if errors should be JSON, when the arguments could not be parsed.
fn asks_for_json() -> bool {
    std::env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// Reports an error on stderr; if that is closed, only the exit code tells.
fn report(error: &Error, json: bool) {
    let _ = error::write(error, &mut io::stderr().lock(), json);
}
