//! The audit record of a CAL call (CAL 21): its statement by hash, its token, its duration and its outcome.
//! Must never hold the text of the query.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use data_encoding::HEXLOWER;
use grainstore_cal::{Answer, BatchSlot, QuerySource, StatementType, Tier};
use grainstore_format::{ContentAddress, Map, Value};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::AuditHashChain;
use super::stream::{AuditedStream, StreamRecord};
use crate::state::session_options::SessionOptions;

/// A CAL call while it runs.
#[derive(Debug)]
pub(crate) struct CallContext {
    pub(crate) query_hash: [u8; 32],
    /// `None` for a text that is not a statement.
    pub(crate) statement: Option<StatementType>,
    tier: u8,
    pub(crate) token_id: Option<String>,
    namespace: Option<String>,
    agent_id: Option<String>,
    started: Instant,
    /// True once the audit log has an entry of it.
    told: AtomicBool,
    /// Outcome of its event stream, set once a streamed call is over.
    pub(crate) streamed: OnceLock<StreamRecord>,
}

/// The part of an audit entry that describes a call.
#[derive(Debug, Clone)]
pub(crate) struct CallRecord {
    errand: Arc<CallContext>,
    /// Duration; `None` while the call is running when the entry is made.
    duration_ms: Option<u64>,
    results: Option<u64>,
    code: Option<String>,
}

/// The part of an audit entry, or of one of [`Session::reads`](crate::Session::reads), that describes the CAL
/// call it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuditedCall {
    /// SHA-256 of the normalised statement with parameters unbound; of the raw text if it is not a statement.
    /// In an encrypted store the blinded form, as for an address.
    #[serde(serialize_with = "prefixed")]
    pub query_hash: [u8; 32],
    /// The statement type, such as `recall`; `None` if the text is not a statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// The tier it needed.
    pub tier: u64,
    /// Duration in milliseconds; for a write, until it was decided.
    pub duration_ms: u64,
    /// The capability token it was executed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    /// The namespace of the session; in an encrypted store a pseudonym.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The pseudonym of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Grains that were returned; for a stream that ended early, those of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_count: Option<u64>,
    /// The code it was refused with, or that its stream ended early with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Outcome of its event stream, if it was streamed.
    #[serde(flatten)]
    pub stream: Option<AuditedStream>,
}

/// Serializes a hash as `sha256:` and hex digits.
fn prefixed<S: Serializer>(hash: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("sha256:{}", HEXLOWER.encode(hash)))
}

impl CallContext {
    /// The context of a call in this session; `asked` is the highest tier it may use.
    pub(crate) fn new(
        session: &SessionOptions,
        query: &[u8],
        token: Option<(&str, u8)>,
        asked: Tier,
    ) -> Self {
        let identity =
            QuerySource::read_bytes(query).and_then(|source| source.identity(asked)).ok();
        let hash = identity.as_ref().and_then(|of| parse_query_hash(&of.query_hash));
        Self {
            query_hash: hash.unwrap_or_else(|| Sha256::digest(query).into()),
            statement: identity.as_ref().map(|of| of.statement_type),
            tier: identity.map_or(0, |of| of.tier),
            ..Self::without_query(session, token)
        }
    }

    /// The context of a call without a known statement, as for an invalid token.
    pub(crate) fn without_query(session: &SessionOptions, token: Option<(&str, u8)>) -> Self {
        Self {
            query_hash: [0; 32],
            statement: None,
            tier: token.map_or(0, |(_, tier)| tier.min(1)),
            token_id: token.map(|(id, _)| token_id_or_none(id)),
            namespace: session.namespace.clone(),
            agent_id: session.agent_id.clone(),
            started: Instant::now(),
            told: AtomicBool::new(false),
            streamed: OnceLock::new(),
        }
    }

    /// Sets the time it began.
    pub(crate) fn started_at(self, started: Instant) -> Self {
        Self { started, ..self }
    }

    /// Records the outcome of its event stream.
    pub(crate) fn set_stream(&self, note: StreamRecord) {
        // A call ends once, so the cell is empty.
        let _ = self.streamed.set(note);
    }

    /// Grains of its text according to its events; `None` if it was not streamed or had no text yet.
    pub(crate) fn grains_given(&self) -> Option<u64> {
        self.streamed.get().and_then(StreamRecord::given)
    }

    /// Returns `true` if it is audited even where the rules do not ask for reads: it writes, or has a token.
    pub(crate) fn must_audit(&self) -> bool {
        self.tier > 0 || self.token_id.is_some()
    }

    /// Returns `true` if it writes or tries to.
    pub(crate) fn writes(&self) -> bool {
        self.tier > 0
    }

    /// Returns `true` if the audit log has an entry of it.
    pub(crate) fn is_audited(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    /// Describes the call for an audit entry made while it runs.
    pub(crate) fn record(self: &Arc<Self>) -> CallRecord {
        CallRecord { errand: Arc::clone(self), duration_ms: None, results: None, code: None }
    }

    pub(crate) fn elapsed_ms(&self) -> u64 {
        millis_since(self.started)
    }
}

impl CallRecord {
    /// The code it was refused with.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Adds the duration and outcome of a call that is over.
    pub(crate) fn finished(self, results: Option<u64>, code: Option<String>) -> Self {
        Self { duration_ms: Some(self.errand.elapsed_ms()), results, code, ..self }
    }

    /// Encodes the map of an audit entry in this chain, and marks the call as audited.
    pub(crate) fn encode(&self, chain: &AuditHashChain) -> Map {
        let Self { errand, duration_ms, results, code } = self;
        errand.told.store(true, Ordering::Release);
        let shown = chain.vault().address_key(&ContentAddress::from_bytes(errand.query_hash));
        let duration = duration_ms.unwrap_or_else(|| errand.elapsed_ms());
        let mut fields = Map::from([
            ("query_hash".to_owned(), Value::Bytes(shown.as_bytes().to_vec())),
            ("tier".to_owned(), Value::from(i64::from(errand.tier))),
            ("duration_ms".to_owned(), Value::from(duration)),
        ]);
        let namespace = errand.namespace.as_deref().map(|name| chain.namespace_label(name));
        let agent = errand.agent_id.as_deref().map(|agent| chain.agent_pseudonym(agent));
        let texts = [
            ("statement", errand.statement.map(statement_name)),
            ("token_id", errand.token_id.clone()),
            ("namespace", namespace),
            ("agent", agent),
            ("code", code.clone()),
        ];
        for (name, text) in texts {
            fields.extend(text.map(|text| (name.to_owned(), Value::from(text))));
        }
        fields.extend(results.map(|count| ("result_count".to_owned(), Value::from(count))));
        fields.extend(errand.streamed.get().into_iter().flat_map(StreamRecord::fields));
        fields
    }
}

impl AuditedCall {
    /// Decodes the map of an audit entry; `None` if it is malformed.
    pub(crate) fn decode(fields: &Value) -> Option<Self> {
        let Value::Map(fields) = fields else { return None };
        let count = |name: &str| u64::try_from(fields.get(name)?.as_i64()?).ok();
        let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
        let query_hash = match fields.get("query_hash")? {
            Value::Bytes(hash) => hash.as_slice().try_into().ok()?,
            _ => return None,
        };
        Some(Self {
            query_hash,
            statement: text("statement"),
            tier: count("tier")?,
            duration_ms: count("duration_ms")?,
            token_id: text("token_id"),
            namespace: text("namespace"),
            agent: text("agent"),
            result_count: count("result_count"),
            code: text("code"),
            stream: AuditedStream::of(fields),
        })
    }
}

/// Milliseconds since then.
pub(crate) fn millis_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Number of results of an answer: grains, values, groups, versions or fields; the count of a COUNT, and 1
/// for an EXISTS that is true. An assembled text has `assembled` grains.
pub(crate) fn result_count(answer: &Answer, assembled: u64) -> u64 {
    let many = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    match answer {
        Answer::Grains(grains) => many(grains.results.len()),
        Answer::Count { count, .. } => *count,
        Answer::Exists { exists } => u64::from(*exists),
        Answer::Values { values, .. } => many(values.len()),
        Answer::Groups { groups, .. } => many(groups.len()),
        Answer::Versions { versions, .. } => many(versions.len()),
        Answer::Diff { diff, .. } => many(diff.len()),
        Answer::Assembly { .. } => assembled,
        Answer::Coalesced { answer, .. } => result_count(answer, assembled),
        Answer::Batch { batch } => {
            let answers = batch.0.iter().filter_map(|(_, slot)| match slot {
                BatchSlot::Answer(answer) => Some(result_count(answer, 0)),
                BatchSlot::Failed { .. } => None,
            });
            answers.fold(0, u64::saturating_add).max(assembled)
        }
        _ => 0,
    }
}

/// The token id if it has the form of one, else `none`: a forged token must not choose the text of the log.
pub(crate) fn token_id_or_none(token_id: &str) -> String {
    let of_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    match token_id.len() == 36 && token_id.bytes().all(of_id) {
        true => token_id.to_owned(),
        false => "none".to_owned(),
    }
}

/// The bytes of a `query_hash`.
pub(crate) fn parse_query_hash(query_hash: &str) -> Option<[u8; 32]> {
    let address: ContentAddress = query_hash.strip_prefix("sha256:")?.parse().ok()?;
    Some(*address.as_bytes())
}

/// The name of a statement type in `_cal.statement_type`.
pub(crate) fn statement_name(statement: StatementType) -> String {
    match serde_json::to_value(statement) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// Collects the grains an answer returns as results. Returns `true` if the answer reveals stored grains at
/// all: assembled texts, counts and values do, without listing grains.
pub(crate) fn collect_results(answer: &Answer, given: &mut Vec<ContentAddress>) -> bool {
    match answer {
        Answer::Grains(grains) => {
            given.extend(grains.results.iter().map(|row| row.content_address));
            true
        }
        Answer::Coalesced { answer, .. } => collect_results(answer, given),
        Answer::Batch { batch } => {
            let mut any = false;
            for (_, slot) in &batch.0 {
                if let BatchSlot::Answer(answer) = slot {
                    any |= collect_results(answer, given);
                }
            }
            any
        }
        Answer::Count { .. }
        | Answer::Values { .. }
        | Answer::Groups { .. }
        | Answer::Assembly { .. }
        | Answer::Versions { .. }
        | Answer::Diff { .. } => true,
        // Answers that reveal no grains, and writes, which have entries of their own.
        _ => false,
    }
}
