//! `grain mcp`: the Model Context Protocol on stdin and stdout (docs/mcp.md).

use std::io::{self, IsTerminal, Write as _};

use clap::{Args, ValueEnum};
use grainstore_rpc::Client;
use grainstore_serve::{McpOptions, Profile, serve_mcp};

use crate::context::{Context, unshared_note, with_opening_hint};
use crate::error::Result;

/// Serve the store to agents over the Model Context Protocol (MCP), one message a line on stdin and stdout
///
/// A client starts this command by itself: docs/mcp.md has the lines for its settings. The store is made if there is
/// none yet, and shared with other processes that have it open. New grains are of --namespace and --user, where
/// they are given. The end of stdin closes the store.
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// The tools a model is shown
    #[arg(long, value_enum, default_value_t = Tools::Memory, value_name = "PROFILE")]
    profile: Tools,
    /// Let the tool forget erase for good, once a person confirms it; without this it retracts alone
    #[arg(long)]
    allow_erase: bool,
}

/// The tools.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Tools {
    /// recall, search, remember, history and forget
    Memory,
    /// These and cal, the language
    Full,
}

impl Mcp {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        if io::stdin().is_terminal() {
            context.output.note("reading MCP messages from the terminal; end with Ctrl-D");
        }
        let store = context.globals.store.clone();
        let opening = context.client_options(!context.globals.read_only)?;
        let mut options = McpOptions::new(move || {
            let client = Client::open(&store, opening.clone()).map_err(with_opening_hint)?;
            if let Some(why) = client.unshared() {
                let _ = writeln!(io::stderr(), "{}", unshared_note(&why));
            }
            Ok(client)
        });
        options.profile = match self.profile {
            Tools::Memory => Profile::Memory,
            Tools::Full => Profile::Full,
        };
        options.allow_erase = self.allow_erase;
        (options.namespace, options.user_id) = context.named();
        serve_mcp(io::stdin(), io::stdout(), options)
    }
}
