//! Where an export is: a file, a folder or a ZIP archive. Whichever it is, its files have relative names, none is reached
//! through a link, and no more is read than the limits allow.
//!
//! Knows files, not what is in them.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use grainstore::{EpochMs, ErrorKind};

use crate::archive::{Archive, Limits, unread};
use crate::error::{Error, Result};

/// Most folders of a folder within each other.
const MAX_LEVELS: usize = 64;

/// The files of an export.
#[derive(Debug)]
pub(super) struct Source {
    place: Place,
    files: Vec<SourceFile>,
    /// What is in the folder and is not read, with the reason.
    unread: Vec<(String, &'static str)>,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    Folder(PathBuf),
    Archive(Box<Archive>),
}

/// One file of an export.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    /// Its name: relative, with `/`.
    pub(super) name: String,
    pub(super) modified: Option<EpochMs>,
}

impl SourceFile {
    /// The last part of its name.
    pub(super) fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// The last part of its name without what follows its last point.
    pub(super) fn stem(&self) -> &str {
        self.base_name().rsplit_once('.').map_or(self.base_name(), |(stem, _)| stem)
    }

    /// Returns `true` if its name ends with this extension, in any case.
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        let found = self.base_name().rsplit_once('.').map(|(_, found)| found);
        found.is_some_and(|found| found.eq_ignore_ascii_case(extension))
    }
}

impl Source {
    /// Opens an export, and lists its files.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`, `ERR_IO`; `ERR_CORRUPT` for an archive that is unsafe, or a file that is none; `ERR_LIMIT`.
    pub(super) fn open(path: &Path, limits: Limits) -> Result<Self> {
        let at = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::new(ErrorKind::NotFound, "there is no such file")
                    .with_hint(
                        "check the path: it is the one of the export, or of the file beside it",
                    )
                    .at_path(path)
            }
            _ => Error::from(error).at_path(path),
        };
        // A link that a person names is meant; those within are not followed.
        let path = &fs::canonicalize(path).map_err(at)?;
        let found = fs::metadata(path).map_err(at)?;
        if found.is_dir() {
            return Folder::list(path, limits);
        }
        if !found.is_file() {
            return Err(Error::corrupt("it is no file").at_path(path));
        }
        if is_archive(path).map_err(at)? {
            let archive = Archive::open(path, limits)?;
            let files = archive.entries().iter().map(|entry| SourceFile {
                name: entry.name().to_owned(),
                modified: entry.modified(),
            });
            let files = files.collect();
            return Ok(Self::of(Place::Archive(Box::new(archive)), files, Vec::new()));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = SourceFile { name, modified: modified(&found) };
        Ok(Self { place: Place::File(path.clone()), files: vec![file], unread: Vec::new() })
    }

    /// Sets apart what systems leave beside files.
    fn of(place: Place, files: Vec<SourceFile>, mut unread: Vec<(String, &'static str)>) -> Self {
        let is_left = |file: &SourceFile| {
            let base = file.base_name();
            base.starts_with("._") || base == ".DS_Store" || file.name.starts_with("__MACOSX/")
        };
        let (left, mut files): (Vec<_>, Vec<_>) = files.into_iter().partition(is_left);
        unread
            .extend(left.into_iter().map(|file| (file.name, "a system left it beside the files")));
        files.sort_by(|left, right| left.name.cmp(&right.name));
        unread.sort();
        Self { place, files, unread }
    }

    /// Its files, in the order of their names.
    pub(super) fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// What is there and is not read: links, what is no file, and what systems leave beside files.
    pub(super) fn unread(&self) -> &[(String, &'static str)] {
        &self.unread
    }

    /// The file that an export of one file is, `None` for a folder or an archive.
    pub(super) fn single(&self) -> Option<&SourceFile> {
        match &self.place {
            Place::File(_) => self.files.first(),
            _ => None,
        }
    }

    /// Reads a file bit by bit.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_CORRUPT`, with its name.
    pub(super) fn reader<'s>(&'s self, file: &SourceFile) -> Result<Box<dyn Read + 's>> {
        let within = |error: Error| error.in_entry(&file.name);
        let opened: Box<dyn Read + 's> = match &self.place {
            Place::File(path) => Box::new(File::open(path).map_err(|error| within(error.into()))?),
            Place::Folder(root) => Box::new(open_within(root, &file.name).map_err(within)?),
            Place::Archive(archive) => {
                let missing = || within(Error::corrupt("there is no such entry"));
                Box::new(archive.reader(archive.entry(&file.name).ok_or_else(missing)?)?)
            }
        };
        Ok(opened)
    }

    /// Reads the whole of a file of so many bytes at most.
    ///
    /// # Errors
    /// `ERR_LIMIT`, `ERR_IO`, `ERR_CORRUPT`, with its name.
    pub(super) fn read(&self, file: &SourceFile, most_bytes: u64) -> Result<Vec<u8>> {
        let bytes = self.beginning(file, most_bytes.saturating_add(1))?;
        if bytes.len() as u64 > most_bytes {
            let message = format!("a file of this kind has {most_bytes} bytes at most");
            return Err(Error::limit(message).in_entry(&file.name));
        }
        Ok(bytes)
    }

    /// Reads so many bytes of a file, or all if it has fewer.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_CORRUPT`, with its name.
    pub(super) fn beginning(&self, file: &SourceFile, bytes: u64) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        let read = self.reader(file)?.take(bytes).read_to_end(&mut found);
        read.map_err(|error| unread(error).in_entry(&file.name))?;
        Ok(found)
    }

    /// Reads a file of text of so many bytes at most. A byte order mark at its start is passed over.
    ///
    /// # Errors
    /// `ERR_CORRUPT` if it is no UTF-8; those of [`Source::read`].
    pub(super) fn text(&self, file: &SourceFile, most_bytes: u64) -> Result<String> {
        let text = String::from_utf8(self.read(file, most_bytes)?)
            .map_err(|_| Error::corrupt("it is no UTF-8").in_entry(&file.name))?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }
}

/// Returns `true` if a file begins as a ZIP archive does.
fn is_archive(path: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(matches!(start.as_slice(), b"PK\x03\x04" | b"PK\x05\x06"))
}

/// Opens a file of a folder, unless a link leads out of the folder by now.
fn open_within(root: &Path, name: &str) -> Result<File> {
    let path = fs::canonicalize(root.join(name))?;
    if !path.starts_with(root) {
        return Err(Error::corrupt("it leads out of its folder"));
    }
    let file = File::open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::corrupt("it is no file")),
    }
}

fn modified(found: &Metadata) -> Option<EpochMs> {
    let since = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(EpochMs::new)
}

/// A folder while it is listed.
struct Folder {
    limits: Limits,
    bytes: u64,
    seen: u64,
    files: Vec<SourceFile>,
    unread: Vec<(String, &'static str)>,
}

impl Folder {
    fn list(root: &Path, limits: Limits) -> Result<Source> {
        let (files, unread) = (Vec::new(), Vec::new());
        let mut folder = Folder { limits, bytes: 0, seen: 0, files, unread };
        let mut waiting = vec![(root.to_path_buf(), String::new(), 0)];
        while let Some((path, prefix, level)) = waiting.pop() {
            let listed = folder.read(&path, &prefix, level);
            waiting.extend(listed.map_err(|error| error.at_path(&path))?);
        }
        let Folder { files, unread, .. } = folder;
        Ok(Source::of(Place::Folder(root.to_path_buf()), files, unread))
    }

    /// Lists one folder, and returns those in it.
    fn read(
        &mut self,
        path: &Path,
        prefix: &str,
        level: usize,
    ) -> Result<Vec<(PathBuf, String, usize)>> {
        let mut below = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            self.seen = self.seen.saturating_add(1);
            if self.seen > self.limits.entries {
                let most = self.limits.entries;
                return Err(Error::limit(format!("a folder has {most} files at most")));
            }
            let file_name = entry.file_name();
            let name = format!("{prefix}{}", file_name.to_string_lossy());
            // This does not follow a link.
            let found = entry.metadata()?;
            if file_name.to_str().is_none() {
                self.unread.push((name, "its name is no UTF-8"));
            } else if found.is_symlink() {
                self.unread.push((name, "it is a link, and links are not followed"));
            } else if found.is_dir() {
                // What git keeps is no memory.
                let is_git = prefix.is_empty() && name == ".git";
                match level {
                    0..MAX_LEVELS if !is_git => {
                        below.push((entry.path(), format!("{name}/"), level.saturating_add(1)));
                    }
                    0..MAX_LEVELS => {}
                    _ => self.unread.push((name, "it is in too many folders")),
                }
            } else if found.is_file() {
                self.add(name, &found)?;
            } else {
                self.unread.push((name, "it is no file"));
            }
        }
        Ok(below)
    }

    fn add(&mut self, name: String, found: &Metadata) -> Result<()> {
        self.bytes = self.bytes.saturating_add(found.len());
        if self.bytes > self.limits.inflated_bytes {
            let most = self.limits.inflated_bytes;
            return Err(Error::limit(format!("a folder has {most} bytes at most")).in_entry(&name));
        }
        self.files.push(SourceFile { name, modified: modified(found) });
        Ok(())
    }
}
