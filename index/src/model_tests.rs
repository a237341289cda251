//! Every lookup against a naive model, over random grains in random states of folding.

use grainstore_format::{EpochMs, GrainType};
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::test_kit::{Note, Store};
use crate::{Order, Posting, Scope, Sequence, Shape, TimeRange, Word};

/// What happens to the index after a grain.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Nothing,
    Fold,
    /// Fold, but go on reading and pushing with the tail that was folded.
    FoldAndKeep,
    /// Throw the derived tables away and replay the log.
    Rebuild,
}

/// Words that share starts, and one that is keyed by its digest.
fn words() -> Vec<String> {
    ["", "a", "ab", "b"].map(str::to_owned).into_iter().chain(["c".repeat(300)]).collect()
}

fn namespaces() -> Vec<String> {
    let long = format!("a:{}", "x".repeat(300));
    let names = ["shared", "a", "a:b", "a:b:c", "ab", "a;", "b"].map(str::to_owned);
    names.into_iter().chain([format!("{long}:y"), long]).collect()
}

fn times() -> Vec<i64> {
    vec![i64::MIN, -1, 0, 1, 2, 1_768_471_200_000, i64::MAX]
}

fn note() -> impl Strategy<Value = Note> {
    let word = || proptest::option::of(select(words()));
    let types = select(vec![GrainType::Belief, GrainType::Event, GrainType::Consent]);
    let tags = subsequence(words(), 0..=3);
    (select(namespaces()), types, word(), word(), word(), tags, select(times())).prop_map(
        |(namespace, grain_type, subject, relation, session, tags, time)| Note {
            namespace,
            grain_type,
            subject,
            relation,
            session,
            tags,
            time,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Nothing),
        2 => Just(Step::Fold),
        1 => Just(Step::FoldAndKeep),
        1 => Just(Step::Rebuild),
    ]
}

/// Sequences have gaps: the log of a store does.
fn sequence_of(index: usize) -> u64 {
    index as u64 * 3 + 1
}

/// A store after these grains and steps.
fn store_of(log: &[(Note, Step)]) -> Store {
    let mut store = Store::new();
    for (index, (note, step)) in log.iter().enumerate() {
        store.push(sequence_of(index), &note.facts()).unwrap();
        match step {
            Step::Nothing => {}
            Step::Fold => store.fold().unwrap(),
            Step::FoldAndKeep => store.fold_and_keep().unwrap(),
            Step::Rebuild => store = rebuilt(store, &log[..=index]),
        }
    }
    store
}

fn rebuilt(store: Store, log: &[(Note, Step)]) -> Store {
    let mut store = Store::over(store.db);
    for (index, (note, _)) in log.iter().enumerate() {
        store.push(sequence_of(index), &note.facts()).unwrap();
        if index % 3 == 0 {
            store.fold().unwrap();
        }
    }
    store
}

fn in_scope(scope: &Scope<'_>, namespace: &str) -> bool {
    let name_or_shared = |name: &str| if name.is_empty() { "shared" } else { name }.to_owned();
    match scope {
        Scope::All => true,
        Scope::Exact(Word::Plain(name)) => namespace == name_or_shared(name),
        Scope::Exact(Word::Token(_)) => false,
        Scope::Subtree(root) => {
            let root = name_or_shared(root);
            namespace == root || namespace.starts_with(&format!("{root}:"))
        }
    }
}

fn has_shape(shape: &Shape<'_>, note: &Note) -> bool {
    let is = |field: &Option<String>, word: &Word<'_>| {
        field.as_deref().is_some_and(|text| Word::Plain(text) == *word)
    };
    match shape {
        Shape::All => true,
        Shape::Type(grain_type) => note.grain_type == *grain_type,
        Shape::Subject(subject) => is(&note.subject, subject),
        Shape::SubjectRelation(subject, relation) => {
            is(&note.subject, subject) && is(&note.relation, relation)
        }
        Shape::Session(session) => is(&note.session, session),
        Shape::Tag(tag) => note.tags.iter().any(|text| Word::Plain(text) == *tag),
    }
}

/// What a lookup must give, newest first.
fn expected(
    log: &[(Note, Step)],
    scope: &Scope<'_>,
    shape: &Shape<'_>,
    times: TimeRange,
) -> Vec<Posting> {
    let mut postings: Vec<Posting> = log
        .iter()
        .enumerate()
        .filter(|(_, (note, _))| in_scope(scope, &note.namespace) && has_shape(shape, note))
        .map(|(index, (note, _))| Posting {
            time: EpochMs::new(note.time),
            sequence: Sequence::new(sequence_of(index)),
        })
        .filter(|posting| times.from.is_none_or(|from| posting.time >= from))
        .filter(|posting| times.to.is_none_or(|to| posting.time <= to))
        .collect();
    postings.sort_unstable();
    postings.reverse();
    postings
}

fn shapes(words: &[String]) -> Vec<Shape<'_>> {
    let mut shapes = vec![Shape::All, Shape::Type(GrainType::Event), Shape::Type(GrainType::Goal)];
    for word in words {
        let word = Word::Plain(word);
        shapes.extend([Shape::Subject(word), Shape::Session(word), Shape::Tag(word)]);
        shapes.extend(words.iter().map(|other| Shape::SubjectRelation(word, Word::Plain(other))));
    }
    shapes.push(Shape::Subject(Word::Plain("nobody")));
    shapes.push(Shape::Subject(Word::Token([7; 32])));
    shapes
}

fn scopes(namespaces: &[String]) -> Vec<Scope<'_>> {
    let mut scopes = vec![Scope::All];
    for name in namespaces.iter().map(String::as_str).chain(["", "nowhere"]) {
        scopes.extend([Scope::Exact(Word::Plain(name)), Scope::Subtree(name)]);
    }
    scopes
}

/// Compares one lookup in both orders, and its estimate, with the model.
fn check(
    store: &Store,
    log: &[(Note, Step)],
    (scope, shape, times): (&Scope<'_>, &Shape<'_>, TimeRange),
) -> Result<(), TestCaseError> {
    let reader = store.reader();
    let mut wanted = expected(log, scope, shape, times);
    for cap in [0, 1, 2, 1_000] {
        let counted = reader.estimate(scope, shape, times, cap).unwrap();
        prop_assert_eq!(counted, wanted.len().min(cap), "{:?} {:?} {:?}", scope, shape, times);
    }
    for order in [Order::Newest, Order::Oldest] {
        let scan = reader.scan(scope, shape, times, order).unwrap();
        let found: Vec<Posting> = scan.map(Result::unwrap).collect();
        prop_assert_eq!(&found, &wanted, "{:?} {:?} {:?} {:?}", scope, shape, times, order);
        wanted.reverse();
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_lookup_answers_as_the_model_does(
        log in proptest::collection::vec((note(), step()), 0..40),
        picks in proptest::collection::vec((any::<Index>(), any::<Index>()), 8),
    ) {
        let store = store_of(&log);
        let (words, namespaces) = (words(), namespaces());
        let ends: Vec<Option<EpochMs>> =
            times().into_iter().map(|ms| Some(EpochMs::new(ms))).chain([None]).collect();
        let mut ranges = picks
            .iter()
            .map(|(from, to)| TimeRange { from: *from.get(&ends), to: *to.get(&ends) })
            .cycle();
        for scope in scopes(&namespaces) {
            for shape in shapes(&words) {
                check(&store, &log, (&scope, &shape, TimeRange::default()))?;
                check(&store, &log, (&scope, &shape, ranges.next().unwrap_or_default()))?;
            }
        }
    }

    #[test]
    fn tables_do_not_depend_on_when_they_were_folded(
        log in proptest::collection::vec((note(), step()), 1..30),
    ) {
        let mut stepwise = store_of(&log);
        stepwise.fold().unwrap();
        let rows = stepwise.dump();
        let mut rebuilt = rebuilt(stepwise, &log);
        rebuilt.fold().unwrap();
        prop_assert_eq!(rebuilt.dump(), rows.clone());
        rebuilt.fold().unwrap();
        prop_assert_eq!(rebuilt.dump(), rows);
    }
}
