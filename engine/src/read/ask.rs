//! CAL queries of a session.

use grainstore_cal::{Answer, ExecuteOptions, RecallAnswer, Response};

use crate::base::error::Result;
use crate::handle::session::Session;

impl Session {
    /// Runs one CAL query that only reads, in text or JSON, with the store's current time as now.
    ///
    /// # Errors
    /// The CAL error with its code, position and suggestion.
    pub fn ask(&self, query: &str) -> Result<Response, grainstore_cal::Error> {
        self.ask_with(query.as_bytes(), &ExecuteOptions::at(self.now()))
    }

    /// Runs one CAL query, in text or JSON, with options: now, the tier it may use, its parameters, its
    /// format.
    ///
    /// Write quotas belong to the store and are shared by its sessions.
    ///
    /// # Errors
    /// As [`Session::ask`]; refusals of the store keep their `ERR_` code: `ERR_DISABLED` if CAL is switched
    /// off, `ERR_LIMIT` and `ERR_POLICY` of the firewall and of rules about health data.
    pub fn ask_with(
        &self,
        query: &[u8],
        options: &ExecuteOptions<'_>,
    ) -> Result<Response, grainstore_cal::Error> {
        self.call(query, options, None, None)
    }

    /// Counts an access to each grain that an answer gives as a result. Grains in an assembled context are
    /// not counted: a budget chose them, not the user (OMS 22.10).
    pub(crate) fn count_access(&self, answer: &Response) -> Result<()> {
        let answer = match &answer.answer {
            Answer::Coalesced { answer, .. } => answer,
            other => other,
        };
        let Answer::Grains(RecallAnswer { results, .. }) = answer else { return Ok(()) };
        let view = self.view()?;
        for row in results {
            if let Some(sequence) = view.sequence_of(&row.content_address)? {
                self.store().inner().touch(sequence);
            }
        }
        Ok(())
    }
}
