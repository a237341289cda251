//! The operations of Grainstore for other hosts than Rust: arguments and answers in JSON, and JSON-RPC over
//! lines. The command `grain` uses the same operations.
//!
//! - `protocol`: requests, responses and the connection between them.
//! - `operations`: what is done, by method.
//! - `question`, `explained`, `withheld`: what operations share. `shape`: the JSON forms of answers.
//! - `error`: the error type. `lines`, `patience`: reading lines, and writing to slow readers.
//!
//! ```
//! let requests = r#"{"jsonrpc": "2.0", "id": 1, "method": "hello"}"#;
//! let mut responses = Vec::new();
//! let patience = grainstore_rpc::Patience::default();
//! grainstore_rpc::serve(&mut requests.as_bytes(), &mut responses, &patience, false)?;
//! assert!(responses.starts_with(br#"{"jsonrpc":"2.0","id":1,"result":"#));
//! # Ok::<(), grainstore_rpc::Error>(())
//! ```

mod error;
mod explained;
mod lines;
mod operations;
mod patience;
mod protocol;
mod question;
mod shape;
mod withheld;

pub use error::{Code, Error, Refusal, Result};
pub use explained::{Asked, Attempt, Explained, Tried};
pub use lines::{Line, read_line};
pub use patience::{Patience, PatientWriter};
pub use protocol::serve;
pub use question::Question;
pub use shape::{
    AuditAnswer, Decoded, Encoded, FORMAT_VERSION, ProofOf, PutAnswer, SignedAnswer, StateAnswer,
    StoredAnswer, SupersedeAnswer, VerdictAnswer, Version, erased, not_hidden, signed, signing_key,
    verification_status,
};
pub use withheld::{expect_signer, withhold_findings, withhold_problems};
