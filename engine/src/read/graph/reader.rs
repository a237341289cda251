//! Reader of the grains that one graph read may see: those of a session on one view, within limits of work
//! and time.
//!
//! Graph reads must read every grain through it: it is the only place that decides whether a grain may be
//! seen.

use grainstore_cal::Visibility as EndedFilter;
use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState, normalise_text};
use grainstore_index::{
    IndexLookup, Posting, Scope, ScopeNamespaces, Sequence, TimeOrder, TimeRange,
};

use super::GraphOptions;
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::handle::session::Session;
use crate::read::query::ScanError;
use crate::state::consent::parse_basis_address;
use crate::state::view::View;
use crate::state::visibility::Visibility;

/// Most grains and links one graph read, such as [`Session::paths`], reads before it fails with `ERR_LIMIT`.
pub const MAX_GRAPH_STEPS: u64 = 200_000;
/// Most index ranges one graph read opens before it fails with `ERR_LIMIT`: a few seconds. One lookup opens a
/// range in each namespace, so stores of many namespaces need many.
const MAX_GRAPH_RANGES: u64 = 10_000_000;
/// Most bytes of texts in one answer of a graph read, such as [`Session::paths`]; the answer ends before it
/// would exceed them.
pub const MAX_ANSWER_BYTES: usize = 32 << 20;

/// Number of steps between checks for cancellation.
const CHECK_INTERVAL_STEPS: u64 = 64;

/// Reads the grains a session may see in a view.
pub(crate) struct GraphReader<'s> {
    session: &'s Session,
    view: &'s View,
    /// Visibility of grains to the session.
    visibility: Visibility<'s>,
    options: &'s GraphOptions,
    /// The namespaces of the session.
    namespaces: ScopeNamespaces<'s>,
    steps: u64,
    ranges: u64,
}

/// A grain the session may see.
pub(crate) struct VisibleGrain<'g> {
    pub(crate) sequence: Sequence,
    pub(crate) grain: &'g GrainRef<'g>,
    pub(crate) state: GrainState,
    blob: &'g [u8],
}

impl VisibleGrain<'_> {
    /// Returns `true` if it is a reasoning that waits for the review it requires.
    pub(crate) fn awaits_review(&self) -> bool {
        self.grain.awaits_review(self.state.verification_status)
    }

    /// Its address; hashes the blob.
    pub(crate) fn address(&self) -> ContentAddress {
        ContentAddress::of(self.blob)
    }
}

impl<'s> GraphReader<'s> {
    pub(crate) fn new(session: &'s Session, view: &'s View, options: &'s GraphOptions) -> Self {
        let spaces = ScopeNamespaces::of(session.viewer().index_scope());
        Self {
            session,
            view,
            visibility: session.visibility(view),
            options,
            namespaces: spaces,
            steps: 0,
            ranges: 0,
        }
    }

    /// Counts a step of work.
    ///
    /// # Errors
    /// `ERR_LIMIT` beyond [`MAX_GRAPH_STEPS`]; `ERR_TIMEOUT`.
    pub(crate) fn tick(&mut self) -> Result<()> {
        if self.steps.is_multiple_of(CHECK_INTERVAL_STEPS) {
            self.options.cancel.check().map_err(ScanError::Stopped)?;
        }
        self.steps += 1;
        if self.steps > MAX_GRAPH_STEPS {
            let message = format!("more than {MAX_GRAPH_STEPS} grains and links to look at");
            let hint = "ask for fewer hops, name a relation or a direction, or start elsewhere";
            return Err(Error::new(ErrorKind::Limit, message).with_hint(hint));
        }
        Ok(())
    }

    /// The postings of any of these lookups in the session's namespaces, newest first.
    ///
    /// # Errors
    /// `ERR_LIMIT` beyond [`MAX_GRAPH_RANGES`]; `ERR_TIMEOUT`; those of the index.
    pub(crate) fn postings(
        &mut self,
        shapes: &[IndexLookup<'_>],
    ) -> Result<impl Iterator<Item = Result<Posting>> + use<'s>> {
        self.count_ranges(self.view.index().range_count(&self.namespaces, shapes)?)?;
        self.open_postings(&self.namespaces, shapes)
    }

    /// Like [`GraphReader::postings`], in these namespaces.
    pub(crate) fn postings_in(
        &mut self,
        scope: &Scope<'_>,
        shapes: &[IndexLookup<'_>],
    ) -> Result<impl Iterator<Item = Result<Posting>> + use<'s>> {
        let spaces = ScopeNamespaces::of(*scope);
        self.count_ranges(self.view.index().range_count(&spaces, shapes)?)?;
        self.open_postings(&spaces, shapes)
    }

    fn open_postings(
        &self,
        spaces: &ScopeNamespaces<'_>,
        shapes: &[IndexLookup<'_>],
    ) -> Result<impl Iterator<Item = Result<Posting>> + use<'s>> {
        let reader = self.view.index();
        let found =
            reader.intersect_unions(spaces, &[shapes], TimeRange::default(), TimeOrder::Newest)?;
        Ok(found.map(|posting| Ok(posting?)))
    }

    /// Counts index ranges before they are opened. Each costs a seek even if it is empty, so a read that
    /// finds no grains checks its deadline here.
    fn count_ranges(&mut self, ranges: usize) -> Result<()> {
        self.options.cancel.check().map_err(ScanError::Stopped)?;
        self.ranges = self.ranges.saturating_add(u64::try_from(ranges).unwrap_or(u64::MAX));
        if self.ranges > MAX_GRAPH_RANGES {
            let message = format!("more than {MAX_GRAPH_RANGES} ranges of the index to open");
            let hint = "ask for less, or in a session of fewer namespaces";
            return Err(Error::new(ErrorKind::Limit, message).with_hint(hint));
        }
        Ok(())
    }

    /// Index ranges opened so far.
    pub(crate) fn ranges(&self) -> u64 {
        self.ranges
    }

    /// Number of postings of these lookups, counted up to `cap`.
    ///
    /// # Errors
    /// Like [`GraphReader::postings`].
    pub(crate) fn estimate(&mut self, shapes: &[IndexLookup<'_>], cap: usize) -> Result<usize> {
        let reader = self.view.index();
        self.count_ranges(reader.range_count(&self.namespaces, shapes)?)?;
        let scope = self.session.viewer().index_scope();
        shapes.iter().try_fold(0_usize, |count, shape| {
            let left = cap.saturating_sub(count);
            let rows = reader.count_up_to(&scope, shape, TimeRange::default(), left)?;
            Ok(count.saturating_add(rows))
        })
    }

    /// Reads the grain at a sequence; `None` if the options exclude its state, the session may not see it, or
    /// `read` returns none.
    pub(crate) fn read_current<T>(
        &mut self,
        sequence: Sequence,
        read: impl FnOnce(&VisibleGrain<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.tick()?;
        let state = self.view.state_at(sequence)?;
        if self.admits_state(&state) { self.read(sequence, state, read) } else { Ok(None) }
    }

    /// Like [`GraphReader::read_current`], whatever the state of the grain.
    pub(crate) fn read_any<T>(
        &mut self,
        sequence: Sequence,
        read: impl FnOnce(&VisibleGrain<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.tick()?;
        self.read(sequence, self.view.state_at(sequence)?, read)
    }

    fn read<T>(
        &self,
        sequence: Sequence,
        state: GrainState,
        read: impl FnOnce(&VisibleGrain<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if self.view.is_hidden(sequence)? {
            return Ok(None);
        }
        self.view.with_live_blob(sequence, |blob| {
            with_fields(blob, |grain| match self.visibility.is_visible(sequence, grain)? {
                true => read(&VisibleGrain { sequence, grain, state, blob }),
                false => Ok(None),
            })
        })
    }

    /// Like [`GraphReader::read_any`], by address.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the index leads to another grain.
    pub(crate) fn read_by_address<T>(
        &mut self,
        address: &ContentAddress,
        read: impl FnOnce(&VisibleGrain<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let Some(sequence) = self.view.sequence_of(address)? else { return Ok(None) };
        self.read_any(sequence, |seen| {
            address.verify(seen.blob)?;
            read(seen)
        })
    }

    /// Reads the grain a graph read starts from, whatever its state.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if the session cannot see it.
    pub(crate) fn read_start<T>(
        &mut self,
        address: &ContentAddress,
        read: impl FnOnce(&VisibleGrain<'_>) -> Result<Option<T>>,
    ) -> Result<T> {
        self.read_by_address(address, read)?.ok_or_else(|| self.unseen(address))
    }

    /// The error for a grain the session cannot see.
    pub(crate) fn unseen(&self, address: &ContentAddress) -> Error {
        self.session.not_visible(self.view, address)
    }

    /// The now of this read.
    pub(crate) fn now(&self) -> EpochMs {
        self.visibility.now()
    }

    /// Returns `true` if the options include grains of this state.
    pub(crate) fn admits_state(&self, state: &GrainState) -> bool {
        let superseded = self.options.include_superseded;
        EndedFilter { superseded, ..EndedFilter::default() }.admits(state, self.visibility.now())
    }
}

/// The addresses in a list field, with or without `sha256:`; maps (citations) are skipped.
pub(crate) fn addresses_in<'g>(
    grain: &GrainRef<'g>,
    field: &str,
) -> impl Iterator<Item = ContentAddress> + use<'g> {
    let list = grain.get(field).and_then(|list| list.as_array());
    let items = list.into_iter().flat_map(|list| list.iter());
    items.filter_map(|item| parse_basis_address(item.as_str()?))
}

/// Normalises a text to NFC, the form in grains (OMS 4.4).
///
/// # Errors
/// The code of the format for text no grain can hold.
pub(crate) fn normalised(text: &str) -> Result<String> {
    Ok(normalise_text(text)?.into_owned())
}
