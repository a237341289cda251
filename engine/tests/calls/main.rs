//! Calls in CAL: capability tokens, switches, the firewall, health data, and what the audit log has of them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at a surprise"
)]

mod audit;
mod firewall;
mod kit;
mod switch;
mod tokens;
