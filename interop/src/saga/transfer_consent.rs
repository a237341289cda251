//! Who must consent to a transfer, and whether they did.

use std::fmt;
use std::str::FromStr;

use grainstore::{EpochMs, ErrorKind};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::consent::{Operation, consent_message};
use super::kinds::named;
use super::sign::{Signer, verify_signature};
use super::wallet::Wallet;
use crate::error::{Error, Result};

named! {
    /// Why an agent is transferred, which decides who must consent.
    ///
    /// ```
    /// use grainstore_interop::saga::TransferKind;
    ///
    /// assert_eq!(TransferKind::ALL.len(), 3);
    /// ```
    TransferKind, "kind of transfer" {
        /// The agent asked for it.
        Voluntary => "voluntary",
        /// The organization asked for it.
        Administrative => "administrative",
        /// The agent has to be recovered.
        Emergency => "emergency",
    }
}

/// Who consents to a transfer: the wallet of each who signed the message
/// ([`consent_message`](super::consent_message)), and the signature.
#[derive(Debug, Clone, Default)]
pub struct TransferConsents {
    /// The agent.
    pub agent: Option<(Wallet, String)>,
    /// The organization that it leaves.
    pub source: Option<(Wallet, String)>,
    /// The organization that it joins.
    pub destination: Option<(Wallet, String)>,
}

/// Signs the message by which a party consents to a transfer ([`consent_message`](super::consent_message())). Returns it
/// as a [`TransferRequest`](super::TransferRequest) takes it: `chain`, `address`, `signature`.
///
/// ```
/// use grainstore::EpochMs;
/// use grainstore_interop::saga::{WalletKey, transfer_consent};
///
/// let key = WalletKey::secp256k1("eip155:8453", &[0x11; 32])?;
/// let at = EpochMs::new(1_774_000_800_000);
/// let given = transfer_consent(&key, "saga_a1", "https://acme.example", at)?;
/// assert_eq!(given["chain"], "eip155:8453");
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
///
/// # Errors
/// The errors of the signer.
pub fn transfer_consent(
    signer: &dyn Signer,
    document_id: &str,
    destination: &str,
    at: EpochMs,
) -> Result<Value> {
    let message = consent_message(Operation::Transfer, document_id, destination, at);
    let wallet = signer.wallet();
    Ok(json!({
        "chain": wallet.chain(), "address": wallet.address(),
        "signature": signer.sign(message.as_bytes())?,
    }))
}

/// How much a consent is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Required,
    Recommended,
    Optional,
}

impl TransferKind {
    /// How much the consents of agent, source and destination are needed.
    const fn needs(self) -> [Need; 3] {
        match self {
            Self::Voluntary => [Need::Required, Need::Recommended, Need::Required],
            Self::Administrative => [Need::Recommended, Need::Required, Need::Required],
            Self::Emergency => [Need::Optional, Need::Required, Need::Required],
        }
    }
}

impl TransferConsents {
    /// Checks the consents to a transfer: all that are there are valid and of distinct wallets, and those that must be
    /// there are. Returns those that are recommended and missing.
    ///
    /// # Errors
    /// `ERR_SIGNATURE` for an invalid one, or one of another agent; `ERR_POLICY` if a required one is missing, or one
    /// wallet consents for two parties.
    pub fn check(
        &self,
        kind: TransferKind,
        agent: &Wallet,
        message: &str,
    ) -> Result<Vec<&'static str>> {
        let parties = [
            ("agent", &self.agent),
            ("source organization", &self.source),
            ("destination organization", &self.destination),
        ];
        self.check_distinct(agent)?;
        let mut missing = Vec::new();
        for ((name, given), need) in parties.into_iter().zip(kind.needs()) {
            match (given, need) {
                (Some((wallet, sig)), _) => {
                    if name == "agent" && wallet != agent {
                        let message = format!("{wallet} is not the agent's wallet");
                        return Err(Error::new(ErrorKind::Signature, message).in_entry(name));
                    }
                    verify_signature(wallet, message.as_bytes(), sig)
                        .map_err(|error| error.in_entry(name))?;
                }
                (None, Need::Required) => {
                    let message =
                        format!("a transfer of kind {kind} needs the consent of the {name}");
                    return Err(Error::new(ErrorKind::Policy, message)
                        .with_hint("ask them to sign the consent message"));
                }
                (None, Need::Recommended) => missing.push(name),
                (None, Need::Optional) => {}
            }
        }
        Ok(missing)
    }

    /// Refuses one wallet for two parties, on whatever chain.
    fn check_distinct(&self, agent: &Wallet) -> Result<()> {
        let wallet = |given: &Option<(Wallet, String)>| given.as_ref().map(|(it, _)| it.clone());
        let (source, destination) = (wallet(&self.source), wallet(&self.destination));
        let is_one = |one: &Option<Wallet>, other: Option<&Wallet>| {
            one.as_ref().zip(other).is_some_and(|(one, other)| one.is_of_key(other))
        };
        let twice = if is_one(&source, Some(agent)) {
            "source organization"
        } else if is_one(&destination, Some(agent)) || is_one(&destination, source.as_ref()) {
            "destination organization"
        } else {
            return Ok(());
        };
        let message = "agent, source and destination consent with wallets of their own";
        Err(Error::new(ErrorKind::Policy, message)
            .with_hint("have each party sign with its own wallet")
            .in_entry(twice))
    }
}
