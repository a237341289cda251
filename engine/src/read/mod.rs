//! Reading through a session: queries, graph, history, and CAL over them.

pub(crate) mod application;
pub(crate) mod ask;
pub(crate) mod calls;
pub(crate) mod graph;
pub(crate) mod history;
pub(crate) mod latest;
pub(crate) mod memory;
pub(crate) mod query;
pub(crate) mod read_log;
pub(crate) mod state_changes;
pub(crate) mod templates;
