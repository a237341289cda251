//! The JSON form of an audit entry, and its line.

use data_encoding::HEXLOWER;
use grainstore::format::VerificationStatus;
use grainstore::{AuditEntry, AuditedCall, AuditedStream, ContentAddress, EpochMs, ErasedConsent};
use serde::Serialize;

use crate::text::{iso, printable};

/// An entry of the audit log.
#[derive(Debug, Serialize)]
pub(crate) struct AuditAnswer {
    sequence: u64,
    time_ms: EpochMs,
    operation: String,
    actor: String,
    subjects: Vec<ContentAddress>,
    decision: String,
    rules: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<VerificationStatus>,
    /// The grain whose policy refused, if it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_by: Option<ContentAddress>,
    /// The reason of a refusal, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    import: Option<ImportAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The CAL call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallAnswer>,
    /// The state of the read log.
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<ReadsAnswer>,
    /// The key id stated by an envelope whose signature was invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    /// Number of equal refusals it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// The remains of a consent whose contents were erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    consent: Option<ConsentAnswer>,
}

/// A consent without its contents, in its audit entry.
#[derive(Debug, Serialize)]
struct ConsentAnswer {
    kind: &'static str,
    scope: Vec<String>,
    created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_from: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_to: Option<i64>,
}

impl From<ErasedConsent> for ConsentAnswer {
    fn from(consent: ErasedConsent) -> Self {
        let kind = consent.kind();
        let ErasedConsent { scope, created_at, valid_from, valid_to, .. } = consent;
        Self { kind, scope, created_at, valid_from, valid_to }
    }
}

/// The state of the read log, in its audit entry.
#[derive(Debug, Serialize)]
struct ReadsAnswer {
    entries: u64,
    first: u64,
    head: String,
}

/// A CAL call, in its audit entry.
#[derive(Debug, Serialize)]
struct CallAnswer {
    query_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<String>,
    tier: u64,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(flatten)]
    write: Option<WriteAnswer>,
    #[serde(flatten)]
    stream: Option<StreamAnswer>,
}

/// The write of a call, in its audit entry (CAL 21).
#[derive(Debug, Serialize)]
struct WriteAnswer {
    operation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_hash: Option<ContentAddress>,
    new_hash: ContentAddress,
}

impl WriteAnswer {
    /// Returns the write of an entry, `None` if it records none that was done.
    fn of(entry: &AuditEntry) -> Option<Self> {
        let operation = entry.call.as_ref()?.statement.clone()?;
        let (target_hash, new_hash) = match (operation.as_str(), entry.subjects.as_slice()) {
            ("add", [new]) => (None, *new),
            ("supersede" | "revert", [old, new]) => (Some(*old), *new),
            _ => return None,
        };
        (entry.decision == "done").then_some(Self { operation, target_hash, new_hash })
    }
}

/// The events of a streamed call, in its audit entry.
#[derive(Debug, Serialize)]
struct StreamAnswer {
    stream_enabled: bool,
    stream_options: Vec<String>,
    events_emitted: u64,
    cancelled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_reason: Option<String>,
    sources_failed: u64,
}

impl From<AuditedStream> for StreamAnswer {
    fn from(stream: AuditedStream) -> Self {
        Self {
            stream_enabled: true,
            cancelled: stream.is_cancelled(),
            stream_options: named(&stream.options),
            events_emitted: stream.events_emitted,
            cancel_reason: stream.cancel_reason,
            sources_failed: stream.sources_failed,
        }
    }
}

/// Splits the options of a stream, which an entry has as one text.
fn named(options: &str) -> Vec<String> {
    options.split(", ").filter(|option| !option.is_empty()).map(str::to_owned).collect()
}

impl CallAnswer {
    fn of(call: AuditedCall, write: Option<WriteAnswer>) -> Self {
        Self {
            query_hash: format!("sha256:{}", HEXLOWER.encode(&call.query_hash)),
            statement: call.statement,
            tier: call.tier,
            duration_ms: call.duration_ms,
            token_id: call.token_id,
            namespace: call.namespace,
            agent: call.agent,
            result_count: call.result_count,
            code: call.code,
            write,
            stream: call.stream.map(StreamAnswer::from),
        }
    }

    /// Formats the call for a line.
    fn words(&self) -> Vec<String> {
        let stream = self.stream.as_ref();
        let words = [
            ("cal", self.statement.clone()),
            ("query", self.query_hash.get(..19).map(str::to_owned)),
            ("token", self.token_id.clone()),
            ("results", self.result_count.map(|count| count.to_string())),
            ("code", self.code.clone()),
            ("events", stream.map(|stream| stream.events_emitted.to_string())),
            ("cancelled", stream.and_then(|stream| stream.cancel_reason.clone())),
        ];
        words.into_iter().filter_map(|(name, word)| Some(format!("{name}={}", word?))).collect()
    }
}

/// The counts of an import, in its audit entry.
#[derive(Debug, Serialize)]
struct ImportAnswer {
    first: u64,
    added: u64,
    digest: String,
    duplicate: u64,
    refused: u64,
}

impl From<AuditEntry> for AuditAnswer {
    fn from(entry: AuditEntry) -> Self {
        let write = WriteAnswer::of(&entry);
        Self {
            why: entry.why(),
            refused_by: entry.refused_by,
            sequence: entry.sequence,
            time_ms: entry.time,
            operation: entry.operation,
            actor: entry.actor,
            subjects: entry.subjects,
            decision: entry.decision,
            rules: entry.rules,
            status: entry.status,
            import: entry.import.map(|note| ImportAnswer {
                first: note.first,
                added: note.added,
                digest: HEXLOWER.encode(&note.digest),
                duplicate: note.duplicate,
                refused: note.refused,
            }),
            reason: entry.reason,
            call: entry.call.map(|call| CallAnswer::of(call, write)),
            reads: entry.reads.map(|note| ReadsAnswer {
                entries: note.entries,
                first: note.first,
                head: HEXLOWER.encode(&note.head),
            }),
            kid: entry.kid,
            count: entry.count,
            consent: entry.consent.map(ConsentAnswer::from),
        }
    }
}

impl AuditAnswer {
    /// Formats the entry on one line.
    pub(crate) fn line(&self) -> String {
        let Self { sequence, operation, actor, decision, .. } = self;
        let time = iso(self.time_ms);
        let mut line = format!("{sequence:>6}  {time}  {operation:<9}  {decision:<7}  {actor}");
        let status = self.status.map(|status| format!("status={}", status.name()));
        let by = self.refused_by.map(|by| format!("by={by}"));
        let why = self.why.map(|why| format!("({why})"));
        let reason = self.reason.as_deref().map(|reason| format!("reason={reason:?}"));
        let subjects = self.subjects.iter().map(ToString::to_string);
        let words = self.rules.iter().cloned().chain(status).chain(subjects).chain(by);
        let call = self.call.iter().flat_map(CallAnswer::words);
        let kid = self.kid.as_ref().map(|kid| format!("kid={kid}"));
        let count = self.count.map(|count| format!("count={count}"));
        let consent = self.consent.as_ref();
        let consent =
            consent.map(|consent| format!("{}={}", consent.kind, consent.scope.join(",")));
        let after = kid.into_iter().chain(count).chain(consent);
        for word in words.chain(why).chain(reason).chain(call).chain(after) {
            line.push_str("  ");
            line.push_str(&printable(&word));
        }
        line
    }
}
