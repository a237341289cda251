//! What a file is that was given to the wrong reader, for a message that names the right one.
//!
//! Looks at the beginning of a file, or at the list of an archive; a file that tells nothing is left to its reader.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use grainstore::{ErrorKind, format};

use crate::archive::{Archive, Limits};
use crate::error::Error;
use crate::json;
use crate::migrate::Format;

/// Bytes of a file that are looked at.
const LOOK_BYTES: u64 = 64 << 10;
/// Bytes of a manifest that are looked at.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;
/// How an SQLite database begins.
pub(crate) const DATABASE: &[u8] = b"SQLite format 3\0";

/// What a file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The directory of a store.
    Store,
    Folder,
    AlfArchive,
    AlfDelta,
    SagaContainer,
    SagaDocument,
    AgesPack,
    Database,
    /// What `migrate` reads.
    Export(Format),
}

impl Kind {
    /// Finds out what a file or a folder is; `None` if it does not tell.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Self::ours(path).or_else(|| {
            let export = Format::that_fits(path).map(Self::Export);
            export.or_else(|| path.is_dir().then_some(Self::Folder))
        })
    }

    /// Finds out what a file is that has a command of its own, and is no export of another tool.
    pub(crate) fn ours(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        if found.is_dir() {
            return path.join("grains.redb").exists().then_some(Self::Store);
        }
        // What is no file has nothing that can be read twice.
        if !found.is_file() {
            return None;
        }
        let mut beginning = Vec::new();
        File::open(path).ok()?.take(LOOK_BYTES).read_to_end(&mut beginning).ok()?;
        if beginning.starts_with(b"PK\x03\x04") {
            return Self::of_archive(&Archive::open(path, Limits::default()).ok()?);
        }
        if beginning.starts_with(DATABASE) {
            return Some(Self::Database);
        }
        let names = json::outline(beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&beginning));
        let has = |all: &[&str]| all.iter().all(|name| names.contains(*name));
        match () {
            () if has(&["sagaVersion"]) => Some(Self::SagaDocument),
            () if has(&["schema_version", "root_hash"]) => Some(Self::AgesPack),
            () => None,
        }
    }

    fn of_archive(archive: &Archive) -> Option<Self> {
        let has = |name: &str| archive.entry(name).is_some();
        if has("agent.saga.json") {
            return Some(Self::SagaContainer);
        }
        if has("delta-manifest.json") {
            return Some(Self::AlfDelta);
        }
        let manifest = archive.read("manifest.json", MAX_MANIFEST_BYTES).ok()??;
        let manifest = json::parse(&manifest).ok()?;
        manifest.get("alf_version")?;
        Some(match manifest.get("changes") {
            Some(_) => Self::AlfDelta,
            None => Self::AlfArchive,
        })
    }

    /// What to do with it.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Store => "a store is named with --store, and opened with `open`",
            Self::Folder => "name a file in it",
            Self::AlfArchive => "`grain alf import` (`alf_import`) reads it",
            Self::AlfDelta => "`grain alf apply` (`alf_apply`) reads it",
            Self::SagaContainer => "`grain saga import` (`saga_import` with `path`) reads it",
            Self::SagaDocument => "`grain saga import` (`saga_import` with `document`) reads it",
            Self::AgesPack => "`grain ages verify` (`ages_verify`) reads it",
            Self::Database => {
                "write a table of it as JSON: `sqlite3 -json FILE \"SELECT * FROM TABLE\" > rows.json`"
            }
            Self::Export(_) => "`grain migrate FORMAT FILE` (`migrate`) reads it",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store => "it is the directory of a store",
            Self::Folder => "it is a folder",
            Self::AlfArchive => "it is an ALF archive of a whole agent",
            Self::AlfDelta => "it is an ALF delta",
            Self::SagaContainer => "it is a SAGA container",
            Self::SagaDocument => "it is a SAGA document",
            Self::AgesPack => "it is an Evidence Pack of AGES",
            Self::Database => "it is an SQLite database",
            Self::Export(format) => {
                return write!(f, "it looks like {}, whose format is `{format}`", format.title());
            }
        })
    }
}

/// The error of a reader, or where the file turns out to be of another kind, what it is: `ERR_SCHEMA`. `own` are the kinds
/// of which the reader tells itself what is wrong.
pub(crate) fn told(error: Error, path: &Path, asked: &str, own: &[Kind]) -> Error {
    let is_of_file = match error.kind() {
        ErrorKind::Format(kind) => {
            matches!(kind, format::ErrorKind::Corrupt | format::ErrorKind::Schema)
        }
        ErrorKind::Io => path.is_dir(),
        _ => false,
    };
    match is_of_file.then(|| Kind::of(path)).flatten() {
        Some(kind) if !own.contains(&kind) => refusal(kind, path, asked),
        _ => error,
    }
}

/// The error of a file that is of another kind than the one that was asked for.
pub(crate) fn refusal(kind: Kind, path: &Path, asked: &str) -> Error {
    Error::schema(format!("it is not {asked}: {kind}")).with_hint(kind.hint()).at_path(path)
}
