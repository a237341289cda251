//! Compares every lookup with a naive model, over random grains in random states of folding.

use grainstore_format::{EpochMs, GrainType};
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::test_kit::{Note, NoteObject, Store, tie};
use crate::{
    Field, IndexLookup, MergeGoal, Posting, Scope, ScopeNamespaces, Sequence, TermValue, TimeOrder,
    TimeRange,
};

/// An operation on the index after a grain.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Nothing,
    /// Freeze what is active, if nothing is frozen.
    Freeze,
    /// Fold the frozen part; readers keep their snapshot.
    FoldFrozen,
    /// Give readers the tables as they are; the frozen part stays.
    Reopen,
    /// Fold the frozen part; readers get the new tables, and it is dropped.
    Thaw,
    /// Fold everything.
    Fold,
    /// Delete the derived tables and replay the log.
    Rebuild,
    /// Merge the runs that are due, a block in each transaction.
    MergeFew,
    /// Merge all runs into one.
    MergeAll,
}

/// Words with common prefixes, and one that is keyed by its digest.
fn words() -> Vec<String> {
    ["", "a", "ab", "b"].map(str::to_owned).into_iter().chain(["c".repeat(300)]).collect()
}

fn objects() -> Vec<NoteObject> {
    let texts = words().into_iter().map(NoteObject::Text);
    texts.chain([[1; 32], [2; 32]].map(NoteObject::Map)).collect()
}

fn namespaces() -> Vec<String> {
    let long = format!("a:{}", "x".repeat(300));
    let names = ["shared", "a", "a:b", "a:b:c", "ab", "a;", "b"].map(str::to_owned);
    names.into_iter().chain([format!("{long}:y"), long]).collect()
}

fn times() -> Vec<i64> {
    vec![i64::MIN, -(1 << 47), -1, 0, 1, 2, 1_768_471_200_000, (1 << 47) - 2, 1 << 50, i64::MAX]
}

fn note() -> impl Strategy<Value = Note> {
    let word = || proptest::option::of(select(words()));
    let object = proptest::option::of(select(objects()));
    let types = select(vec![GrainType::Belief, GrainType::Event, GrainType::Consent]);
    let tags = subsequence(words(), 0..=3);
    let triple = (word(), word(), object);
    (select(namespaces()), types, triple, word(), tags, select(times())).prop_map(
        |(namespace, grain_type, (subject, relation, object), session, tags, time)| Note {
            namespace,
            grain_type,
            subject,
            relation,
            object,
            session,
            tags,
            time,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Nothing),
        3 => Just(Step::Freeze),
        1 => Just(Step::FoldFrozen),
        1 => Just(Step::Reopen),
        2 => Just(Step::Thaw),
        1 => Just(Step::Fold),
        1 => Just(Step::Rebuild),
        1 => Just(Step::MergeFew),
        1 => Just(Step::MergeAll),
    ]
}

/// Sequences with gaps, as in the log of a store.
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
            Step::Freeze => store.freeze(),
            Step::FoldFrozen => store.fold_frozen().unwrap(),
            Step::Reopen => store.reopen(),
            Step::Thaw => {
                store.fold_frozen().unwrap();
                store.reopen();
                store.tail.drop_frozen();
            }
            Step::Fold => store.fold().unwrap(),
            Step::MergeFew => store.merge(MergeGoal::SizeTiered, 1),
            Step::MergeAll => store.merge(MergeGoal::WhenIdle, 1 << 20),
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
        Scope::Exact(TermValue::Plain(name)) => namespace == name_or_shared(name),
        Scope::Exact(TermValue::Token(_)) => false,
        Scope::Subtree(root) => {
            let root = name_or_shared(root);
            namespace == root || namespace.starts_with(&format!("{root}:"))
        }
    }
}

fn has_shape(shape: &IndexLookup<'_>, note: &Note) -> bool {
    let is = |field: &Option<String>, word: &Option<TermValue<'_>>| {
        word.is_none_or(|word| field.as_deref().is_some_and(|text| TermValue::Plain(text) == word))
    };
    match shape {
        IndexLookup::All => true,
        IndexLookup::Type(grain_type) => note.grain_type == *grain_type,
        IndexLookup::Triple { subject, relation, object } => {
            let bound = note.object.as_ref().map(NoteObject::object);
            is(&note.subject, subject)
                && is(&note.relation, relation)
                && (object.is_none() || *object == bound)
        }
        IndexLookup::Value(Field::Session, word) => is(&note.session, &Some(*word)),
        IndexLookup::Value(Field::Tag, word) => {
            note.tags.iter().any(|tag| TermValue::Plain(tag) == *word)
        }
        IndexLookup::Value(..) => false,
    }
}

/// The expected postings of a lookup, newest first.
fn expected(
    log: &[(Note, Step)],
    scope: &Scope<'_>,
    shape: &IndexLookup<'_>,
    times: TimeRange,
) -> Vec<Posting> {
    let empty = times.from.zip(times.to).is_some_and(|(from, to)| from > to);
    let mut postings: Vec<Posting> = log
        .iter()
        .enumerate()
        .filter(|(_, (note, _))| in_scope(scope, &note.namespace) && has_shape(shape, note))
        .map(|(index, (note, _))| Posting {
            time: EpochMs::new(note.time),
            tie: tie(sequence_of(index)),
            sequence: Sequence::new(sequence_of(index)),
        })
        .filter(|posting| !empty && times.from.is_none_or(|at| posting.time >= at))
        .filter(|posting| times.to.is_none_or(|at| posting.time <= at))
        .collect();
    postings.sort_unstable();
    postings.reverse();
    postings
}

fn triple<'a>(
    subject: Option<&'a String>,
    relation: Option<&'a String>,
    object: Option<&'a NoteObject>,
) -> IndexLookup<'a> {
    IndexLookup::Triple {
        subject: subject.map(|text| TermValue::Plain(text)),
        relation: relation.map(|text| TermValue::Plain(text)),
        object: object.map(NoteObject::object),
    }
}

/// Every kind of lookup; all eight of triples with every word.
fn shapes<'a>(words: &'a [String], objects: &'a [NoteObject]) -> Vec<IndexLookup<'a>> {
    let mut shapes = vec![
        IndexLookup::All,
        IndexLookup::Type(GrainType::Event),
        IndexLookup::Type(GrainType::Goal),
    ];
    for word in words {
        let word = TermValue::Plain(word);
        shapes
            .extend([Field::Session, Field::Tag, Field::Run].map(|f| IndexLookup::Value(f, word)));
    }
    let or_free = |words: &'a [String]| words.iter().map(Some).chain([None]);
    for (at, subject) in or_free(words).enumerate() {
        for relation in or_free(words) {
            shapes.push(triple(subject, relation, None));
            shapes.push(triple(subject, relation, objects.get(at)));
        }
        shapes.extend(objects.iter().map(|object| triple(subject, None, Some(object))));
        shapes.extend(objects.iter().map(|object| triple(None, subject, Some(object))));
    }
    shapes.push(IndexLookup::subject(TermValue::Plain("nobody")));
    shapes.push(IndexLookup::subject(TermValue::Token([7; 32])));
    shapes
}

fn scopes(namespaces: &[String]) -> Vec<Scope<'_>> {
    let mut scopes = vec![Scope::All];
    for name in namespaces.iter().map(String::as_str).chain(["", "nowhere"]) {
        scopes.extend([Scope::Exact(TermValue::Plain(name)), Scope::Subtree(name)]);
    }
    scopes
}

/// Compares one lookup in both orders, a seek in it, and its estimates, with the model.
fn check(
    store: &Store,
    log: &[(Note, Step)],
    (scope, shape, times): (&Scope<'_>, &IndexLookup<'_>, TimeRange),
    place: Posting,
) -> Result<(), TestCaseError> {
    let reader = store.reader();
    let mut wanted = expected(log, scope, shape, times);
    for cap in [0, 1, 2, 1_000] {
        let counted = reader.count_up_to(scope, shape, times, cap).unwrap();
        prop_assert_eq!(counted, wanted.len().min(cap), "{:?} {:?} {:?}", scope, shape, times);
    }
    for order in [TimeOrder::Newest, TimeOrder::Oldest] {
        let scan = reader.scan(scope, shape, times, order).unwrap();
        let found: Vec<Posting> = scan.map(Result::unwrap).collect();
        prop_assert_eq!(&found, &wanted, "{:?} {:?} {:?} {:?}", scope, shape, times, order);
        let mut scan = reader.scan(scope, shape, times, order).unwrap();
        scan.seek(place).unwrap();
        let found: Vec<Posting> = scan.map(Result::unwrap).collect();
        let is_before = |posting: &&Posting| match order {
            TimeOrder::Newest => **posting > place,
            TimeOrder::Oldest => **posting < place,
        };
        let behind: Vec<Posting> = wanted.iter().skip_while(is_before).copied().collect();
        prop_assert_eq!(found, behind, "{:?} {:?} from {:?} {:?}", scope, shape, place, order);
        wanted.reverse();
    }
    Ok(())
}

/// Compares the intersection of unions with the model.
fn check_found(
    store: &Store,
    log: &[(Note, Step)],
    scope: &Scope<'_>,
    lists: &[&[IndexLookup<'_>]],
) -> Result<(), TestCaseError> {
    let all = TimeRange::default();
    let mut wanted = expected(log, scope, &IndexLookup::All, all);
    wanted.retain(|posting| {
        let index = usize::try_from(posting.sequence.get() / 3).unwrap();
        let has = |shape: &IndexLookup<'_>| has_shape(shape, &log[index].0);
        lists.iter().all(|shapes| shapes.iter().any(has))
    });
    for order in [TimeOrder::Newest, TimeOrder::Oldest] {
        let found = store
            .reader()
            .intersect_unions(&ScopeNamespaces::of(*scope), lists, all, order)
            .unwrap();
        let found: Vec<Posting> = found.map(Result::unwrap).collect();
        prop_assert_eq!(&found, &wanted, "{:?} {:?} {:?}", scope, lists, order);
        wanted.reverse();
    }
    Ok(())
}

/// Logs that are tried: `GRAINSTORE_SWEEP=full` for more.
fn cases() -> u32 {
    if option_env!("GRAINSTORE_SWEEP") == Some("full") { 200 } else { 20 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn every_lookup_answers_as_the_model_does(
        log in proptest::collection::vec((note(), step()), 0..40),
        picks in proptest::collection::vec((any::<Index>(), any::<Index>()), 8),
    ) {
        let store = store_of(&log);
        let (words, objects, namespaces) = (words(), objects(), namespaces());
        let ends: Vec<Option<EpochMs>> =
            times().into_iter().map(|ms| Some(EpochMs::new(ms))).chain([None]).collect();
        let mut ranges = picks
            .iter()
            .map(|(from, to)| TimeRange { from: *from.get(&ends), to: *to.get(&ends) })
            .cycle();
        let mut places = picks
            .iter()
            .map(|(time, at)| Posting {
                time: EpochMs::new(*time.get(&times())),
                tie: tie(at.index(130) as u64),
                sequence: Sequence::new(at.index(130) as u64),
            })
            .cycle();
        for scope in scopes(&namespaces) {
            for shape in shapes(&words, &objects) {
                let place = places.next().unwrap();
                check(&store, &log, (&scope, &shape, TimeRange::default()), place)?;
                check(&store, &log, (&scope, &shape, ranges.next().unwrap_or_default()), place)?;
            }
        }
    }

    #[test]
    fn lists_in_common_are_as_the_model_has_them(
        log in proptest::collection::vec((note(), step()), 0..60),
        picks in proptest::collection::vec(any::<[Index; 5]>(), 40),
    ) {
        let store = store_of(&log);
        let (words, objects, namespaces) = (words(), objects(), namespaces());
        let (shapes, scopes) = (shapes(&words, &objects), scopes(&namespaces));
        for pick in picks {
            let [a, b, c, d] = [0, 1, 2, 3].map(|at: usize| *pick[at].get(&shapes));
            let scope = pick[4].get(&scopes);
            check_found(&store, &log, scope, &[&[a]])?;
            check_found(&store, &log, scope, &[&[a], &[b, c]])?;
            check_found(&store, &log, scope, &[&[a, b], &[IndexLookup::All], &[c, d]])?;
            check_found(&store, &log, scope, &[&[IndexLookup::All], &[]])?;
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
        rebuilt.merge(MergeGoal::WhenIdle, 64);
        prop_assert_eq!(rebuilt.dump(), rows.clone());
        rebuilt.fold().unwrap();
        prop_assert_eq!(rebuilt.dump(), rows);
    }
}
