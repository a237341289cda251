//! An append whose outcome is known when it returns, as far as that can be had.

use std::thread;
use std::time::{Duration, Instant};

use super::{Head, Journal, Lead, Record};
use crate::base::error::{Error, ErrorKind, Result};

/// Time between two attempts, doubled up to the second of them.
const RETRY_AFTER: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// Appends a record, and again if the answer was lost, for as long as `patience`. A journal takes a record after one
/// head once, so that a second attempt finds the first.
///
/// # Errors
/// `ERR_FENCED`: another record is in its place, and this one never will be. `ERR_IN_DOUBT`: the journal did not say.
/// `ERR_LIMIT`.
pub(crate) fn append_surely(
    journal: &dyn Journal,
    lead: &Lead,
    (after, record): (&Head, &Record),
    patience: Duration,
) -> Result<Head> {
    let began = Instant::now();
    let (mut wait, most) = RETRY_AFTER;
    let mut is_in_doubt = false;
    loop {
        let appended = match journal.append(lead, after, record) {
            Err(refused) if refused.kind() == ErrorKind::Fenced => {
                is_appended(journal, lead, record).and_then(|is_ours| match is_ours {
                    true => Ok(record.head()),
                    false => Err(refused),
                })
            }
            appended => appended,
        };
        let failed = match appended {
            Err(failed) if failed.kind() != ErrorKind::Fenced => failed,
            known => return known,
        };
        let is_unreached = failed.kind() == ErrorKind::Io;
        is_in_doubt |= is_unreached;
        if !is_in_doubt {
            return Err(failed);
        }
        if !is_unreached || began.elapsed() >= patience {
            return Err(Error::new(ErrorKind::InDoubt, failed.to_string()));
        }
        thread::sleep(wait);
        wait = wait.saturating_mul(2).min(most);
    }
}

/// Returns `true` if the journal has this record in its place.
fn is_appended(journal: &dyn Journal, lead: &Lead, record: &Record) -> Result<bool> {
    let before = record.commit().saturating_sub(1);
    let there = journal.read(lead.shard, before, 1)?;
    Ok(there.first().is_some_and(|there| there.as_bytes() == record.as_bytes()))
}
