//! The handles a host holds: `Store`, `Session`, their options, and what a store keeps while it is open.

pub(crate) mod auditing;
pub(crate) mod cal_switch;
pub(crate) mod capability_token;
pub(crate) mod embed;
pub(crate) mod firewall;
pub(crate) mod following;
pub(crate) mod inner;
pub(crate) mod meta;
pub(crate) mod opening;
pub(crate) mod options;
pub(crate) mod powers;
pub(crate) mod prepared_statements;
pub(crate) mod principal;
pub(crate) mod replication;
pub(crate) mod session;
pub(crate) mod session_templates;
pub(crate) mod sharing;
pub(crate) mod store;
pub(crate) mod upgrade;
pub(crate) mod write_quotas;
