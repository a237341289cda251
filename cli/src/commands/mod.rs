//! The commands, one a file: its arguments, and a `run` that carries them out. `registry` lists them.

pub(crate) mod add;
pub(crate) mod ages;
pub(crate) mod alf;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod cal;
#[cfg(feature = "cluster")]
pub(crate) mod cluster;
pub(crate) mod compact;
pub(crate) mod decode;
pub(crate) mod demo;
pub(crate) mod disclose;
pub(crate) mod doctor;
pub(crate) mod encode;
pub(crate) mod erase;
pub(crate) mod export;
mod followed;
pub(crate) mod frames;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod policy;
pub(crate) mod prove;
pub(crate) mod put;
pub(crate) mod recall;
pub(crate) mod reindex;
pub(crate) mod remove_vectors;
pub(crate) mod rpc;
pub(crate) mod saga;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod sign;
pub(crate) mod state_changes;
pub(crate) mod stats;
pub(crate) mod subject_report;
pub(crate) mod supersede;
#[cfg(feature = "serve")]
pub(crate) mod tokens;
pub(crate) mod verify;
pub(crate) mod verify_signature;
pub(crate) mod views;
mod wording;

pub(crate) use cal::{READ_ONLY_CODE, parse_param};
