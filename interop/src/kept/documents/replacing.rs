//! Versions of documents that come after others: in their places, or beside a place that is not to be had any more.

use grainstore::{ContentAddress, SameFact};

use super::versions::{Found, Tip, Version};
use super::{Document, Documents};
use crate::error::Result;
use crate::kept::NewGrain;

/// The version before one, and whether its place is taken.
pub(super) type Former<'a> = (&'a ContentAddress, bool);

/// Where a version comes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// Where it is already.
    Taken,
    /// In the place of another.
    Of(ContentAddress),
    /// Beside the place of one before it, in which a grain stood that is gone.
    Beside,
}

/// A version that is to come after another.
pub(super) struct Replacing {
    pub(super) place: Place,
    pub(super) new: NewGrain,
    pub(super) version: Version,
}

impl Documents<'_> {
    /// The version of a document that comes after what is there. One that was interrupted is completed.
    pub(super) fn replacing(
        &self,
        found: &Found,
        document: &Document,
        version: Version,
    ) -> Result<Replacing> {
        if let Some(kept) = &found.kept
            && kept.address != found.newest.address
        {
            let new = self.grain_of(document, Some((&kept.address, true)))?;
            if new.address() == found.newest.address {
                return Ok(Replacing { place: Place::Taken, new, version });
            }
        }
        let Tip { address, is_open, .. } = found.newest;
        if is_open {
            let new = self.new_grain_of(document, Some((&address, true)))?;
            return Ok(Replacing { place: Place::Of(address), new, version });
        }
        let new = self.new_grain_of(document, Some((&address, false)))?;
        Ok(Replacing { place: Place::Beside, new, version })
    }

    /// Stores versions that come after others.
    pub(super) fn supersede(&self, replacing: &[Replacing]) -> Result<()> {
        let (mut superseding, mut beside) = (Vec::new(), Vec::new());
        for Replacing { place, new, .. } in replacing {
            match place {
                Place::Taken => {}
                Place::Of(old) => {
                    superseding.push(self.session.submit_supersede(old, new.offer(), None));
                }
                Place::Beside => beside.push(self.session.submit(new.offer(), SameFact::Add)),
            }
        }
        superseding.into_iter().try_for_each(|pending| pending.wait().map(drop))?;
        Ok(beside.into_iter().try_for_each(|pending| pending.wait().map(drop))?)
    }
}
