//! What the audit log is told of a call in CAL (spec section 6): which statement by its hash, with which
//! token, how long it took and what it came to. Never its text.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use grainstore_cal::{Answer, Slot, Source, StatementType, Tier};
use grainstore_format::{ContentAddress, Map, Value};
use sha2::{Digest, Sha256};

use super::noted::{StreamNote, StreamedEntry};
use super::token::CapabilityToken;
use crate::handle::session::Session;
use crate::state::audit::Chain;
use crate::write::reads::ReadNote;

/// A call, while it runs.
#[derive(Debug)]
pub(crate) struct Errand {
    query_hash: [u8; 32],
    /// Nothing for a text that is no statement.
    statement: Option<StatementType>,
    tier: u8,
    token_id: Option<String>,
    namespace: Option<String>,
    agent_id: Option<String>,
    started: Instant,
    /// Whether the audit log has an entry of it.
    told: AtomicBool,
    /// What became of its events, where it was streamed and is over.
    streamed: OnceLock<StreamNote>,
}

/// What an entry has of a call.
#[derive(Debug, Clone)]
pub(crate) struct CallNote {
    errand: Arc<Errand>,
    /// How long it took; nothing for one that goes on while the entry is made.
    duration_ms: Option<u64>,
    results: Option<u64>,
    code: Option<String>,
}

/// What an entry of the audit log tells of the call in CAL that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CalledEntry {
    /// SHA-256 of the statement in normal form, parameters unbound; of the text as it came where that is no
    /// statement. In an encrypted store what stands for it, as for an address.
    pub query_hash: [u8; 32],
    /// Which statement, such as `recall`; nothing for what is none.
    pub statement: Option<String>,
    /// The tier it needed.
    pub tier: u64,
    /// How long it took, milliseconds; of a write until it was decided.
    pub duration_ms: u64,
    /// The capability token it was executed with.
    pub token_id: Option<String>,
    /// The namespace of the session; in an encrypted store a pseudonym.
    pub namespace: Option<String>,
    /// The pseudonym of the agent.
    pub agent: Option<String>,
    /// Grains that were given out; of a stream that ended early those of its text.
    pub result_count: Option<u64>,
    /// The code it was refused with, or a stream ended early with.
    pub code: Option<String>,
    /// What became of its events, where it was streamed.
    pub stream: Option<StreamedEntry>,
}

impl Errand {
    /// A call in this session, to go this far.
    pub(super) fn of(
        session: &Session,
        query: &[u8],
        token: Option<&CapabilityToken>,
        asked: Tier,
    ) -> Self {
        let identity = Source::read_bytes(query).and_then(|source| source.identity(asked)).ok();
        let hash = identity.as_ref().and_then(|of| hash_in(&of.query_hash));
        Self {
            query_hash: hash.unwrap_or_else(|| Sha256::digest(query).into()),
            statement: identity.as_ref().map(|of| of.statement_type),
            tier: identity.map_or(0, |of| of.tier),
            ..Self::without_query(session, token)
        }
    }

    /// A call whose statement nobody knows: a token that is none.
    pub(super) fn without_query(session: &Session, token: Option<&CapabilityToken>) -> Self {
        Self {
            query_hash: [0; 32],
            statement: None,
            tier: token.map_or(0, |token| token.tier.min(1)),
            token_id: token.map(|token| id_in(&token.token_id)),
            namespace: session.options().namespace.clone(),
            agent_id: session.options().agent_id.clone(),
            started: Instant::now(),
            told: AtomicBool::new(false),
            streamed: OnceLock::new(),
        }
    }

    /// The same, which began then.
    pub(super) fn since(self, started: Instant) -> Self {
        Self { started, ..self }
    }

    /// It was streamed, and is over.
    pub(super) fn was_streamed(&self, note: StreamNote) {
        // A call is over once.
        let _ = self.streamed.set(note);
    }

    /// The grains that its events told of, where it was streamed and came so far.
    pub(super) fn gave(&self) -> Option<u64> {
        self.streamed.get().and_then(StreamNote::given)
    }

    /// Whether there is to be an entry in a store whose rules do not ask for reads: of what writes, and of
    /// what has a token.
    pub(crate) fn is_always_told(&self) -> bool {
        self.tier > 0 || self.token_id.is_some()
    }

    /// Whether it writes, or tries to.
    pub(super) fn writes(&self) -> bool {
        self.tier > 0
    }

    /// What the read log is told of it; it is over now.
    pub(super) fn read(
        &self,
        session: &Session,
        results: Option<u64>,
        code: Option<String>,
    ) -> ReadNote {
        ReadNote {
            query_hash: self.query_hash,
            statement: self.statement,
            reader: Arc::clone(session.shared_options()),
            token_id: self.token_id.clone(),
            time: session.now(),
            duration_ms: self.elapsed_ms(),
            results,
            code,
            stream: self.streamed.get().map(StreamNote::entry),
        }
    }

    /// Whether the audit log has an entry of it.
    pub(crate) fn is_told(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    /// What an entry made now has of it.
    pub(crate) fn note(self: &Arc<Self>) -> CallNote {
        CallNote { errand: Arc::clone(self), duration_ms: None, results: None, code: None }
    }

    fn elapsed_ms(&self) -> u64 {
        millis_since(self.started)
    }
}

impl CallNote {
    /// The code it was refused with.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The same of a call that is over.
    pub(crate) fn over(self, results: Option<u64>, code: Option<String>) -> Self {
        Self { duration_ms: Some(self.errand.elapsed_ms()), results, code, ..self }
    }

    /// The map of an entry in this chain; there is an entry of it from now on.
    pub(crate) fn fields(&self, chain: &Chain) -> Map {
        let Self { errand, duration_ms, results, code } = self;
        errand.told.store(true, Ordering::Release);
        let shown = chain.vault().address(&ContentAddress::from_bytes(errand.query_hash));
        let duration = duration_ms.unwrap_or_else(|| errand.elapsed_ms());
        let mut fields = Map::from([
            ("query_hash".to_owned(), Value::Bytes(shown.as_bytes().to_vec())),
            ("tier".to_owned(), Value::from(i64::from(errand.tier))),
            ("duration_ms".to_owned(), Value::from(duration)),
        ]);
        let namespace = errand.namespace.as_deref().map(|name| chain.namespace(name));
        let agent = errand.agent_id.as_deref().map(|agent| chain.agent(agent));
        let texts = [
            ("statement", errand.statement.map(name_of)),
            ("token_id", errand.token_id.clone()),
            ("namespace", namespace),
            ("agent", agent),
            ("code", code.clone()),
        ];
        for (name, text) in texts {
            fields.extend(text.map(|text| (name.to_owned(), Value::from(text))));
        }
        fields.extend(results.map(|count| ("result_count".to_owned(), Value::from(count))));
        fields.extend(errand.streamed.get().into_iter().flat_map(StreamNote::fields));
        fields
    }
}

impl CalledEntry {
    /// Reads the map of an entry; nothing for what is none.
    pub(crate) fn of(fields: &Value) -> Option<Self> {
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
            stream: StreamedEntry::of(fields),
        })
    }
}

/// Whole milliseconds since then.
pub(super) fn millis_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// How many results an answer has: grains, values, groups, versions or fields; what a COUNT counts, and
/// whether an EXISTS found something. A text that was assembled has so many grains.
pub(crate) fn results_of(answer: &Answer, assembled: u64) -> u64 {
    let many = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    match answer {
        Answer::Grains(grains) => many(grains.results.len()),
        Answer::Count { count } => *count,
        Answer::Exists { exists } => u64::from(*exists),
        Answer::Values { values, .. } => many(values.len()),
        Answer::Groups { groups, .. } => many(groups.len()),
        Answer::Versions { versions, .. } => many(versions.len()),
        Answer::Diff { diff, .. } => many(diff.len()),
        Answer::Assembly { .. } => assembled,
        Answer::Coalesced { answer, .. } => results_of(answer, assembled),
        Answer::Batch { batch } => {
            let answers = batch.0.iter().filter_map(|(_, slot)| match slot {
                Slot::Answer(answer) => Some(results_of(answer, 0)),
                Slot::Failed { .. } => None,
            });
            answers.fold(0, u64::saturating_add).max(assembled)
        }
        _ => 0,
    }
}

/// The id of a token, which looks like one: whoever forges one does not choose what the log says.
pub(super) fn id_in(token_id: &str) -> String {
    let of_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    match token_id.len() == 36 && token_id.bytes().all(of_id) {
        true => token_id.to_owned(),
        false => "none".to_owned(),
    }
}

/// The bytes of a `query_hash`.
pub(super) fn hash_in(query_hash: &str) -> Option<[u8; 32]> {
    let address: ContentAddress = query_hash.strip_prefix("sha256:")?.parse().ok()?;
    Some(*address.as_bytes())
}

/// A statement as `_cal.statement_type` names it.
pub(crate) fn name_of(statement: StatementType) -> String {
    match serde_json::to_value(statement) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// The grains an answer gives as results, and whether it tells of any: of a context that was assembled, of
/// counts and of values it is said that they were asked for.
pub(crate) fn told_by(answer: &Answer, given: &mut Vec<ContentAddress>) -> bool {
    match answer {
        Answer::Grains(grains) => {
            given.extend(grains.results.iter().map(|row| row.content_address));
            true
        }
        Answer::Coalesced { answer, .. } => told_by(answer, given),
        Answer::Batch { batch } => {
            let mut any = false;
            for (_, slot) in &batch.0 {
                if let Slot::Answer(answer) = slot {
                    any |= told_by(answer, given);
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
        // What tells of no grain, and writes, which have entries of their own.
        _ => false,
    }
}
