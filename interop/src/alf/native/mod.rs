//! Grains that were not born as memory records of ALF, as records, and as the same grains again.
//!
//! `origin`: what a grain is to records. `text`: what it says, in words. `view`: a grain as a record, which carries the
//! grain itself. `carried`: the grain of such a record, if nobody changed the record since.

mod carried;
mod origin;
#[cfg(test)]
mod tests;
mod text;
mod view;

pub(super) use carried::{Carried, carried, carries_consent, with_grain, without_grain};
pub(super) use origin::{Origin, alf_text, notes, origin_of};
pub(super) use view::{native_id, view_of};

/// The format that `raw_source_format` names.
const FORMAT: &str = "oms.grain.v1";
