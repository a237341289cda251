//! A reader for each format. Each knows the fields of one tool, and neither the store nor another reader.

pub(super) mod basic_memory;
pub(super) mod chatgpt;
pub(super) mod claude;
pub(super) mod jsonl;
pub(super) mod langgraph;
pub(super) mod letta;
pub(super) mod mem0;
pub(super) mod memfs;
pub(super) mod server_memory;
