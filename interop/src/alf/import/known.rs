//! A record on its way into the store: as a new grain, as the successor of one, or as a change of its row.

use grainstore::ContentAddress;
use grainstore::format::Value as Field;

use super::chunk::{SUPERSESSION, Waiting, WaitingRow};
use super::records::At;
use super::{ImportReport, Importer};
use crate::alf::agent::{Change, RecordRow};
use crate::alf::change::change_record;
use crate::alf::names::PROFILE;
use crate::alf::native::{Carried, carried, without_grain};
use crate::alf::partition::labels_of;
use crate::alf::record::{
    Record, cross_links, digest_of, fields_of, grain_type_of, joined_record, sensitivity_of,
    status_of, uuid_number,
};
use crate::alf::survey::Survey;
use crate::alf::vectors::references;
use crate::error::Result;
use crate::json::{self, Value, equal};
use crate::kept::{NewGrain, Standing};

/// Why a grain takes the place of another of the same record.
pub(super) const UPDATE: &str = "alf update";
/// Most bytes of the record of a native grain that is kept as it is.
const MAX_VIEW_BYTES: usize = 256 << 10;

/// The grain whose place a record takes, its type, and why.
type Former<'w> = Option<((ContentAddress, u8), &'w str)>;

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
        let standing = self.standing(&record)?;
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
        if let (Standing::Left(left), None) = (standing, old) {
            old = self.before(&record, filled_rest, left)?.map(|left| (left, UPDATE));
        }
        let changes = (Change::Created, Change::Created);
        self.queue(record, filled_rest, changes, old, at, report)
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
        self.queue(record, filled_rest, (change, change), Some((old, UPDATE)), at, report)
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
        let change = change_record(&record.whole(), status, self.now);
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
        self.queue(change, None, changes, Some((old, SUPERSESSION)), at, report)
    }

    /// Makes the grain of a record, and adds it to the chunk.
    fn queue(
        &mut self,
        record: Record,
        filled_rest: Option<&Value>,
        (change, counted): (Change, Change),
        old: Former<'_>,
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
            vectors,
            changed,
            changes_sealed,
            restored: made.restored,
            is_new: self.is_new(),
            at: at.place.to_string(),
        });
        Ok(())
    }

    /// The grain of a record: the one that it carries, or one that says what it says.
    pub(super) fn made(
        &self,
        record: &Record,
        filled_rest: Option<&Value>,
        old: Former<'_>,
    ) -> Result<Made> {
        let filled = filled_rest.unwrap_or(&record.rest);
        let mut fields = fields_of(&record.rest, filled, &self.principals)?;
        let restored = self.is_restored(record)?;
        if let Some(references) = references(&record.id, record.changing.get("embeddings")) {
            fields.insert("embedding_refs".to_owned(), references);
        }
        let own = |id: &str| Ok(self.newest_of(id)?.map(|(address, _)| address));
        if let Some(links) = cross_links(&record.rest, own)? {
            fields.insert("related_to".to_owned(), links);
        }
        if restored {
            // Another grain than the one that was erased.
            let key = PROFILE.key("restored_at");
            if let Some(Field::Map(context)) = fields.get_mut("context") {
                context.insert(key, Field::from(self.now.get()));
            }
        } else if let Some(carried) = carried(&record.rest)? {
            carried.check_consent(self.agent.session, old.as_ref().map(|((old, _), _)| old))?;
            if carried.continues(old)
                && let Some(view) = small(without_grain(record.rest.clone()))
            {
                return Ok(Made::carrying(carried, view, fields, old));
            }
        }
        let grain_type = grain_type_of(filled).byte();
        let (old, retired) = match old {
            Some(((old, of_type), why)) if of_type == grain_type => (Some((old, why)), None),
            Some(((old, _), _)) => (None, Some(old)),
            None => (None, None),
        };
        let whole = match (&old, &retired) {
            (Some((old, why)), _) => NewGrain::succeeding(fields.clone(), old, why),
            // Bytes of its own, also where it was of this type and said this before.
            (None, Some(retired)) => NewGrain::deriving(fields.clone(), retired),
            (None, None) => fields.clone(),
        };
        let grain = NewGrain::new(PROFILE, whole, sensitivity_of(&fields))?;
        let old = old.map(|(old, _)| old);
        Ok(Made { grain, grain_type, fields, native: None, restored, old, retired })
    }

    /// Returns `true` for a record that was purged or erased and is taken all the same.
    fn is_restored(&self, record: &Record) -> Result<bool> {
        let id = record.id.as_str();
        let is_erased =
            self.allows_purged() && self.agent.past(id)?.is_some() && self.agent.row(id)?.is_none();
        Ok(is_erased || (self.has_purged && self.agent.is_purged(id)?))
    }
}

impl Carried {
    /// Returns `true` unless it would leave the grain whose place it takes where it is: then the record is one that says
    /// what it says, which supersedes that, and its policy is asked.
    fn continues(&self, old: Former<'_>) -> bool {
        old.is_none_or(|((old, _), _)| {
            let parent = old.to_string();
            old == self.address || self.grain.texts("derived_from").any(|from| from == parent)
        })
    }
}

/// The grain of a record.
pub(super) struct Made {
    pub(super) grain: NewGrain,
    grain_type: u8,
    /// The fields of one that says what the record says.
    fields: grainstore::format::Map,
    /// The record, if it carries its grain.
    native: Option<Value>,
    /// True if it was purged before.
    restored: bool,
    /// The grain whose place it takes.
    old: Option<ContentAddress>,
    /// The grain of another type that is taken back for it.
    retired: Option<ContentAddress>,
}

impl Made {
    /// A grain that is stored byte for byte. It takes the place of what it derives from itself.
    fn carrying(
        carried: Carried,
        view: Value,
        fields: grainstore::format::Map,
        old: Former<'_>,
    ) -> Self {
        let Carried { offer, address, grain, .. } = carried;
        let old = old.map(|((old, _), _)| old).filter(|old| *old != address);
        Self {
            grain: NewGrain::given(offer, address),
            grain_type: grain.grain_type().byte(),
            fields,
            native: Some(view),
            restored: false,
            old,
            retired: None,
        }
    }
}

/// A value that fits into a row.
fn small(view: Value) -> Option<Value> {
    (json::line(&view).len() <= MAX_VIEW_BYTES).then_some(view)
}
