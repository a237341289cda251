//! The operations of Grainstore for other hosts than Rust: arguments and answers in JSON, and JSON-RPC over
//! lines. The command `grain` uses the same operations. Knows no flags and no terminal.
//!
//! - `client`: the store for other crates. `sharing`: one that several processes have open.
//! - `protocol`: requests, responses and the connection between them.
//! - `operations`: functions from arguments to answers, which fail with the codes of the store.
//! - `store_socket`: a store that its process has opened by itself.
//! - `host`: the state between requests. `answer`: results of bounded size.
//! - `arguments`, `json`: forms that arguments share. `misread`: errors about them.
//! - `dids`: keys of DIDs, by files and programs.
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

mod answer;
mod arguments;
mod client;
mod dids;
mod error;
mod explained;
mod host;
mod json;
mod lines;
mod misread;
mod operations;
mod patience;
mod protocol;
mod question;
mod shape;
mod sharing;
mod store_socket;
mod withheld;

pub use arguments::{MAX_WAIT_MS, Nothing};
pub use client::{Client, Following, OnEvent, call_on};
pub use dids::{DidSources, SharedResolver};
pub use error::{Code, Error, Refusal, Result};
pub use explained::{Asked, Attempt, Explained};
pub use json::{Address, Base64};
pub use lines::{Line, read_line};
pub use operations::calls::{Converted, Switch, Switched, cal_switch};
pub use operations::codec::{Profile, Sensitive, encode_grain, encode_grain_with};
pub use operations::maintain::{
    Backup, Reindexed, RemoveVectors, RemovedVectors, Stats, backup, compact, compared,
    expect_signer, reindex, remove_vectors, stats,
};
pub use operations::marks::{Mark, SetVerification, contradict, hold, lift_hold, set_verification};
pub use operations::policy::{SetRules, policy_set};
pub use operations::portable::conditions_of;
pub use operations::reads::{Audit, History};
pub use operations::signed::{Proved, View};
pub use operations::views::{CheckedView, GivenView, RestoredView};
pub use operations::write::{as_sensitive, as_sensitive_successor, supersede_by};
pub use patience::{Patience, PatientWriter};
pub use protocol::serve;
pub use question::{BeyondCal, Question};
pub use shape::{
    AuditAnswer, Decoded, Encoded, FORMAT_VERSION, PutAnswer, SignedAnswer, StateAnswer,
    StoredAnswer, SupersedeAnswer, VerdictAnswer, Version, erased, sign_blob, signing_key,
};
pub use sharing::ClientOptions;
pub use store_socket::StoreSocket;
pub use withheld::{withhold_findings, withhold_problems};
