//! `grain rpc`: newline-delimited JSON-RPC 2.0 on stdin and stdout (docs/rpc.md).

use std::io::{self, IsTerminal};

use clap::Args;

use crate::context::Context;
use crate::error::Result;
use grainstore_rpc::Patience;

/// Serve every operation as JSON-RPC 2.0, one request a line on stdin, one response a line on stdout
///
/// `open` names the store and `session` who is asking; the options of every command play no part. `hello`
/// lists the methods. The end of stdin closes the store.
#[derive(Debug, Args)]
pub(crate) struct Rpc {
    /// Add the method `clock {now_ms}`, which sets what the store takes for now
    #[arg(long)]
    test_clock: bool,
}

impl Rpc {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            context.output.note("reading JSON-RPC requests from the terminal; end with Ctrl-D");
        }
        let patience = context.output.patience().clone();
        cancel_streams_at_signals(&patience);
        grainstore_rpc::serve(&mut stdin.lock(), context.output.raw(), &patience, self.test_clock)
    }
}

/// Has a signal that ends the process cancel the stream that is sent first, so that its last event is sent and
/// its entry is in the read log. While nothing is streamed, signals do what they do by default.
#[cfg(unix)]
fn cancel_streams_at_signals(patience: &Patience) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for end in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|end| !is_ignored(*end)) {
        // A second one ends the process where the first has not. Where one cannot be registered the system does
        // what it did before.
        let idle = signal_hook::flag::register_conditional_default(end, patience.idle());
        let again = idle
            .and_then(|_| signal_hook::flag::register_conditional_default(end, patience.stop()));
        if again.is_ok() {
            crate::interrupt::stop_at_signal(end, patience);
        }
    }
}

/// Returns `true` if who started the process had it ignore a signal, as `nohup` does. Known on Linux alone.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let place = u32::try_from(signal.saturating_sub(1)).unwrap_or(u32::MAX);
    mask.checked_shr(place).is_some_and(|rest| rest & 1 == 1)
}

/// Elsewhere there is no such signal.
#[cfg(not(unix))]
fn cancel_streams_at_signals(_: &Patience) {}
