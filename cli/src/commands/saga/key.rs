//! Keys of wallets, which stay in their files: 32 bytes, as `grain keys new` makes them.

use clap::Args;
use data_encoding::BASE64;
use grainstore_interop::saga::{VaultKey, WalletKey};
use serde::{Serialize, Serializer};
use zeroize::Zeroizing;

use crate::error::{Code, Error, Result};
use crate::input::Source;
use crate::output::Output;

/// Bytes that are read of a key file.
const MAX_KEY_FILE_BYTES: usize = 1024;

/// The key of the wallet of an agent.
#[derive(Debug, Args)]
pub(super) struct KeyOptions {
    /// The chain of the wallet, such as eip155:8453 or solana:mainnet
    #[arg(long, value_name = "CHAIN")]
    pub(super) chain: String,
    /// The key of the wallet: a file of 32 bytes
    #[arg(long, value_name = "FILE")]
    pub(super) key_seed: Source,
}

/// The key of an organization, which signs its manifest.
#[derive(Debug, Args)]
pub(super) struct SignerOptions {
    /// The chain of the organization's wallet
    #[arg(long, value_name = "CHAIN", requires = "organization_key")]
    organization_chain: Option<String>,
    /// The key of the organization's wallet: a file of 32 bytes
    #[arg(long, value_name = "FILE", requires = "organization_chain")]
    pub(super) organization_key: Option<Source>,
}

impl KeyOptions {
    /// Reads the key to sign with.
    pub(super) fn signer(&self, output: &mut Output<'_>) -> Result<WalletKey> {
        wallet_key(&self.chain, &self.key_seed, output)
    }

    /// Reads the key of the vault, which is made of that of the wallet.
    pub(super) fn vault_key(&self, output: &mut Output<'_>) -> Result<VaultKey> {
        Ok(VaultKey::from_wallet_key(*secret(&self.key_seed, output)?))
    }
}

/// A wallet for the process that has the store open: its chain, and its key as base64.
#[derive(Serialize)]
pub(super) struct SentWallet<'k> {
    chain: &'k str,
    #[serde(serialize_with = "as_text")]
    key: Zeroizing<String>,
}

fn as_text<S: Serializer>(key: &Zeroizing<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key)
}

impl KeyOptions {
    /// Reads the key for another process of the same user.
    pub(super) fn sent(&self, output: &mut Output<'_>) -> Result<SentWallet<'_>> {
        sent(&self.chain, &self.key_seed, output)
    }
}

impl SignerOptions {
    /// Reads the key for another process, if one is given.
    pub(super) fn sent(&self, output: &mut Output<'_>) -> Result<Option<SentWallet<'_>>> {
        match (&self.organization_chain, &self.organization_key) {
            (Some(chain), Some(source)) => sent(chain, source, output).map(Some),
            _ => Ok(None),
        }
    }
}

fn sent<'k>(chain: &'k str, source: &Source, output: &mut Output<'_>) -> Result<SentWallet<'k>> {
    let key = secret(source, output)?;
    Ok(SentWallet { chain, key: Zeroizing::new(BASE64.encode(key.as_slice())) })
}

impl SignerOptions {
    /// Reads the key, if one is given.
    pub(super) fn signer(&self, output: &mut Output<'_>) -> Result<Option<WalletKey>> {
        match (&self.organization_chain, &self.organization_key) {
            (Some(chain), Some(source)) => wallet_key(chain, source, output).map(Some),
            _ => Ok(None),
        }
    }
}

fn wallet_key(chain: &str, source: &Source, output: &mut Output<'_>) -> Result<WalletKey> {
    let secret = secret(source, output)?;
    Ok(match chain.starts_with("solana:") {
        true => WalletKey::ed25519(chain, &secret)?,
        false => WalletKey::secp256k1(chain, &secret)?,
    })
}

fn secret(source: &Source, output: &mut Output<'_>) -> Result<Zeroizing<[u8; 32]>> {
    let bytes = Zeroizing::new(source.read(MAX_KEY_FILE_BYTES, output)?);
    let key = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| {
        let message = format!("the key of a wallet has 32 bytes, and the file has {}", bytes.len());
        Error::new(Code::Key, message, "write the 32 bytes of the private key, or of the seed")
    })?;
    Ok(Zeroizing::new(key))
}
