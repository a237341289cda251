//! Calls in CAL: what stands between a session that asks and the language that answers (spec/cal.md
//! section 6).
//!
//! In the order a call goes through them:
//! - `switch`: whether the operator lets CAL run. `firewall`: whether a checked statement may.
//! - `token`, `kept`: capability tokens, and the statements that wait for theirs. `prepare`: the two phases.
//! - `bounded`: the memory a token of a few grain types sees. `run`: one call.
//! - `stream`: a call whose events are told while it runs.
//! - `errand`, `noted`: what the audit log is told of it. `checks`: whether all of that holds in this store.

mod bounded;
mod checks;
mod errand;
mod firewall;
mod kept;
mod noted;
mod prepare;
mod run;
mod stream;
mod switch;
mod token;

pub use errand::CalledEntry;
pub(crate) use errand::{CallNote, Errand, name_of, results_of, told_by};
pub use firewall::Firewall;
pub(crate) use kept::Kept;
pub use noted::StreamedEntry;
pub use prepare::{Prepared, Preparing};
pub use stream::{EventStream, Streaming};
pub use switch::CalSwitch;
pub(crate) use switch::Switch;
pub use token::{CapabilityToken, Terms};
