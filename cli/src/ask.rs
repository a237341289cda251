//! CAL statements: their options and the call. `show` prints answers for people, `describe` those of
//! DESCRIBE, `beside` the notes on stderr.

mod beside;
mod describe;
mod show;

use grainstore::cal::{
    self, CancelHandle, EventListener, ExecuteOptions, Expansion, Format, Params, QuerySource,
    Response, Tier,
};
use grainstore::{EpochMs, Session};
use serde_json::Value;

use crate::error::{Code, Error, Result};

pub(crate) use beside::{beside, unshown};
pub(crate) use show::{UNREVIEWED, cut, failed, scores, show, show_answer};

/// Names of answer formats, for the command line and rpc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FormatName {
    /// Semantic markup: one flat element a grain
    Sml,
    /// Headings and bullets
    Markdown,
    /// One JSON object with the shown grains
    Json,
    /// The same in YAML
    Yaml,
    /// One line a grain
    Text,
    /// Subject, relation and object between tabs
    Triples,
    /// Tables, one a grain type
    Toon,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Sml => Self::Sml,
            FormatName::Markdown => Self::Markdown,
            FormatName::Json => Self::Json,
            FormatName::Yaml => Self::Yaml,
            FormatName::Text => Self::Text,
            FormatName::Triples => Self::Triples,
            FormatName::Toon => Self::Toon,
        }
    }
}

/// A statement in text or JSON, which need not be UTF-8, with the options of its caller.
#[derive(Debug, Default)]
pub(crate) struct Question<'q> {
    pub(crate) query: &'q [u8],
    pub(crate) params: Vec<(String, Value)>,
    pub(crate) format: Option<FormatName>,
    pub(crate) evolve: bool,
    /// True if a tight budget may choose toon for a statement without a format.
    pub(crate) auto_toon: bool,
    /// Expansion of a RECALL by links from its best answers.
    pub(crate) expansion: Option<Expansion>,
    /// The time taken as now; the store's clock if not given.
    pub(crate) now: Option<EpochMs>,
    /// The caller's handle to cancel it.
    pub(crate) cancel: CancelHandle,
}

impl Question<'_> {
    /// Runs the statement.
    pub(crate) fn ask(&self, session: &Session) -> Result<Response> {
        let answer = session.ask_with(self.query, &self.options(session)?);
        answer.map_err(|error| self.failed(&error))
    }

    /// Runs the statement and passes its events to a listener.
    pub(crate) fn ask_streaming(
        &self,
        session: &Session,
        listener: &mut dyn EventListener,
    ) -> Result<Response> {
        let answer = session.ask_streaming(self.query, &self.options(session)?, listener);
        answer.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &cal::Error) -> Error {
        Error::cal(error, &String::from_utf8_lossy(self.query))
    }

    fn tier(&self) -> Tier {
        if self.evolve { Tier::Evolve } else { Tier::Read }
    }

    /// Returns the error of a parameter, with its position in the query, once the session has recorded it.
    fn failed_binding(&self, session: &Session, error: cal::Error, name: &str) -> Error {
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
            bound.map_err(|error| self.failed_binding(session, error, name))?;
        }
        Ok(ExecuteOptions {
            tier: self.tier(),
            params,
            as_format: self.format.map(Format::from),
            auto_toon: self.auto_toon,
            expansion: self.expansion,
            cancel: self.cancel.clone(),
            ..ExecuteOptions::at(self.now.unwrap_or_else(|| session.now()))
        })
    }

    /// Runs the statement for a terminal, where a format that has no effect is refused rather than ignored:
    /// before the statement runs if its kind never gives text, else once the answer turns out to have none.
    pub(crate) fn ask_formatted(&self, session: &Session) -> Result<Response> {
        if self.format.is_some()
            && let Ok(source) = QuerySource::read_bytes(self.query)
            && let Ok(statement) = source.statement()
            && !statement.gives_text()
        {
            return Err(no_text());
        }
        let response = self.ask(session)?;
        if self.format.is_some() && !response.answer.has_text() {
            return Err(no_text());
        }
        Ok(response)
    }
}

fn no_text() -> Error {
    let message = "--as cannot act here: the answer is no list of whole grains";
    let hint = "leave --as out, or drop SELECT, COUNT, GROUP BY and the like; --json gives any answer as JSON";
    Error::new(Code::Schema, message, hint)
}
