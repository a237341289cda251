//! The grain of a record on its way into the store.

use grainstore::format::Value as Field;
use grainstore::{ContentAddress, EpochMs};

use super::Importer;
use super::grains::fields_after;
use crate::alf::names::PROFILE;
use crate::alf::native::{Carried, carried, native_id, notes, origin_of, without_grain};
use crate::alf::record::{Record, cross_links, fields_of, grain_type_of, sensitivity_of};
use crate::alf::vectors::references;
use crate::error::Result;
use crate::json::{self, Value};
use crate::kept::NewGrain;

/// Most bytes of the record of a native grain that is kept as it is.
const MAX_VIEW_BYTES: usize = 256 << 10;

/// The entry of `context` with the time at which a record was taken again.
pub(super) const RESTORED_AT: &str = "restored_at";

/// The grain whose place a record takes, its type, and why.
pub(super) type Former<'w> = Option<((ContentAddress, u8), &'w str)>;

impl Importer<'_, '_> {
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
            let restored_at = self.restored_at(&record.id)?;
            if let Some(Field::Map(context)) = fields.get_mut("context") {
                context.insert(PROFILE.key(RESTORED_AT), Field::from(restored_at));
            }
        } else if let Some(carried) = carried(&record.rest)? {
            carried.check_consent(self.agent.session, old.as_ref().map(|((old, _), _)| old))?;
            if carried.continues(old)
                && self.may_carry(&carried, record)?
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
        let mut grain = NewGrain::new(PROFILE, whole.clone(), sensitivity_of(&fields))?;
        // One grain is one record: a native one has these bytes already.
        let address = grain.address();
        let created_at = EpochMs::new(record.created_ms);
        if self.agent.past(&native_id(created_at, &address))?.is_some() {
            let whole = fields_after(&whole, Some(&address));
            grain = NewGrain::new(PROFILE, whole, sensitivity_of(&fields))?;
        }
        let old = old.map(|(old, _)| old);
        Ok(Made { grain, grain_type, fields, native: None, restored, old, retired })
    }

    /// Returns `true` for a grain that a record may be. A copy of a record's grain may only be the record that it becomes by
    /// itself, of its own agent, and never the version of a record that it says it is: one grain is one record.
    fn may_carry(&self, carried: &Carried, record: &Record) -> Result<bool> {
        let Some((_, agent_id)) = notes(&carried.grain) else { return Ok(true) };
        let origin = origin_of(self.agent, &carried.address, &carried.grain)?;
        let is_own_id = native_id(carried.grain.created_at(), &carried.address) == record.id;
        Ok(agent_id == self.agent.id && is_own_id && origin.may_succeed())
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
    pub(super) grain_type: u8,
    /// The fields of one that says what the record says.
    pub(super) fields: grainstore::format::Map,
    /// The record, if it carries its grain.
    pub(super) native: Option<Value>,
    /// True if it was purged before.
    pub(super) restored: bool,
    /// The grain whose place it takes.
    pub(super) old: Option<ContentAddress>,
    /// The grain of another type that is taken back for it.
    pub(super) retired: Option<ContentAddress>,
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
