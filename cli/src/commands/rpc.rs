//! `grain rpc`: newline-delimited JSON-RPC 2.0 on stdin and stdout (docs/rpc.md).

use std::io::{self, IsTerminal};

use clap::Args;

use crate::context::Context;
use crate::error::Result;

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
        grainstore_rpc::serve(&mut stdin.lock(), context.output.raw(), &patience, self.test_clock)
    }
}
