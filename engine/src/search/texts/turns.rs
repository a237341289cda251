//! The turns around a turn of a conversation: whose words are lent to it in the full text.
//!
//! A conversation is the events of one `session_id` in one namespace for one user on one consent, by
//! time, those of one millisecond by descending address. Only what is current lends, and what is hidden
//! with its consent has lent to nothing that is not (ruling 49). Knows nothing of words.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState, GrainType};
use grainstore_index::{Field, Order, Posting, Scope, Sequence, Shape, Spaces, TimeRange};

use crate::base::error::Result;
use crate::state::consent::basis_of;
use crate::state::truth::whole;
use crate::state::view::{View, with_fields};

/// Turns on either side that lend their words.
const REACH: usize = 2;
/// Grains of the session that are looked at on either side, turns of the conversation or not: beyond
/// them nothing lends.
const LOOKED_AT: usize = 64;

/// What two turns that lend to each other have in common, and where one stands.
struct Turn {
    namespace: String,
    session: String,
    of: Whose,
    place: Posting,
}

/// Whose turn it is, and on which consent: who sees one turn sees every other of the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Whose {
    user: Option<String>,
    basis: Option<ContentAddress>,
}

impl Whose {
    fn of(grain: &GrainRef<'_>) -> Self {
        let user = grain.text("user_id").filter(|user| !user.is_empty());
        Self { user: user.map(str::to_owned), basis: basis_of(grain) }
    }
}

impl Turn {
    /// The turn at a place of the log. None for what is no turn of a conversation.
    fn at(view: &View, sequence: Sequence) -> Result<Option<Self>> {
        let turn = view.with_blob(sequence, |blob| {
            with_fields(blob, |grain| {
                let tie = || view.vault().tie(&ContentAddress::of(blob));
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
            of: Whose::of(grain),
            place: place(grain.time()),
        })
    }

    /// The grains of the session on one side, the nearest first: as many as are looked at.
    fn beside(&self, view: &View, order: Order) -> Result<Vec<Sequence>> {
        let time = Some(self.place.time);
        let times = match order {
            Order::Newest => TimeRange { from: None, to: time },
            Order::Oldest => TimeRange { from: time, to: None },
        };
        let spaces = Spaces::of(Scope::Exact(self.namespace.as_str().into()));
        let shape = Shape::Value(Field::Session, self.session.as_str().into());
        view.with_index_of(self.of.user.as_deref(), |reader| {
            let mut postings = reader.find(&spaces, &[&[shape]], times, order)?;
            postings.seek(self.place)?;
            let others = postings.filter(|posting| !matches!(posting, Ok(at) if *at == self.place));
            let mut beside = Vec::new();
            for posting in others.take(LOOKED_AT) {
                beside.push(posting?.sequence);
            }
            Ok(beside)
        })
    }
}

/// The turns around turns of one view. A grain that stands beside many is read once: a turn that was
/// amended often stands among its former versions, each of which looks at all others.
pub(crate) struct Around<'v> {
    view: &'v View,
    seen: HashMap<Sequence, Seen>,
}

/// What is known of a grain of a session.
struct Seen {
    /// Whose turn it is; nothing for what is no turn.
    of: Option<Whose>,
    current: bool,
}

impl<'v> Around<'v> {
    /// Nothing of a view, as yet.
    pub(crate) fn of(view: &'v View) -> Self {
        Self { view, seen: HashMap::new() }
    }

    /// The turns that lend their words to the one at a place of the log: up to two before it and two
    /// after. None for what is no turn of a conversation.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn lenders(&mut self, of: Sequence) -> Result<Vec<Sequence>> {
        let turns = self.turns(of)?;
        let current = turns.into_iter().filter(|(_, current)| *current);
        Ok(current.map(|(at, _)| at).collect())
    }

    /// The turns that the one at a place of the log lends to, or would lend to if it were current.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn borrowers(&mut self, of: Sequence) -> Result<Vec<Sequence>> {
        Ok(self.turns(of)?.into_iter().map(|(at, _)| at).collect())
    }

    /// The turns of the same conversation up to the second current one on either side, and whether each is
    /// current.
    fn turns(&mut self, of: Sequence) -> Result<Vec<(Sequence, bool)>> {
        let Some(turn) = Turn::at(self.view, of)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for order in [Order::Newest, Order::Oldest] {
            let mut left = REACH;
            for at in turn.beside(self.view, order)? {
                let Seen { of, current } = self.look(at)?;
                if of.as_ref() != Some(&turn.of) {
                    continue;
                }
                found.push((at, *current));
                left -= usize::from(*current);
                if left == 0 {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn look(&mut self, at: Sequence) -> Result<&Seen> {
        let vacant = match self.seen.entry(at) {
            Entry::Occupied(seen) => return Ok(seen.into_mut()),
            Entry::Vacant(vacant) => vacant,
        };
        let whose = |grain: &GrainRef<'_>| {
            let is_event = grain.grain_type() == GrainType::Event;
            is_event.then(|| Whose::of(grain))
        };
        let read = self.view.with_blob(at, |blob| with_fields(blob, |grain| Ok(whose(grain))));
        let of = whole(read)?.flatten();
        // What has an end lends nothing before it either: words do not change by the hour.
        let lends = |state: GrainState| state.is_current() && state.system_valid_to.is_none();
        let current = of.is_some() && lends(self.view.state_at(at)?);
        Ok(vacant.insert(Seen { of, current }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grain, OpenOptions, SessionOptions, Store};

    #[test]
    fn turns_are_the_same_however_many_were_looked_at_before() {
        let dir = tempfile::TempDir::new().unwrap();
        let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
        let session = store.session(SessionOptions::default());
        let said = |user: &str, at: i64, words: &str| {
            let json = format!(
                r#"{{"type": "event", "content": "{words}", "role": "user", "session_id": "s",
                    "user_id": "{user}", "created_at": {at}, "timestamp_ms": {at}}}"#
            );
            Grain::from_json(&json).unwrap()
        };
        let mut head = session.put(said("ann", 1000, "first")).unwrap().address();
        for at in 1..12 {
            session.put(said("bob", 1000 + at * 10, "another's")).unwrap();
            let amended = said("ann", 1005 + at * 10, &format!("amended {at}"));
            head = session.supersede(&head, amended, Some("said better")).unwrap();
        }
        session.put(said("ann", 1001, "early")).unwrap();
        session.put(said("ann", 2000, "late")).unwrap();
        let view = session.view().unwrap();
        let mut shared = Around::of(&view);
        let mut lent = 0;
        for at in (1..=view.last_sequence().unwrap().get()).map(Sequence::new) {
            let lenders = shared.lenders(at).unwrap();
            lent += lenders.len();
            assert_eq!(lenders, Around::of(&view).lenders(at).unwrap());
            assert_eq!(shared.borrowers(at).unwrap(), Around::of(&view).borrowers(at).unwrap());
        }
        // Bob's eleven have two on either side, less at the ends. Of Ann's three each has the two others,
        // and of her eleven former ones the first has the next two, the others have all three.
        assert_eq!(lent, (2 + 3 + 7 * 4 + 3 + 2) + 3 * 2 + (2 + 10 * 3));
    }
}
