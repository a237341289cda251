//! A purge of a file in its own place that has begun: its record is kept beside the audit file until it is appended to
//! that, since the file tells nothing any more of what is gone from it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::report::{PurgeOptions, PurgeReport};
use crate::archive::{NewFile, check_replaceable};
use crate::error::{Error, Result};

/// Bytes of a file that are read at a time.
const PIECE_BYTES: usize = 1 << 16;

/// Where it is kept.
#[derive(Debug)]
pub(super) struct BegunFile(PathBuf);

/// What is kept of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BegunPurge {
    report: PurgeReport,
    asked: Asked,
    /// The SHA-256 of the file as it is to be; `None` if it is to be removed.
    sha256: Option<String>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    ids: BTreeSet<String>,
    keep_raw: bool,
}

impl Asked {
    pub(super) fn of(ids: &[String], options: &PurgeOptions) -> Self {
        let ids = ids.iter().map(|id| id.to_ascii_lowercase()).collect();
        Self { ids, keep_raw: options.keep_raw }
    }
}

impl BegunFile {
    /// The place for the purges that an audit file is to tell of: its name with `.begun`.
    pub(super) fn beside(audit_file: &Path) -> Self {
        Self(PathBuf::from(format!("{}.begun", audit_file.display())))
    }

    /// Returns the purge that crashed behind its last step, if there is one: what it was asked for, and its record. One
    /// that did not get that far is forgotten: nothing was changed by it.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_CORRUPT` for something else in this place, `ERR_CONFLICT` for what is no file.
    pub(super) fn done(&self, file: &Path) -> Result<Option<(Asked, PurgeReport)>> {
        check_replaceable(&self.0)?;
        let bytes = match fs::read(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| Error::from(error).at_path(&self.0))?,
        };
        let begun: BegunPurge = serde_json::from_slice(&bytes).map_err(|error| {
            Error::corrupt(format!("no record of a purge: {error}")).at_path(&self.0)
        })?;
        if sha256_of(file)? != begun.sha256 {
            self.forget()?;
            return Ok(None);
        }
        Ok(Some((begun.asked, begun.report)))
    }

    /// Keeps the record of a purge before its last step, after which the file is what `whole` is; without it it is gone.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(super) fn keep(
        &self,
        report: &PurgeReport,
        asked: &Asked,
        whole: Option<&Path>,
    ) -> Result<()> {
        let sha256 = whole.map(sha256_of).transpose()?.flatten();
        let begun = BegunPurge { report: report.clone(), asked: asked.clone(), sha256 };
        let text = serde_json::to_vec(&begun)
            .map_err(|error| Error::corrupt(format!("a record of a purge: {error}")))?;
        let mut file = NewFile::create(&self.0)?;
        file.write_all(&text).map_err(|error| Error::from(error).at_path(&self.0))?;
        file.finish()
    }

    /// Forgets it: its record is written, or it was not done.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(super) fn forget(&self) -> Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::from(error).at_path(&self.0))
            }
            _ => Ok(()),
        }
    }
}

/// The SHA-256 of a file; `None` if there is none.
fn sha256_of(path: &Path) -> Result<Option<String>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| Error::from(error).at_path(path))?,
    };
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; PIECE_BYTES]);
    loop {
        let read = file.read(&mut piece).map_err(|error| Error::from(error).at_path(path))?;
        match piece.get(..read) {
            Some(read) if !read.is_empty() => hasher.update(read),
            _ => return Ok(Some(HEXLOWER.encode(&hasher.finalize()))),
        }
    }
}
