//! Tests of what is joined anew: the same as if all turns were joined from the start.

use std::cell::Cell;

use super::super::document::Word;
use super::*;

/// A session: turns in order, some of which went.
#[derive(Default)]
struct Session {
    turns: Vec<(u64, bool)>,
    reads: Cell<usize>,
}

impl Session {
    fn current(&self, sequence: Sequence) -> bool {
        self.turns.iter().any(|(n, current)| *n == sequence.get() && *current)
    }
}

impl Turns for Session {
    fn around(&self, sequence: Sequence) -> Result<Vec<Sequence>> {
        let at = self.turns.iter().position(|turn| turn.0 == sequence.get()).unwrap();
        let current = |turn: &&(u64, bool)| turn.1;
        let before = self.turns[..at].iter().rev().filter(current).take(2);
        let after = self.turns[at + 1..].iter().filter(current).take(2);
        Ok(before.chain(after).map(|turn| Sequence::new(turn.0)).collect())
    }

    fn document(&self, sequence: Sequence) -> Result<Option<Arc<Document>>> {
        self.reads.set(self.reads.get() + 1);
        let term = format!("word{}", sequence.get()).into();
        let word = Word { term, weight: 6, lent: 1, places: [0].into() };
        let document = Arc::new(Document::from_words(vec![word]));
        Ok(self.current(sequence).then_some(document))
    }
}

fn all(session: &Session) -> BTreeMap<Sequence, Joined> {
    let turns = session.turns.iter().filter(|turn| turn.1).map(|turn| Sequence::new(turn.0));
    let joined = turns.map(|sequence| {
        let own = session.document(sequence).unwrap().unwrap();
        let around = session.around(sequence).unwrap();
        let lent: Vec<_> = around.iter().filter_map(|n| session.document(*n).unwrap()).collect();
        let lent: Vec<&Document> = lent.iter().map(AsRef::as_ref).collect();
        (sequence, Joined::of(&own, &lent))
    });
    joined.collect()
}

#[test]
fn turns_that_come_between_and_go_leave_all_as_if_joined_from_the_start() {
    let mut session = Session::default();
    let mut kept = BTreeMap::new();
    let mut state = 7_u64;
    for number in 0..400 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(state >> 33).unwrap() % (session.turns.len() + 1);
        let mut changed = Vec::new();
        if number % 3 == 2 {
            let at = at.min(session.turns.len() - 1);
            session.turns[at].1 = !session.turns[at].1;
            changed.push(Sequence::new(session.turns[at].0));
        } else {
            session.turns.insert(at, (number, true));
            changed.push(Sequence::new(number));
        }
        for (sequence, joined) in rejoin(&session, changed).unwrap() {
            match joined {
                Some(joined) => kept.insert(sequence, joined),
                None => kept.remove(&sequence),
            };
        }
        assert_eq!(kept, all(&session), "after {number}");
    }
}

#[test]
fn a_batch_reads_and_joins_each_turn_once() {
    let session = Session { turns: (0..100).map(|n| (n, true)).collect(), reads: Cell::new(0) };
    let joined = rejoin(&session, (40..60).map(Sequence::new)).unwrap();
    assert_eq!(joined.len(), 24);
    assert_eq!(session.reads.get(), 28);
}
