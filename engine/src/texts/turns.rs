//! The turns around a turn of a conversation: whose words are lent to it in the full text.
//!
//! A conversation is the events of one `session_id` in one namespace for one user, by time, those of
//! one millisecond by descending address. Only what is current lends (ruling 49). Knows nothing of
//! words.

use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainType};
use grainstore_index::{Field, Order, Posting, Scope, Sequence, Shape, Spaces, Tie, TimeRange};

use super::catching::whole;
use crate::error::Result;
use crate::view::{View, with_fields};

/// Turns on either side that lend their words.
const REACH: usize = 2;
/// Grains of the session that are looked at on either side, turns of the conversation or not: beyond
/// them nothing lends.
const LOOKED_AT: usize = 64;

/// What two turns that lend to each other have in common, and where one stands.
struct Turn {
    namespace: String,
    session: String,
    user: Option<String>,
    place: Posting,
}

impl Turn {
    /// The turn at a place of the log. None for what is no turn of a conversation.
    fn at(view: &View, sequence: Sequence) -> Result<Option<Self>> {
        let turn = view.with_blob(sequence, |blob| {
            with_fields(blob, |grain| {
                let tie = || Tie::of(ContentAddress::of(blob).as_bytes());
                Ok(Self::of(grain, |time| Posting { time, tie: tie(), sequence }))
            })
        });
        Ok(whole(turn)?.flatten())
    }

    fn of(grain: &GrainRef<'_>, place: impl FnOnce(EpochMs) -> Posting) -> Option<Self> {
        if grain.grain_type() != GrainType::Event {
            return None;
        }
        Some(Self {
            namespace: grain.partition().to_owned(),
            session: grain.text("session_id").filter(|id| !id.is_empty())?.to_owned(),
            user: grain.text("user_id").map(str::to_owned),
            place: place(grain.time()),
        })
    }

    /// Hands the turns of the conversation on one side to `visit`, the nearest first, until it
    /// answers false.
    fn walk(
        &self,
        view: &View,
        order: Order,
        mut visit: impl FnMut(Sequence) -> Result<bool>,
    ) -> Result<()> {
        let time = Some(self.place.time);
        let times = match order {
            Order::Newest => TimeRange { from: None, to: time },
            Order::Oldest => TimeRange { from: time, to: None },
        };
        let spaces = Spaces::of(Scope::Exact(self.namespace.as_str().into()));
        let shape = Shape::Value(Field::Session, self.session.as_str().into());
        let mut postings = view.index().find(&spaces, &[&[shape]], times, order)?;
        postings.seek(self.place)?;
        let others = postings.filter(|posting| !matches!(posting, Ok(at) if *at == self.place));
        for posting in others.take(LOOKED_AT) {
            let at = posting?.sequence;
            if self.has(view, at)? && !visit(at)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether a grain of the session is a turn of this conversation.
    fn has(&self, view: &View, at: Sequence) -> Result<bool> {
        let is_turn = |grain: &GrainRef<'_>| {
            grain.grain_type() == GrainType::Event && grain.text("user_id") == self.user.as_deref()
        };
        let read = view.with_blob(at, |blob| with_fields(blob, |grain| Ok(is_turn(grain))));
        Ok(whole(read)?.unwrap_or(false))
    }
}

/// The turns that lend their words to the one at a place of the log: up to two before it and two
/// after. None for what is no turn of a conversation.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn lenders(view: &View, of: Sequence) -> Result<Vec<Sequence>> {
    let Some(turn) = Turn::at(view, of)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for order in [Order::Newest, Order::Oldest] {
        let mut left = REACH;
        turn.walk(view, order, |at| {
            if view.state_at(at)?.is_current() {
                found.push(at);
                left -= 1;
            }
            Ok(left > 0)
        })?;
    }
    Ok(found)
}

/// The turns that the one at a place of the log lends to, or would lend to if it were current.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn borrowers(view: &View, of: Sequence) -> Result<Vec<Sequence>> {
    let Some(turn) = Turn::at(view, of)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for order in [Order::Newest, Order::Oldest] {
        let mut left = REACH;
        turn.walk(view, order, |at| {
            found.push(at);
            left -= usize::from(view.state_at(at)?.is_current());
            Ok(left > 0)
        })?;
    }
    Ok(found)
}
