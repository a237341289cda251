//! Tests of cancellation: work ends at the first poll that says so, and little work polls rarely.

use super::super::Hit;
use super::super::clause::{Occur, TermMatch};
use super::super::query::FullTextQuery;
use super::super::test_kit::*;
use crate::error::Error;
use crate::posting::Sequence;

/// Runs a query that is cancelled at the poll after `after` others. Also returns the number of polls made.
fn given_up(
    store: &Store,
    question: &FullTextQuery,
    after: usize,
) -> (Result<Vec<Hit>, Error>, usize) {
    let looks = std::cell::Cell::new(0);
    let stop = || {
        looks.set(looks.get() + 1);
        looks.get() > after
    };
    let mut judge = |sequence: Sequence| Ok(Some(address(sequence.get())));
    let asked = store.texts.prepare_cancellable(std::slice::from_ref(question), None, None, stop);
    let hits = asked.and_then(|asked| asked.search(10, None, &mut judge));
    (hits, looks.get())
}

#[test]
fn work_of_any_kind_ends_soon_after_nobody_waits_for_it() {
    let mut store = Store::new();
    let many: Vec<String> = (0..400).map(|at| format!("w{at:03}x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let repeated = [vec!["x"; 2_000], vec!["y"]].concat();
    for sequence in 0..1_200 {
        store.set(sequence, words(&["tea", many[usize::try_from(sequence % 400).unwrap()]], 1));
    }
    store.fold(Vec::new());
    let repeated = words(&repeated, 1);
    (1_200..1_240).for_each(|sequence| store.set(sequence, repeated.clone()));
    store.set(1_240, words(&many, 1));
    let phrase = |terms: &[&str]| {
        let terms = (0..).zip(terms).map(|(at, term)| ((*term).into(), at));
        TermMatch::Phrase(terms.collect())
    };
    let asks = [
        word("tea"),
        phrase(&["x", "x", "x"]),
        phrase(&["x", "y", "x"]),
        TermMatch::Prefix("w".into()),
        TermMatch::Fuzzy("w123y".into(), 2),
    ];
    for ask in asks {
        let question: FullTextQuery = std::iter::once(clause(Occur::Should, ask.clone())).collect();
        let (hits, looks) = given_up(&store, &question, usize::MAX);
        assert!(hits.is_ok() && looks > 1, "{ask:?}: {looks}");
        for after in 0..looks {
            let (hits, looks) = given_up(&store, &question, after);
            assert_eq!(hits.unwrap_err().code(), "ERR_TIMEOUT", "{ask:?}");
            assert_eq!(looks, after + 1, "{ask:?}");
        }
    }
}

#[test]
fn a_phrase_is_looked_for_around_its_rarest_word() {
    let looks_for = |words_of: &[&str], asked: &[&str]| {
        let (mut store, text) = (Store::new(), words(words_of, 1));
        (0..20).for_each(|sequence| store.set(sequence, text.clone()));
        let terms = (0..).zip(asked).map(|(at, term)| (Box::from(*term), at));
        let ask = TermMatch::Phrase(terms.collect());
        let question: FullTextQuery = std::iter::once(clause(Occur::Should, ask)).collect();
        store.check(&question);
        let (hits, looks) = given_up(&store, &question, usize::MAX);
        (hits.unwrap().len(), looks)
    };
    let text = [vec!["x"; 3_000], vec!["z", "y"]].concat();
    let asked = [vec!["x"; 40], vec!["y"]].concat();
    let (hits, looks) = looks_for(&text, &asked);
    assert_eq!(hits, 0);
    // Each text has 3,000 positions to read, and one to check the neighbours of.
    assert!(looks <= 20 * 3_200 / 512 + 20, "{looks}");
}
