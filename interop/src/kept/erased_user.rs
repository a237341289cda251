//! Whether a user was erased: what is of them and was created before is not taken any more.

use grainstore::format::{Map, Value};
use grainstore::{EpochMs, ErrorKind, Grain, Session};

use crate::error::Result;

/// Returns `true` if the store refuses a grain of a user that was created then, since the user was erased later. Nothing is
/// written: the grain that is offered says that it replaces another, which no plain put takes.
///
/// # Errors
/// `ERR_IO`, `ERR_BUSY` and others of the store as a whole.
pub(crate) fn is_user_erased(session: &Session, user: &str, created_at: EpochMs) -> Result<bool> {
    let fields = Map::from([
        ("type".to_owned(), Value::from("event")),
        ("content".to_owned(), Value::from("was this user erased?")),
        ("user_id".to_owned(), Value::from(user)),
        ("created_at".to_owned(), Value::from(created_at.get())),
        ("supersession_justification".to_owned(), Value::from("it is not to be stored")),
    ]);
    match session.put(Grain::from_fields(fields)?) {
        Err(error) if error.kind() == ErrorKind::Erased => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Busy) => Err(error.into()),
        _ => Ok(false),
    }
}
