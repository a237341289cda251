//! A record on its way into the store: as a new grain, as the successor of one, or as a change of its row.

use grainstore::ContentAddress;

use super::chunk::{SUPERSESSION, Waiting, WaitingRow};
use super::made::Former;
use super::records::At;
use super::{ImportReport, Importer};
use crate::alf::agent::{Change, RecordRow};
use crate::alf::change::change_record;
use crate::alf::partition::labels_of;
use crate::alf::record::{Record, digest_of, joined_record, status_of, uuid_number};
use crate::alf::survey::Survey;
use crate::error::Result;
use crate::json::{Value, equal};
use crate::kept::Standing;

/// Why a grain takes the place of another of the same record.
pub(super) const UPDATE: &str = "alf update";
impl Importer<'_, '_> {
    /// Takes a record that the store does not have.
    pub(super) fn take_new(
        &mut self,
        record: Record,
        filled_rest: Option<&Value>,
        survey: &Survey,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let standing = self.standing(&record, survey)?;
        if standing == Standing::Erased {
            return self.refuse_erased(&record, at, report);
        }
        let mut old = None;
        // A change without a target takes the place of what it says it changes.
        if let Some(target) = record.supersedes.as_ref().or(record.change_of.as_ref())
            && *target != record.id
        {
            let coming = uuid_number(target).filter(|number| survey.has(*number));
            if !at.is_last_round {
                old = self.newest_of(target)?;
            }
            if let (None, Some(coming), false) = (&old, coming, at.is_last_round) {
                return self.deferred.add(at.key, &record, coming);
            }
            if coming.is_some() && at.is_last_round {
                let message =
                    "the record it supersedes is not taken, or supersedes it: it is kept as text";
                report.warn(&at.place, message);
            }
        }
        let mut old = old.map(|old| (old, SUPERSESSION));
        let mut leftover = None;
        if let Standing::Left(left) = standing {
            let unused = self.unused(&record, filled_rest, left, old)?;
            match old {
                None => old = unused.map(|left| (left, UPDATE)),
                Some(_) => leftover = unused.map(|(left, _)| left),
            }
        }
        let changes = (Change::Created, Change::Created);
        self.queue(record, filled_rest, changes, (old, leftover), at, report)
    }

    /// Returns the grain that a record is in now, and its type, of one that is stored or waits to be.
    pub(super) fn newest_of(&self, id: &str) -> Result<Option<(ContentAddress, u8)>> {
        let waiting = uuid_number(id).and_then(|number| self.chunk.get(number));
        if let Some(waiting) = waiting {
            return Ok(Some((waiting.grain.address(), waiting.grain_type)));
        }
        let Some(row) = self.agent.row(id)? else { return Ok(None) };
        let newest = self.agent.newest(row)?;
        Ok(Some((newest.address.parse()?, newest.grain_type)))
    }

    /// The row of the record that another is a change of, which says so; `None` unless it takes the place of that, so that
    /// the policy of its grain is asked.
    fn changed_row(
        &self,
        record: &Record,
        replaced: Option<&ContentAddress>,
    ) -> Result<Option<(String, RecordRow)>> {
        let (Some(target), Some(replaced)) = (&record.change_of, replaced) else { return Ok(None) };
        let Some(row) = self.agent.row(target)? else { return Ok(None) };
        if self.agent.newest(row.clone())?.address != replaced.to_string() {
            return Ok(None);
        }
        Ok(Some((target.clone(), RecordRow { changed_by: Some(record.id.clone()), ..row })))
    }

    /// Returns `true` for a record in a partition whose bytes must not change.
    pub(super) fn is_sealed(&self, row: &RecordRow) -> bool {
        labels_of(row.created_ms).iter().any(|label| self.sealed.contains(label))
    }

    /// Takes a record that the store has in another form.
    pub(super) fn take_known(
        &mut self,
        row: RecordRow,
        record: Record,
        filled_rest: Option<&Value>,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let (rest, changing) = (self.agent.rest(&row)?, self.agent.changing(&row)?);
        let is_same = equal(&rest, &record.rest);
        if is_same && equal(&changing, &record.changing) {
            report.records.unchanged += 1;
            return Ok(());
        }
        if !is_same && self.is_erased_version(&record)? {
            return self.refuse_erased(&record, at, report);
        }
        let [was, is] = [status_of(&changing), record.status()].map(str::to_owned);
        if is_same && let Some(refusal) = self.refusal_to_end(&row, (&was, &is))? {
            report.fail(&at.place, &refusal);
            return Ok(());
        }
        let is_ended = |status: &str| matches!(status, "deleted" | "archived");
        if self.is_sealed(&row) {
            let stays = was == is || !(is_ended(&is) || is_ended(&was));
            if is_same && stays {
                return self.update_row(row, &rest, &record, (&was, Change::Updated), at);
            }
            return self.change_sealed(row, &record, &is, at, report);
        }
        self.touched.extend(labels_of(row.created_ms));
        if is_same && !(was == "deleted" && is != "deleted") {
            let change = if is == "deleted" { Change::Deleted } else { Change::Updated };
            return self.update_row(row, &rest, &record, (&was, change), at);
        }
        let newest = self.agent.newest(row)?;
        let old = (newest.address.parse()?, newest.grain_type);
        let change = if is == "deleted" { Change::Deleted } else { Change::Updated };
        let old = (Some((old, UPDATE)), None);
        self.queue(record, filled_rest, (change, change), old, at, report)
    }

    /// Writes what changes of a record without making it another.
    fn update_row(
        &mut self,
        row: RecordRow,
        rest: &Value,
        record: &Record,
        (was, change): (&str, Change),
        at: At<'_>,
    ) -> Result<()> {
        let old = self.agent.changing(&row)?;
        let embeddings = record.changing.get("embeddings");
        let vectors = match old.get("embeddings") == embeddings {
            true => Vec::new(),
            false => self.spaces.vectors(embeddings).0,
        };
        let change = if was == "deleted" { Change::Updated } else { change };
        let whole = joined_record(rest.clone(), &record.changing);
        let (digest, changing) = (digest_of(&whole), record.changing.clone());
        let row = RecordRow { digest, changing, ..row };
        let (id, at) = (record.id.clone(), at.place.to_string());
        self.chunk.add_row(WaitingRow { id, row, change, vectors, at });
        Ok(())
    }

    /// A record whose partition is sealed is changed by a record of its own.
    pub(super) fn change_sealed(
        &mut self,
        row: RecordRow,
        record: &Record,
        status: &str,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let is_ended = matches!(status, "deleted" | "archived" | "superseded");
        let status = if is_ended { status } else { "active" };
        let made_at = self.time_of_changes()?;
        let change = change_record(&record.whole(), status, made_at);
        let newest = self.agent.newest(row)?;
        let now = self.agent.record(&newest)?;
        let said = |value: &Value, name: &str| value.get(name).cloned().unwrap_or_default();
        let is_there = newest.change_of.is_some()
            && said(&now, "content") == said(&change, "content")
            && said(&now, "status") == said(&change, "status");
        let Some(change) = Record::of(change).filter(|_| !is_there) else {
            report.records.unchanged += 1;
            return Ok(());
        };
        let old = (newest.address.parse()?, newest.grain_type);
        let counted = if status == "deleted" { Change::Deleted } else { Change::Updated };
        let changes = (Change::Created, counted);
        self.queue(change, None, changes, (Some((old, SUPERSESSION)), None), at, report)
    }

    /// Makes the grain of a record, and adds it to the chunk.
    fn queue(
        &mut self,
        record: Record,
        filled_rest: Option<&Value>,
        (change, counted): (Change, Change),
        (old, leftover): (Former<'_>, Option<ContentAddress>),
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let made = self.made(&record, filled_rest, old);
        let made = match made {
            Ok(made) => made,
            Err(error) => {
                report.fail(&at.place, &error);
                return Ok(());
            }
        };
        if made.retired.is_some() {
            // What is taken back has to be stored.
            self.flush(report)?;
        }
        let (vectors, unused) = self.spaces.vectors(record.changing.get("embeddings"));
        report.unsearchable_embeddings += unused;
        let replaced = made.old.or(made.retired);
        let changed = self.changed_row(&record, replaced.as_ref())?;
        let changes_sealed = changed.as_ref().is_some_and(|(_, row)| self.is_sealed(row));
        self.chunk.add(Waiting {
            record,
            change,
            counted,
            fields: made.fields,
            grain: made.grain,
            grain_type: made.grain_type,
            native: made.native,
            old: made.old,
            retired: made.retired,
            leftover,
            vectors,
            changed,
            changes_sealed,
            restored: made.restored,
            is_new: self.is_new(),
            past: None,
            at: at.place.to_string(),
        });
        Ok(())
    }
}
