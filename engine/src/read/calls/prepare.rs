//! The two phases of CAL: prepare a statement and look at what it would do, then execute it with the
//! token that came with it (spec sections 1 and 6).

use grainstore_cal::{
    self as cal, Change, Format, Listener, Operation, Params, PlanReport, Response, Tier, Warning,
};
use grainstore_format::{ContentAddress, EpochMs, GrainType};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::kept::Statement;
use super::token::{CapabilityToken, Terms, new_id};
use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::session::Session;

/// How a statement is prepared.
#[derive(Debug, Clone, Default)]
pub struct Preparing {
    /// How far it may go.
    pub tier: Tier,
    /// Values for parameters, which are the token's from then on.
    pub params: Vec<(String, serde_json::Value)>,
    /// The format of its grains, in place of its own.
    pub as_format: Option<Format>,
    /// The present, against which phrases are resolved; when it is executed, where none is named.
    pub now: Option<EpochMs>,
    /// What the token is to allow.
    pub terms: Terms,
}

/// A prepared statement.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Prepared {
    /// What it is executed with.
    pub token: CapabilityToken,
    /// What it would do.
    pub plan: PlanReport,
    /// The tier it needs.
    pub tier: u8,
    /// What it would change; empty for reads.
    pub side_effects: Vec<&'static str>,
    /// The grain it would replace: this one, whatever its prefix would find later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<ContentAddress>,
    /// What a write would change: fields with their old and new values, of a REVERT what comes back; empty for reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// How much work it may be, by the table in docs/cal.md.
    pub complexity: u64,
    /// `sha256:` and the hash of the normalised query, parameters unbound.
    pub query_hash: String,
    /// What the caller should know.
    pub warnings: Vec<Warning>,
}

impl Session {
    /// Parses, checks and plans a query, and runs nothing of it. What it answers says what it would do;
    /// with its token [`Session::execute`] does it, in this session or a wider one, in this namespace.
    ///
    /// # Errors
    /// As [`Session::ask_with`], for what shows before it runs; `ERR_TOKEN` where the terms do not cover
    /// the statement; `ERR_SCHEMA` for terms no token has; `ERR_LIMIT` where too many tokens wait.
    pub fn prepare(&self, query: &[u8], preparing: &Preparing) -> Result<Prepared, cal::Error> {
        self.noted_step(query, preparing.tier, || self.prepared(query, preparing))
    }

    /// The same without an entry in the audit log.
    pub(super) fn prepared(
        &self,
        query: &[u8],
        preparing: &Preparing,
    ) -> Result<Prepared, cal::Error> {
        preparing.terms.check().map_err(refused)?;
        let text = text_of(query)?;
        let params = bound(&preparing.params)?;
        let options = cal::Options {
            tier: preparing.tier,
            params: params.clone(),
            as_format: preparing.as_format,
            ..cal::Options::at(preparing.now.unwrap_or_else(|| self.now()))
        };
        let prepared = self.weighed(text, &options)?;
        let token = self.token_for(&prepared, &preparing.terms).map_err(refused)?;
        let statement = Statement {
            text: text.to_owned(),
            params,
            format: preparing.as_format,
            now: preparing.now,
            target: prepared.target,
            session: self.options().clone(),
        };
        let hash = hash_of(&statement, preparing);
        let kept = self.store().inner().kept();
        let token = kept.keep(token, statement, hash, self.now()).map_err(refused)?;
        let side_effects = prepared.plan.side_effects.clone();
        Ok(Prepared {
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

    /// Runs what was prepared. A token is used up by trying, however that ends.
    ///
    /// # Errors
    /// `ERR_TOKEN` for a token that was altered, is over, was used, or is another session's or another
    /// store's; `ERR_DISABLED`; else as [`Session::ask_with`].
    pub fn execute(&self, token: &CapabilityToken) -> Result<Response, cal::Error> {
        self.execute_for(token, None)
    }

    /// Runs what was prepared, and hands its events to whoever listens.
    pub(super) fn execute_for(
        &self,
        token: &CapabilityToken,
        listener: Option<&mut dyn Listener>,
    ) -> Result<Response, cal::Error> {
        let kept = self.store().inner().kept();
        let statement = kept
            .take(token, self.options(), self.now())
            .map_err(|error| self.token_refused(token, error))?;
        let session = self.part(statement.session.clone());
        let options = cal::Options {
            tier: if token.tier > 0 { Tier::Evolve } else { Tier::Read },
            params: statement.params.clone(),
            as_format: statement.format,
            pinned: statement.target,
            ..cal::Options::at(statement.now.unwrap_or_else(|| session.now()))
        };
        session.call(statement.text.as_bytes(), &options, Some(token), listener)
    }

    /// The token of a prepared statement, without its signature.
    fn token_for(&self, prepared: &cal::Preparation, terms: &Terms) -> Result<CapabilityToken> {
        let admission = &prepared.admission;
        let own = self.options();
        let mut types: Vec<GrainType> = terms.allowed_grain_types.clone();
        if types.is_empty() {
            types.extend(admission.writes);
        }
        let issued_at = self.now().get();
        let writes = if prepared.tier > 0 { terms.max_uses } else { 0 };
        let token = CapabilityToken {
            token_id: new_id()?,
            namespace: own.namespace.clone(),
            user_id: own.user_id.clone(),
            agent_id: own.agent_id.clone(),
            tier: prepared.tier,
            allowed_ops: terms.allowed_ops.clone().unwrap_or_else(|| every(prepared.tier)),
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

/// Holds a statement to what a token allows.
///
/// # Errors
/// `ERR_TOKEN`.
pub(super) fn check_covers(token: &CapabilityToken, admission: &cal::Admission) -> Result<()> {
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
    let unread = admission.reads.iter().find(|of| !token.names(**of));
    if let (Some(grain_type), false) = (unread, token.allowed_grain_types.is_empty()) {
        return uncovered(format!("reading a {grain_type}"));
    }
    match admission.writes.filter(|of| !token.names(*of)) {
        Some(grain_type) => uncovered(format!("writing a {grain_type}")),
        None => Ok(()),
    }
}

/// The operations of a tier.
fn every(tier: u8) -> Vec<Operation> {
    let evolving = Operation::EVOLVING.into_iter().filter(|_| tier > 0);
    Operation::READING.into_iter().chain(evolving).collect()
}

pub(super) fn text_of(query: &[u8]) -> Result<&str, cal::Error> {
    std::str::from_utf8(query).or_else(|_| {
        // It says where the first bad byte is.
        cal::parse_bytes(query)?;
        Ok("")
    })
}

fn bound(pairs: &[(String, serde_json::Value)]) -> Result<Params, cal::Error> {
    let mut params = Params::new();
    for (name, value) in pairs {
        params.bind(name, value)?;
    }
    Ok(params)
}

/// What a signature covers of a statement: all that decides what it does.
fn hash_of(statement: &Statement, preparing: &Preparing) -> [u8; 32] {
    let Statement { text, format, now, target, session, .. } = statement;
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

pub(super) fn refused(error: Error) -> cal::Error {
    cal::MemoryError::from(error).into()
}
