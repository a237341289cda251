//! The operations by which wallets agree: `saga_consent`, `saga_agree`. They need no store.

use grainstore::EpochMs;
use grainstore::format::parse_datetime;
use grainstore_interop::saga::{Consent, Layer, Operation, consent_message, transfer_consent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::saga::Key;
use crate::error::{Error, Result};
use crate::host::Host;

/// Signs the record of an agent's consent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Consenting {
    wallet: Key,
    operation: String,
    scope: Vec<String>,
    purpose: String,
    until: Option<i64>,
}

/// The signed record.
#[derive(Debug, Serialize)]
pub(crate) struct ConsentAnswer {
    consent: Value,
}

pub(crate) fn saga_consent(given: Consenting, host: &mut Host) -> Result<ConsentAnswer> {
    let scope = given.scope.iter().map(|name| name.parse::<Layer>());
    let consent = Consent {
        operation: given.operation.parse()?,
        granted_at: host.now(),
        expires_at: given.until.map(EpochMs::new),
        scope: scope.collect::<Result<_, _>>()?,
        purpose: given.purpose,
    };
    Ok(ConsentAnswer { consent: consent.sign(&given.wallet.signer()?)? })
}

/// Signs the message by which a party consents to a transfer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agreeing {
    wallet: Key,
    document_id: String,
    destination: String,
    /// As it stands in the message.
    at: String,
}

/// What was signed, and the consent of the party.
#[derive(Debug, Serialize)]
pub(crate) struct AgreeAnswer {
    message: String,
    consent: Value,
}

pub(crate) fn saga_agree(given: Agreeing) -> Result<AgreeAnswer> {
    let Agreeing { wallet, document_id, destination, at } = given;
    let at =
        parse_datetime(&at).map_err(|error| Error::arguments(format!("at is no time: {error}")))?;
    let signer = wallet.signer()?;
    Ok(AgreeAnswer {
        message: consent_message(Operation::Transfer, &document_id, &destination, at),
        consent: transfer_consent(&signer, &document_id, &destination, at)?,
    })
}
