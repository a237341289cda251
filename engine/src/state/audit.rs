//! The hash-chained audit log: entries, the chain from genesis, pseudonyms.
//!
//! An entry is canonical MessagePack; its hash is SHA-256 of those bytes, and the next entry carries that
//! hash. This module encodes and decodes entries; the writer stores them in the transaction of the effect
//! they record.

mod call;
mod carried;
mod checkpoint;
mod erased_consent;
mod read_notes;
mod refusals;
mod segment;
mod stream;
mod transfer;

use data_encoding::HEXLOWER;
use grainstore_format::cose::SigningKey;
use grainstore_format::{
    ContentAddress, Encoding, EpochMs, Map, Value, VerificationStatus, decode_value, encode_value,
};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::base::error::{Error, Result};
use crate::disk::keyring::Secret;
use crate::disk::layout::{self, AuditHead, RowKey, UserToken};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::disk::vault::{EncryptionKey, Vault};
use crate::rules::policy::{PolicyRule, RuleResult};
use crate::rules::preset;
use crate::state::application::ApplicationCounts;
use crate::state::powers::Power;

pub use call::AuditedCall;
pub(crate) use call::{
    CallContext, CallRecord, collect_results, millis_since, parse_query_hash, result_count,
    statement_name, token_id_or_none,
};
pub(crate) use carried::CarriedCounts;
pub use checkpoint::Checkpoint;
pub(crate) use checkpoint::malformed_error as checkpoint_schema;
pub use erased_consent::ErasedConsent;
pub(crate) use read_notes::{BufferAction, ReadNotes};
pub(crate) use refusals::RefusalLog;
pub(crate) use segment::OpenSegment;
pub use segment::{AuditSegment, MAX_SEGMENT_DAYS, MAX_SEGMENT_ENTRIES};
pub use stream::AuditedStream;
pub(crate) use stream::StreamRecord;
pub use transfer::{MAX_TRANSFER_FORMAT_BYTES, TransferKind, TransferSummary};

/// Maximum length of a claimed key id (`kid`) in an entry, in characters.
const MAX_KID_CHARS: usize = 256;

/// Operation name of entries about the read log.
const READ_LOG_OPERATION: &str = "read_log";

/// Actor name of sessions without an actor: the process that opened the store.
const OPERATOR_NAME: &str = "operator";

/// An audit event that has no position in the chain yet.
#[derive(Debug, Clone)]
pub(crate) struct AuditRecord {
    pub(crate) operation: AuditOperation,
    pub(crate) actor: Option<String>,
    pub(crate) subjects: Vec<ContentAddress>,
    pub(crate) refused: bool,
    /// The grain whose policy refused, if that is not the first subject.
    pub(crate) refused_by: Option<ContentAddress>,
    pub(crate) rules: Vec<&'static str>,
    pub(crate) reason: Option<String>,
    /// The CAL call that caused the event.
    pub(crate) call: Option<CallRecord>,
    /// Key id claimed by a signature that did not verify.
    pub(crate) claimed_kid: Option<String>,
    /// Number of refusals that this record stands for, each equal to an earlier one.
    pub(crate) count: Option<u64>,
    /// Metadata of a consent whose contents are erased.
    pub(crate) consent: Option<ErasedConsent>,
    /// When the call was made.
    pub(crate) began: Option<EpochMs>,
    /// Code of the error that a refusal was answered with.
    pub(crate) code: Option<&'static str>,
    /// What each of the rules came to, in their order, if that is known.
    pub(crate) results: Vec<RuleResult>,
    /// Rows and blobs of applications that were written, removed or erased.
    pub(crate) application: Option<ApplicationCounts>,
    /// What went in or out in a neighbouring format.
    pub(crate) transfer: Option<TransferSummary>,
}

impl AuditRecord {
    /// Returns `true` if it tells that one grain superseded another.
    pub(crate) fn is_supersession(&self) -> bool {
        !self.refused && self.operation == AuditOperation::Supersede
    }

    /// A record of a completed operation by the operator, without further details.
    pub(crate) fn new(operation: AuditOperation, subjects: Vec<ContentAddress>) -> Self {
        Self {
            operation,
            actor: None,
            subjects,
            refused: false,
            refused_by: None,
            rules: Vec::new(),
            reason: None,
            call: None,
            claimed_kid: None,
            count: None,
            consent: None,
            began: None,
            code: None,
            results: Vec::new(),
            application: None,
            transfer: None,
        }
    }
}

/// Audited operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditOperation {
    Create,
    Put,
    Supersede,
    Sign,
    Contradict,
    /// An imported file states when a grain ended, but not why.
    End,
    /// A verification status was set, or setting it was refused.
    SetVerification(VerificationStatus),
    Hold,
    LiftHold,
    Import(ImportSummary),
    /// Grains were erased, or their erasure was refused.
    Erase,
    /// All grains of a user were erased, or their erasure was refused; the subject is the user's token.
    EraseUser,
    /// Metadata of a consent that the erasure in the following entry removes.
    EraseConsent,
    RotateKey,
    /// The rules of the store were changed, or the change was refused.
    PresetChanged,
    Export,
    Read,
    /// A CAL call that neither read nor wrote grains, or was refused.
    Cal,
    /// CAL was switched on or off; the rule names the enabled level.
    CalSwitch,
    /// A CAL template was saved for a namespace.
    DefineTemplate,
    /// A vector of a stored grain was replaced, or replacing one of a protected grain was refused.
    Embed,
    /// The vectors of a model are being removed.
    RemoveVectors,
    /// An operator-only operation was requested by another caller and refused.
    Power(Power),
    /// The store was upgraded to a later format; the rules name each step.
    Upgrade,
    /// State of the read log.
    ReadLog(ReadLogSummary),
    /// Rows of applications were written or removed.
    WriteRows,
    /// A blob was stored.
    WriteBlob,
    /// A blob was removed.
    RemoveBlob,
    /// Something went in or out in a neighbouring format.
    Transfer(TransferKind),
}

/// State of the read log ([`Session::reads`](crate::Session::reads)), recorded in the audit log when one of
/// its files is full and when the store is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReadLogSummary {
    /// Number of entries since the read log began, including those of files that were deleted since.
    pub entries: u64,
    /// Number of the first entry that is kept.
    pub first: u64,
    /// Hash at the end of the last group.
    #[serde(serialize_with = "hex")]
    pub head: [u8; 32],
}

/// Summary of a [`Session::import`](crate::Session::import) in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportSummary {
    /// Sequence of the first new grain; the others follow without a gap.
    pub first: u64,
    /// Number of new grains.
    pub added: u64,
    /// SHA-256 of the addresses of the new grains, 32 bytes each, in log order.
    #[serde(serialize_with = "hex")]
    pub digest: [u8; 32],
    /// Number of grains that were stored already.
    pub duplicate: u64,
    /// Number of grains that were left out.
    pub refused: u64,
}

impl AuditOperation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Put => "put",
            Self::Supersede => "supersede",
            Self::Sign => "sign",
            Self::Contradict => "contradict",
            Self::End => "end",
            Self::SetVerification(_) => "set_verification",
            Self::Hold => "hold",
            Self::LiftHold => "lift_hold",
            Self::Import(_) => "import",
            Self::Erase => "erase",
            Self::EraseUser => "erase_user",
            Self::EraseConsent => "erase_consent",
            Self::RotateKey => "rotate_key",
            Self::PresetChanged => "preset_changed",
            Self::Export => "export",
            Self::Read => "read",
            Self::Cal => "cal",
            Self::CalSwitch => "cal_switch",
            Self::DefineTemplate => "define_template",
            Self::Embed => "embed",
            Self::RemoveVectors => "remove_vectors",
            Self::Power(power) => power.name(),
            Self::Upgrade => "upgrade",
            Self::ReadLog(_) => READ_LOG_OPERATION,
            Self::WriteRows => "write_rows",
            Self::WriteBlob => "put_side_blob",
            Self::RemoveBlob => "remove_side_blob",
            Self::Transfer(kind) => kind.name(),
        }
    }

    fn status(self) -> Option<VerificationStatus> {
        match self {
            Self::SetVerification(status) => Some(status),
            _ => None,
        }
    }
}

/// Serializes a hash as hex digits.
fn hex<S: Serializer>(hash: &[u8; 32], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&HEXLOWER.encode(hash))
}

/// A decoded audit entry: [`Session::audit`](crate::Session::audit).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Position in the chain, from 0 (genesis).
    pub sequence: u64,
    /// Time of writing.
    #[serde(rename = "time_ms")]
    pub time: EpochMs,
    /// Name of the operation: `create`, `put`, `supersede`, `sign` (a better envelope of a stored grain),
    /// `contradict`, `end` (an imported file states that a grain ended, not why), `set_verification`, `hold`,
    /// `lift_hold`, `import`, `erase`, `erase_user`, `erase_consent`, `rotate_key`, `preset_changed`,
    /// `cal_switch`, `define_template`, `embed` (a vector was replaced), `remove_vectors`, the name of a
    /// refused [`Power`], `upgrade` (of a store of an earlier format), `write_rows`, `put_side_blob`, `remove_side_blob`,
    /// `export_evidence`, `export_archive`, `import_archive`, `purge_archive`; `export` and `read`, if the rules of
    /// the store require or refuse them; `cal`, a CAL call that was refused or returned no grain; `read_log`,
    /// the state of the read log. Entries of the read log itself have `cal` alone.
    pub operation: String,
    /// Pseudonym of the actor, or `operator`.
    pub actor: String,
    /// The grains concerned: the replaced one first, the written one last. For an import the checksums of its
    /// first files, for `erase_user` the token of the user.
    pub subjects: Vec<ContentAddress>,
    /// `done` or `refused`.
    pub decision: String,
    /// Names of the policy rules that were applied, in order; if the decision is `refused`, the last one
    /// refused. Rules of the store's preset are listed if they refuse; in `preset_changed` the ones that were
    /// loosened; in `cal_switch` the enabled level of CAL.
    pub rules: Vec<String>,
    /// What each of `rules` came to, in their order: in a refusal by policies of grains or rules of the store.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<RuleResult>,
    /// Code of the error that a refusal was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Milliseconds from the call to the decision.
    #[serde(skip_serializing_if = "is_zero")]
    pub latency_ms: u64,
    /// The segment of the audit log that the entry begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<AuditSegment>,
    /// Verification status that was set or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<VerificationStatus>,
    /// The grain whose policy refused, if it is not the grain concerned but an ancestor or another version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_by: Option<ContentAddress>,
    /// Summary of an import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportSummary>,
    /// Reason given by the caller. `None` if there was none, or it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The CAL call that caused the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<AuditedCall>,
    /// State of the read log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<ReadLogSummary>,
    /// Key id claimed by a signature that did not verify; not evidence of the signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kid: Option<String>,
    /// Number of refusals this entry stands for, each equal to a refusal of the minute before that has an
    /// entry of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// In `erase_consent`: metadata of a consent whose contents are removed by the erasure in the following
    /// entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent: Option<ErasedConsent>,
    /// Rows and blobs of applications that were written or removed, or were erased with what is erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationCounts>,
    /// What went in or out in a neighbouring format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<TransferSummary>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What makes an entry equal to another: all but its place, its time, how many it stands for, the reason that
/// was given, and of a call anything but how it ended.
fn kind_of(mut entry: Map) -> Vec<u8> {
    for own in ["sequence", "time_ms", "previous", "count", "reason_hash", "latency_ms", "segment"]
    {
        entry.remove(own);
    }
    if let Some(Value::Map(mut call)) = entry.remove("call") {
        call.retain(|name, _| name == "code");
        entry.insert("call".to_owned(), Value::Map(call));
    }
    encode_value(&Value::Map(entry), Encoding::MessagePack)
}

impl AuditEntry {
    /// Returns `true` if it tells that one grain superseded another.
    pub(crate) fn is_supersession(&self) -> bool {
        self.decision == "done" && self.operation == AuditOperation::Supersede.name()
    }

    /// An entry of the read log in the form of an audit entry.
    pub(crate) fn from_read_log(
        sequence: u64,
        time: EpochMs,
        actor: Option<String>,
        refused: bool,
        call: AuditedCall,
    ) -> Self {
        Self {
            sequence,
            time,
            operation: AuditOperation::Cal.name().to_owned(),
            actor: actor.unwrap_or_else(|| OPERATOR_NAME.to_owned()),
            subjects: Vec::new(),
            decision: if refused { "refused" } else { "done" }.to_owned(),
            rules: Vec::new(),
            results: Vec::new(),
            code: None,
            latency_ms: 0,
            segment: None,
            status: None,
            refused_by: None,
            import: None,
            reason: None,
            call: Some(call),
            reads: None,
            kid: None,
            count: None,
            consent: None,
            application: None,
            transfer: None,
        }
    }

    /// Returns `true` for an entry about an erasure.
    pub(crate) fn is_erasure(&self) -> bool {
        [AuditOperation::Erase, AuditOperation::EraseUser, AuditOperation::EraseConsent]
            .iter()
            .any(|of| self.operation == of.name())
    }

    /// Returns a human-readable explanation of a refusal; `None` for an entry that is not one.
    #[must_use]
    pub fn why(&self) -> Option<&'static str> {
        let rule = self.rules.last().filter(|_| self.decision == "refused")?;
        PolicyRule::from_name(rule)
            .map(|rule| rule.info().text)
            .or_else(|| preset::builtin_reason(rule))
    }
}

/// The end of the audit chain, to which new entries are linked.
#[derive(Debug, Clone)]
pub(crate) struct AuditHashChain {
    head: AuditHead,
    key: Secret,
    /// Replaces addresses by keyed tokens in an encrypted store, so that an entry cannot be tested for a
    /// known grain.
    vault: Vault,
    /// The segment that entries are appended to.
    segment: Option<OpenSegment>,
    /// True if it has to be written.
    segment_changed: bool,
    /// The rules in force.
    policy_set: [u8; 8],
}

impl AuditHashChain {
    /// An empty chain; the first record linked to it is the genesis entry of the store.
    pub(crate) fn genesis(store_id: &[u8; 16], key: [u8; 32]) -> Self {
        let hash = Sha256::new().chain_update(b"grainstore-audit-v1").chain_update(store_id);
        Self::from_head(AuditHead { count: 0, hash: hash.finalize().into() }, key)
    }

    /// A chain that continues after `head`.
    pub(crate) fn from_head(head: AuditHead, key: [u8; 32]) -> Self {
        Self {
            head,
            key: Secret::new(key),
            vault: Vault::default(),
            segment: None,
            segment_changed: false,
            policy_set: [0; 8],
        }
    }

    /// Sets the vault that turns addresses into tokens.
    pub(crate) fn with_vault(self, vault: Vault) -> Self {
        Self { vault, ..self }
    }

    /// Returns the vault that the rows of the chain are written with.
    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    pub(crate) fn head(&self) -> AuditHead {
        self.head
    }

    /// Appends a record to the chain. Returns its sequence and its encoded bytes.
    pub(crate) fn append(&mut self, record: &AuditRecord, now: EpochMs) -> (u64, Vec<u8>) {
        self.link(self.entry(record, now), now)
    }

    /// Gives an entry its place in the chain. Returns its sequence and its encoded bytes.
    fn link(&mut self, mut entry: Map, now: EpochMs) -> (u64, Vec<u8>) {
        let sequence = self.head.count;
        entry.insert("sequence".to_owned(), Value::from(sequence));
        entry.insert("time_ms".to_owned(), Value::from(now.get()));
        entry.insert("previous".to_owned(), Value::Bytes(self.head.hash.to_vec()));
        if let Some(start) = self.begin_segment(now) {
            entry.insert("segment".to_owned(), Value::Map(start.fields()));
        }
        let bytes = encode_value(&Value::Map(entry), Encoding::MessagePack);
        self.head.hash = Sha256::digest(&bytes).into();
        self.head.count = sequence.saturating_add(1);
        (sequence, bytes)
    }

    fn entry(&self, record: &AuditRecord, now: EpochMs) -> Map {
        let shown = |address| Value::Bytes(self.vault.address_key(address).as_bytes().to_vec());
        let subjects = record.subjects.iter().map(shown);
        let decision = if record.refused { "refused" } else { "done" };
        let mut entry = Map::from([
            ("operation".to_owned(), Value::from(record.operation.name())),
            ("actor".to_owned(), Value::from(self.pseudonym(record.actor.as_deref()))),
            ("subjects".to_owned(), Value::Array(subjects.collect())),
            ("decision".to_owned(), Value::from(decision)),
        ]);
        if let Some(by) = &record.refused_by {
            entry.insert("refused_by".to_owned(), shown(by));
        }
        if !record.rules.is_empty() {
            entry.insert("rules".to_owned(), Value::from(record.rules.clone()));
        }
        if !record.results.is_empty() {
            let results = record.results.iter().map(|result| Value::from(result.name()));
            entry.insert("results".to_owned(), Value::Array(results.collect()));
        }
        if let Some(code) = record.code {
            entry.insert("code".to_owned(), Value::from(code));
        }
        let latency = record.began.map_or(0, |began| now.get().saturating_sub(began.get()));
        if latency > 0 {
            entry.insert("latency_ms".to_owned(), Value::from(latency));
        }
        if let Some(status) = record.operation.status() {
            entry.insert("status".to_owned(), Value::from(status.name()));
        }
        if let AuditOperation::Import(note) = record.operation {
            entry.insert("import".to_owned(), Value::Map(note.fields()));
        }
        if let AuditOperation::ReadLog(note) = record.operation {
            entry.insert("reads".to_owned(), Value::Map(note.fields()));
        }
        if let Some(reason) = &record.reason {
            let hash = self.reason_hash(reason.as_bytes());
            entry.insert("reason_hash".to_owned(), Value::Bytes(hash.to_vec()));
        }
        if let Some(kid) = &record.claimed_kid {
            entry.insert("kid".to_owned(), Value::from(truncate_kid(kid)));
        }
        if let Some(count) = record.count {
            entry.insert("count".to_owned(), Value::from(count));
        }
        if let Some(consent) = &record.consent {
            entry.insert("consent".to_owned(), Value::Map(consent.fields()));
        }
        if let Some(counts) = &record.application {
            let counts = [("blobs", counts.blobs), ("rows", counts.rows)];
            let counts = counts.map(|(name, count)| (name.to_owned(), Value::from(count)));
            entry.insert("application".to_owned(), Value::Map(counts.into()));
        }
        if let Some(transfer) = &record.transfer {
            entry.insert("transfer".to_owned(), Value::Map(transfer.fields()));
        }
        if let Some(call) = &record.call {
            entry.insert("call".to_owned(), Value::Map(call.encode(self)));
        }
        entry
    }

    /// What makes the entry of a refusal equal to another of this store.
    fn kind_of(&self, record: &AuditRecord) -> Vec<u8> {
        kind_of(self.entry(record, EpochMs::default()))
    }

    /// Returns the keyed hash of a reason, which cannot be tested against a guess without the key.
    pub(crate) fn reason_hash(&self, reason: &[u8]) -> [u8; 32] {
        self.keyed_hash(b"reason", reason)
    }

    /// Returns the token of a user, which cannot be tested against a guess without the key.
    pub(crate) fn user_token(&self, user_id: &str) -> UserToken {
        match self.vault.keyring() {
            Some(keyring) => UserToken(keyring.user_token(user_id)),
            None => UserToken(self.keyed_hash(b"user", user_id.as_bytes())),
        }
    }

    /// The signing key of checkpoints if the host gives none.
    fn checkpoint_key(&self) -> SigningKey {
        SigningKey::ed25519_from_seed(&self.keyed_hash(b"checkpoint", &[]))
    }

    /// Returns the pseudonym of an actor, which cannot be traced back without the key.
    pub(crate) fn pseudonym(&self, actor: Option<&str>) -> String {
        actor.map_or_else(|| OPERATOR_NAME.to_owned(), |actor| self.short_token(b"actor", actor))
    }

    /// The key that signs the head of the read log.
    pub(crate) fn read_log_key(&self) -> SigningKey {
        SigningKey::ed25519_from_seed(&self.keyed_hash(b"reads", &[]))
    }

    /// Returns the read log's pseudonym of a session's user, which cannot be traced back without the key.
    pub(crate) fn reader_pseudonym(&self, user_id: &str) -> String {
        self.short_token(b"reader", user_id)
    }

    /// Returns the pseudonym of a namespace, which cannot be traced back without the key.
    pub(crate) fn namespace_pseudonym(&self, namespace: &str) -> String {
        self.short_token(b"namespace", namespace)
    }

    /// Returns the pseudonym of an agent, which cannot be traced back without the key.
    pub(crate) fn agent_pseudonym(&self, agent: &str) -> String {
        self.short_token(b"agent", agent)
    }

    /// Returns a namespace in the clear, or in an encrypted store its pseudonym.
    pub(crate) fn namespace_label(&self, namespace: &str) -> String {
        match self.vault.keyring() {
            Some(_) => self.namespace_pseudonym(namespace),
            None => namespace.to_owned(),
        }
    }

    /// Returns the first 16 bytes of the keyed hash of a text, in hex.
    fn short_token(&self, purpose: &[u8], text: &str) -> String {
        let hash = self.keyed_hash(purpose, text.as_bytes());
        HEXLOWER.encode(hash.first_chunk::<16>().unwrap_or(&[0; 16]))
    }

    fn keyed_hash(&self, purpose: &[u8], text: &[u8]) -> [u8; 32] {
        // HMAC takes a key of any length, so this cannot fail.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.key.bytes()) else {
            return [0; 32];
        };
        mac.update(purpose);
        mac.update(&[0]);
        mac.update(text);
        mac.finalize().into_bytes().into()
    }
}

impl AuditEntry {
    /// Decodes an entry.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that are not an entry.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::integrity("an audit entry is damaged");
        let Ok(Value::Map(entry)) = decode_value(bytes, Encoding::MessagePack) else {
            return Err(damaged());
        };
        let int = |name: &str| entry.get(name).and_then(Value::as_i64).ok_or_else(damaged);
        let text = |name: &str| {
            entry.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(damaged)
        };
        let list = |name: &str| entry.get(name).and_then(Value::as_array).unwrap_or_default();
        let address = |value: &Value| match value {
            Value::Bytes(bytes) => {
                let bytes = bytes.as_slice().try_into().map_err(|_| damaged())?;
                Ok(ContentAddress::from_bytes(bytes))
            }
            _ => Err(damaged()),
        };
        Ok(Self {
            sequence: u64::try_from(int("sequence")?).map_err(|_| damaged())?,
            time: EpochMs::new(int("time_ms")?),
            operation: text("operation")?,
            actor: text("actor")?,
            subjects: list("subjects").iter().map(address).collect::<Result<_>>()?,
            decision: text("decision")?,
            rules: list("rules").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            results: list("results")
                .iter()
                .map(|name| name.as_str().and_then(RuleResult::from_name).ok_or_else(damaged))
                .collect::<Result<_>>()?,
            code: entry.get("code").and_then(Value::as_str).map(str::to_owned),
            latency_ms: match entry.get("latency_ms") {
                None => 0,
                Some(_) => u64::try_from(int("latency_ms")?).map_err(|_| damaged())?,
            },
            segment: match entry.get("segment") {
                None => None,
                Some(fields) => Some(AuditSegment::from_fields(fields).ok_or_else(damaged)?),
            },
            status: match entry.get("status") {
                None => None,
                Some(name) => {
                    let status = name.as_str().and_then(VerificationStatus::from_name);
                    Some(status.ok_or_else(damaged)?)
                }
            },
            refused_by: entry.get("refused_by").map(address).transpose()?,
            import: match entry.get("import") {
                None => None,
                Some(fields) => Some(ImportSummary::from_fields(fields).ok_or_else(damaged)?),
            },
            reason: None,
            call: match entry.get("call") {
                None => None,
                Some(fields) => Some(AuditedCall::decode(fields).ok_or_else(damaged)?),
            },
            reads: match entry.get("reads") {
                None => None,
                Some(fields) => Some(ReadLogSummary::from_fields(fields).ok_or_else(damaged)?),
            },
            kid: entry.get("kid").and_then(Value::as_str).map(str::to_owned),
            count: match entry.get("count") {
                None => None,
                Some(count) => {
                    let count = count.as_i64().and_then(|count| u64::try_from(count).ok());
                    Some(count.ok_or_else(damaged)?)
                }
            },
            consent: match entry.get("consent") {
                None => None,
                Some(fields) => Some(ErasedConsent::from_fields(fields).ok_or_else(damaged)?),
            },
            application: match entry.get("application") {
                None => None,
                Some(fields) => Some(application_counts(fields).ok_or_else(damaged)?),
            },
            transfer: match entry.get("transfer") {
                None => None,
                Some(fields) => Some(TransferSummary::from_fields(fields).ok_or_else(damaged)?),
            },
        })
    }
}

/// Reads the numbers of rows and blobs.
fn application_counts(fields: &Value) -> Option<ApplicationCounts> {
    let Value::Map(fields) = fields else { return None };
    let count = |name: &str| u64::try_from(fields.get(name)?.as_i64()?).ok();
    Some(ApplicationCounts::new(count("rows")?, count("blobs")?))
}

/// Truncates a claimed key id to [`MAX_KID_CHARS`].
fn truncate_kid(kid: &str) -> String {
    kid.chars().take(MAX_KID_CHARS).collect()
}

impl ImportSummary {
    /// The summary of an import that changed nothing.
    pub(crate) const EMPTY: Self =
        Self { first: 0, added: 0, digest: [0; 32], duplicate: 0, refused: 0 };

    pub(crate) fn new(
        first: u64,
        added: u64,
        digest: [u8; 32],
        duplicate: u64,
        refused: u64,
    ) -> Self {
        Self { first, added, digest, duplicate, refused }
    }

    fn fields(&self) -> Map {
        Map::from([
            ("first".to_owned(), Value::from(self.first)),
            ("added".to_owned(), Value::from(self.added)),
            ("digest".to_owned(), Value::Bytes(self.digest.to_vec())),
            ("duplicate".to_owned(), Value::from(self.duplicate)),
            ("refused".to_owned(), Value::from(self.refused)),
        ])
    }

    fn from_fields(fields: &Value) -> Option<Self> {
        let Value::Map(fields) = fields else { return None };
        let count = |name: &str| u64::try_from(fields.get(name)?.as_i64()?).ok();
        let digest = match fields.get("digest")? {
            Value::Bytes(digest) => digest.as_slice().try_into().ok()?,
            _ => return None,
        };
        Some(Self {
            first: count("first")?,
            added: count("added")?,
            digest,
            duplicate: count("duplicate")?,
            refused: count("refused")?,
        })
    }
}

impl ReadLogSummary {
    pub(crate) fn new(head: &AuditHead, first: u64) -> Self {
        Self { entries: head.count, first, head: head.hash }
    }

    fn fields(&self) -> Map {
        Map::from([
            ("entries".to_owned(), Value::from(self.entries)),
            ("first".to_owned(), Value::from(self.first)),
            ("head".to_owned(), Value::Bytes(self.head.to_vec())),
        ])
    }

    fn from_fields(fields: &Value) -> Option<Self> {
        let Value::Map(fields) = fields else { return None };
        let count = |name: &str| u64::try_from(fields.get(name)?.as_i64()?).ok();
        let head = match fields.get("head")? {
            Value::Bytes(head) => head.as_slice().try_into().ok()?,
            _ => return None,
        };
        Some(Self { entries: count("entries")?, first: count("first")?, head })
    }
}

/// Writes the reason that was given with a record, if one was; `encryption_key` returns the key it is encrypted under.
///
/// # Errors
/// Those of `encryption_key`; `ERR_IO`.
pub(crate) fn write_reason(
    rows: &mut RowWriter<'_>,
    chain: &AuditHashChain,
    (number, record): (u64, &AuditRecord),
    encryption_key: &dyn Fn(&AuditRecord) -> Result<EncryptionKey>,
) -> Result<()> {
    let Some(reason) = &record.reason else { return Ok(()) };
    let key = RowKey::reason(number);
    let row = chain.vault().seal(key, reason.as_bytes(), &encryption_key(record)?)?;
    rows.put(TruthTable::Reasons, number, &row).map(drop)
}

/// Links records to the chain and stores them in the table of entries, with the new head. `encryption_key` returns the
/// key under which the reason of a record is encrypted. The entries of a group that brings grains are written by the
/// writer.
pub(crate) fn append_audit(
    rows: &mut RowWriter<'_>,
    chain: &mut AuditHashChain,
    records: &[AuditRecord],
    now: EpochMs,
    encryption_key: &dyn Fn(&AuditRecord) -> Result<EncryptionKey>,
) -> Result<()> {
    for record in records {
        let (sequence, entry) = chain.append(record, now);
        rows.put(TruthTable::Audit, sequence, &entry)?;
        write_reason(rows, chain, (sequence, record), encryption_key)?;
    }
    if !records.is_empty() {
        rows.put(TruthTable::Audit, layout::AUDIT_HEAD, &chain.head().encode())?;
    }
    chain.write_segment(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(reason: Option<&str>) -> AuditRecord {
        AuditRecord {
            operation: AuditOperation::Supersede,
            actor: Some("did:web:a".to_owned()),
            subjects: vec![ContentAddress::of(b"old"), ContentAddress::of(b"new")],
            refused: true,
            refused_by: Some(ContentAddress::of(b"root")),
            rules: vec!["locked"],
            reason: reason.map(str::to_owned),
            ..AuditRecord::new(AuditOperation::Supersede, Vec::new())
        }
    }

    #[test]
    fn a_key_a_count_and_a_consent_read_back() {
        let consent = ErasedConsent {
            is_withdrawal: true,
            scope: vec!["store".to_owned(), "share".to_owned()],
            created_at: 7,
            valid_from: None,
            valid_to: Some(9),
        };
        let mut chain = AuditHashChain::genesis(&[1; 16], [2; 32]);
        let record = AuditRecord {
            claimed_kid: Some("k".repeat(MAX_KID_CHARS + 1)),
            count: Some(3),
            consent: Some(consent.clone()),
            ..record(None)
        };
        let (_, bytes) = chain.append(&record, EpochMs::new(5));
        let entry = AuditEntry::decode(&bytes).unwrap();
        assert_eq!((entry.kid.map(|kid| kid.len()), entry.count), (Some(MAX_KID_CHARS), Some(3)));
        assert_eq!(entry.consent, Some(consent));
        // The map as shown in docs/format.md, keys in canonical order.
        let shown = [
            &b"\xa7consent\x84"[..],
            b"\xaacreated_at\x07\xa4kind\xaawithdrawal",
            b"\xa5scope\x92\xa5store\xa5share\xa8valid_to\x09",
        ]
        .concat();
        assert!(bytes.windows(shown.len()).any(|window| window == shown), "{bytes:02x?}");
    }

    #[test]
    fn an_entry_reads_back_and_names_no_actor_or_reason() {
        let mut chain = AuditHashChain::genesis(&[1; 16], [2; 32]);
        let (sequence, bytes) = chain.append(&record(Some("secret words")), EpochMs::new(5));
        let entry = AuditEntry::decode(&bytes).unwrap();
        assert_eq!((sequence, entry.sequence, entry.time.get()), (0, 0, 5));
        assert_eq!((entry.operation.as_str(), entry.decision.as_str()), ("supersede", "refused"));
        assert_eq!(entry.rules, ["locked"]);
        assert_eq!(entry.refused_by, Some(ContentAddress::of(b"root")));
        assert_eq!(entry.subjects, record(None).subjects);
        for secret in [&b"did:web:a"[..], b"secret"] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret));
        }
    }

    #[test]
    fn a_refusal_says_what_each_rule_came_to_and_how_long_it_took() {
        let mut chain = AuditHashChain::genesis(&[1; 16], [2; 32]);
        let refused = |last| AuditRecord {
            rules: vec!["timed", "locked"],
            results: vec![RuleResult::Pass, last],
            code: Some("ERR_INVALIDATION_DENIED"),
            began: Some(EpochMs::new(2)),
            ..record(None)
        };
        for last in [RuleResult::Fail, RuleResult::Error] {
            let (_, bytes) = chain.append(&refused(last), EpochMs::new(5));
            let entry = AuditEntry::decode(&bytes).unwrap();
            assert_eq!(entry.results, [RuleResult::Pass, last]);
            assert_eq!(entry.code.as_deref(), Some("ERR_INVALIDATION_DENIED"));
            assert_eq!(entry.latency_ms, 3);
        }
        // The clock went back, and nothing was refused.
        let done = AuditRecord { refused: false, results: Vec::new(), ..refused(RuleResult::Fail) };
        let (_, bytes) = chain.append(&done, EpochMs::new(1));
        let entry = AuditEntry::decode(&bytes).unwrap();
        assert_eq!((entry.results, entry.latency_ms), (Vec::new(), 0));
        let golden = [
            &b"\xa7results\x92\xa4PASS\xa4FAIL"[..],
            b"\xa4code\xb7ERR_INVALIDATION_DENIED",
            b"\xaalatency_ms\x03",
        ];
        let (_, bytes) = chain.append(&refused(RuleResult::Fail), EpochMs::new(5));
        for shown in golden {
            assert!(bytes.windows(shown.len()).any(|window| window == shown), "{bytes:02x?}");
        }
    }

    #[test]
    fn each_entry_carries_the_hash_of_the_one_before() {
        let mut chain = AuditHashChain::genesis(&[1; 16], [2; 32]);
        let (_, first) = chain.append(&record(None), EpochMs::new(5));
        let (_, second) = chain.append(&record(None), EpochMs::new(6));
        let hash: [u8; 32] = Sha256::digest(&first).into();
        assert!(second.windows(32).any(|window| window == hash));
        assert_eq!(chain.head().count, 2);
        assert_eq!(chain.head().hash, <[u8; 32]>::from(Sha256::digest(&second)));
    }
}
