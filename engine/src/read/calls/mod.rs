//! CAL calls: the layer between a session and the language (CAL 18 to 21).
//!
//! In the order a call goes through them:
//! - `switch`: whether the operator lets CAL run. `firewall`: whether a checked statement may run.
//! - `prepare`: the two phases, prepare and execute.
//! - `type_filter`: the memory a token limited to grain types can read. `run`: one call.
//! - `stream`: a call whose events are delivered while it runs. `stream_record`: their count, for its audit record.
//!
//! Tokens and prepared statements are in `handle`, the audit record of a call in `state::audit`, the checks of
//! all of it in `operate::maintain`.

mod firewall;
mod prepare;
mod run;
mod stream;
mod stream_record;
mod switch;
mod type_filter;

pub(crate) use firewall::CallGate;
pub use prepare::{PrepareOptions, PreparedQuery};
pub(crate) use prepare::{cal_error, check_covers};
pub use stream::{EventStream, StreamOptions};
