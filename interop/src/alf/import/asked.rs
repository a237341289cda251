//! Whether a record may end by its status alone: no grain takes the place of its grain then, and the policy of that is asked
//! as if one did.

use grainstore::{ContentAddress, ErrorKind};

use super::Importer;
use super::known::UPDATE;
use crate::alf::agent::RecordRow;
use crate::alf::names::PROFILE;
use crate::alf::record::sensitivity_of;
use crate::error::{Error, Result};
use crate::kept::NewGrain;

impl Importer<'_, '_> {
    /// Returns why a record may not go from one status to another; `None` if it may. Asked in earnest, the store writes a
    /// refusal down. A deletion is asked for again where it is done.
    ///
    /// # Errors
    /// Those of [`Session::try_supersede`](grainstore::Session::try_supersede).
    pub(super) fn refusal_to_end(
        &self,
        row: &RecordRow,
        (was, is): (&str, &str),
    ) -> Result<Option<Error>> {
        let ends = match is {
            "archived" | "superseded" => was != is && was != "deleted",
            "deleted" => was != is && self.is_dry(),
            _ => false,
        };
        if !ends {
            return Ok(None);
        }
        let session = self.agent.session;
        let address: ContentAddress = row.address.parse()?;
        let stored = session.inspect(&address)?;
        let policy = session.policy(&stored)?;
        let is_open = policy.open_to.starts_with("anyone") && !policy.holds;
        // In the place of one that is not current stands another, which was asked for.
        if is_open || !stored.state.is_current() {
            return Ok(None);
        }
        let fields = NewGrain::succeeding(stored.grain()?.into_fields(), &address, UPDATE);
        let least = sensitivity_of(&fields);
        let new = NewGrain::new(PROFILE, fields, least)?;
        let refused = session.try_supersede(&address, new.offer(), None)?.refusal;
        let is_refusal = |error: &grainstore::Error| {
            matches!(error.kind(), ErrorKind::InvalidationDenied | ErrorKind::Policy)
        };
        let Some(refused) = refused.filter(is_refusal) else { return Ok(None) };
        let asked = match self.is_dry() {
            true => None,
            false => session.supersede(&address, new.offer(), None).err(),
        };
        Ok(Some(asked.unwrap_or(refused).into()))
    }
}
