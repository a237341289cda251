//! The checksums of a container's entries, the hash of all of them, and a reader that makes both.

use std::collections::BTreeMap;
use std::io::{self, Read};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{META, SIGNATURE};
use crate::error::{Error, Result};
use crate::json;

/// The version of containers that is written.
const VERSION: &str = "1.0";

/// The checksums of the entries, by their names: `sha256:` and hex digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) created_at: String,
    pub(super) checksums: BTreeMap<String, String>,
}

impl Meta {
    /// Reads the entry.
    ///
    /// # Errors
    /// `ERR_CORRUPT`, `ERR_SCHEMA`, `ERR_VERSION` for another major version.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let value = json::parse(bytes)?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let version = text("sagaContainerVersion")
            .ok_or_else(|| Error::schema("it has a sagaContainerVersion"))?;
        if version.split('.').next() != Some("1") {
            return Err(Error::version(format!("containers of version {version} are not known")));
        }
        let checksums = value.get("checksums").and_then(Value::as_object);
        let checksums = checksums.ok_or_else(|| Error::schema("it has checksums"))?;
        let one = |(name, sum): (&String, &Value)| {
            let sum = sum.as_str().filter(|sum| sum.starts_with("sha256:"));
            let sum =
                sum.ok_or_else(|| Error::schema(format!("the checksum of {name:?} is sha256:…")))?;
            Ok((name.clone(), sum.to_ascii_lowercase()))
        };
        let checksums = checksums.iter().map(one).collect::<Result<_>>()?;
        Ok(Self { created_at: text("createdAt").unwrap_or_default().to_owned(), checksums })
    }

    /// The entry.
    ///
    /// # Errors
    /// None that a list of checksums causes.
    pub(super) fn written(&self) -> Result<String> {
        json::canonical(&json!({
            "sagaContainerVersion": VERSION, "createdAt": self.created_at, "checksums": self.checksums,
        }))
    }

    /// Returns `true` for an entry that has a checksum.
    pub(super) fn lists(name: &str) -> bool {
        !matches!(name, META | SIGNATURE)
    }
}

/// The hash over the bytes of all entries but the signature, in their order.
#[derive(Clone, Default)]
pub(super) struct ContentHash(Sha256);

impl ContentHash {
    /// The text that is signed.
    pub(super) fn text(self) -> String {
        checksum(&self.0.finalize())
    }
}

/// Reads on, and hashes what it reads: for its own checksum, and for that of the container.
pub(super) struct HashingReader<'h, R> {
    inner: R,
    own: Sha256,
    content: &'h mut ContentHash,
}

impl<'h, R: Read> HashingReader<'h, R> {
    pub(super) fn new(inner: R, content: &'h mut ContentHash) -> Self {
        Self { inner, own: Sha256::new(), content }
    }

    pub(super) fn checksum(self) -> String {
        checksum(&self.own.finalize())
    }
}

impl<R: Read> Read for HashingReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        let bytes = into.get(..read).unwrap_or_default();
        self.own.update(bytes);
        self.content.0.update(bytes);
        Ok(read)
    }
}

/// A hash as documents have it.
pub(super) fn checksum(hash: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(hash))
}
