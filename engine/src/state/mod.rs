//! One consistent state to read from: the truth, the derived index that follows it, views of both, the audit
//! chain, and what a session may see of it all. Changes nothing but through the audit chain.

pub(crate) mod application;
pub(crate) mod audit;
pub(crate) mod audit_rows;
pub(crate) mod basis;
pub(crate) mod consent;
pub(crate) mod erasure;
pub(crate) mod fold_worker;
pub(crate) mod follower;
pub(crate) mod index_snapshot;
pub(crate) mod owners;
pub(crate) mod powers;
pub(crate) mod run_merger;
pub(crate) mod session_options;
pub(crate) mod truth;
pub(crate) mod view;
pub(crate) mod visibility;
