//! Prepared statements that wait for their tokens, in memory only: closing the store ends every token, so
//! reopening it cannot make a token usable twice, and no query is ever on disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use grainstore_cal::{Format, Params};
use grainstore_format::{ContentAddress, EpochMs};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::keyring::Secret;
use crate::handle::capability_token::CapabilityToken;
use crate::state::session_options::SessionOptions;
use crate::state::visibility::is_in_namespace;

/// Most tokens in force at once.
const MAX_TOKENS: usize = 4096;
/// Most tokens of one session identity.
const MAX_TOKENS_PER_SESSION: usize = 256;
/// Most bytes of all prepared statements with their parameters, and those of one session identity.
const MAX_STATEMENT_BYTES: usize = 64 << 20;
const MAX_STATEMENT_BYTES_PER_SESSION: usize = 16 << 20;

/// A prepared statement.
#[derive(Debug)]
pub(crate) struct PreparedStatement {
    pub(crate) text: String,
    pub(crate) params: Params,
    pub(crate) format: Option<Format>,
    /// The now it was prepared for, if the host named one.
    pub(crate) now: Option<EpochMs>,
    /// The grain it replaces.
    pub(crate) target: Option<ContentAddress>,
    /// The session identity it runs with.
    pub(crate) session: SessionOptions,
}

/// A token in force.
#[derive(Debug)]
struct TokenEntry {
    /// `None` after its last use.
    statement: Option<Arc<PreparedStatement>>,
    hash: [u8; 32],
    uses: u32,
    writes: u32,
    /// Its end by a monotonic clock, which cannot be set back.
    ends_at: Instant,
    /// Its end by the clock of the store, in milliseconds.
    expires_at: i64,
    issued_to: SessionOptions,
}

/// The prepared statements of a store.
#[derive(Debug)]
pub(crate) struct PreparedStatements {
    key: Secret,
    entries: Mutex<HashMap<String, TokenEntry>>,
}

impl PreparedStatements {
    /// An empty set; tokens are signed with this key.
    pub(crate) fn new(key: Secret) -> Self {
        Self { key, entries: Mutex::default() }
    }

    /// Stores a statement with its hash, and signs its token.
    ///
    /// # Errors
    /// `ERR_LIMIT` if too many statements wait already.
    pub(crate) fn keep(
        &self,
        token: CapabilityToken,
        statement: PreparedStatement,
        hash: [u8; 32],
        now: EpochMs,
    ) -> Result<CapabilityToken> {
        let token = token.sign(self.key.bytes(), &hash)?;
        let mut entries = self.lock();
        entries.retain(|_, entry| !entry.has_ended(now));
        if entries.len() >= MAX_TOKENS {
            entries.retain(|_, entry| entry.statement.is_some());
        }
        let asker = statement.session.clone();
        let own = entries.values().filter(|entry| entry.issued_to == asker);
        let (all, own) = (
            StatementUsage::with(entries.values(), &statement),
            StatementUsage::with(own, &statement),
        );
        let room = entries.len() < MAX_TOKENS && all.bytes <= MAX_STATEMENT_BYTES;
        if !room
            || own.statements > MAX_TOKENS_PER_SESSION
            || own.bytes > MAX_STATEMENT_BYTES_PER_SESSION
        {
            let message = "too many prepared statements wait to be executed, or too large ones";
            return Err(Error::new(ErrorKind::Limit, message)
                .with_hint("execute them, or wait until their tokens are over (five minutes)"));
        }
        let life = token.expires_at.saturating_sub(token.issued_at);
        let life = Duration::from_millis(u64::try_from(life).unwrap_or_default());
        entries.insert(
            token.token_id.clone(),
            TokenEntry {
                statement: Some(Arc::new(statement)),
                hash,
                uses: token.max_uses,
                writes: token.write_quota_remaining,
                ends_at: Instant::now() + life,
                expires_at: token.expires_at,
                issued_to: asker,
            },
        );
        Ok(token)
    }

    /// Uses a token once: of concurrent callers, as many succeed as it has uses. A use is consumed by the
    /// attempt: a statement that is refused when it runs has to be prepared again.
    ///
    /// # Errors
    /// `ERR_TOKEN`.
    pub(crate) fn use_token(
        &self,
        token: &CapabilityToken,
        executor: &SessionOptions,
        now: EpochMs,
    ) -> Result<Arc<PreparedStatement>> {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&token.token_id) else {
            // Verify a signature although the token is unknown, so that a response takes the same time for an
            // unknown id as for a known one with a bad signature, and timing does not reveal which ids exist.
            token.verify(self.key.bytes(), &[0; 32]);
            return Err(unknown_token());
        };
        if !token.verify(self.key.bytes(), &entry.hash) {
            return Err(unknown_token());
        }
        if entry.has_ended(now) {
            return Err(token_error("the token is over"));
        }
        if !is_same_or_wider(executor, &entry.issued_to) {
            return Err(token_error("the token is for another namespace, user, actor or agent"));
        }
        let Some(statement) = entry.statement.clone() else {
            return Err(token_error("the token was used already"));
        };
        if token.tier > 0 {
            let Some(writes) = entry.writes.checked_sub(1) else {
                return Err(token_error("the token has no write left"));
            };
            entry.writes = writes;
        }
        entry.uses = entry.uses.saturating_sub(1);
        if entry.uses == 0 {
            entry.statement = None;
        }
        Ok(statement)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, TokenEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenEntry {
    /// Returns `true` if it has ended by the store's clock or by the monotonic one.
    fn has_ended(&self, now: EpochMs) -> bool {
        now.get() >= self.expires_at || Instant::now() >= self.ends_at
    }
}

/// Number and bytes of statements that may still be executed.
struct StatementUsage {
    statements: usize,
    bytes: usize,
}

impl StatementUsage {
    /// Totals of these entries and one more statement.
    fn with<'e>(entries: impl Iterator<Item = &'e TokenEntry>, more: &PreparedStatement) -> Self {
        let mut held = Self { statements: 1, bytes: more.bytes() };
        for statement in entries.filter_map(|entry| entry.statement.as_ref()) {
            held.statements += 1;
            held.bytes = held.bytes.saturating_add(statement.bytes());
        }
        held
    }
}

impl PreparedStatement {
    fn bytes(&self) -> usize {
        self.text.len().saturating_add(self.params.memory_bytes())
    }
}

/// Returns `true` if `executor` may execute what `asker` prepared: it must have the same identity or a wider
/// one.
fn is_same_or_wider(executor: &SessionOptions, asker: &SessionOptions) -> bool {
    let same = |wide: &Option<String>, own: &Option<String>| wide.is_none() || wide == own;
    let namespace = match (&executor.namespace, &asker.namespace) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(own)) => is_in_namespace(own, Some(wide)),
    };
    let is_operator =
        executor.namespace.is_none() && executor.user_id.is_none() && executor.actor.is_none();
    namespace
        && same(&executor.user_id, &asker.user_id)
        && same(&executor.actor, &asker.actor)
        && same(&executor.agent_id, &asker.agent_id)
        && (is_operator || asker.purposes.iter().all(|of| executor.purposes.contains(of)))
}

/// The one error for any token that is not in force here, whatever is wrong with it.
fn unknown_token() -> Error {
    token_error("this is no token of this store that is in force")
}

fn token_error(message: &str) -> Error {
    Error::new(ErrorKind::Token, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(names: [&str; 4]) -> SessionOptions {
        let [namespace, user_id, actor, agent_id] =
            names.map(|name| (!name.is_empty()).then(|| name.to_owned()));
        SessionOptions { namespace, user_id, actor, agent_id, ..SessionOptions::default() }
    }

    #[test]
    fn a_wider_session_executes_what_a_narrower_one_prepared_and_no_other_does() {
        let own = ["work:a", "alice", "did:web:a", "agent"];
        for (executor, may) in [
            (own, true),
            (["", "", "", ""], true),
            (["work", "alice", "did:web:a", "agent"], true),
            (["work:a", "", "", ""], true),
            (["work:b", "", "", ""], false),
            (["wor", "", "", ""], false),
            (["work:a:b", "", "", ""], false),
            (["work:a", "bob", "", ""], false),
            (["work:a", "alice", "did:web:b", ""], false),
            (["work:a", "alice", "did:web:a", "other"], false),
        ] {
            assert_eq!(is_same_or_wider(&options(executor), &options(own)), may, "{executor:?}");
        }
        assert!(
            !is_same_or_wider(&options(["work", "", "", ""]), &options(["", "", "", ""])),
            "wider"
        );
        let purposes = vec!["treatment".to_owned()];
        let treating = SessionOptions { purposes, ..options(own) };
        assert!(!is_same_or_wider(&options(own), &treating), "for a purpose it does not have");
        assert!(is_same_or_wider(&treating, &options(own)));
    }
}
