//! CAL calls: the layer between a session and the language (CAL 18 to 21).
//!
//! In the order a call goes through them:
//! - `switch`: whether the operator lets CAL run. `firewall`: whether a checked statement may run.
//! - `token`, `prepared_statements`: capability tokens, and the statements prepared for them. `prepare`: the
//!   two phases.
//! - `bounded`: the memory a token limited to grain types can read. `run`: one call.
//! - `stream`: a call whose events are delivered while it runs.
//! - `errand`, `noted`: its record in the audit log. `checks`: whether all of that holds in
//!   this store.

mod bounded;
mod firewall;
mod noted;
mod prepare;
mod run;
mod stream;
mod switch;

pub(crate) use firewall::CallGate;
pub use prepare::{PrepareOptions, PreparedQuery};
pub(crate) use prepare::{check_covers, refused};
pub use stream::{EventStream, StreamOptions};
