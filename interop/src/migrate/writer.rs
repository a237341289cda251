//! The one writer: takes the records of any format, finds out what each means for the store, and writes them in batches.
//!
//! It goes through a source twice: first without writing, so that what is wrong is found before the first write, and a dry
//! run ends there. Knows no format.

mod age;
mod batch;
mod plan;
mod whose;

use std::collections::HashMap;

use grainstore::{ContentAddress, EpochMs, Session};

use super::ledger::{Identity, Origin, Seen};
use super::options::{MigrateOptions, Undated};
use super::record::{Chain, LeftOut, Sink};
use super::report::MigrateReport;
use super::time::Dated;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use batch::Batch;

/// Messages whose grains are remembered for sure, for those that answer them.
const REMEMBERED: usize = 100_000;

/// What one run is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'r> {
    pub(super) session: &'r Session,
    pub(super) format: &'static str,
    pub(super) options: &'r MigrateOptions,
    /// When it began: the date of records without one, if that is asked for.
    pub(super) began: EpochMs,
}

/// Whether a pass writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Finds out what would be written.
    Check,
    /// Writes; the check found so many records.
    Write { records: u64 },
}

/// The grains of the last messages.
#[derive(Debug, Default)]
struct Messages {
    newer: HashMap<u128, ContentAddress>,
    older: HashMap<u128, ContentAddress>,
}

impl Messages {
    fn remember(&mut self, identity: &Identity, address: ContentAddress) {
        if self.newer.len() >= REMEMBERED {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(identity.short(), address);
    }

    fn get(&self, identity: &Identity) -> Option<ContentAddress> {
        let key = identity.short();
        self.newer.get(&key).or_else(|| self.older.get(&key)).copied()
    }
}

/// Why a record is not taken, or a run ends.
enum Refusal {
    /// Because of what the record is.
    Nature(&'static str),
    /// Something is wrong with the record.
    Record(Error),
    /// It is about more than the record.
    Run(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match batch::is_of_record(error.kind()) {
            true => Self::Record(error),
            false => Self::Run(error),
        }
    }
}

/// Takes the records of one pass.
pub(super) struct Writer<'w> {
    run: Run<'w>,
    pass: Pass,
    monitor: &'w Monitor<'w>,
    origin: Origin<'w>,
    seen: Seen,
    messages: Messages,
    batch: Batch,
    report: MigrateReport,
    /// Records that came in for the user of the run, and name another person.
    others: u64,
    /// Records that are left out because nothing tells whose they were.
    nobodys: u64,
}

impl<'w> Writer<'w> {
    pub(super) fn new(run: Run<'w>, pass: Pass, monitor: &'w Monitor<'w>) -> Self {
        let Run { format, options, .. } = run;
        let (namespace, user) = (options.namespace.as_deref(), options.user.as_deref());
        let report =
            MigrateReport { format, dry_run: pass == Pass::Check, ..MigrateReport::default() };
        Self {
            run,
            pass,
            monitor,
            origin: Origin { format, namespace, user },
            seen: Seen::default(),
            messages: Messages::default(),
            batch: Batch::default(),
            report,
            others: 0,
            nobodys: 0,
        }
    }

    /// Writes what is waiting, and returns the report.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) fn finish(mut self) -> Result<MigrateReport> {
        self.flush()?;
        if let (Some(user), 1..) = (&self.run.options.user, self.others) {
            let others = self.others;
            self.report
                .note(format!("{others} records name another person, and are of {user} here"));
        }
        if let nobodys @ 1.. = self.nobodys {
            self.report.note(whose::note_of(nobodys));
        }
        self.report.became.sort_by(|left, right| {
            (&left.kind, &left.grain_type).cmp(&(&right.kind, &right.grain_type))
        });
        Ok(self.report)
    }

    fn count_record(&mut self) -> Result<()> {
        self.report.records = self.report.records.saturating_add(1);
        match self.pass {
            Pass::Check => self.monitor.step(0, self.report.records),
            Pass::Write { records } => self.monitor.step(self.report.records.min(records), records),
        }
    }

    /// The date of a record, or why it has none.
    fn created_at(&self, created: &Dated) -> Result<EpochMs> {
        match (created.time(), self.run.options.undated) {
            (Some(time), _) if time.header_second().is_some() => Ok(time),
            (Some(time), Undated::LeaveOut) => {
                Err(Error::schema(format!("its date {time} is outside 1970 to 2106")))
            }
            (None, Undated::LeaveOut) => Err(Error::schema(created.to_string())),
            (_, Undated::ImportTime) => Ok(self.run.began),
        }
    }
}

impl Sink for Writer<'_> {
    fn chain(&mut self, chain: Chain) -> Result<()> {
        self.count_record()?;
        let place = chain.versions.last().map(|(_, last)| last.place.clone()).unwrap_or_default();
        match self.take(chain) {
            Ok(()) => Ok(()),
            Err(Refusal::Nature(why)) => {
                self.put_aside(LeftOut { place, why: why.to_owned(), error: None })
            }
            Err(Refusal::Record(error)) => self.put_aside(LeftOut::wrong(&place, error)),
            Err(Refusal::Run(error)) => Err(error),
        }
    }

    fn leave_out(&mut self, left: LeftOut) -> Result<()> {
        self.count_record()?;
        self.put_aside(left)
    }

    fn note(&mut self, note: String) {
        self.report.note(note);
    }
}

impl Writer<'_> {
    /// Notes a record that is left out, which ends a strict run if something is wrong with it.
    fn put_aside(&mut self, left: LeftOut) -> Result<()> {
        match left.error {
            Some(error) if self.run.options.strict => {
                let error = error.in_entry(&left.place);
                Err(error.with_hint("correct it, or take the others without strictness"))
            }
            _ => {
                self.report.leave_out(left);
                Ok(())
            }
        }
    }
}
