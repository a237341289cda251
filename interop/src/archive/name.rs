//! Which names of entries are safe: relative, with `/`, in no folder above.

use crate::error::{Error, Result};

/// Checks the name of an entry, and returns it.
///
/// # Errors
/// `ERR_CORRUPT`, with the name.
pub(super) fn checked(name: &[u8]) -> Result<String> {
    let told = String::from_utf8_lossy(name).into_owned();
    let refuse = |why: &str| {
        Err(Error::corrupt(format!("an unsafe name of an entry: {why}")).in_entry(&told))
    };
    let Ok(text) = std::str::from_utf8(name) else { return refuse("it is no UTF-8") };
    let path = text.strip_suffix('/').unwrap_or(text);
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    if path.is_empty() || path.starts_with('/') || has_drive {
        refuse("it is no relative path")
    } else if path.contains(['\\', '\0']) {
        refuse("it has a backslash or a NUL")
    } else if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        refuse("it leads out of its folder")
    } else {
        Ok(text.to_owned())
    }
}
