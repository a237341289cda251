//! The names under which a format keeps things in grains and rows.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Most bytes of an owner's name that stands in the name of an application as it is.
const MAX_PLAIN_OWNER: usize = 128;

/// A format that keeps things in the store, by the prefix of its names, such as `alf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile {
    prefix: &'static str,
}

impl Profile {
    pub(crate) const fn new(prefix: &'static str) -> Self {
        Self { prefix }
    }

    /// The key of an entry of `context`, such as `alf:json`.
    pub(crate) fn key(self, name: &str) -> String {
        format!("{}:{name}", self.prefix)
    }

    /// Returns the name of an entry of `context` of this format without its prefix.
    pub(crate) fn name_of(self, key: &str) -> Option<&str> {
        key.strip_prefix(self.prefix)?.strip_prefix(':')
    }

    /// The tag of every grain of the format.
    pub(crate) fn tag(self) -> String {
        format!("profile:{}", self.prefix)
    }

    /// The application whose rows are about the format as a whole.
    pub(crate) fn shared_application(self) -> String {
        self.prefix.to_owned()
    }

    /// The application whose rows are about one owner of documents, such as an agent.
    pub(crate) fn application(self, owner: &str) -> String {
        match owner.len() <= MAX_PLAIN_OWNER {
            true => format!("{}:{owner}", self.prefix),
            false => format!("{}:sha256:{}", self.prefix, HEXLOWER.encode(&Sha256::digest(owner))),
        }
    }
}
