//! Files without a name, for what waits on the disk: a program that is killed leaves nothing of them.

use std::fs::File;
use std::io;

use crate::error::Error;

/// Opens one, in the directory for temporary files (`TMPDIR`).
///
/// # Errors
/// `ERR_IO`, with the directory.
pub(crate) fn file() -> Result<File, Error> {
    tempfile::tempfile().map_err(failed)
}

/// The error of one that cannot be written or read: it names the directory, which is no matter of the store.
pub(crate) fn failed(error: io::Error) -> Error {
    let hint = "check the room on its disk; TMPDIR names another directory for temporary files";
    Error::from(error).with_hint(hint).at_path(&std::env::temp_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_directory() {
        let error = failed(io::ErrorKind::StorageFull.into());
        assert_eq!(error.code(), "ERR_IO");
        assert_eq!(error.entry(), Some(&*std::env::temp_dir().display().to_string()));
        assert!(error.hint().contains("TMPDIR"));
    }
}
