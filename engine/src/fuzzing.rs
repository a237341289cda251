//! What the fuzz targets `policy`, `audit` and `changes` run: the decision on one grain, the walk along one
//! audit chain, and a change record applied. With the feature `fuzzing` alone, and no part of the API: it changes as they do.

use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState, VerificationStatus};

use crate::base::error::Result;
use crate::disk::change_record::ChangeRecord;
use crate::operate::maintain::problems_of;
use crate::rules::policy::{
    PolicyAction, PolicyAttempt, PolicyFacts, PolicyRule, Proofs, ProtectionLink, Protector, decide,
};
use crate::state::audit::{AuditEntry, AuditHashChain, AuditOperation, AuditRecord, ImportSummary};

/// How somebody wants to take a grain out of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By another in its place.
    Supersede,
    /// By a mark that writes no other.
    Contradict,
    /// By a status that says less for it.
    Contest,
    /// By the last status there is.
    Retract,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Supersede, Self::Contradict, Self::Contest, Self::Retract];
}

/// Who asks, and what they bring.
#[derive(Debug, Clone)]
pub struct Asking {
    /// What they want.
    pub way: Way,
    /// When, in epoch milliseconds.
    pub now_ms: i64,
    /// Why.
    pub justification: Option<String>,
    /// Who signed, validly.
    pub signer: Option<String>,
    /// Who signed the `supersession_auth`, validly.
    pub cosigners: Vec<String>,
    /// Whether a litigation hold is on the grain.
    pub held: bool,
}

/// Whether the policy of the grain in this blob lets it be taken out of use.
///
/// # Errors
/// For bytes that are no blob.
pub fn allows(blob: &[u8], asking: &Asking) -> Result<bool> {
    let grain = GrainRef::new(blob)?;
    let Asking { way, now_ms, justification, signer, cosigners, held } = asking;
    let state = GrainState { held: *held, ..GrainState::default() };
    let protectors = vec![Protector::from_grain(&grain, &state, ProtectionLink::TargetOrOlder)];
    let proofs = Proofs { signer: signer.clone(), cosigners: cosigners.clone(), failure: None };
    let attempt = PolicyAttempt {
        act: match way {
            Way::Supersede => PolicyAction::Supersede,
            Way::Contradict => PolicyAction::Contradict,
            Way::Contest => PolicyAction::Contest,
            Way::Retract => PolicyAction::Retract,
        },
        now: EpochMs::new(*now_ms),
        justification: justification.as_deref(),
        actor: None,
        is_operator: true,
        proofs: &proofs,
        evidence: 0,
        locked_accepts_signature: false,
        may_review: false,
    };
    Ok(decide(&attempt, &PolicyFacts { protectors, is_truncated: false }).refusal().is_none())
}

/// The store the chains are of.
const STORE: [u8; 16] = [1; 16];
/// The key of its pseudonyms.
const KEY: [u8; 32] = [2; 32];

/// An audit chain of one store, and its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditChain {
    /// Keys and entries, in the order of the keys.
    pub rows: Vec<(u64, Vec<u8>)>,
    /// How many entries the head says there are, and the hash it has of the last.
    pub head: (u64, [u8; 32]),
}

impl AuditChain {
    /// A chain with an entry for each of these bytes, which say what happened.
    #[must_use]
    pub fn of(script: &[u8]) -> Self {
        let mut chain = AuditHashChain::genesis(&STORE, KEY);
        let mut rows = Vec::with_capacity(script.len());
        for (at, byte) in (0..).zip(script) {
            rows.push(chain.append(&record(*byte), EpochMs::new(at)));
        }
        let head = chain.head();
        Self { rows, head: (head.count, head.hash) }
    }

    /// What is wrong with it by itself: the places.
    ///
    /// # Errors
    /// Never for what is in memory.
    pub fn problems(&self) -> Result<Vec<String>> {
        let genesis = AuditHashChain::genesis(&STORE, KEY).head();
        let head = crate::disk::layout::AuditHead { count: self.head.0, hash: self.head.1 };
        let rows = self.rows.iter().map(|(key, entry)| (*key, entry.as_slice()));
        let problems = problems_of(genesis, rows, &head)?;
        Ok(problems.into_iter().map(|problem| problem.place).collect())
    }
}

/// Applies a change record to an empty database.
///
/// # Errors
/// For bytes that are none, and rows that fit no table.
pub fn apply_changes(bytes: &[u8]) -> Result<()> {
    let record = ChangeRecord::from_bytes(bytes)?;
    let db = redb::Database::builder().create_with_backend(redb::backends::InMemoryBackend::new());
    let txn = db?.begin_write()?;
    record.apply(&txn)?;
    Ok(txn.commit()?)
}

/// Reads an audit entry, and what a refused one tells a person.
///
/// # Errors
/// For bytes that are none.
pub fn audit_entry(bytes: &[u8]) -> Result<AuditEntry> {
    let entry = AuditEntry::decode(bytes)?;
    let _ = entry.why();
    Ok(entry)
}

/// Something of each kind.
fn record(byte: u8) -> AuditRecord {
    let operations = [
        AuditOperation::Create,
        AuditOperation::Put,
        AuditOperation::Supersede,
        AuditOperation::Sign,
        AuditOperation::Contradict,
        AuditOperation::SetVerification(VerificationStatus::Contested),
        AuditOperation::Hold,
        AuditOperation::LiftHold,
        AuditOperation::Import(ImportSummary::new(1, u64::from(byte), [byte; 32], 2, 3)),
    ];
    let pick = usize::from(byte);
    let rule = PolicyRule::ALL.iter().cycle().nth(pick).map(|rule| rule.info());
    let address = ContentAddress::from_bytes([byte; 32]);
    AuditRecord {
        actor: (byte & 1 == 1).then(|| format!("did:web:{byte}")),
        refused: rule.is_some_and(|rule| !rule.passes),
        refused_by: (byte & 2 == 2).then_some(address),
        rules: rule.map(|rule| rule.name).into_iter().collect(),
        reason: (byte & 4 == 4).then(|| "a reason".to_owned()),
        claimed_kid: (byte & 8 == 8).then(|| format!("did:web:{byte}#key")),
        count: (byte & 16 == 16).then_some(u64::from(byte)),
        ..AuditRecord::new(
            *operations.iter().cycle().nth(pick).unwrap_or(&AuditOperation::Put),
            vec![address; pick % 3],
        )
    }
}
