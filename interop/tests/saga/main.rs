//! SAGA: documents, containers, vaults, and what a store makes of them.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at a surprise")]

mod agreed;
mod beside;
#[path = "../common/camera.rs"]
mod camera;
mod consents;
mod container;
mod cut_off;
mod document;
mod examples;
mod exit;
mod export;
mod fresh;
mod leaks;
mod lifecycle;
mod properties;
mod redact;
mod refusals;
mod store;
mod strangers;
mod support;
mod vault;
