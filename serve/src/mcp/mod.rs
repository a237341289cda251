//! The Model Context Protocol: both of its eras on one connection (docs/mcp.md).
//!
//! - `wire`: lines in and out. `unanswered`: how many requests are read. `server`: the requests of the protocol. `connection`: what its calls share.
//! - `tools`: the table of tools, one file each. `confirm`: asking the person. `answer`, `rows`: results of bounded
//!   size. `arguments`: what arguments share. `failure`: what is refused.
//! - `resources`, `prompts`: grains by their address, and what a person may start with.

mod answer;
mod arguments;
mod confirm;
mod connection;
mod failure;
mod prompts;
mod resources;
mod rows;
mod server;
mod tools;
mod unanswered;
mod wire;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use grainstore_rpc::{Client, Code, Error, Result};

use crate::memory::{Memory, Open, Operations};
use connection::Connection;
#[cfg(feature = "http")]
pub(crate) use server::Server as McpServer;
use server::Server;

/// Threads for calls that block: as many calls run at once.
const MAX_CALLING_THREADS: usize = 16;
/// How long calls may take to end once nobody waits for their answers.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// Which tools a client is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The five tools of a memory: recall, search, remember, history and forget.
    #[default]
    Memory,
    /// These and `cal`, the language.
    Full,
}

/// How a store is served over MCP.
///
/// ```
/// use grainstore_rpc::{Client, ClientOptions};
/// use grainstore_serve::{McpOptions, Profile};
///
/// let mut options = McpOptions::new(|| Client::open("memory.grains", ClientOptions::default()));
/// options.profile = Profile::Full;
/// options.allow_erase = true;
/// options.user_id = Some("alice".into());
/// ```
pub struct McpOptions {
    open: Box<Open>,
    /// The tools that are shown.
    pub profile: Profile,
    /// Whether `forget` may erase for good, once a person confirms it.
    pub allow_erase: bool,
    /// The namespace that new grains get; that of the session that the store is opened with.
    pub namespace: Option<String>,
    /// The user that new grains get; that of the session that the store is opened with.
    pub user_id: Option<String>,
}

impl McpOptions {
    /// Options for a store that this opens, in the background once a connection is served.
    pub fn new(open: impl Fn() -> Result<Client> + Send + Sync + 'static) -> Self {
        Self::over(move || Ok(Box::new(open()?)))
    }

    /// Options for other [`Operations`] than those of a [`Client`].
    pub fn over(open: impl Fn() -> Result<Box<dyn Operations>> + Send + Sync + 'static) -> Self {
        Self {
            open: Box::new(open),
            profile: Profile::Memory,
            allow_erase: false,
            namespace: None,
            user_id: None,
        }
    }

    fn split(self) -> (Memory, connection::Setting) {
        let Self { open, profile, allow_erase, namespace, user_id } = self;
        let setting = connection::Setting { profile, allow_erase, namespace, user_id };
        (Memory::new(open), setting)
    }
}

/// A memory that answers requests without connections, over HTTP: each has a server of its own, and what is confirmed is
/// shared by all.
#[cfg(feature = "http")]
#[derive(Clone)]
pub(crate) struct Shared {
    connection: Arc<Connection>,
    ended: tokio::sync::watch::Receiver<bool>,
}

#[cfg(feature = "http")]
impl Shared {
    /// The memory that is asked; `ended` tells when nobody is asked any more.
    pub(crate) fn new(options: McpOptions, ended: tokio::sync::watch::Receiver<bool>) -> Self {
        let (memory, setting) = options.split();
        Self { connection: Arc::new(Connection::new(memory, setting)), ended }
    }

    /// A server of one request.
    pub(crate) fn server(&self) -> Server {
        Server::new(Arc::clone(&self.connection), self.ended.clone())
    }
}

/// Serves one connection until the end of its input, or until nobody takes its output; then closes the store.
///
/// Blocks. Requests under way at the end of the input are answered first, for up to five seconds. Calls that have not
/// ended a second after that are left to their threads.
///
/// # Errors
/// `ERR_IO` if no runtime can be started; those of closing the store. A store that cannot be opened is told to the
/// calls that need it, and is no error here.
pub fn serve_mcp(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    options: McpOptions,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(MAX_CALLING_THREADS)
        .build()
        .map_err(|error| {
            Error::new(Code::Io, format!("cannot start threads: {error}"), "try again")
        })?;
    let (memory, setting) = options.split();
    let written = runtime.block_on(async {
        let (wire, written) = wire::Wire::over(input, output);
        memory.begin();
        let connection = Connection::new(memory.clone(), setting);
        let server = Server::new(Arc::new(connection), wire.ended());
        let running = rmcp::service::serve_directly(server, wire, None);
        // The loop ends by itself; how it ended concerns nobody.
        let _ = running.waiting().await;
        written
    });
    // Calls that still run were told to end. One that waits for another process is not waited for.
    runtime.shutdown_timeout(END_PATIENCE);
    let closed = memory.close();
    written.finish();
    closed
}
