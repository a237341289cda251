//! Signatures of wallets: EIP-191 on EVM chains, Ed25519 on Solana. Verification, and signing with keys that a caller
//! has.
//!
//! Knows no document. Keys are wiped when dropped, and never printed.

use std::fmt;

use ed25519_dalek::Signer as _;
use k256::ecdsa::{RecoveryId, Signature, SigningKey, VerifyingKey};
use sha3::{Digest, Keccak256};
use zeroize::Zeroizing;

use super::wallet::{Family, Wallet, solana_bytes};
use crate::error::{Error, Result};
use grainstore::ErrorKind;

/// Signs for a wallet. A host may keep the key elsewhere, and implement this over it.
///
/// ```
/// use grainstore_interop::saga::{Signer, WalletKey, verify_signature};
///
/// let key = WalletKey::secp256k1("eip155:8453", &[0x11; 32])?;
/// let sig = key.sign(b"hello")?;
/// assert!(verify_signature(key.wallet(), b"hello", &sig).is_ok());
/// assert_eq!(verify_signature(key.wallet(), b"hullo", &sig).unwrap_err().code(), "ERR_SIGNATURE");
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
pub trait Signer {
    /// The wallet it signs for.
    fn wallet(&self) -> &Wallet;

    /// Signs a message: for an EVM chain as `personal_sign` does (EIP-191), for Solana the message itself. Returns `0x`
    /// and the hex digits of 65 or 64 bytes.
    ///
    /// # Errors
    /// Whatever keeps the key from signing.
    fn sign(&self, message: &[u8]) -> Result<String>;
}

/// A private key of a wallet, in memory: a [`Signer`].
pub struct WalletKey {
    wallet: Wallet,
    key: Key,
}

enum Key {
    Secp256k1(Box<SigningKey>),
    Ed25519(Box<ed25519_dalek::SigningKey>),
}

impl fmt::Debug for WalletKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WalletKey({})", self.wallet)
    }
}

impl WalletKey {
    /// A key of an EVM chain.
    ///
    /// # Errors
    /// `ERR_KEY` if the bytes are no key of the curve; `ERR_SCHEMA` for another chain.
    pub fn secp256k1(chain: &str, secret: &[u8; 32]) -> Result<Self> {
        let key = SigningKey::from_slice(secret).map_err(|_| bad_key("no secp256k1 key"))?;
        let address = address_of(key.verifying_key());
        let wallet = Wallet::of_evm_bytes(chain, &address);
        // Checks the chain.
        let wallet = Wallet::new(chain, wallet.address())?;
        Ok(Self { wallet, key: Key::Secp256k1(Box::new(key)) })
    }

    /// A key of Solana, from its seed.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for another chain.
    pub fn ed25519(chain: &str, seed: &[u8; 32]) -> Result<Self> {
        let key = ed25519_dalek::SigningKey::from_bytes(seed);
        let address = bs58::encode(key.verifying_key().as_bytes()).into_string();
        Ok(Self { wallet: Wallet::new(chain, &address)?, key: Key::Ed25519(Box::new(key)) })
    }
}

impl Signer for WalletKey {
    fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    fn sign(&self, message: &[u8]) -> Result<String> {
        let bytes = match &self.key {
            Key::Ed25519(key) => key.sign(message).to_bytes().to_vec(),
            Key::Secp256k1(key) => {
                let (signature, id) = key.sign_prehash_recoverable(&personal_hash(message));
                let mut bytes = signature.to_bytes().to_vec();
                bytes.push(id.to_byte().saturating_add(27));
                bytes
            }
        };
        Ok(format!("0x{}", data_encoding::HEXLOWER.encode(&bytes)))
    }
}

/// Verifies the signature of a wallet over a message, as a [`Signer`] makes it.
///
/// On EVM chains the last byte may be 27, 28, 0 or 1; a signature with a high `s` is refused, so that none has a second
/// form.
///
/// # Errors
/// `ERR_SIGNATURE`, saying why.
pub fn verify_signature(wallet: &Wallet, message: &[u8], sig: &str) -> Result<()> {
    let digits = sig.strip_prefix("0x").ok_or_else(|| invalid("it does not begin with 0x"))?;
    // No signature has more digits; more are not decoded.
    let bytes = (digits.len() <= 130)
        .then(|| data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok())
        .flatten()
        .ok_or_else(|| invalid("it is no hex of its length"))?;
    match wallet.family() {
        Family::Evm => verify_evm(wallet, message, &bytes),
        Family::Solana => verify_solana(wallet, message, &bytes),
    }
}

fn verify_evm(wallet: &Wallet, message: &[u8], bytes: &[u8]) -> Result<()> {
    let Some((&last, rs)) = bytes.split_last().filter(|(_, rs)| rs.len() == 64) else {
        return Err(invalid("it has 65 bytes on an EVM chain"));
    };
    let id = match last {
        27 | 28 => last.saturating_sub(27),
        0 | 1 => last,
        _ => return Err(invalid("its last byte is 27, 28, 0 or 1")),
    };
    let id = RecoveryId::from_byte(id).ok_or_else(|| invalid("its last byte is 27 or 28"))?;
    let signature = Signature::from_slice(rs).map_err(|_| invalid("r or s is out of range"))?;
    if signature.normalize_s() != signature {
        return Err(invalid("its s is high"));
    }
    let hash = personal_hash(message);
    let key = VerifyingKey::recover_from_prehash(&hash, &signature, id)
        .map_err(|_| invalid("it is of no key"))?;
    let signer = Wallet::of_evm_bytes(wallet.chain(), &address_of(&key));
    match &signer == wallet {
        true => Ok(()),
        false => Err(invalid("another wallet signed, or something else was signed")),
    }
}

fn verify_solana(wallet: &Wallet, message: &[u8], bytes: &[u8]) -> Result<()> {
    let bytes: &[u8; 64] = bytes.try_into().map_err(|_| invalid("it has 64 bytes on Solana"))?;
    let key = solana_bytes(wallet.address())
        .and_then(|key| ed25519_dalek::VerifyingKey::from_bytes(&key).ok())
        .ok_or_else(|| invalid("its address is no Ed25519 key"))?;
    key.verify_strict(message, &ed25519_dalek::Signature::from_bytes(bytes))
        .map_err(|_| invalid("another wallet signed, or something else was signed"))
}

/// The hash that `personal_sign` signs (EIP-191, version 0x45).
fn personal_hash(message: &[u8]) -> [u8; 32] {
    let mut hash = Keccak256::new();
    hash.update(b"\x19Ethereum Signed Message:\n");
    hash.update(message.len().to_string());
    hash.update(message);
    hash.finalize().into()
}

/// The address of a key: the last 20 bytes of the hash of its point.
fn address_of(key: &VerifyingKey) -> [u8; 20] {
    let point = key.to_sec1_point(false);
    // The first byte says that the point is not compressed.
    let hash = Keccak256::digest(point.as_bytes().get(1..).unwrap_or_default());
    let mut address = [0; 20];
    for (to, from) in address.iter_mut().zip(hash.iter().skip(12)) {
        *to = *from;
    }
    address
}

/// How the message about an invalid signature begins.
pub(super) const INVALID: &str = "the signature is invalid: ";

pub(super) fn invalid(why: &str) -> Error {
    Error::new(ErrorKind::Signature, format!("{INVALID}{why}"))
        .with_hint("ask the signer for the document as it was signed")
}

pub(super) fn bad_key(why: &str) -> Error {
    Error::new(ErrorKind::Format(grainstore::format::ErrorKind::Key), why.to_owned())
        .with_hint("give the key of the wallet; the message says which")
}

/// Fills bytes at random.
///
/// # Errors
/// `ERR_IO` if the system has none.
pub(super) fn fill_random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes)
        .map_err(|error| Error::new(ErrorKind::Io, format!("no random bytes: {error}")))
}

/// 32 random secret bytes.
pub(super) fn random_secret() -> Result<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 32]);
    fill_random(bytes.as_mut_slice())?;
    Ok(bytes)
}
