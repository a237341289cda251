//! Migration: each format into a store, twice and without writing, and inputs that nobody should trust.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

mod beside;
#[path = "../common/camera.rs"]
mod camera;
mod chatgpt;
mod claude;
mod cut_off;
mod dated;
mod hostile;
mod jsonl;
mod kit;
mod langgraph;
mod letta;
mod markdown;
mod mem0;
mod memory;
mod older;
mod server_memory;
mod wrong;
