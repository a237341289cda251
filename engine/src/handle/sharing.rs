//! What a host needs that shares one open store between processes: settings to compare, and proofs of the key.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Result, catch_storage_panic};
use crate::handle::meta::open_vault;
use crate::handle::options::OpenOptions;
use crate::handle::store::Store;
use crate::search::embed::{Embedder, Metric};
use crate::search::texts::TextSettings;

/// Settings that are stored with a store, and that options need not name.
const PRESET: &str = "preset";
const COMPRESS: &str = "compress";
const TEXTS: &str = "languages and observer_domains";

impl OpenOptions {
    /// The settings that everybody who shares an open store must agree on, by name, as text. `preset`, `compress`,
    /// the settings of texts and the models of embedders are there only where these options name them. Memory, waiting,
    /// clock, key and the resolver of DIDs are not among them.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// let settings = OpenOptions::new().count_access(false).settings();
    /// assert_eq!(settings["count_access"], "false");
    /// assert_eq!(settings["operator"], "none");
    /// assert!(!settings.contains_key("preset"));
    /// ```
    #[must_use]
    pub fn settings(&self) -> BTreeMap<&'static str, String> {
        let mut reviewers = self.reviewers.clone();
        reviewers.sort_unstable();
        reviewers.dedup();
        let limits = &self.write_limits;
        let of_process = [
            ("read_only", self.read_only.to_string()),
            ("count_access", self.count_access.to_string()),
            ("audit_reads", self.audit_reads.to_string()),
            ("locked_accepts_authorized_signature", self.locked_accepts_signature.to_string()),
            ("operator", self.operator.clone().unwrap_or_else(|| "none".to_owned())),
            ("reviewers", reviewers.join(" ")),
            ("users_erase_themselves", self.users_erase_themselves.to_string()),
            ("cascade_after_days", self.cascade_after_days.to_string()),
            ("write_limits", format!("{} {} {}", limits.adds, limits.supersedes, limits.reverts)),
            ("firewall", format!("{:?}", self.firewall)),
        ];
        let embedders = [("embedder", &self.embedder), ("former_embedder", &self.former_embedder)];
        let embedders = embedders.map(|(name, given)| {
            let described = given.as_ref().map(|(of, metric)| {
                format!("{} of {} numbers, {metric:?}", of.0.model(), of.0.dimension())
            });
            (name, described)
        });
        let stored = [
            (PRESET, self.preset.map(|preset| preset.name().to_owned())),
            (COMPRESS, self.compress.map(|compress| compress.to_string())),
            (TEXTS, self.wording.as_ref().map(TextSettings::describe)),
        ];
        let stored =
            stored.into_iter().chain(embedders).filter_map(|(name, value)| Some((name, value?)));
        of_process.into_iter().chain(stored).collect()
    }

    /// Time to wait for a store that is open elsewhere; see [`OpenOptions::wait`].
    #[must_use]
    pub fn wait_time(&self) -> Duration {
        self.wait
    }

    /// Answers a challenge with the key of these options, without opening the store: 32 bytes that are those of
    /// [`Store::key_proof`] for the same challenge, and that nobody tells without the key. `None` for a store that
    /// is not encrypted.
    ///
    /// ```
    /// use grainstore::{MasterKey, prelude::*};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// let options = OpenOptions::new().create(true).key(MasterKey::new([7; 32]));
    /// let store = Store::open(dir.path(), &options)?;
    /// assert_eq!(options.key_proof(dir.path(), b"one")?, store.key_proof(b"one")?);
    /// assert_ne!(store.key_proof(b"one")?, store.key_proof(b"two")?);
    /// let other = OpenOptions::new().key(MasterKey::new([8; 32]));
    /// assert!(other.key_proof(dir.path(), b"one").is_err_and(|error| error.code() == "ERR_KEY"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_KEY` for a wrong or missing key; `ERR_INTEGRITY` for a damaged keyring; `ERR_IO`.
    pub fn key_proof(&self, path: impl AsRef<Path>, challenge: &[u8]) -> Result<Option<[u8; 32]>> {
        // Who only asks writes nothing into the directory.
        let options = self.clone().read_only(true);
        let vault = catch_storage_panic(|| open_vault(path.as_ref(), &options))?;
        Ok(vault.keyring().map(|keyring| keyring.key_proof(challenge)))
    }

    /// The [embedder](OpenOptions::embedder) of these options, and the metric of its vectors.
    #[must_use]
    pub fn given_embedder(&self) -> Option<(Arc<dyn Embedder>, Metric)> {
        self.embedder.as_ref().map(|(embedder, metric)| (Arc::clone(&embedder.0), *metric))
    }

    /// Returns `true` if these options have a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }
}

impl Store {
    /// Answers a challenge with the key that the store was opened with; see [`OpenOptions::key_proof`].
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub fn key_proof(&self, challenge: &[u8]) -> Result<Option<[u8; 32]>> {
        let view = self.inner().view()?;
        Ok(view.vault().keyring().map(|keyring| keyring.key_proof(challenge)))
    }

    /// The [settings](OpenOptions::settings) that the store itself keeps, whatever it was opened with: its preset,
    /// its compression, and its settings of texts.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true).compress(true))?;
    /// assert_eq!(store.settings()?["compress"], "true");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub fn settings(&self) -> Result<BTreeMap<&'static str, String>> {
        let view = self.inner().view()?;
        let texts = self.inner().library().settings();
        Ok(BTreeMap::from([
            (PRESET, self.rules().preset.to_owned()),
            (COMPRESS, view.vault().compresses().to_string()),
            (TEXTS, texts.describe()),
        ]))
    }
}
