//! ALF.
mod issue;
mod names;
mod record;
mod schema;
pub(crate) fn validate() {}
pub(crate) fn import() {}
