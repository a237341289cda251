//! Searches against a naive reading of the rules: every grain is looked at, with the words its
//! neighbours lend it.
//!
//! A failure names its seed; `GRAINSTORE_SEARCH_SEED` runs it again, `GRAINSTORE_SEARCHES` runs more.

use std::collections::BTreeSet;

use grainstore::cal::{Predicate, Query, TypeSet, Visibility};
use grainstore::format::{GrainRef, GrainType};
use grainstore::{ContentAddress, Session, VerificationStatus};
use grainstore_index::text::{
    Document, FullTextQuery, Language, Occur, Phrase, Settings, TermMatch,
};

use crate::search::kit::{addresses, belief, grain, store, turn};
use crate::search::random::Random;

const WORDS: [&str; 14] = [
    "tea",
    "coffee",
    "running",
    "runs",
    "user-id",
    "id",
    "Zürich",
    "2024-05-07",
    "東京都",
    "the",
    "who",
    "norway",
    "green",
    "greenhouse",
];

/// A grain as it stands in the store, with its own words.
struct Known {
    address: ContentAddress,
    grain_type: GrainType,
    subject: Option<String>,
    /// Namespace, session and user of a turn.
    talk: Option<(String, String, Option<String>)>,
    time: i64,
    words: Document,
    current: bool,
}

/// Everything the store has.
fn known(session: &Session) -> Vec<Known> {
    let everything = Query::default().seeing(Visibility::EVERYTHING);
    let settings = Settings::new(Language::English);
    let read = |address: ContentAddress| {
        let stored = session.get(&address).unwrap();
        let grain = GrainRef::new(&stored.blob).unwrap();
        let text = |name: &str| grain.text(name).map(str::to_owned);
        let talk = (grain.grain_type() == GrainType::Event)
            .then(|| Some((grain.partition().to_owned(), text("session_id")?, text("user_id"))));
        Known {
            address,
            grain_type: grain.grain_type(),
            subject: text("subject"),
            talk: talk.flatten(),
            time: grain.time().get(),
            words: Document::of(&grain, &settings),
            current: stored.state.is_current(),
        }
    };
    addresses(session, &everything).into_iter().map(read).collect()
}

/// The grains that lend to one: two current turns before it and two after.
fn lenders<'k>(all: &'k [Known], of: &Known) -> Vec<&'k Known> {
    let Some(talk) = &of.talk else { return Vec::new() };
    let place = |known: &Known| (known.time, std::cmp::Reverse(known.address));
    let mut turns: Vec<&Known> = all.iter().filter(|k| k.talk.as_ref() == Some(talk)).collect();
    turns.sort_by_key(|known| place(known));
    let (before, after): (Vec<_>, Vec<_>) =
        turns.into_iter().filter(|k| k.address != of.address).partition(|k| place(k) < place(of));
    let before = before.into_iter().rev().filter(|known| known.current).take(2);
    before.chain(after.into_iter().filter(|known| known.current).take(2)).collect()
}

/// Whether a grain answers a question, by its own words or by what is lent to it.
fn answers(all: &[Known], known: &Known, question: &FullTextQuery) -> bool {
    let lent: Vec<&Document> =
        lenders(all, known).into_iter().map(|lender| &lender.words).collect();
    let has_term = |wanted: &dyn Fn(&str) -> bool| {
        known.words.terms().iter().any(|word| wanted(&word.term))
            || lent.iter().any(|l| l.terms().iter().any(|w| w.lent > 0 && wanted(&w.term)))
    };
    let has = |ask: &TermMatch, whole: bool| match ask {
        TermMatch::Word(terms) if whole => terms.iter().all(|term| has_term(&|own| *own == **term)),
        TermMatch::Word(terms) => terms.iter().any(|term| has_term(&|own| *own == **term)),
        TermMatch::Phrase(_) => known.words.has(ask),
        TermMatch::Identifier(term, phrases) => {
            let phrase = |terms: &Phrase| known.words.has(&TermMatch::Phrase(terms.clone()));
            has_term(&|own| *own == **term) || phrases.iter().any(phrase)
        }
        TermMatch::Prefix(prefix) => has_term(&|own| own.starts_with(&**prefix)),
        TermMatch::Begin(prefix, others) => has_term(&|own| {
            own.starts_with(&**prefix) || others.iter().any(|other| **other == *own)
        }),
        TermMatch::Fuzzy(term, edits) => {
            has_term(&|own| strsim::osa_distance(term, own) <= usize::from(*edits))
        }
    };
    let mut of = question.clauses().iter();
    let bad = of.any(|clause| match clause.occur {
        Occur::Must => !has(&clause.ask, true),
        Occur::MustNot => has(&clause.ask, true),
        Occur::Should | Occur::Boost => false,
    });
    let clauses = question.clauses().iter();
    let found = clauses.filter(|clause| matches!(clause.occur, Occur::Should | Occur::Must));
    !bad && found.into_iter().any(|clause| has(&clause.ask, clause.occur == Occur::Must))
}

fn question(random: &mut Random) -> String {
    let word = |random: &mut Random| random.pick(&WORDS);
    let parts = (0..1 + random.below(3)).map(|_| match random.below(9) {
        0 => format!("\"{} {}\"", word(random), word(random)),
        1 => format!("{}*", random.pick(&["gre", "t", "run", "2024", "東"])),
        2 => format!("{}~", random.pick(&["coffe", "norwya", "grean", "tee"])),
        3 => format!("+{}", word(random)),
        4 => format!("-{}", word(random)),
        _ => word(random).to_owned(),
    });
    parts.collect::<Vec<_>>().join(" ")
}

fn text(random: &mut Random) -> String {
    let words = (0..1 + random.below(6)).map(|_| random.pick(&WORDS));
    words.collect::<Vec<_>>().join(" ")
}

/// Writes, supersedes and marks something.
fn change(session: &Session, random: &mut Random, at: i64) {
    let said = text(random);
    let new = match random.below(4) {
        0 => belief(random.pick(&["alice", "bob", "tea"]), &said),
        1 => grain(&format!(
            r#"{{"type": "goal", "description": "{said}", "goal_state": "active", "created_at": {at}}}"#
        )),
        _ => {
            let second = at + i64::try_from(random.below(6)).unwrap();
            turn(random.pick(&["s", "t"]), random.pick(&["ann", "bob"]), second, &said)
        }
    };
    let address = session.put(new).unwrap().address();
    let all = addresses(session, &Query::default());
    let other = all[random.below(all.len())];
    match random.below(10) {
        0 => drop(session.contradict(&other, "not so", None)),
        1 => {
            let status =
                random.pick(&[VerificationStatus::Retracted, VerificationStatus::Verified]);
            drop(session.set_verification(&other, status, "reviewed", None));
        }
        2 => {
            let old = session.get(&address).unwrap().grain().unwrap();
            let mut fields = old.into_fields();
            fields.insert("created_at".to_owned(), (2_000_000_000_000 + at).into());
            let new = grainstore::Grain::from_fields(fields).unwrap();
            drop(session.supersede(&address, new, None));
        }
        3 if random.percent(20) => drop(session.store().reindex()),
        4 => session.store().flush().unwrap(),
        _ => {}
    }
}

/// Compares what searches answer with what looking at every grain gives. Gives how many answers
/// there were.
fn compare(session: &Session, random: &mut Random, seed: u64) -> usize {
    let all = known(session);
    let mut rows = 0;
    for _ in 0..6 {
        let text = question(random);
        let question = FullTextQuery::parse(&text, Language::English).unwrap();
        let mut query = Query::default().searching(text.as_str());
        let mut wanted: Vec<&Known> = all.iter().filter(|known| known.current).collect();
        if random.percent(30) {
            query = query.seeing(Visibility::EVERYTHING);
            wanted = all.iter().collect();
        }
        if random.percent(30) {
            query = query.of_types(TypeSet::of(GrainType::Event));
            wanted.retain(|known| known.grain_type == GrainType::Event);
        }
        if random.percent(20) {
            query = query.when(Predicate::text_is("subject", "tea").unwrap());
            wanted.retain(|known| known.subject.as_deref() == Some("tea"));
        }
        let wanted = wanted.into_iter().filter(|known| answers(&all, known, &question));
        let wanted: BTreeSet<ContentAddress> = wanted.map(|known| known.address).collect();
        let found = addresses(session, &query);
        let distinct: BTreeSet<ContentAddress> = found.iter().copied().collect();
        assert_eq!(distinct.len(), found.len(), "seed {seed}: {text:?} finds one twice");
        assert_eq!(distinct, wanted, "seed {seed}: {text:?}, {query:?}");
        rows += found.len();
    }
    rows
}

#[test]
fn a_search_finds_exactly_what_looking_at_every_grain_finds() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("GRAINSTORE_SEARCH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("GRAINSTORE_SEARCHES").unwrap_or(240) / 24,
    };
    let mut rows = 0;
    for seed in seeds {
        let mut random = Random::new(seed);
        let (_dir, session) = store();
        for at in 0..80 {
            change(&session, &mut random, at);
            if at % 20 == 19 {
                rows += compare(&session, &mut random, seed);
            }
        }
    }
    println!("{rows} answers compared");
    assert!(rows > 100, "hardly anything was found");
}
