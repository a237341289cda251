//! Files of an owner: their bytes lie in pieces beside a grain that stands for the owner, a document lists them.
//!
//! All pieces belong to that grain, the anchor: they are apart from those of other owners, and erased with it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use data_encoding::HEXLOWER;
use grainstore::format::{Map, Sensitivity, Value};
use grainstore::{ContentAddress, EpochMs, Owner, Session};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::clamped;
use super::documents::{Document, Documents, RefusedReplacement, Written};
use crate::archive::unread;
use crate::error::{Error, Result};
use crate::json;

/// Bytes of a piece, of which one is in memory.
const PIECE_BYTES: usize = 4 << 20;
/// The layer of the anchor.
pub(crate) const ANCHOR_LAYER: &str = "anchor";

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    pub(crate) sha256: String,
    pub(crate) size: u64,
    /// The SHA-256 of each piece.
    pieces: Vec<String>,
}

/// The files of one owner, in one list of them. Changes are seen by others once they are committed.
#[derive(Debug)]
pub(crate) struct Files<'s> {
    documents: Documents<'s>,
    layer: &'static str,
    namespace: String,
    list: BTreeMap<String, FileEntry>,
    /// Pieces that the list does not need any more, if no other file has them.
    dropped: BTreeSet<String>,
    changed: bool,
}

impl<'s> Files<'s> {
    /// Reads the list of a layer.
    ///
    /// # Errors
    /// Those of [`Documents::read`].
    pub(crate) fn open(
        documents: Documents<'s>,
        layer: &'static str,
        namespace: String,
    ) -> Result<Self> {
        let list = match documents.read(layer, None)? {
            None => BTreeMap::new(),
            Some(kept) => serde_json::from_value(kept.value)
                .map_err(|error| Error::corrupt(format!("no list of files: {error}")))?,
        };
        Ok(Self { documents, layer, namespace, list, dropped: BTreeSet::new(), changed: false })
    }

    /// The files by their paths.
    pub(crate) fn list(&self) -> &BTreeMap<String, FileEntry> {
        &self.list
    }

    pub(crate) fn get(&self, path: &str) -> Option<&FileEntry> {
        self.list.get(path)
    }

    /// Stores the bytes of a file. Returns `true` if they differ from what was there.
    ///
    /// # Errors
    /// Those of the source, and of [`Session::put_side_blob`].
    pub(crate) fn put(&mut self, path: &str, mut source: impl Read) -> Result<bool> {
        let owner = Owner::Grain(self.anchor()?);
        let (mut whole, mut size, mut pieces) = (Sha256::new(), 0_u64, Vec::new());
        loop {
            let mut piece = Vec::new();
            let read = source.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
            let read = read.map_err(|error| unread(error).in_entry(path))?;
            if read == 0 {
                break;
            }
            whole.update(&piece);
            size = size.saturating_add(read as u64);
            let address = self.session().put_side_blob(piece, owner.clone())?;
            pieces.push(address.to_string());
        }
        let entry = FileEntry { sha256: HEXLOWER.encode(&whole.finalize()), size, pieces };
        if self.list.get(path) == Some(&entry) {
            return Ok(false);
        }
        self.remove(path);
        self.list.insert(path.to_owned(), entry);
        self.changed = true;
        Ok(true)
    }

    /// Takes a file off the list. Returns `true` if it was there.
    pub(crate) fn remove(&mut self, path: &str) -> bool {
        let Some(old) = self.list.remove(path) else { return false };
        self.dropped.extend(old.pieces);
        self.changed = true;
        true
    }

    /// Opens a file.
    pub(crate) fn reader(&self, entry: &FileEntry) -> Result<FileReader<'s>> {
        let owner = Owner::Grain(self.anchor()?);
        let pieces = entry.pieces.clone().into_iter();
        Ok(FileReader { session: self.session(), owner, pieces, piece: io::Cursor::default() })
    }

    /// Writes the list, and removes what it does not need any more. `others` are the other lists of the owner.
    ///
    /// # Errors
    /// Those of [`Documents::write`] and [`Session::remove_side_blob`].
    pub(crate) fn commit(&mut self, created_at: EpochMs, others: &[&Files<'_>]) -> Result<bool> {
        if !self.changed {
            return Ok(false);
        }
        let value = serde_json::to_value(&self.list)
            .map_err(|error| Error::corrupt(format!("a list of files: {error}")))?;
        let written = self.documents.write([self.document(self.layer, value, created_at)])?;
        let lists = std::iter::once(&self.list).chain(others.iter().map(|files| &files.list));
        let entries = lists.flat_map(BTreeMap::values);
        let needed: BTreeSet<&String> = entries.flat_map(|entry| &entry.pieces).collect();
        let owner = Owner::Grain(self.anchor()?);
        for piece in self.dropped.iter().filter(|piece| !needed.contains(piece)) {
            self.session().remove_side_blob(&piece.parse()?, owner.clone())?;
        }
        self.dropped.clear();
        self.changed = false;
        Ok(written.first().is_some_and(|written| *written != Written::Same))
    }

    /// Returns `true` if the list is not committed as it is.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Asks whether the list could be written, and bytes removed. `None` if they could be.
    ///
    /// # Errors
    /// Those of [`Documents::refusal`].
    pub(crate) fn refusal(&self) -> Result<Option<RefusedReplacement>> {
        let now = clamped(self.session().now());
        let list = serde_json::to_value(&self.list)
            .map_err(|error| Error::corrupt(format!("a list of files: {error}")))?;
        for (layer, value) in [(self.layer, list), (ANCHOR_LAYER, json::Value::from("files"))] {
            let refusal = self.documents.refusal(&self.document(layer, value, now))?;
            if refusal.is_some() {
                return Ok(refusal);
            }
        }
        Ok(None)
    }

    fn session(&self) -> &'s Session {
        self.documents.session()
    }

    fn document(&self, layer: &'static str, value: json::Value, created_at: EpochMs) -> Document {
        Document {
            layer,
            item: None,
            namespace: self.namespace.clone(),
            value,
            created_at,
            sensitivity: Sensitivity::Internal,
            fields: match layer {
                ANCHOR_LAYER => Map::new(),
                _ => Map::from([("recall_priority".to_owned(), Value::from("cold"))]),
            },
        }
    }

    /// The grain that all pieces of the owner belong to; it is made when it is needed first.
    fn anchor(&self) -> Result<ContentAddress> {
        if let Some(kept) = self.documents.read(ANCHOR_LAYER, None)? {
            return Ok(kept.address);
        }
        // Its time makes it another grain than one that was erased.
        let now = clamped(self.session().now());
        let anchor = self.document(ANCHOR_LAYER, json::Value::from("files"), now);
        self.documents.write([anchor])?;
        match self.documents.read(ANCHOR_LAYER, None)? {
            Some(kept) => Ok(kept.address),
            None => Err(Error::corrupt("the anchor of the files is not current")),
        }
    }
}

/// Reads the bytes of a file, piece by piece, each checked against its hash.
#[derive(Debug)]
pub(crate) struct FileReader<'s> {
    session: &'s Session,
    owner: Owner,
    pieces: std::vec::IntoIter<String>,
    piece: io::Cursor<Vec<u8>>,
}

impl Read for FileReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let Some(next) = self.pieces.next() else { return Ok(0) };
            let address: ContentAddress = next.parse().map_err(io::Error::other)?;
            let bytes = self.session.side_blob(&address, &self.owner).map_err(io::Error::other)?;
            self.piece = io::Cursor::new(bytes);
        }
    }
}
