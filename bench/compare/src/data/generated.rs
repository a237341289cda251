//! Generated rows: a look-alike of WordNet where the real one is absent, people with twelve facts
//! each, conversations, and one subject that everybody talks about.

use grainstore::ContentAddress;

use crate::data::{Kind, Row, Synset};
use compare_facts::Random;

/// Facts of one person.
pub(crate) const FACTS_PER_PERSON: usize = 12;
/// The partition of people.
pub(crate) const PEOPLE: &str = "people";
/// Turns of one conversation.
pub(crate) const TURNS: usize = 20;
/// The subject of everybody.
pub(crate) const HUB: &str = "hub";

const RELATIONS: [&str; FACTS_PER_PERSON] = [
    "prefers", "works_at", "lives_in", "plays", "owns", "speaks", "studies", "drives", "reads",
    "cooks", "fears", "collects",
];
const POINTERS: [&str; 6] =
    ["hypernym", "hyponym", "similar_to", "member_meronym", "part_holonym", "antonym"];
const WORDS: [&str; 16] = [
    "river", "lamp", "green", "quiet", "stone", "paper", "winter", "engine", "salt", "garden",
    "north", "glass", "early", "copper", "thread", "harbour",
];

/// Synsets of about WordNet's shape holding about `triples` triples: five each on average, targets
/// that favour few.
#[must_use]
pub(crate) fn synsets(triples: usize, random: &mut Random) -> Vec<Synset> {
    let count = (triples / 5).max(2);
    let name = |n: usize| format!("{}_{n}.n.1", WORDS.get(n % WORDS.len()).unwrap_or(&"thing"));
    let synset = |n: usize| {
        let mut found = vec![
            ("gloss".to_owned(), sentence(random, 10)),
            ("word".to_owned(), format!("{} {n}", WORDS.get(n % WORDS.len()).unwrap_or(&""))),
        ];
        for _ in 0..1 + random.below(5) {
            // The smaller of two numbers: early synsets are pointed at most.
            let target = random.below(count).min(random.below(count));
            let relation = random.pick(&POINTERS).copied().unwrap_or("hypernym");
            found.push((relation.to_owned(), name(target)));
        }
        found.sort_unstable();
        found.dedup();
        let tags = vec!["part-of-speech:n".to_owned(), format!("lexicographer-file:{}", n % 45)];
        Synset { name: name(n), tags, triples: found }
    };
    (0..count).map(synset).collect()
}

/// The `n`-th fact about people.
#[must_use]
pub(crate) fn person(n: usize, random: &mut Random) -> Row {
    let person = n / FACTS_PER_PERSON;
    Row {
        kind: Kind::Belief,
        namespace: PEOPLE.to_owned(),
        subject: format!("person-{person}"),
        relation: RELATIONS.get(n % FACTS_PER_PERSON).copied().unwrap_or("prefers").to_owned(),
        text: sentence(random, 4),
        user: Some(format!("user-{}", person / 10)),
        session: None,
        tags: vec!["profile".to_owned(), format!("group-{}", person % 50)],
        time_ms: 0,
        parent: None,
    }
}

/// The `n`-th turn of all conversations, which answers `parent`.
#[must_use]
pub(crate) fn turn(n: usize, parent: Option<ContentAddress>, random: &mut Random) -> Row {
    let session = n / TURNS;
    let user = session % 1000;
    let speaker = if n.is_multiple_of(2) { format!("user-{user}") } else { "agent".to_owned() };
    Row {
        kind: Kind::Event,
        namespace: "chat".to_owned(),
        subject: speaker,
        relation: "mg:said".to_owned(),
        text: sentence(random, 15),
        user: Some(format!("user-{user}")),
        session: Some(format!("session-{session}")),
        tags: vec!["chat".to_owned(), format!("topic-{}", session % 200)],
        time_ms: 0,
        parent: parent.filter(|_| !n.is_multiple_of(TURNS)),
    }
}

/// The `n`-th grain about the one subject, spread over `namespaces`.
#[must_use]
pub(crate) fn hub(n: usize, namespaces: usize, random: &mut Random) -> Row {
    let namespace = n.checked_rem(namespaces).unwrap_or(0);
    Row {
        kind: Kind::Belief,
        namespace: format!("tenant-{namespace}"),
        subject: HUB.to_owned(),
        relation: RELATIONS.get(n / 7 % FACTS_PER_PERSON).copied().unwrap_or("owns").to_owned(),
        text: format!("{} {n}", sentence(random, 3)),
        user: None,
        session: None,
        tags: vec!["shared-subject".to_owned()],
        time_ms: 0,
        parent: None,
    }
}

fn sentence(random: &mut Random, words: usize) -> String {
    let words: Vec<&str> = (0..words).filter_map(|_| random.pick(&WORDS).copied()).collect();
    words.join(" ")
}
