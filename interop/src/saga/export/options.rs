//! What an export is asked for, and what it came to.

use grainstore::EpochMs;
use grainstore::cal::Query;
use grainstore::format::parse_datetime;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::saga::container::ContainerReport;
use crate::saga::encrypt::Recipient;
use crate::saga::kinds::{ExportType, Layer};
use crate::saga::redact::RedactOptions;
use crate::saga::sign::Signer;
use crate::saga::transfer_consent::{TransferConsents, TransferKind};
use crate::saga::validate::Verdict;
use crate::saga::wallet::Wallet;

/// Options of [`export_document`](super::export_document) and [`export_container`](super::export_container).
#[derive(Default)]
pub struct ExportOptions<'o> {
    /// What it is for; a full export by default.
    pub export_type: Option<ExportType>,
    /// The layers that are asked for; all that the type has by default. The identity is in every export.
    pub layers: Option<Vec<Layer>>,
    /// True if it leaves the organization: it then needs a consent, a redaction of what is the organization's, and keys
    /// of its recipients.
    pub crosses_organizations: bool,
    /// The signed consent of the agent: [`Consent::sign`](crate::saga::Consent::sign).
    pub consent: Option<Value>,
    /// How it is redacted. What was decided of items in the store ([`classify_item`](crate::saga::classify_item)) holds too.
    pub redact: Option<RedactOptions>,
    /// Who consents to the transfer; a transfer that leaves the organization needs it.
    pub transfer: Option<TransferRequest>,
    /// Signs the redaction manifest for the organization.
    pub organization: Option<&'o dyn Signer>,
    /// To whom layers are encrypted.
    pub recipients: Vec<Recipient>,
    /// Layers and parts that are encrypted beside those that must be, such as `memory.episodic`.
    pub encrypt: Vec<String>,
    /// True to leave the long-term memory in plain, which its owner may.
    pub plain_long_term: bool,
    /// Grains that go along as the long-term memory of a container: all that match and that the session sees.
    pub grains: Option<Query>,
    /// True to show current events, goals and workflows among these grains as items of the document too, which other
    /// systems read.
    pub native_items: bool,
    /// Refuses to write what the published schema refuses.
    pub strict_schema: bool,
    /// The id of the document; a random one by default.
    pub document_id: Option<String>,
    /// Follows the export.
    pub monitor: Monitor<'o>,
}

impl std::fmt::Debug for ExportOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExportOptions")
            .field("export_type", &self.export_type)
            .field("layers", &self.layers)
            .field("crosses_organizations", &self.crosses_organizations)
            .finish_non_exhaustive()
    }
}

/// A transfer to another organization, and who consents to it: of [`ExportOptions`]. The message that they sign is
/// [`consent_message`](crate::saga::consent_message()), with the id of the document ([`ExportOptions::document_id`]).
#[derive(Debug, Clone)]
pub struct TransferRequest {
    /// Why, which decides who must consent.
    pub kind: TransferKind,
    /// The address of the destination, as it stands in the message.
    pub destination: String,
    /// The time that stands in the message.
    pub at: EpochMs,
    /// The consents.
    pub consents: TransferConsents,
}

impl TransferRequest {
    /// Reads one from JSON: `kind` (`voluntary`, `administrative`, `emergency`), `destination`, `at` (RFC 3339, as it
    /// stands in the message), and `consents` with `agent`, `source` and `destination`, each as [`transfer_consent`](crate::saga::transfer_consent())
    /// makes it, as far as they are there.
    ///
    /// ```
    /// use grainstore_interop::saga::{TransferKind, TransferRequest};
    ///
    /// let request = TransferRequest::from_value(&serde_json::json!({
    ///     "kind": "emergency", "destination": "https://acme.example", "at": "2026-03-20T10:00:00Z", "consents": {},
    /// }))?;
    /// assert_eq!(request.kind, TransferKind::Emergency);
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_SCHEMA` for another form, also for members that are not known.
    pub fn from_value(value: &Value) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Given {
            kind: String,
            destination: String,
            at: String,
            consents: Parties,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Parties {
            agent: Option<Party>,
            source: Option<Party>,
            destination: Option<Party>,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Party {
            chain: String,
            address: String,
            signature: String,
        }
        let given = Given::deserialize(value)
            .map_err(|error| Error::schema(format!("no request of a transfer: {error}")))?;
        let party = |given: Option<Party>| match given {
            None => Ok::<_, Error>(None),
            Some(it) => Ok(Some((Wallet::new(&it.chain, &it.address)?, it.signature))),
        };
        let Parties { agent, source, destination } = given.consents;
        Ok(Self {
            kind: given.kind.parse()?,
            destination: given.destination,
            at: parse_datetime(&given.at)?,
            consents: TransferConsents {
                agent: party(agent)?,
                source: party(source)?,
                destination: party(destination)?,
            },
        })
    }
}

/// What an export came to: [`export_document`](super::export_document).
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ExportReport {
    /// The id of the document.
    pub document_id: String,
    /// The layers that it has.
    pub layers: Vec<Layer>,
    /// Layers that were asked for and are left out: the consent does not cover them, or that on which they rest has
    /// ended.
    pub narrowed: Vec<Layer>,
    /// Items that a layer names and that are gone: erased, or taken back.
    pub absent: Vec<String>,
    /// The paths that are encrypted.
    pub encrypted: Vec<String>,
    /// Items that were redacted.
    pub redacted: u64,
    /// Items that were taken out by the redaction.
    pub removed: u64,
    /// Grains in the long-term memory, and those that rules of the store keep out of it.
    pub grains: Option<grainstore::ExportReport>,
    /// The checksums of the container.
    pub container: Option<ContainerReport>,
    /// Consents that are recommended and missing.
    pub missing_consents: Vec<&'static str>,
    /// Valid, or valid with extensions.
    pub verdict: Verdict,
}
