//! CAL statements with the options of their caller, and the call.

use grainstore::cal::{
    self, CancelHandle, EventListener, ExecuteOptions, Expansion, Format, Params, QuerySource,
    Response, Tier,
};
use grainstore::{EpochMs, Session};
use serde_json::Value;

use crate::error::{Error, Result};

/// A statement in text or JSON, which need not be UTF-8, with the options of its caller.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::Question;
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let params = vec![("who".into(), "alice".into())];
/// let query = br#"RECALL beliefs ABOUT $who AS text"#;
/// let response = Question { query, params, ..Question::default() }.ask(&session)?;
/// assert!(response.text().is_some_and(|text| text.contains("tea")));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Question<'q> {
    /// Its text, or JSON form.
    pub query: &'q [u8],
    /// The values of its parameters.
    pub params: Vec<(String, Value)>,
    /// The format of grains, in place of its own.
    pub format: Option<Format>,
    /// True if it may write.
    pub evolve: bool,
    /// True if a tight budget may choose toon for a statement without a format.
    pub auto_toon: bool,
    /// Expansion of a RECALL by links from its best answers.
    pub expansion: Option<Expansion>,
    /// The time taken as now; the store's clock if not given.
    pub now: Option<EpochMs>,
    /// The caller's handle to cancel it.
    pub cancel: CancelHandle,
}

impl Question<'_> {
    /// Runs the statement.
    pub fn ask(&self, session: &Session) -> Result<Response> {
        let answer = session.ask_with(self.query, &self.options(session)?);
        answer.map_err(|error| self.failed(&error))
    }

    /// Runs the statement and passes its events to a listener.
    pub fn run_streaming(
        &self,
        session: &Session,
        listener: &mut dyn EventListener,
    ) -> Result<Response> {
        let answer = session.ask_streaming(self.query, &self.options(session)?, listener);
        answer.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &cal::Error) -> Error {
        Error::from_cal(error, &String::from_utf8_lossy(self.query))
    }

    fn tier(&self) -> Tier {
        if self.evolve { Tier::Evolve } else { Tier::Read }
    }

    /// Returns the error of a parameter, with its position in the query, once the session has recorded it.
    fn parameter_error(&self, session: &Session, error: cal::Error, name: &str) -> Error {
        let error = match QuerySource::read_bytes(self.query) {
            Ok(source) => source.at_parameter(error, name),
            Err(_) => error,
        };
        self.failed(&session.record_failed_call(self.query, self.tier(), error))
    }

    fn options(&self, session: &Session) -> Result<ExecuteOptions<'static>> {
        let mut params = Params::new();
        for (name, value) in &self.params {
            let bound = params.bind(name, value);
            bound.map_err(|error| self.parameter_error(session, error, name))?;
        }
        Ok(ExecuteOptions {
            tier: self.tier(),
            params,
            as_format: self.format,
            auto_toon: self.auto_toon,
            expansion: self.expansion,
            cancel: self.cancel.clone(),
            ..ExecuteOptions::at(self.now.unwrap_or_else(|| session.now()))
        })
    }
}
