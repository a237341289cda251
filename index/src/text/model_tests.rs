//! Compares the full text with a model that reads every live document: the same hits, bit for bit, after any
//! sequence of changes, folds, saves and reopenings.

use proptest::prelude::*;

use super::MAX_STRICT_EXPANSIONS;
use super::clause::{Occur, TermMatch};
use super::document::{Document, DocumentTerm};
use super::indexed_document::IndexedDocument;
use super::query::FullTextQuery;
use super::test_kit::{Change, Store, address, bits, clause, word, words};

const TERMS: [&str; 12] =
    ["a", "ab", "abc", "abcd", "abdc", "b", "ba", "bac", "café", "cafe", "x", "xylophone"];

fn document() -> impl Strategy<Value = IndexedDocument> {
    let word = (0..TERMS.len(), 0..400_u32, 0..3_u32, prop::collection::vec(0..6_u32, 0..3));
    let word = word.prop_map(|(term, weight, lent, mut places)| {
        places.sort_unstable();
        places.dedup();
        // Most weights are small; some exceed the cap.
        let weight = if weight < 380 { weight % 9 } else { weight };
        DocumentTerm { term: TERMS[term].into(), weight, lent, places: places.into() }
    });
    prop::collection::vec(word, 0..7).prop_map(|words| {
        let document: Document = words.into_iter().collect();
        IndexedDocument::join(&document, &[])
    })
}

fn term() -> impl Strategy<Value = Box<str>> {
    prop::sample::select([TERMS.as_slice(), &["zebra", "abx", "cafés"]].concat())
        .prop_map(Box::from)
}

fn ask() -> impl Strategy<Value = TermMatch> {
    prop_oneof![
        4 => term().prop_map(|term| TermMatch::Word(vec![term])),
        1 => prop::collection::vec(term(), 0..4).prop_map(TermMatch::Word),
        2 => prop::collection::vec((term(), 0..4_u32), 0..4).prop_map(TermMatch::Phrase),
        2 => (term(), prop::collection::vec(prop::collection::vec((term(), 0..4_u32), 0..4), 0..3))
            .prop_map(|(term, phrases)| TermMatch::Identifier(term, phrases)),
        1 => prop::sample::select(vec!["", "a", "ab", "caf", "z"]).prop_map(|p| TermMatch::Prefix(p.into())),
        1 => (prop::sample::select(vec!["ab", "z"]), prop::collection::vec(term(), 0..3))
            .prop_map(|(prefix, terms)| TermMatch::Begin(prefix.into(), terms)),
        1 => (term(), 0..4_u8).prop_map(|(term, edits)| TermMatch::Fuzzy(term, edits)),
    ]
}

fn question() -> impl Strategy<Value = FullTextQuery> {
    let occur = prop::sample::select(vec![
        Occur::Should,
        Occur::Should,
        Occur::Boost,
        Occur::Must,
        Occur::MustNot,
    ]);
    let general = prop::collection::vec((occur, ask()), 0..5)
        .prop_map(|asks| asks.into_iter().map(|(occur, ask)| clause(occur, ask)).collect());
    let plain = prop::collection::vec((any::<bool>(), term()), 1..4).prop_map(|terms| {
        let occur = |must| if must { Occur::Must } else { Occur::Should };
        terms
            .into_iter()
            .map(|(must, term)| clause(occur(must), TermMatch::Word(vec![term])))
            .collect()
    });
    prop_oneof![general, plain]
}

#[derive(Debug, Clone)]
enum Step {
    Change(Change),
    Fold(Vec<Change>),
    Reopen,
}

fn change() -> impl Strategy<Value = Change> {
    (0..40_u64, prop::option::weighted(0.8, document()), any::<bool>()).prop_map(
        |(sequence, joined, erase)| Change { sequence, erase: joined.is_none() && erase, joined },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => change().prop_map(Step::Change),
        2 => prop::collection::vec(change(), 0..4).prop_map(Step::Fold),
        1 => Just(Step::Reopen),
    ]
}

/// More and larger stores: `GRAINSTORE_SWEEP=full`.
fn is_full() -> bool {
    option_env!("GRAINSTORE_SWEEP") == Some("full")
}

/// Stores that are tried.
fn cases() -> u32 {
    if is_full() { 400 } else { 40 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..Default::default() })]

    #[test]
    fn answers_are_those_of_reading_everything(
        steps in prop::collection::vec(step(), 1..80),
        questions in prop::collection::vec(question(), 4),
    ) {
        let mut store = Store::new();
        for (at, step) in steps.into_iter().enumerate() {
            let look = !matches!(step, Step::Change(_)) || at % 9 == 0;
            match step {
                Step::Change(change) => store.apply(change),
                Step::Fold(meanwhile) => store.fold(meanwhile),
                Step::Reopen => store.reopen(),
            }
            prop_assert_eq!(store.texts.stats().documents, store.live.len() as u64);
            if look {
                questions.iter().for_each(|question| store.check(question));
            }
        }
        for question in &questions {
            store.check(question);
            store.check_pages(question, 3);
        }
    }
}

/// Words with a Zipf distribution: the frequency of the n-th is about 1 / n.
struct Spread(u64);

impl Spread {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn word(&mut self) -> String {
        #[expect(clippy::cast_precision_loss, reason = "a number below 2^31")]
        let random = self.next() as f64 / f64::from(1_u32 << 31);
        let rank = 2_000_f64.powf(random);
        format!("w{rank:.0}")
    }

    fn document(&mut self, most: u64) -> IndexedDocument {
        let count = 3 + self.next() % most;
        let all: Vec<String> = (0..count).map(|_| self.word()).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let weight = 1 + u32::try_from(self.next() % 3).unwrap();
        words(&all, weight)
    }
}

/// This part of 4,100 documents, in several segments of different average lengths, with some deleted.
fn large(part: u64) -> Store {
    let (mut store, mut spread) = (Store::new(), Spread(3));
    let mut first = 0;
    for (count, length) in [(2_600, 12), (1_000, 40), (400, 9), (100, 20)] {
        let end = first + count / part;
        for sequence in first..end {
            store.set(sequence, spread.document(length));
        }
        if count > 100 {
            store.fold(Vec::new());
        }
        first = end;
    }
    for sequence in (0..4_000 / part).step_by(11) {
        if sequence % 2 == 0 {
            store.remove(sequence, false);
        } else {
            store.set(sequence, spread.document(15));
        }
    }
    store
}

#[test]
fn thousands_of_documents_in_segments_of_all_sizes_are_answered_exactly() {
    let mut store = large(if is_full() { 1 } else { 2 });
    assert!(store.texts.stats().segments >= 3, "{:?}", store.texts.stats());
    let should = |terms: &[&str]| any_of(terms, Occur::Should);
    let must = |terms: &[&str]| any_of(terms, Occur::Must);
    let mut mixed: Vec<_> = must(&["w3"]).clauses().to_vec();
    mixed.extend(should(&["w1", "w40"]).clauses().iter().cloned());
    let mut barred = mixed.clone();
    barred.push(clause(Occur::MustNot, word("w2")));
    let phrase = TermMatch::Phrase(vec![("w1".into(), 0), ("w2".into(), 1)]);
    let questions = [
        should(&["w1"]),
        should(&["w700"]),
        should(&["w1", "w2"]),
        should(&["w1", "w900"]),
        should(&["w300", "w1500", "w12"]),
        should(&["w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w1"]),
        must(&["w1", "w2"]),
        must(&["w1", "w2", "w5"]),
        must(&["w20"]),
        mixed.into_iter().collect(),
        barred.into_iter().collect(),
        std::iter::once(clause(Occur::Should, phrase)).collect(),
        std::iter::once(clause(Occur::Should, TermMatch::Prefix("w1".into()))).collect(),
        std::iter::once(clause(Occur::Should, TermMatch::Fuzzy("w10".into(), 1))).collect(),
    ];
    for question in &questions {
        store.check(question);
    }
    for question in questions.iter().step_by(5) {
        store.check_pages(question, 700);
    }
    store.fold(Vec::new());
    store.reopen();
    questions.iter().for_each(|question| store.check(question));
}

fn any_of(terms: &[&str], occur: Occur) -> FullTextQuery {
    terms.iter().map(|term| clause(occur, word(term))).collect()
}

#[test]
fn most_documents_that_have_a_common_word_are_not_looked_at() {
    let store = large(1);
    let question = any_of(&["w1", "w2"], Occur::Should);
    let mut judge = |sequence: crate::posting::Sequence| Ok(Some(address(sequence.get())));
    let (hits, scored) =
        store.texts.prepare(&question).unwrap().search_counted(10, None, &mut judge).unwrap();
    let all = store.truth(&question);
    assert_eq!(bits(&hits), bits(&all[..10]));
    assert!(scored * 5 < all.len() as u64, "{scored} of {}", all.len());
}

/// Many documents, each with a distinct word; all words share a prefix.
fn of_many_forms(forms: u64) -> Store {
    let mut store = Store::new();
    for sequence in 0..forms {
        let own = format!("form{sequence}");
        store.set(sequence, words(&["tea", &own], 1));
    }
    (forms..forms + 20).for_each(|sequence| store.set(sequence, words(&["tea"], 1)));
    store
}

#[test]
fn what_must_be_there_or_must_not_counts_in_every_form_there_is() {
    let mut store = of_many_forms(400);
    for folded in [false, true] {
        if folded {
            store.fold(Vec::new());
        }
        for ask in [TermMatch::Prefix("form".into()), TermMatch::Fuzzy("form199".into(), 2)] {
            for occur in [Occur::Should, Occur::Must, Occur::MustNot] {
                let tea = clause(Occur::Should, word("tea"));
                let both: FullTextQuery = [tea, clause(occur, ask.clone())].into_iter().collect();
                store.check(&both);
                store.check(&std::iter::once(clause(occur, ask.clone())).collect());
            }
        }
        let forms = |occur| -> FullTextQuery {
            let tea = clause(Occur::Should, word("tea"));
            [tea, clause(occur, TermMatch::Prefix("form".into()))].into_iter().collect()
        };
        let count = |occur| store.ask(&forms(occur), usize::MAX, None, |_| true).len();
        assert_eq!((count(Occur::Must), count(Occur::MustNot)), (400, 20));
    }
}

#[test]
fn a_condition_of_too_many_forms_is_refused_and_not_cut() {
    let store = of_many_forms(MAX_STRICT_EXPANSIONS as u64 + 1);
    let ask = |occur, prefix: &str| {
        let question = std::iter::once(clause(occur, TermMatch::Prefix(prefix.into()))).collect();
        store.texts.prepare(&question).map(drop).map_err(|error| error.code())
    };
    for occur in [Occur::Must, Occur::MustNot] {
        assert_eq!(ask(occur, "form"), Err("ERR_LIMIT"));
        assert_eq!(ask(occur, "form1"), Ok(()));
    }
    assert_eq!(ask(Occur::Should, "form"), Ok(()));
}
