//! Long work of a command: a progress bar on a terminal, and Ctrl-C ends it.

use std::ops::ControlFlow;

use grainstore_interop::Monitor;
use grainstore_rpc::Following;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::export::{progress_bar, stoppable};
use crate::context::Context;
use crate::error::Result;
use crate::reach::{Reach, Told, set};

/// Runs work that reports to a monitor.
pub(super) fn followed<T>(
    context: &Context<'_>,
    run: impl FnOnce(&Monitor<'_>) -> grainstore_interop::Result<T>,
) -> Result<T> {
    let bar = progress_bar(context);
    let progress = |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    };
    let progress: &dyn Fn(u64, u64) = &progress;
    let done = stoppable(|cancel| run(&Monitor { progress: Some(progress), cancel }));
    bar.finish_and_clear();
    Ok(done??)
}

/// A line about the progress of a method.
#[derive(Deserialize)]
struct Progress {
    params: Done,
}

#[derive(Deserialize)]
struct Done {
    done: u64,
    of: u64,
}

/// Calls a method that tells how far it is.
pub(super) fn followed_call(
    context: &Context<'_>,
    reach: &Reach,
    method: &str,
    params: &impl Serialize,
) -> Result<Told> {
    let mut params = serde_json::to_value(params)?;
    set(&mut params, "progress", true.into());
    let bar = progress_bar(context);
    let mut progress = |line: &RawValue| {
        if let Ok(Progress { params: Done { done, of } }) = serde_json::from_str(line.get()) {
            bar.set_length(of);
            bar.set_position(done);
        }
        ControlFlow::Continue(())
    };
    let done = stoppable(|cancel| {
        reach.follow(
            method,
            &params,
            &mut Following { on_event: Some(&mut progress), cancel, ..Following::default() },
        )
    });
    bar.finish_and_clear();
    done?
}
