//! Clones: a document of one agent as that of a second one, with a wallet of its own.

use grainstore::{EpochMs, ErrorKind};
use serde::Serialize;
use serde_json::{Value, json};

use super::consent::{Operation, check_use, uncovered};
use super::document::Document;
use super::kinds::{ExportType, Layer};
use super::rules::DEEP_CLONE;
use super::time;
use super::vault::{Vault, VaultKey};
use super::wallet::Wallet;
use crate::error::{Error, Result};

/// How a clone is made: [`Document::to_clone`].
#[derive(Debug, Clone)]
pub struct CloneOptions<'o> {
    /// The wallet of the clone, which is not that of its source.
    pub wallet: Wallet,
    /// The handle of the clone.
    pub handle: String,
    /// When.
    pub at: EpochMs,
    /// The keys of the source's vault and of the clone's. Without them the clone has no vault.
    pub vault: Option<(&'o VaultKey, &'o VaultKey)>,
    /// True if the clone is for another organization, which needs the consent of the source.
    pub crosses_organizations: bool,
    /// The deepest clone that is made.
    pub max_depth: Option<u64>,
}

/// What [`Document::to_clone`] did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CloneReport {
    /// The id of the clone's document.
    pub document_id: String,
    /// How many clones there are between the first agent and this one, itself included.
    pub depth: u64,
    /// True if the source has a vault and the clone has none, for want of keys.
    pub lost_vault: bool,
    /// Layers of the source that its consent does not cover, which the clone does not have.
    pub narrowed: Vec<Layer>,
    /// What the standard recommends to warn of.
    pub warnings: Vec<String>,
}

impl Document {
    /// Makes the document of a clone of this agent. It is not signed yet: the clone signs it ([`Document::sign`]).
    ///
    /// The source must be signed, and is a snapshot: what the source learns later is not in it. Lineage names the
    /// source; what stands for the source's own registration is left out; endorsements and proofs stay, and are of the
    /// source.
    ///
    /// ```
    /// use grainstore::EpochMs;
    /// use grainstore_interop::saga::{CloneOptions, Document, Layer, Signer, WalletKey};
    ///
    /// # let source_key = WalletKey::ed25519("solana:mainnet", &[0x11; 32])?;
    /// # let mut source = Document::parse(
    /// #     br#"{"$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0", "documentId": "saga_a1",
    /// #         "exportedAt": "2026-03-20T10:00:00Z", "exportType": "clone", "layers": {"identity": {
    /// #         "handle": "aria", "walletAddress": "F25s3DdjXdCxYBhh2z8FBusVEMT4b9bGNFVKJi3wFoF4",
    /// #         "chain": "solana:mainnet", "createdAt": "2026-01-15T08:00:00Z"}}}"#,
    /// # )?;
    /// # source.sign(&source_key)?;
    /// let key = WalletKey::secp256k1("eip155:8453", &[0x12; 32])?;
    /// let options = CloneOptions {
    ///     wallet: key.wallet().clone(), handle: "aria-2".into(), at: EpochMs::new(1_774_000_800_000),
    ///     vault: None, crosses_organizations: false, max_depth: Some(3),
    /// };
    /// let (mut clone, report) = source.to_clone(&options)?;
    /// clone.sign(&key)?;
    /// let identity = clone.layer(Layer::Identity).unwrap();
    /// assert_eq!((identity["parentSagaId"].as_str(), report.depth), (Some("saga_a1"), 1));
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_CONFLICT` for the wallet of the source; `ERR_LIMIT` for a clone that is too deep; `ERR_SIGNATURE` if the
    /// source is not signed; `ERR_POLICY` and those of a consent, if it is for another organization, also if it is not
    /// redacted; `ERR_KEY` if the key is not that of the source's vault; `ERR_SCHEMA`.
    pub fn to_clone(&self, options: &CloneOptions<'_>) -> Result<(Self, CloneReport)> {
        let source = self.wallet()?;
        self.verify().require(false)?;
        if source.is_of_key(&options.wallet) {
            let message = "a clone has a wallet of its own, and this is its source's";
            return Err(Error::new(ErrorKind::Conflict, message)
                .with_hint("register a new wallet for the clone"));
        }
        self.check_consent(&source, options)?;
        let depth = self.clone_depth().saturating_add(1);
        if let Some(most) = options.max_depth.filter(|most| depth > *most) {
            return Err(Error::limit(format!(
                "the clone would be {depth} deep, and {most} is the most"
            ))
            .with_hint("clone an agent nearer to the first one"));
        }
        let mut clone = self.clone();
        let narrowed = clone.narrow();
        if options.crosses_organizations {
            clone.check_redacted(&source)?;
        }
        let lost_vault = clone.take_vault(options)?;
        let document_id = format!("saga_{}", time::random_id()?);
        let at = time::written(options.at);
        let members = clone.members_mut();
        // The consent, the signature and the times are of the source.
        for name in ["signature", "consent", "createdAt"] {
            members.remove(name);
        }
        members.insert("documentId".to_owned(), Value::from(document_id.as_str()));
        members.insert("exportedAt".to_owned(), Value::from(at.as_str()));
        members.insert("exportType".to_owned(), Value::from(ExportType::Clone.name()));
        clone.identify(self.id(), depth, &at, options);
        let warnings = if depth > DEEP_CLONE {
            vec![format!("the clone is {depth} deep; the standard warns above {DEEP_CLONE}")]
        } else {
            Vec::new()
        };
        Ok((clone, CloneReport { document_id, depth, lost_vault, narrowed, warnings }))
    }

    fn check_consent(&self, source: &Wallet, options: &CloneOptions<'_>) -> Result<()> {
        match self.get("consent") {
            Some(record) => check_use(record, source, Operation::Clone, options.at),
            None if options.crosses_organizations => Err(Error::new(
                ErrorKind::Policy,
                "a clone for another organization has the consent of its source",
            )
            .with_hint("ask for a clone export with a consent")),
            None => Ok(()),
        }
    }

    /// Takes out the layers that the consent of a document does not cover, and returns those that are known.
    fn narrow(&mut self) -> Vec<Layer> {
        let Some(record) = self.get("consent") else { return Vec::new() };
        let gone: Vec<String> =
            uncovered(record, self.layer_names()).into_iter().map(str::to_owned).collect();
        if let Some(layers) = self.layers_mut() {
            layers.retain(|name, _| !gone.contains(name));
        }
        let mut privacy = self.members_mut().get_mut("privacy").and_then(Value::as_object_mut);
        for name in ["encryptedLayers", "redactedFields"] {
            let list = privacy.as_deref_mut().and_then(|it| it.get_mut(name)?.as_array_mut());
            let stays = |path: &Value| {
                let layer = path.as_str().and_then(|path| path.split('.').next());
                layer.is_none_or(|layer| gone.iter().all(|name| name != layer))
            };
            list.into_iter().for_each(|list| list.retain(stays));
        }
        gone.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// Checks that an organization took out what is its own, where something may be. Where nothing is, what nobody knows
    /// is taken out.
    ///
    /// # Errors
    /// `ERR_POLICY`; those of [`Document::verify_manifest`].
    fn check_redacted(&mut self, source: &Wallet) -> Result<()> {
        if !self.layers().any(Layer::may_be_of_organization) {
            self.forget_unknown();
            return Ok(());
        }
        let signer = self.verify_manifest()?;
        let is_organization = signer.is_some_and(|address| !source.is_address(&address));
        match is_organization {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Policy,
                "a clone for another organization is redacted, and the organization signs what it took out",
            )
            .with_hint("export the source redacted, as a clone that leaves the organization")
            .in_entry("redactionManifest")),
        }
    }

    /// Takes out the layers and members that are not known.
    fn forget_unknown(&mut self) {
        for (name, _) in self.unknown_members() {
            self.members_mut().remove(&name);
        }
        if let Some(layers) = self.layers_mut() {
            layers.retain(|name, _| name.parse::<Layer>().is_ok());
        }
    }

    fn clone_depth(&self) -> u64 {
        let identity = self.layer(Layer::Identity);
        identity.and_then(|it| it.get("cloneDepth")).and_then(Value::as_u64).unwrap_or_default()
    }

    /// Gives the vault to the clone's key, or takes it out. Returns `true` if it is lost.
    fn take_vault(&mut self, options: &CloneOptions<'_>) -> Result<bool> {
        let Some(vault) = self.layer(Layer::Vault).cloned() else { return Ok(false) };
        let name = Layer::Vault.name();
        if let Some((source, clone)) = options.vault {
            let vault = Vault::from_value(vault)?.for_clone(source, clone, options.at)?;
            if let Some(layers) = self.layers_mut() {
                layers.insert(name.to_owned(), vault.to_value());
            }
            return Ok(false);
        }
        if let Some(layers) = self.layers_mut() {
            layers.remove(name);
        }
        let privacy = self.members_mut().get_mut("privacy").and_then(Value::as_object_mut);
        let list = privacy.and_then(|it| it.get_mut("encryptedLayers")?.as_array_mut());
        if let Some(list) = list {
            list.retain(|path| path.as_str() != Some(name));
        }
        Ok(true)
    }

    fn identify(&mut self, parent: &str, depth: u64, at: &str, options: &CloneOptions<'_>) {
        let Some(layers) = self.layers_mut() else { return };
        let identity = layers.entry(Layer::Identity.name()).or_insert_with(|| json!({}));
        let Some(identity) = identity.as_object_mut() else { return };
        // What proves the source's registration proves nothing of the clone.
        for name in ["registrationTxHash", "publicKey", "directoryUrl"] {
            identity.remove(name);
        }
        let own = json!({
            "handle": options.handle, "walletAddress": options.wallet.address(),
            "chain": options.wallet.chain(), "createdAt": at, "parentSagaId": parent, "cloneDepth": depth,
        });
        if let Value::Object(own) = own {
            identity.extend(own);
        }
    }
}
