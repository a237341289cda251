//! Which of two dates of a record is the newer one: exports come in any order, and an older one takes nothing back.
//!
//! Knows dates, not what records say.

use grainstore::{ContentAddress, EpochMs, Grain};

use super::Refusal;
use super::Writer;
use crate::error::Error;
use crate::json;
use crate::migrate::grains::UPDATED_AT;
use crate::migrate::record::{Chain, Record};
use crate::migrate::time::{Unit, instant};

/// What a changed record is to what an earlier migration kept of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// It takes its place. So does a record of the same date, or of none.
    Newer,
    /// Its text is older, and it ended later: what is kept ends.
    Ends,
    /// It is older.
    Older,
}

impl Writer<'_> {
    /// Compares the newest version of a record with the grain that an earlier migration made of it.
    ///
    /// # Errors
    /// Those of reading the grain.
    pub(super) fn age(
        &self,
        chain: &Chain,
        newest: &Record,
        head: &ContentAddress,
    ) -> Result<Age, Refusal> {
        if self.run.options.allow_older {
            return Ok(Age::Newer);
        }
        let kept = self.run.session.inspect(head).and_then(|kept| kept.grain());
        let kept = newest_date(&kept.map_err(Error::from)?);
        let ends = chain
            .ending
            .as_ref()
            .is_some_and(|ending| ending.at() >= kept || ending.at().is_none());
        Ok(match (newest.newest_date(), kept) {
            (Some(date), Some(kept)) if date < kept => {
                if ends {
                    Age::Ends
                } else {
                    Age::Older
                }
            }
            _ => Age::Newer,
        })
    }
}

/// When the record of a grain was changed last, else made: as [`Record::newest_date`].
fn newest_date(grain: &Grain) -> Option<EpochMs> {
    let updated = grain.map("context").and_then(|context| context.get(UPDATED_AT)?.as_str());
    let updated = updated.and_then(|at| instant(&json::Value::from(at), Unit::Milliseconds));
    let made = grain.int("created_at").map(EpochMs::new);
    [updated, made].into_iter().flatten().find(|date| date.header_second().is_some())
}
