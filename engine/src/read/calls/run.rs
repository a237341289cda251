//! One CAL call: the switch, the gate, the statement, and its audit record.

use crate::state::audit::{
    CallContext, StreamRecord, millis_since, parse_query_hash, result_count, token_id_or_none,
};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use grainstore_cal::{
    self as cal, EventListener, ExecuteOptions, Memory, Preparation, Response, ResponseMeta, Tier,
};

use super::firewall::CallGate;
use super::prepare::cal_error;
use super::stream_record::{CountingListener, PanicCatchingListener};
use super::type_filter::TypeLimitedMemory;
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::handle::cal_switch::CalSwitch;
use crate::handle::capability_token::CapabilityToken;
use crate::handle::session::Session;
use crate::read::memory::GivenGrains;
use crate::write::read_log::ReadRecord;

/// Row limit of a query without one, if no rule is stricter (OMS 28.1). The language has limits of its own,
/// which only a stricter rule lowers.
const STANDARD_ROW_LIMIT: u32 = 50;

impl Session {
    /// The audit record of a call in this session.
    fn errand_of(&self, query: &[u8], token: Option<&CapabilityToken>, tier: Tier) -> CallContext {
        let token = token.map(|token| (token.token_id.as_str(), token.tier));
        CallContext::new(self.options(), query, token, tier)
    }

    /// The entry in the read log of a call that is over.
    fn read_record(
        &self,
        errand: &CallContext,
        results: Option<u64>,
        code: Option<String>,
    ) -> ReadRecord {
        ReadRecord::of(errand, Arc::clone(self.shared_options()), self.now(), results, code)
    }

    /// Runs a query, with or without a token, and hands its events to a listener if there is one.
    ///
    /// # Errors
    /// As [`Session::ask_with`] or [`Session::ask_streaming`].
    ///
    /// # Panics
    /// If the listener panics, once the call is over and audited.
    pub(crate) fn call(
        &self,
        query: &[u8],
        options: &ExecuteOptions<'_>,
        token: Option<&CapabilityToken>,
        listener: Option<&mut dyn EventListener>,
    ) -> Result<Response, cal::Error> {
        let Some(listener) = listener else {
            return self.call_and_record(query, options, token, None);
        };
        let mut caught = PanicCatchingListener::new(listener);
        let answered = self.call_and_record(query, options, token, Some(&mut caught));
        caught.resume_panic();
        answered
    }

    /// Runs a query, and records it in the read log or the audit log.
    fn call_and_record(
        &self,
        query: &[u8],
        options: &ExecuteOptions<'_>,
        token: Option<&CapabilityToken>,
        listener: Option<&mut dyn EventListener>,
    ) -> Result<Response, cal::Error> {
        let reads =
            || options.tier == Tier::Read || !self.errand_of(query, None, options.tier).writes();
        if self.records_reads() && reads() {
            return self.call_recorded(query, options, token, listener);
        }
        self.call_audited(query, options, token, listener)
    }

    /// Runs a query that may only read, and records it in the read log; in the audit log if it tried to
    /// write.
    fn call_recorded(
        &self,
        query: &[u8],
        options: &ExecuteOptions<'_>,
        token: Option<&CapabilityToken>,
        listener: Option<&mut dyn EventListener>,
    ) -> Result<Response, cal::Error> {
        let started = Instant::now();
        let mut noting = listener.map(CountingListener::new);
        let listens = noting.as_mut().map(|noting| noting as &mut dyn EventListener);
        let answered = self.execute_statement(query, options, token, listens);
        let streamed = noting.and_then(CountingListener::into_record);
        let (answer, given) = match answered {
            Ok(answered) => answered,
            Err(error) => {
                let errand = self.errand_of(query, token, options.tier).started_at(started);
                return Err(self.record_failure(errand, streamed, error));
            }
        };
        let ResponseMeta { statement_type, query_hash, budget, .. } = &answer.meta;
        // The hash is made by this process, so it always parses.
        let query_hash = parse_query_hash(query_hash).unwrap_or_default();
        self.record_read(ReadRecord {
            query_hash,
            statement: Some(*statement_type),
            reader: Arc::clone(self.shared_options()),
            token_id: token.map(|token| token_id_or_none(&token.token_id)),
            time: self.now(),
            duration_ms: millis_since(started),
            results: Some(result_count(&answer.answer, budget.grains_returned)),
            code: None,
            stream: streamed.map(|note| note.entry()),
        })
        .map_err(cal_error)?;
        self.count_access(&answer, &given).map_err(cal_error)?;
        Ok(answer)
    }

    /// Records a failed call in the read log, or in the audit log if the statement writes; returns the error.
    fn record_failure(
        &self,
        errand: CallContext,
        streamed: Option<StreamRecord>,
        error: cal::Error,
    ) -> cal::Error {
        if let Some(note) = streamed {
            errand.set_stream(note);
        }
        if errand.writes() {
            let errand = Arc::new(errand);
            return self.for_call(&errand).audit_failure(&errand, error);
        }
        let code = Some(error.code().to_owned());
        match self.record_read(self.read_record(&errand, errand.grains_given(), code)) {
            Ok(()) => error,
            Err(failed) => cal_error(failed),
        }
    }

    /// Runs a query, and records it in the audit log where that is due.
    fn call_audited(
        &self,
        query: &[u8],
        options: &ExecuteOptions<'_>,
        token: Option<&CapabilityToken>,
        listener: Option<&mut dyn EventListener>,
    ) -> Result<Response, cal::Error> {
        // A read that no rule audits has no entry, and must not pay for one.
        let audits_reads = self.store().inner().active_rules().audits_reads();
        let may_be_told = audits_reads || token.is_some() || options.tier == Tier::Evolve;
        let errand = may_be_told.then(|| Arc::new(self.errand_of(query, token, options.tier)));
        let Some(errand) = errand.filter(|errand| audits_reads || errand.must_audit()) else {
            let (answer, given) = self
                .execute_statement(query, options, token, listener)
                .map_err(|error| self.audit_if_writing(query, options.tier, error))?;
            self.count_access(&answer, &given).map_err(cal_error)?;
            return Ok(answer);
        };
        let session = self.for_call(&errand);
        let mut noting = listener.map(CountingListener::new);
        let listens = noting.as_mut().map(|noting| noting as &mut dyn EventListener);
        let answered = session.execute_statement(query, options, token, listens);
        if let Some(note) = noting.and_then(CountingListener::into_record) {
            errand.set_stream(note);
        }
        match answered {
            Ok((answer, given)) => {
                let grains = answer.meta.budget.grains_returned;
                session.audit_answer(&answer.answer, grains).map_err(cal_error)?;
                session.count_access(&answer, &given).map_err(cal_error)?;
                Ok(answer)
            }
            Err(error) => Err(session.audit_failure(&errand, error)),
        }
    }

    /// Audits a failure if the statement writes; returns the error.
    fn audit_if_writing(&self, query: &[u8], tier: Tier, error: cal::Error) -> cal::Error {
        let errand = Arc::new(self.errand_of(query, None, tier));
        match errand.must_audit() {
            true => self.for_call(&errand).audit_failure(&errand, error),
            false => error,
        }
    }

    /// Runs a step that executes no statement, such as `prepare`. It is audited if it is refused, and where
    /// reads are audited, since its answer estimates what is stored.
    pub(super) fn recorded_step<T>(
        &self,
        query: &[u8],
        tier: Tier,
        step: impl FnOnce() -> Result<T, cal::Error>,
    ) -> Result<T, cal::Error> {
        if self.records_reads() {
            let started = Instant::now();
            let done = step();
            let errand = self.errand_of(query, None, tier).started_at(started);
            let done = match done {
                Ok(done) => done,
                Err(error) => return Err(self.record_failure(errand, None, error)),
            };
            self.record_read(self.read_record(&errand, None, None)).map_err(cal_error)?;
            return Ok(done);
        }
        if !self.store().inner().active_rules().audits_reads() {
            return step().map_err(|error| self.audit_if_writing(query, tier, error));
        }
        let errand = Arc::new(self.errand_of(query, None, tier));
        let session = self.for_call(&errand);
        let done = step().map_err(|error| session.audit_failure(&errand, error))?;
        session.audit_step(&errand).map_err(cal_error)?;
        Ok(done)
    }

    /// Records a statement that failed before the session was asked by [`Session::ask_with`], because its
    /// bytes are no text or a parameter cannot be bound, as one that fails to parse is. Returns the error, or
    /// that of recording it.
    #[must_use]
    pub fn record_failed_call(&self, query: &[u8], tier: Tier, error: cal::Error) -> cal::Error {
        match self.recorded_step::<Infallible>(query, tier, || Err(error)) {
            Err(error) => error,
            Ok(never) => match never {},
        }
    }

    /// Audits the refusal of a token; returns the error.
    pub(super) fn audit_refused_token(&self, token: &CapabilityToken, error: Error) -> cal::Error {
        let errand = Arc::new(CallContext::without_query(
            self.options(),
            Some((&token.token_id, token.tier)),
        ));
        self.for_call(&errand).audit_failure(&errand, cal_error(error))
    }

    /// Audits a failed call unless it has an entry; returns the error.
    fn audit_failure(&self, errand: &Arc<CallContext>, error: cal::Error) -> cal::Error {
        if errand.is_audited() {
            return error;
        }
        let noted = match errand.grains_given() {
            Some(grains) => self.audit_partial_answer(errand, grains, error.code()),
            None => self.audit_refused_call(errand, error.code()),
        };
        match noted {
            Ok(()) => error,
            Err(failed) => cal_error(failed),
        }
    }

    /// Prepares a query without running it.
    pub(crate) fn prepare_only(
        &self,
        query: &str,
        options: &ExecuteOptions<'_>,
    ) -> Result<Preparation, cal::Error> {
        let guard =
            CallGate { session: self, token: None, is_prepare: true, requested_tier: options.tier };
        let options = self.effective_options(options, &guard)?;
        let switched = guard.requested_tier != options.tier;
        let reading = self.reading().map_err(cal_error)?;
        let prepared = catch_storage_panic(|| Ok(cal::prepare(&reading, query, &options)))
            .map_err(cal_error)?;
        prepared.map_err(|error| explain_switch(error, switched))
    }

    /// Runs a statement. Returns its answer, and where the grains lie that its recalls gave.
    fn execute_statement(
        &self,
        query: &[u8],
        options: &ExecuteOptions<'_>,
        token: Option<&CapabilityToken>,
        listener: Option<&mut dyn EventListener>,
    ) -> Result<(Response, Arc<GivenGrains>), cal::Error> {
        let guard =
            CallGate { session: self, token, is_prepare: false, requested_tier: options.tier };
        let options = self.effective_options(options, &guard)?;
        let mut reading = self.reading().map_err(cal_error)?;
        let given = reading.note_given();
        let writes = self.store().inner().writes().of(self.options());
        let switched = guard.requested_tier != options.tier;
        let answer = catch_storage_panic(|| {
            let readable = token.and_then(CapabilityToken::readable_types);
            let bounded;
            let memory: &dyn Memory = match readable {
                None => &reading,
                Some(types) => {
                    bounded = TypeLimitedMemory { inner: reading, types };
                    &bounded
                }
            };
            Ok(match listener {
                None => cal::execute_bytes(memory, query, &options, &writes),
                Some(listener) => cal::stream(memory, query, &options, &writes, listener),
            })
        });
        let answer = answer.map_err(cal_error)?.map_err(|error| explain_switch(error, switched))?;
        Ok((answer, given))
    }

    /// The options of a call after the switch and rules of the store are applied.
    ///
    /// # Errors
    /// `ERR_DISABLED`.
    fn effective_options<'o>(
        &self,
        options: &ExecuteOptions<'o>,
        guard: &'o CallGate<'o>,
    ) -> Result<ExecuteOptions<'o>, cal::Error> {
        let inner = self.store().inner();
        let tier = match inner.switch().at() {
            CalSwitch::On => options.tier,
            CalSwitch::Reads => Tier::Read,
            CalSwitch::Off => {
                let message = "CAL is switched off in this store";
                return Err(cal_error(Error::new(ErrorKind::Disabled, message)));
            }
        };
        let limit = inner.active_rules().rules().settings.query_limit.value;
        let few = (limit < STANDARD_ROW_LIMIT).then_some(u64::from(limit));
        Ok(ExecuteOptions { tier, default_limit: few, gate: Some(guard), ..options.clone() })
    }
}

/// Adds the reason to a refused write if the switch of the store refuses it.
fn explain_switch(error: cal::Error, switched: bool) -> cal::Error {
    if !switched || error.kind() != cal::ErrorKind::TierDisabled {
        return error;
    }
    error.with_message("CAL only reads in this store: its switch is at \"reads\"", SWITCH_HINT)
}

/// Hint for a switch at `reads`.
const SWITCH_HINT: &str = "the operator lets it write again with `grain policy cal on`";
