//! Wallets: a chain and an address on it, how addresses are compared, and their DIDs.
//!
//! Knows no key; `sign` does.

use std::fmt;

use serde::Serialize;
use sha3::{Digest, Keccak256};

use super::schema::is_chain;
use crate::error::{Error, Result};

/// A family of chains, which decides how is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Family {
    /// secp256k1, addresses in hex.
    Evm,
    /// Ed25519, addresses in base58.
    Solana,
}

/// An address on a chain: who an agent or an organization is.
///
/// Addresses of EVM chains are equal in any case, and are written with the checksum of EIP-55.
///
/// ```
/// use grainstore_interop::saga::Wallet;
///
/// let wallet = Wallet::new("eip155:8453", "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a")?;
/// assert_eq!(wallet.address(), "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A");
/// assert_eq!(wallet, Wallet::new("eip155:8453", "0x19E7E376E7C213B7E7E7E46CC70A5DD086DAFF2A")?);
/// assert_eq!(wallet.did(), format!("did:pkh:eip155:8453:{}", wallet.address()));
/// assert!(Wallet::new("eip155:8453", "0xabc...123").is_err());
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Wallet {
    chain: String,
    address: String,
}

impl Wallet {
    /// An address on a chain.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for a chain that is neither `eip155:…` nor `solana:…`, or an address that is none of it.
    pub fn new(chain: &str, address: &str) -> Result<Self> {
        if !is_chain(chain) {
            let message = format!("{chain:?} is no chain such as eip155:8453 or solana:mainnet");
            return Err(Error::schema(message));
        }
        let address = match family_of(chain) {
            Family::Evm => evm_bytes(address).map(|bytes| evm_address(&bytes)),
            Family::Solana => solana_bytes(address).map(|_| address.to_owned()),
        };
        let message = "it is no address of its chain: 0x and 40 hex digits on an EVM chain, base58 of 32 bytes on \
                       Solana";
        let address = address.ok_or_else(|| Error::schema(message).in_entry("walletAddress"))?;
        Ok(Self { chain: chain.to_owned(), address })
    }

    /// A wallet of which only the address is told, as in a manifest. The form of it tells the family of its chain.
    ///
    /// # Errors
    /// `ERR_SCHEMA` if it is no address.
    pub(super) fn of_unknown_chain(address: &str) -> Result<Self> {
        match address.starts_with("0x") {
            true => Self::new("eip155:1", address),
            false => Self::new("solana:mainnet", address),
        }
    }

    pub(super) fn of_evm_bytes(chain: &str, address: &[u8; 20]) -> Self {
        Self { chain: chain.to_owned(), address: evm_address(address) }
    }

    /// Returns `true` for one key, on whatever chain of its family.
    pub(super) fn is_of_key(&self, other: &Self) -> bool {
        self.address == other.address
    }

    /// The chain, as CAIP-2 has it.
    #[must_use]
    pub fn chain(&self) -> &str {
        &self.chain
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The DID of the wallet, by which grains name it.
    #[must_use]
    pub fn did(&self) -> String {
        format!("did:pkh:{}:{}", self.chain, self.address)
    }

    /// The namespace of a layer of an agent.
    pub(super) fn namespace(&self) -> String {
        format!("saga:{}:{}", self.chain, self.address)
    }

    /// Returns `true` if a text is this address.
    #[must_use]
    pub fn is_address(&self, text: &str) -> bool {
        match self.family() {
            Family::Evm => self.address.eq_ignore_ascii_case(text),
            Family::Solana => self.address == text,
        }
    }

    pub(super) fn family(&self) -> Family {
        family_of(&self.chain)
    }
}

impl fmt::Display for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chain, self.address)
    }
}

fn family_of(chain: &str) -> Family {
    if chain.starts_with("eip155:") { Family::Evm } else { Family::Solana }
}

/// The bytes of an address of an EVM chain, in any case.
fn evm_bytes(text: &str) -> Option<[u8; 20]> {
    let digits = text.strip_prefix("0x")?;
    data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?.try_into().ok()
}

/// The 32 bytes of a base58 address, which are the public key.
pub(super) fn solana_bytes(text: &str) -> Option<[u8; 32]> {
    // 44 digits at most; longer text is not worth decoding.
    (text.len() <= 44).then(|| bs58::decode(text).into_vec().ok())??.try_into().ok()
}

/// The text of an address with the checksum of EIP-55: a letter is upper-case where the hash has a digit from 8.
fn evm_address(bytes: &[u8; 20]) -> String {
    let digits = data_encoding::HEXLOWER.encode(bytes);
    let hash = data_encoding::HEXLOWER.encode(&Keccak256::digest(digits.as_bytes()));
    let cased = digits
        .chars()
        .zip(hash.bytes())
        .map(|(digit, hash)| if hash >= b'8' { digit.to_ascii_uppercase() } else { digit });
    std::iter::once('0').chain(std::iter::once('x')).chain(cased).collect()
}
