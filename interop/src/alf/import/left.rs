//! What interrupted imports have left of records: grains that no row leads to.

use grainstore::ContentAddress;
use grainstore::format::Value as Field;

use super::Importer;
use super::grains::{fields_after, newest_own};
use super::made::{Former, RESTORED_AT};
use crate::alf::names::PROFILE;
use crate::alf::record::{Record, sensitivity_of};
use crate::error::Result;
use crate::json::Value;
use crate::kept::{NewGrain, Standing};

impl Importer<'_, '_> {
    /// The grain that an interrupted import has left of a record, and its type, where it is current, and is none that the
    /// record gets now, or goes on from in the place that it takes.
    pub(super) fn unused(
        &self,
        record: &Record,
        filled_rest: Option<&Value>,
        left: ContentAddress,
        place: Former<'_>,
    ) -> Result<Option<(ContentAddress, u8)>> {
        let stored = self.agent.session.inspect(&left)?;
        let place_of = place.map(|((place, _), _)| place);
        let is_own = |place| {
            // The place may be of a record that is not stored yet.
            newest_own(self.agent, place, &record.id).is_ok_and(|newest| newest == Some(left))
        };
        if !stored.state.is_current()
            || place_of.as_ref().is_some_and(is_own)
            || self.is_made_again(record, filled_rest, left, place)?
        {
            return Ok(None);
        }
        Ok(Some((left, stored.grain()?.grain_type().byte())))
    }

    /// Returns `true` for a grain that a record gets now too: in the place that it takes, or beside that.
    fn is_made_again(
        &self,
        record: &Record,
        filled_rest: Option<&Value>,
        left: ContentAddress,
        place: Former<'_>,
    ) -> Result<bool> {
        let made = self.made(record, filled_rest, place)?;
        let address = made.grain.address();
        if address == left {
            return Ok(true);
        }
        for after in [None, Some(address), place.map(|((place, _), _)| place)] {
            let fields = fields_after(&made.fields, after.as_ref());
            let beside = NewGrain::new(PROFILE, fields, sensitivity_of(&made.fields))?;
            if beside.address() == left {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When a record that was erased is taken again, in milliseconds: where an interrupted import has begun it, then.
    pub(super) fn restored_at(&self, id: &str) -> Result<i64> {
        let now = self.now.get();
        let Standing::Left(left) = self.agent.standing(id)? else { return Ok(now) };
        let grain = self.agent.session.inspect(&left)?.grain()?;
        let context = grain.map("context");
        let at = context.and_then(|context| context.get(&PROFILE.key(RESTORED_AT)));
        Ok(at.and_then(Field::as_i64).unwrap_or(now))
    }
}
