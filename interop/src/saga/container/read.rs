//! Reading: every byte is checked against the checksums before anything of a container is used.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::meta::{ContentHash, HashingReader, Meta};
use super::{DOCUMENT, META, SIGNATURE};
use crate::archive::{Archive, Entry, EntryReader, Limits, unread};
use crate::error::{Error, Result};
use crate::json;
use crate::other;
use crate::saga::document::{Document, MAX_DOCUMENT_BYTES};
use crate::saga::sign::{invalid, verify_signature};

/// Most bytes of the list of checksums.
const MAX_META_BYTES: u64 = 16 << 20;
/// Most bytes of the signature.
const MAX_SIGNATURE_BYTES: u64 = 64 << 10;

/// The entry by which an ALF archive is known.
const ALF_MANIFEST: &str = "manifest.json";

/// What the signature of a [`Container`] came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ContainerVerdict {
    /// The agent's wallet signed the hash of the content.
    Verified,
    /// The hash is that of the content, and what was signed is not told. Some tools write this.
    IntegrityOnly,
    /// The signature is none; the text says why.
    Invalid(String),
}

impl ContainerVerdict {
    /// Refuses what is not good enough to be imported.
    pub(crate) fn require(&self, allow_integrity_only: bool) -> Result<()> {
        match self {
            Self::Verified => Ok(()),
            Self::IntegrityOnly if allow_integrity_only => Ok(()),
            Self::IntegrityOnly => Err(invalid("what was signed cannot be told").with_hint(
                "ask for a container that is signed over its content hash, or allow this one",
            )),
            Self::Invalid(why) => Err(invalid(why)),
        }
        .map_err(|error| error.in_entry(SIGNATURE))
    }
}

/// An open container, all entries of which are as its list of checksums says. Whether its wallet signed them is its
/// [`verdict`](Self::verdict).
///
/// ```
/// use grainstore::EpochMs;
/// use grainstore_interop::archive::Limits;
/// use grainstore_interop::saga::{Container, ContainerFile, ContainerVerdict, Document, WalletKey, write_container};
///
/// # let dir = tempfile::tempdir()?;
/// let key = WalletKey::ed25519("solana:mainnet", &[0x11; 32])?;
/// let mut document = Document::parse(
///     br#"{"$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0", "documentId": "saga_a1",
///         "exportedAt": "2026-03-20T10:00:00Z", "exportType": "identity", "layers": {"identity": {
///         "handle": "aria", "walletAddress": "F25s3DdjXdCxYBhh2z8FBusVEMT4b9bGNFVKJi3wFoF4",
///         "chain": "solana:mainnet", "createdAt": "2026-01-15T08:00:00Z"}}}"#,
/// )?;
/// document.sign(&key)?;
/// let path = dir.path().join("aria.saga");
/// let files = vec![ContainerFile::new("artifacts/a.txt", &b"tea"[..])];
/// write_container(&path, &document, files, EpochMs::new(1_774_000_800_000), &key)?;
/// let container = Container::open(&path, Limits::default())?;
/// assert_eq!(container.verdict(), &ContainerVerdict::Verified);
/// assert_eq!(container.document(), &document);
/// assert_eq!(container.files().collect::<Vec<_>>(), ["artifacts/a.txt"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Container {
    archive: Archive,
    document: Document,
    meta: Meta,
    verdict: ContainerVerdict,
}

impl Container {
    /// Opens a container and checks every byte of it.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`, `ERR_IO`; `ERR_CORRUPT` if it is no archive, or unsafe; `ERR_LIMIT`; `ERR_INTEGRITY` for an
    /// entry that is not what its checksum says, has none, or is missing; `ERR_SCHEMA` for another archive, such as one of
    /// ALF; `ERR_SCHEMA`, `ERR_VERSION` for what it is to have. They name the entry.
    pub fn open(path: impl AsRef<Path>, limits: Limits) -> Result<Self> {
        let path = path.as_ref();
        let archive = Archive::open(path, limits).map_err(|error| {
            other::told(error, path, "a SAGA container", &[other::Kind::SagaContainer])
        })?;
        Self::of(archive).map_err(|error| error.at_path(path))
    }

    fn of(archive: Archive) -> Result<Self> {
        check_is_container(&archive)?;
        let meta = Meta::parse(&required(&archive, META, MAX_META_BYTES)?)
            .map_err(|error| error.in_entry(META))?;
        let signature = required(&archive, SIGNATURE, MAX_SIGNATURE_BYTES)?;
        let content = check_entries(&archive, &meta)?;
        let most = u64::try_from(MAX_DOCUMENT_BYTES).unwrap_or(u64::MAX);
        let document = Document::parse(&required(&archive, DOCUMENT, most)?)
            .map_err(|error| error.in_entry(DOCUMENT))?;
        let verdict = judged(&document, &signature, &content)
            .unwrap_or_else(|error| ContainerVerdict::Invalid(error.to_string()));
        Ok(Self { archive, document, meta, verdict })
    }

    /// The document. Its own signature is judged by [`Document::verify`].
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// What the signature over the content came to.
    #[must_use]
    pub fn verdict(&self) -> &ContainerVerdict {
        &self.verdict
    }

    /// The names of the files beside the document.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let names = self.archive.entries().iter().map(Entry::name);
        names.filter(|name| Meta::lists(name) && *name != DOCUMENT)
    }

    /// The checksum of an entry: `sha256:` and hex digits.
    #[must_use]
    pub fn checksum(&self, name: &str) -> Option<&str> {
        self.meta.checksums.get(name).map(String::as_str)
    }

    /// Reads a file bit by bit, `None` if there is none of this name.
    ///
    /// # Errors
    /// `ERR_CORRUPT`, with the name.
    pub fn reader(&self, name: &str) -> Result<Option<EntryReader<'_>>> {
        self.archive.entry(name).map(|entry| self.archive.reader(entry)).transpose()
    }

    /// The length of a file in bytes.
    #[must_use]
    pub fn size_bytes(&self, name: &str) -> Option<u64> {
        self.archive.entry(name).map(Entry::size_bytes)
    }
}

/// Tells another archive from a container that lacks something.
///
/// # Errors
/// `ERR_SCHEMA`.
fn check_is_container(archive: &Archive) -> Result<()> {
    if [DOCUMENT, META, SIGNATURE].iter().any(|name| archive.entry(name).is_some()) {
        return Ok(());
    }
    Err(match archive.entry(ALF_MANIFEST) {
        Some(_) => {
            Error::schema("it is no SAGA container: it has manifest.json, as an ALF archive has")
                .with_hint("if it is an ALF archive, take it with `grain alf import` (alf_import)")
        }
        None => {
            Error::schema(format!("it is no SAGA container: it has neither {DOCUMENT} nor {META}"))
                .with_hint("give a container as a SAGA export writes it")
        }
    })
}

fn required(archive: &Archive, name: &str, most_bytes: u64) -> Result<Vec<u8>> {
    archive
        .read(name, most_bytes)?
        .ok_or_else(|| Error::integrity("a container has it, and this one does not").in_entry(name))
}

/// Checks every entry against the list, and the list against the entries. Returns the text of the content hash.
fn check_entries(archive: &Archive, meta: &Meta) -> Result<String> {
    let mut content = ContentHash::default();
    for entry in archive.entries().iter().filter(|entry| entry.name() != SIGNATURE) {
        let name = entry.name();
        let mut reader = HashingReader::new(archive.reader(entry)?, &mut content);
        io::copy(&mut reader, &mut io::sink()).map_err(|error| unread(error).in_entry(name))?;
        let found = reader.checksum();
        if !Meta::lists(name) {
            continue;
        }
        let refusal = match meta.checksums.get(name) {
            Some(listed) if *listed == found => continue,
            Some(_) => "its bytes are not what its checksum says",
            None => "it has no checksum in META",
        };
        return Err(Error::integrity(refusal).in_entry(name));
    }
    match meta.checksums.keys().find(|name| !Meta::lists(name) || archive.entry(name).is_none()) {
        None => Ok(content.text()),
        Some(name) => Err(Error::integrity("META lists it, and it is not there").in_entry(name)),
    }
}

/// Judges the signature: hex digits over the content hash, or an object of JSON with the hash and a signature.
fn judged(document: &Document, signature: &[u8], content: &str) -> Result<ContainerVerdict> {
    let wallet = document.wallet()?;
    let text = std::str::from_utf8(signature).map_err(|_| invalid("it is no text"))?.trim();
    if !text.starts_with('{') {
        return verify_signature(&wallet, content.as_bytes(), text)
            .map(|()| ContainerVerdict::Verified);
    }
    let value = json::parse(text.as_bytes())?;
    let member = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    if member("contentHash") != content {
        return Err(invalid("its contentHash is not that of the content"));
    }
    let is_other = !wallet.is_address(member("walletAddress"))
        || value.get("chain").is_some_and(|chain| chain != wallet.chain());
    if is_other {
        return Err(invalid("its wallet is not that of the identity layer"));
    }
    Ok(match verify_signature(&wallet, content.as_bytes(), member("sig")) {
        Ok(()) => ContainerVerdict::Verified,
        Err(_) => ContainerVerdict::IntegrityOnly,
    })
}
