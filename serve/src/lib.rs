//! Grainstore for agents: the Model Context Protocol (MCP) over a pair of streams, on top of the operations of
//! `grainstore-rpc`. The only crate with an async runtime; the engine knows nothing of it.
//!
//! - `memory`: how the store is reached, and how it is opened in the background.
//! - `mcp`: the protocol. `mcp::wire` reads and writes its lines, `mcp::server` answers requests, `mcp::tools` are what
//!   a model calls.
//!
//! ```
//! use grainstore_rpc::{Client, ClientOptions};
//! use grainstore_serve::{McpOptions, serve_mcp};
//!
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("memory.grains");
//! let options = McpOptions::new(move || {
//!     let open = grainstore::OpenOptions::new().create(true);
//!     Client::open(&path, ClientOptions { open, ..ClientOptions::default() })
//! });
//! let hello = concat!(
//!     r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
//!     r#""capabilities":{},"clientInfo":{"name":"example","version":"1"}}}"#,
//!     "\n"
//! );
//! serve_mcp(hello.as_bytes(), std::io::sink(), options)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod completion;
#[cfg(feature = "http")]
mod http;
mod mcp;
mod memory;

pub use completion::{Candidate, StoredValues, ValuesOfGrains, complete_statement};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use http::fuzzing;
#[cfg(feature = "http")]
pub use http::{
    Grant, HttpOptions, MadeToken, NewToken, TlsFiles, Token, Tokens, openapi, serve_http,
};
pub use mcp::{McpOptions, Profile, serve_mcp};
pub use memory::Operations;
