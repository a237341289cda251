//! `grain rpc`: newline-delimited JSON-RPC 2.0 on stdin and stdout (docs/rpc.md).

use std::io::{self, IsTerminal};

use clap::Args;

use crate::context::Context;
use crate::error::Result;
use grainstore_rpc::Patience;

/// Serve every operation as JSON-RPC 2.0, one request a line on stdin, one response a line on stdout
///
/// `open` names the store and `session` who is asking; the options --store, --namespace, --user and
/// --actor play no part. `hello` lists the methods. The end of stdin closes the store.
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
    for end in [SIGINT, SIGTERM, SIGHUP] {
        // Where one cannot be registered the system does what it did before.
        let idle = signal_hook::flag::register_conditional_default(end, patience.idle());
        let _ = idle.and_then(|_| signal_hook::flag::register(end, patience.stop()));
    }
}

/// Elsewhere there is no such signal.
#[cfg(not(unix))]
fn cancel_streams_at_signals(_: &Patience) {}
