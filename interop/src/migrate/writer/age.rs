//! Which of two dates of a record is the newer one: exports come in any order, and an older one takes nothing back.
//!
//! Knows dates, not what records say.

use grainstore::{EpochMs, Grain};

use super::{Refusal, Writer};
use crate::error::Error;
use crate::json;
use crate::migrate::grains::UPDATED_AT;
use crate::migrate::ledger::{Entry, Identity};
use crate::migrate::record::{Body, Chain, Ending, Record};
use crate::migrate::time::{Unit, instant};

impl Writer<'_> {
    /// Compares the newest version of a record that changed with the grain that an earlier migration made of it. Returns
    /// `true` if its text is older and its source ended it later: then what is kept ends as it is.
    ///
    /// # Errors
    /// A refusal of a record that is older; those of reading the grain.
    pub(super) fn ends_only(
        &mut self,
        chain: &Chain,
        newest: &Record,
        identity: &Identity,
        entry: &Entry,
    ) -> Result<bool, Refusal> {
        if self.run.options.allow_older {
            return Ok(false);
        }
        let kept = self.run.session.inspect(&entry.head).and_then(|kept| kept.grain());
        let kept = newest_date(&kept.map_err(Error::from)?);
        match (newest.newest_date(), kept) {
            (Some(date), Some(kept)) if date < kept => {
                let is_later = |ending: &Ending| ending.at().is_none_or(|at| at >= kept);
                if !entry.is_ended && chain.ending.as_ref().is_some_and(is_later) {
                    return Ok(true);
                }
                if let Body::Message { .. } = newest.body {
                    self.messages.remember(identity, entry.head);
                }
                Err(Refusal::Nature("it is older than what is here"))
            }
            _ => Ok(false),
        }
    }
}

/// When the record of a grain was changed last, else made: as [`Record::newest_date`].
fn newest_date(grain: &Grain) -> Option<EpochMs> {
    let updated = grain.map("context").and_then(|context| context.get(UPDATED_AT)?.as_str());
    let updated = updated.and_then(|at| instant(&json::Value::from(at), Unit::Milliseconds));
    let made = grain.int("created_at").map(EpochMs::new);
    [updated, made].into_iter().flatten().find(|date| date.header_second().is_some())
}
