//! Neighbouring turns of a conversation, which contribute terms to each other in the full text.
//!
//! A conversation is the events of one `session_id` in one namespace, of one user and one consent, by time,
//! and within a millisecond by descending address. Only current turns contribute, and a turn that is hidden
//! with its consent has contributed to no turn that is not hidden too (ruling 49). Must not know terms.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState, GrainType};
use grainstore_index::{
    Field, IndexLookup, Posting, Scope, ScopeNamespaces, Sequence, TimeOrder, TimeRange,
};

use crate::base::error::Result;
use crate::disk::blob::with_fields;
use crate::state::consent::consent_basis;
use crate::state::truth::ok_if_readable;
use crate::state::view::View;

/// Current turns on either side that contribute terms.
const NEIGHBOURS_PER_SIDE: usize = 2;
/// Grains of the session examined on either side, of the conversation or not. Turns beyond them do not
/// contribute.
const MAX_SCANNED_TURNS: usize = 64;

/// Key of the conversation a turn belongs to, and its place in it.
struct Turn {
    namespace: String,
    session: String,
    owner: TurnOwner,
    posting: Posting,
}

/// The user and consent of a turn. A session that can see one turn can see every other with the same ones.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TurnOwner {
    user: Option<String>,
    basis: Option<ContentAddress>,
}

impl TurnOwner {
    fn of(grain: &GrainRef<'_>) -> Self {
        let user = grain.text("user_id").filter(|user| !user.is_empty());
        Self { user: user.map(str::to_owned), basis: consent_basis(grain) }
    }
}

impl Turn {
    /// The turn at a sequence; `None` if the grain is not a turn of a conversation.
    fn at(view: &View, sequence: Sequence) -> Result<Option<Self>> {
        let turn = view.with_blob(sequence, |blob| {
            with_fields(blob, |grain| {
                let tie = || view.vault().tie_breaker(&ContentAddress::of(blob));
                Ok(Self::of(grain, |time| Posting { time, tie: tie(), sequence }))
            })
        });
        Ok(ok_if_readable(turn)?.flatten())
    }

    fn of(grain: &GrainRef<'_>, place: impl FnOnce(EpochMs) -> Posting) -> Option<Self> {
        if grain.grain_type() != GrainType::Event {
            return None;
        }
        Some(Self {
            namespace: grain.partition().to_owned(),
            session: grain.text("session_id").filter(|id| !id.is_empty())?.to_owned(),
            owner: TurnOwner::of(grain),
            posting: place(grain.time()),
        })
    }

    /// The grains of the session on one side, nearest first, at most `MAX_SCANNED_TURNS`.
    fn neighbours(&self, view: &View, order: TimeOrder) -> Result<Vec<Sequence>> {
        let time = Some(self.posting.time);
        let times = match order {
            TimeOrder::Newest => TimeRange { from: None, to: time },
            TimeOrder::Oldest => TimeRange { from: time, to: None },
        };
        let spaces = ScopeNamespaces::of(Scope::Exact(self.namespace.as_str().into()));
        let shape = IndexLookup::Value(Field::Session, self.session.as_str().into());
        view.with_user_index(self.owner.user.as_deref(), |reader| {
            let mut postings = reader.intersect_unions(&spaces, &[&[shape]], times, order)?;
            postings.seek(self.posting)?;
            let others =
                postings.filter(|posting| !matches!(posting, Ok(at) if *at == self.posting));
            let mut beside = Vec::new();
            for posting in others.take(MAX_SCANNED_TURNS) {
                beside.push(posting?.sequence);
            }
            Ok(beside)
        })
    }
}

/// A cache of the turns of one view. Each grain is read once: an amended turn often stands among its former
/// versions, and each of those examines all the others.
pub(crate) struct ConversationWindow<'v> {
    view: &'v View,
    cache: HashMap<Sequence, CachedTurn>,
}

/// Cached facts of a grain of a session.
struct CachedTurn {
    /// User and consent of the turn; `None` if the grain is not an event.
    of: Option<TurnOwner>,
    current: bool,
}

impl<'v> ConversationWindow<'v> {
    /// An empty cache over a view.
    pub(crate) fn of(view: &'v View) -> Self {
        Self { view, cache: HashMap::new() }
    }

    /// The current turns that contribute terms to the one at a sequence: up to two before it and two after.
    /// Empty if the grain is not a turn of a conversation.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn contributors(&mut self, of: Sequence) -> Result<Vec<Sequence>> {
        let turns = self.turns(of)?;
        let current = turns.into_iter().filter(|(_, current)| *current);
        Ok(current.map(|(at, _)| at).collect())
    }

    /// The turns that take terms from the one at a sequence, or would if it were current.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn dependents(&mut self, of: Sequence) -> Result<Vec<Sequence>> {
        Ok(self.turns(of)?.into_iter().map(|(at, _)| at).collect())
    }

    /// The turns of the same conversation, up to the second current one on either side, each with `true` if
    /// it is current.
    fn turns(&mut self, of: Sequence) -> Result<Vec<(Sequence, bool)>> {
        let Some(turn) = Turn::at(self.view, of)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for order in [TimeOrder::Newest, TimeOrder::Oldest] {
            let mut left = NEIGHBOURS_PER_SIDE;
            for at in turn.neighbours(self.view, order)? {
                let CachedTurn { of, current } = self.cached_turn(at)?;
                if of.as_ref() != Some(&turn.owner) {
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

    fn cached_turn(&mut self, at: Sequence) -> Result<&CachedTurn> {
        let vacant = match self.cache.entry(at) {
            Entry::Occupied(seen) => return Ok(seen.into_mut()),
            Entry::Vacant(vacant) => vacant,
        };
        let whose = |grain: &GrainRef<'_>| {
            let is_event = grain.grain_type() == GrainType::Event;
            is_event.then(|| TurnOwner::of(grain))
        };
        let read = self.view.with_blob(at, |blob| with_fields(blob, |grain| Ok(whose(grain))));
        let of = ok_if_readable(read)?.flatten();
        // A turn with an end of validity does not contribute before that end either: terms must not depend on
        // the time of day.
        let lends = |state: GrainState| state.is_current() && state.system_valid_to.is_none();
        let current = of.is_some() && lends(self.view.state_at(at)?);
        Ok(vacant.insert(CachedTurn { of, current }))
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
        let mut shared = ConversationWindow::of(&view);
        let mut lent = 0;
        for at in (1..=view.last_sequence().unwrap().get()).map(Sequence::new) {
            let lenders = shared.contributors(at).unwrap();
            lent += lenders.len();
            assert_eq!(lenders, ConversationWindow::of(&view).contributors(at).unwrap());
            assert_eq!(
                shared.dependents(at).unwrap(),
                ConversationWindow::of(&view).dependents(at).unwrap()
            );
        }
        // Bob's eleven have two on either side, fewer at the ends. Of Ann's three, each has the two others;
        // of her eleven former versions the first has the next two, the others have all three.
        assert_eq!(lent, (2 + 3 + 7 * 4 + 3 + 2) + 3 * 2 + (2 + 10 * 3));
    }
}
