//! CAL: what a caller chose, the call, and its answer as text for people.

use grainstore::cal::{Answer, Format, Grains, Options, Params, Response, Tier};
use grainstore::{EpochMs, Session};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::output::Output;
use crate::shape::Version;

/// The formats of answers in this version, as they are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FormatName {
    /// Semantic markup: one flat element a grain
    Sml,
    /// One JSON object with the shown grains
    Json,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Sml => Self::Sml,
            FormatName::Json => Self::Json,
        }
    }
}

/// One question: a query, in UTF-8 or not, and the choices of its caller.
#[derive(Debug, Default)]
pub(crate) struct Question<'q> {
    pub(crate) query: &'q [u8],
    pub(crate) params: Vec<(String, Value)>,
    pub(crate) format: Option<FormatName>,
    pub(crate) evolve: bool,
    /// The present; the store's clock where it is not given.
    pub(crate) now: Option<EpochMs>,
}

impl Question<'_> {
    /// Asks it.
    pub(crate) fn ask(&self, session: &Session) -> Result<Response> {
        let failed = |error| Error::cal(&error, &String::from_utf8_lossy(self.query));
        let mut params = Params::new();
        for (name, value) in &self.params {
            params.bind(name, value).map_err(failed)?;
        }
        let options = Options {
            tier: if self.evolve { Tier::Evolve } else { Tier::Read },
            params,
            as_format: self.format.map(Format::from),
            ..Options::at(self.now.unwrap_or_else(|| session.now()))
        };
        session.ask_with(self.query, &options).map_err(failed)
    }
}

/// Shows an answer: the envelope to machines; to people its text where it has one.
pub(crate) fn show(response: &Response, output: &mut Output<'_>) -> Result<()> {
    if output.is_json() {
        return output.json_line(response);
    }
    for warning in &response.meta.warnings {
        output.note(&format!("warning: {}: {}", warning.code, warning.message));
    }
    match &response.answer {
        Answer::Grains(Grains { formatted: Some(shown), .. }) => text(shown, output),
        Answer::Assembly { formatted_context, .. } => text(&formatted_context.text, output),
        Answer::Count { count } => output.line(&count.to_string()),
        Answer::Exists { exists } => output.line(&exists.to_string()),
        Answer::Versions { versions } => {
            for version in versions {
                output.line(&Version::from(version.clone()).line())?;
            }
            Ok(())
        }
        Answer::Added { content_address } | Answer::Superseded { content_address, .. } => {
            output.line(&content_address.to_string())
        }
        _ => output.document(response),
    }
}

/// A formatted text as it is, ended by a newline.
fn text(text: &str, output: &mut Output<'_>) -> Result<()> {
    output.bytes(text.as_bytes())?;
    if !text.ends_with('\n') {
        output.bytes(b"\n")?;
    }
    Ok(())
}
