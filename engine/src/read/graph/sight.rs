//! What one graph read may look at: the grains of a session on one view, so many and no longer.
//!
//! This is the only place where a graph read meets a grain, so it is the only one that decides
//! whether the grain may be seen.

use grainstore_cal::Visibility;
use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState, normalise_text};
use grainstore_index::{Order, Posting, Scope, Sequence, Shape, Spaces, TimeRange};

use super::Lens;
use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::session::Session;
use crate::read::query::Halt;
use crate::state::reach::Reach;
use crate::state::view::{View, with_fields};

/// Grains and links one graph read looks at before it gives up with `ERR_LIMIT`.
pub const MAX_LOOKED: u64 = 200_000;
/// Ranges of the index one graph read opens before it gives up with `ERR_LIMIT`: a few seconds.
/// A range is what one lookup has in one namespace, so stores of many namespaces take many.
const MAX_RANGES: u64 = 10_000_000;
/// Bytes of texts one answer holds; it ends before it would hold more.
pub const MAX_ANSWER_BYTES: usize = 32 << 20;

/// How often a read asks whether it should stop.
const CHECK_EVERY: u64 = 64;

/// A session looking at a view.
pub(crate) struct Sight<'s> {
    session: &'s Session,
    view: &'s View,
    /// What the session sees of the view.
    reach: Reach<'s>,
    lens: &'s Lens,
    /// The namespaces of the session.
    spaces: Spaces<'s>,
    looked: u64,
    ranges: u64,
}

/// A grain that may be seen.
pub(crate) struct Seen<'g> {
    pub(crate) sequence: Sequence,
    pub(crate) grain: &'g GrainRef<'g>,
    pub(crate) state: GrainState,
    blob: &'g [u8],
}

impl Seen<'_> {
    /// Whether it is a reasoning that waits for the review it asks for.
    pub(crate) fn awaits_review(&self) -> bool {
        self.grain.awaits_review(self.state.verification_status)
    }

    /// Its address; hashes the blob.
    pub(crate) fn address(&self) -> ContentAddress {
        ContentAddress::of(self.blob)
    }
}

impl<'s> Sight<'s> {
    pub(crate) fn new(session: &'s Session, view: &'s View, lens: &'s Lens) -> Self {
        let spaces = Spaces::of(session.viewer().partitions());
        Self { session, view, reach: session.reach(view), lens, spaces, looked: 0, ranges: 0 }
    }

    /// Counts a step of work.
    ///
    /// # Errors
    /// `ERR_LIMIT` beyond [`MAX_LOOKED`]; `ERR_TIMEOUT`.
    pub(crate) fn tick(&mut self) -> Result<()> {
        if self.looked.is_multiple_of(CHECK_EVERY) {
            self.lens.cancel.check().map_err(Halt::Stopped)?;
        }
        self.looked += 1;
        if self.looked > MAX_LOOKED {
            let message = format!("more than {MAX_LOOKED} grains and links to look at");
            let hint = "ask for fewer hops, name a relation or a direction, or start elsewhere";
            return Err(Error::new(ErrorKind::Limit, message).with_hint(hint));
        }
        Ok(())
    }

    /// Every posting that has one of these shapes, in the session's namespaces, newest first.
    ///
    /// # Errors
    /// `ERR_LIMIT` beyond [`MAX_RANGES`]; `ERR_TIMEOUT`; those of the index.
    pub(crate) fn postings(
        &mut self,
        shapes: &[Shape<'_>],
    ) -> Result<impl Iterator<Item = Result<Posting>> + use<'s>> {
        self.charge(self.view.index().ranges(&self.spaces, shapes)?)?;
        self.open(&self.spaces, shapes)
    }

    /// As [`Sight::postings`], in these namespaces.
    pub(crate) fn postings_in(
        &mut self,
        scope: &Scope<'_>,
        shapes: &[Shape<'_>],
    ) -> Result<impl Iterator<Item = Result<Posting>> + use<'s>> {
        let spaces = Spaces::of(*scope);
        self.charge(self.view.index().ranges(&spaces, shapes)?)?;
        self.open(&spaces, shapes)
    }

    fn open(
        &self,
        spaces: &Spaces<'_>,
        shapes: &[Shape<'_>],
    ) -> Result<impl Iterator<Item = Result<Posting>> + use<'s>> {
        let reader = self.view.index();
        let found = reader.find(spaces, &[shapes], TimeRange::default(), Order::Newest)?;
        Ok(found.map(|posting| Ok(posting?)))
    }

    /// Counts ranges that are about to be opened. Each costs a seek, whether or not it has
    /// anything, so this is where a read that finds nothing sees that its time is over.
    fn charge(&mut self, ranges: usize) -> Result<()> {
        self.lens.cancel.check().map_err(Halt::Stopped)?;
        self.ranges = self.ranges.saturating_add(u64::try_from(ranges).unwrap_or(u64::MAX));
        if self.ranges > MAX_RANGES {
            let message = format!("more than {MAX_RANGES} ranges of the index to open");
            let hint = "ask for less, or in a session of fewer namespaces";
            return Err(Error::new(ErrorKind::Limit, message).with_hint(hint));
        }
        Ok(())
    }

    /// Ranges of the index opened so far.
    pub(crate) fn ranges(&self) -> u64 {
        self.ranges
    }

    /// How many postings these shapes have, counted no further than `cap`.
    ///
    /// # Errors
    /// As [`Sight::postings`].
    pub(crate) fn estimate(&mut self, shapes: &[Shape<'_>], cap: usize) -> Result<usize> {
        let reader = self.view.index();
        self.charge(reader.ranges(&self.spaces, shapes)?)?;
        let scope = self.session.viewer().partitions();
        shapes.iter().try_fold(0_usize, |count, shape| {
            let left = cap.saturating_sub(count);
            let rows = reader.estimate(&scope, shape, TimeRange::default(), left)?;
            Ok(count.saturating_add(rows))
        })
    }

    /// Reads the grain at a place, if the lens shows it and `read` finds something in it.
    pub(crate) fn at<T>(
        &mut self,
        sequence: Sequence,
        read: impl FnOnce(&Seen<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.tick()?;
        let state = self.view.state_at(sequence)?;
        if self.shows(&state) { self.read(sequence, state, read) } else { Ok(None) }
    }

    /// As [`Sight::at`], whatever the state of the grain.
    pub(crate) fn any_at<T>(
        &mut self,
        sequence: Sequence,
        read: impl FnOnce(&Seen<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.tick()?;
        self.read(sequence, self.view.state_at(sequence)?, read)
    }

    fn read<T>(
        &self,
        sequence: Sequence,
        state: GrainState,
        read: impl FnOnce(&Seen<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if self.view.hides(sequence)? {
            return Ok(None);
        }
        self.view.with_live_blob(sequence, |blob| {
            with_fields(blob, |grain| match self.reach.sees(sequence, grain)? {
                true => read(&Seen { sequence, grain, state, blob }),
                false => Ok(None),
            })
        })
    }

    /// As [`Sight::any_at`], by address.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where the index leads to another grain.
    pub(crate) fn any_of<T>(
        &mut self,
        address: &ContentAddress,
        read: impl FnOnce(&Seen<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let Some(sequence) = self.view.sequence_of(address)? else { return Ok(None) };
        self.any_at(sequence, |seen| {
            address.verify(seen.blob)?;
            read(seen)
        })
    }

    /// The grain a read starts from: it must be there, in whatever state.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` where the session cannot see it.
    pub(crate) fn start<T>(
        &mut self,
        address: &ContentAddress,
        read: impl FnOnce(&Seen<'_>) -> Result<Option<T>>,
    ) -> Result<T> {
        self.any_of(address, read)?.ok_or_else(|| self.unseen(address))
    }

    /// Why the grain with an address is not to be seen.
    pub(crate) fn unseen(&self, address: &ContentAddress) -> Error {
        self.session.unseen(self.view, address)
    }

    /// The moment it looks at.
    pub(crate) fn now(&self) -> EpochMs {
        self.reach.now()
    }

    /// Whether the lens shows grains of this state.
    pub(crate) fn shows(&self, state: &GrainState) -> bool {
        let superseded = self.lens.include_superseded;
        Visibility { superseded, ..Visibility::default() }.admits(state, self.reach.now())
    }
}

/// The addresses a list field names, with or without `sha256:`; maps (citations) name none.
pub(crate) fn addresses_in<'g>(
    grain: &GrainRef<'g>,
    field: &str,
) -> impl Iterator<Item = ContentAddress> + use<'g> {
    let list = grain.get(field).and_then(|list| list.as_array());
    let items = list.into_iter().flat_map(|list| list.iter());
    items.filter_map(|item| address_in(item.as_str()?))
}

/// The address a text names, with or without `sha256:`.
pub(crate) fn address_in(text: &str) -> Option<ContentAddress> {
    text.strip_prefix("sha256:").unwrap_or(text).parse().ok()
}

/// A text as grains have it: in NFC (OMS 4.4).
///
/// # Errors
/// The code of the format for text no grain can hold.
pub(crate) fn spelled(text: &str) -> Result<String> {
    Ok(normalise_text(text)?.into_owned())
}
