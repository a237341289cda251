//! Long work of a command: a progress bar on a terminal, and Ctrl-C ends it.

use grainstore_interop::Monitor;

use super::export::{progress_bar, stoppable};
use crate::context::Context;
use crate::error::Result;

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
