//! The history of typed lines: a private file of the user, or none.
//!
//! Statements name people, so only the owner can read the file. An encrypted store has no history file, since
//! that would hold in clear text what the store encrypts.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The environment variable with the path of the file; empty disables the history.
const HISTORY_VARIABLE: &str = "GRAIN_HISTORY";

/// The location of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A file.
    In(PathBuf),
    /// No file, for this reason; the history ends with the prompt.
    Disabled(&'static str),
}

impl Kept {
    /// Chooses the location for a store, by the environment.
    pub(crate) fn of_store(encrypted: bool, wanted: bool) -> Self {
        Self::chosen(encrypted, wanted, |name| env::var_os(name))
    }

    fn chosen(encrypted: bool, wanted: bool, set: impl Fn(&str) -> Option<OsString>) -> Self {
        if encrypted {
            return Self::Disabled("the store is encrypted");
        }
        if !wanted {
            return Self::Disabled("--no-history");
        }
        let path = |name| set(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        match set(HISTORY_VARIABLE) {
            Some(named) if named.is_empty() => Self::Disabled("GRAIN_HISTORY is empty"),
            Some(named) => Self::In(PathBuf::from(named)),
            None => {
                let state = path("XDG_STATE_HOME").filter(|path| path.is_absolute());
                let state = state.or_else(|| path("HOME").map(|home| home.join(".local/state")));
                match state {
                    Some(state) => Self::In(state.join("grain/history")),
                    None => Self::Disabled("there is no home directory"),
                }
            }
        }
    }

    /// Creates the file if needed, and restricts it to its owner.
    pub(crate) fn prepare(&self) -> io::Result<Option<&Path>> {
        let Self::In(path) = self else { return Ok(None) };
        grainstore::check_outside(path)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            private_directory(parent)?;
        }
        let file = private_file(OpenOptions::new().create(true).append(true), path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        Ok(Some(path))
    }

    /// Empties the file.
    pub(crate) fn clear(&self) -> io::Result<()> {
        match self {
            Self::In(path) if path.exists() => {
                self.prepare()?.map_or(Ok(()), |path| fs::write(path, ""))
            }
            _ => Ok(()),
        }
    }

    /// Describes the location in a sentence.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::In(path) => format!("what is typed is kept in {}", path.display()),
            Self::Disabled(why) => {
                format!("what is typed is forgotten when the prompt is left: {why}")
            }
        }
    }
}

/// Creates a directory and its parents with access for the owner alone.
fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Opens a file and restricts it to its owner, even if others had access before.
pub(crate) fn private_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let file = options.open(path)?;
    make_private(&file)?;
    Ok(file)
}

/// Restricts a regular file to its owner.
pub(super) fn make_private(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn chosen(encrypted: bool, wanted: bool, set: &[(&str, &str)]) -> Kept {
        Kept::chosen(encrypted, wanted, |name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_environment_says_where() {
        let home = ("HOME", "/home/al");
        for (set, expected) in [
            (&[home][..], "/home/al/.local/state/grain/history"),
            (&[home, ("XDG_STATE_HOME", "/state")], "/state/grain/history"),
            (&[home, ("XDG_STATE_HOME", "relative")], "/home/al/.local/state/grain/history"),
            (&[home, ("GRAIN_HISTORY", "/x/h")], "/x/h"),
        ] {
            assert_eq!(chosen(false, true, set), Kept::In(expected.into()), "{set:?}");
        }
    }

    #[test]
    fn an_encrypted_store_has_none_whatever_is_asked_for() {
        let named = [("HOME", "/h"), ("GRAIN_HISTORY", "/x/h")];
        assert_eq!(chosen(true, true, &named), Kept::Disabled("the store is encrypted"));
        assert_eq!(chosen(false, false, &named), Kept::Disabled("--no-history"));
        assert!(matches!(chosen(false, true, &[("GRAIN_HISTORY", "")]), Kept::Disabled(_)));
        assert!(matches!(chosen(false, true, &[]), Kept::Disabled(_)));
    }

    #[test]
    fn the_file_is_its_owners_alone_even_where_it_was_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("deep/er/history");
        let kept = Kept::In(path.clone());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(kept.prepare().unwrap(), Some(path.as_path()));
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::write(&path, "typed").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        kept.prepare().unwrap();
        assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (0o600, "typed"));
        kept.clear().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        assert!(Kept::In(place.path().to_owned()).prepare().is_err(), "a directory");
    }
}
