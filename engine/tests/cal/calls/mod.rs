//! Calls in CAL: capability tokens, switches, the firewall, health data, and what the audit log has of them.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

mod audit;
mod checks;
mod firewall;
mod kit;
mod reads;
mod stream;
mod switch;
mod templates;
mod tokens;
