//! The two phases of a CAL call: prepare a statement and inspect what it would do, then execute it with the
//! token that came with it (CAL 18.2).

use std::borrow::Cow;

use grainstore_cal::{
    self as cal, CalOperation, EventListener, FieldChange, Format, Params, PlanReport, Response,
    Tier, Warning,
};
use grainstore_format::{ContentAddress, EpochMs, GrainType};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::capability_token::{CapabilityToken, TokenLimits, random_uuid};
use crate::handle::prepared_statements::PreparedStatement;
use crate::handle::session::Session;

/// Options of [`Session::prepare`].
#[derive(Debug, Clone, Default)]
pub struct PrepareOptions {
    /// The highest tier it may use.
    pub tier: Tier,
    /// Values of parameters, fixed for the token.
    pub params: Vec<(String, serde_json::Value)>,
    /// Output format of its grains, in place of the one it names.
    pub as_format: Option<Format>,
    /// The time against which time phrases are resolved; by default that of execution.
    pub now: Option<EpochMs>,
    /// Limits of the token.
    pub terms: TokenLimits,
}

/// A prepared statement. [`Session::prepare`] makes it, [`Session::execute`] runs it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PreparedQuery {
    /// The token to execute it with.
    pub token: CapabilityToken,
    /// The plan: what it would do.
    pub plan: PlanReport,
    /// The tier it needs.
    pub tier: u8,
    /// Names of what it would change; empty for reads.
    pub side_effects: Vec<&'static str>,
    /// The grain it would replace: fixed now, whatever its address prefix would find later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<ContentAddress>,
    /// Fields a write would change, with their old and new values; for a REVERT those that come back. Empty
    /// for reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    /// Its complexity, in points of the table in docs/cal.md.
    pub complexity: u64,
    /// `sha256:` and the hash of the normalised query, parameters unbound.
    pub query_hash: String,
    /// Warnings for the caller.
    pub warnings: Vec<Warning>,
}

impl Session {
    /// Parses, checks and plans a query without running it. The result says what it would do;
    /// [`Session::execute`] does it with the token, in this session or a wider one.
    ///
    /// ```
    /// use grainstore::{PrepareOptions, cal::Tier};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let add = br#"ADD belief SET subject = "alice" SET relation = "prefers" SET object = "tea"
    ///               SET confidence = 0.9 REASON "she said so""#;
    /// let writing = PrepareOptions { tier: Tier::Evolve, ..Default::default() };
    /// let prepared = session.prepare(add, &writing)?;
    /// assert_eq!((prepared.tier, prepared.side_effects), (1, vec!["adds one grain"]));
    /// assert_eq!(store.stats()?.grains, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::ask_with`], for errors found before it runs; `ERR_TOKEN` if the limits do not cover the
    /// statement; `ERR_SCHEMA` for limits no token has; `ERR_LIMIT` if too many tokens wait.
    pub fn prepare(
        &self,
        query: &[u8],
        preparing: &PrepareOptions,
    ) -> Result<PreparedQuery, cal::Error> {
        self.recorded_step(query, preparing.tier, || self.prepare_unaudited(query, preparing))
    }

    /// Prepares a statement without an entry in the audit log.
    pub(crate) fn prepare_unaudited(
        &self,
        query: &[u8],
        preparing: &PrepareOptions,
    ) -> Result<PreparedQuery, cal::Error> {
        preparing.terms.check().map_err(cal_error)?;
        let text = query_text(query)?;
        let params = bind_params(&preparing.params)?;
        let options = cal::ExecuteOptions {
            tier: preparing.tier,
            params: params.clone(),
            as_format: preparing.as_format,
            ..cal::ExecuteOptions::at(preparing.now.unwrap_or_else(|| self.now()))
        };
        let prepared = self.prepare_only(text, &options)?;
        let token = self.new_token(&prepared, &preparing.terms).map_err(cal_error)?;
        let statement = PreparedStatement {
            text: text.to_owned(),
            params,
            format: preparing.as_format,
            now: preparing.now,
            target: prepared.target,
            session: self.options().clone(),
        };
        let hash = statement_hash(&statement, preparing);
        let kept = self.store().inner().kept();
        let token = kept.keep(token, statement, hash, self.now()).map_err(cal_error)?;
        let side_effects = prepared.plan.side_effects.iter().filter_map(|effect| match effect {
            Cow::Borrowed(effect) => Some(*effect),
            Cow::Owned(_) => None,
        });
        let side_effects = side_effects.collect();
        Ok(PreparedQuery {
            token,
            tier: prepared.tier,
            side_effects,
            target: prepared.target,
            changes: prepared.changes,
            complexity: prepared.admission.complexity,
            query_hash: prepared.query_hash,
            warnings: prepared.warnings,
            plan: prepared.plan,
        })
    }

    /// Executes a prepared statement. A use of the token is consumed by the attempt, however that ends.
    ///
    /// ```
    /// use grainstore::PrepareOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let prepared = session.prepare(b"RECALL beliefs", &PrepareOptions::default())?;
    /// session.execute(&prepared.token)?;
    /// let again = session.execute(&prepared.token);
    /// assert!(again.is_err_and(|error| error.code() == "ERR_TOKEN"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_TOKEN` for a token that was altered, has ended, was used, or is another session's or another
    /// store's; `ERR_DISABLED`; else as [`Session::ask_with`].
    pub fn execute(&self, token: &CapabilityToken) -> Result<Response, cal::Error> {
        self.execute_with(token, None)
    }

    /// Executes a prepared statement, with its events handed to a listener if there is one.
    pub(crate) fn execute_with(
        &self,
        token: &CapabilityToken,
        listener: Option<&mut dyn EventListener>,
    ) -> Result<Response, cal::Error> {
        let kept = self.store().inner().kept();
        let statement = kept
            .use_token(token, self.options(), self.now())
            .map_err(|error| self.audit_refused_token(token, error))?;
        let session = self.part(statement.session.clone());
        let options = cal::ExecuteOptions {
            tier: if token.tier > 0 { Tier::Evolve } else { Tier::Read },
            params: statement.params.clone(),
            as_format: statement.format,
            pinned_target: statement.target,
            ..cal::ExecuteOptions::at(statement.now.unwrap_or_else(|| session.now()))
        };
        session.call(statement.text.as_bytes(), &options, Some(token), listener)
    }

    /// The token of a prepared statement, without its signature.
    fn new_token(
        &self,
        prepared: &cal::Preparation,
        terms: &TokenLimits,
    ) -> Result<CapabilityToken> {
        let admission = &prepared.admission;
        let own = self.options();
        let mut types: Vec<GrainType> = terms.allowed_grain_types.clone();
        if types.is_empty() {
            types.extend(admission.writes);
        }
        let issued_at = self.now().get();
        let writes = if prepared.tier > 0 { terms.max_uses } else { 0 };
        let token = CapabilityToken {
            token_id: random_uuid()?,
            namespace: own.namespace.clone(),
            user_id: own.user_id.clone(),
            agent_id: own.agent_id.clone(),
            tier: prepared.tier,
            allowed_ops: terms
                .allowed_ops
                .clone()
                .unwrap_or_else(|| operations_of_tier(prepared.tier)),
            allowed_grain_types: types.iter().map(|of| of.name().to_owned()).collect(),
            issued_at,
            expires_at: issued_at.saturating_add(i64::from(terms.life_ms)),
            max_uses: terms.max_uses,
            write_quota_remaining: terms.write_quota.map_or(writes, |quota| quota.min(writes)),
            signature: String::new(),
        };
        check_covers(&token, admission)?;
        Ok(token)
    }
}

/// Checks that a token covers a statement.
///
/// # Errors
/// `ERR_TOKEN`.
pub(crate) fn check_covers(
    token: &CapabilityToken,
    admission: &cal::AdmissionRequest,
) -> Result<()> {
    let uncovered = |what: String| {
        let message = format!("the token does not cover {what}");
        Err(Error::new(ErrorKind::Token, message)
            .with_hint("prepare the statement with terms that cover it"))
    };
    if admission.tier > token.tier {
        return uncovered("writing".to_owned());
    }
    if !token.allows(&admission.operations) {
        return uncovered(format!("all of {:?}", admission.operations));
    }
    let unread = admission.reads.iter().find(|of| !token.names_type(**of));
    if let (Some(grain_type), false) = (unread, token.allowed_grain_types.is_empty()) {
        return uncovered(format!("reading a {grain_type}"));
    }
    match admission.writes.filter(|of| !token.names_type(*of)) {
        Some(grain_type) => uncovered(format!("writing a {grain_type}")),
        None => Ok(()),
    }
}

/// All operations of a tier.
fn operations_of_tier(tier: u8) -> Vec<CalOperation> {
    let evolving = CalOperation::EVOLVING.into_iter().filter(|_| tier > 0);
    CalOperation::READING.into_iter().chain(evolving).collect()
}

pub(crate) fn query_text(query: &[u8]) -> Result<&str, cal::Error> {
    std::str::from_utf8(query).or_else(|_| {
        // The parser's error names the first invalid byte.
        cal::parse_bytes(query)?;
        Ok("")
    })
}

fn bind_params(pairs: &[(String, serde_json::Value)]) -> Result<Params, cal::Error> {
    let mut params = Params::new();
    for (name, value) in pairs {
        params.bind(name, value)?;
    }
    Ok(params)
}

/// Hash of everything that decides what a statement does; the signature of its token covers it.
fn statement_hash(statement: &PreparedStatement, preparing: &PrepareOptions) -> [u8; 32] {
    let PreparedStatement { text, format, now, target, session, .. } = statement;
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(bytes);
    };
    part(text.as_bytes());
    for (name, value) in &preparing.params {
        part(name.as_bytes());
        part(value.to_string().as_bytes());
    }
    part(format!("{format:?} {now:?} {target:?} {session:?}").as_bytes());
    hash.finalize().into()
}

pub(crate) fn cal_error(error: Error) -> cal::Error {
    cal::MemoryError::from(error).into()
}
