//! The facts of the benchmark and what is asked about them: made up, and the same in every run.
//!
//! A fact is known by its number alone, so that ten million of them need no memory. Knows no store.

use grainstore::format::{BeliefBuilder, Encoding};
use grainstore::{ContentAddress, EpochMs, Grain};

use super::random::{Random, nth};
use crate::error::Result;

/// The namespace of all facts.
pub(super) const NAMESPACE: &str = "bench";
/// Facts of one subject.
pub(super) const FACTS_PER_SUBJECT: u32 = 12;
/// The confidence of all facts.
pub(super) const CONFIDENCE: f64 = 0.9;

/// The relations of a subject, each once.
const RELATIONS: [&str; 12] = [
    "prefers", "works_at", "lives_in", "plays", "owns", "speaks", "studies", "drives", "reads",
    "cooks", "fears", "collects",
];
/// The time of the first fact; each has a millisecond of its own.
const FIRST_MS: i64 = 1_700_000_000_000;
/// Fewest doublings of the vocabulary.
const FEWEST_OCTAVES: u32 = 15;
/// The octave of words that some fact in a hundred has.
const COMMON_OCTAVE: u32 = 5;
/// Most occurrences of a rare word in all facts, or fewer.
const RARE: u64 = 8;
/// Fewest words of an object, and how many more it may have.
const WORDS: (u64, u64) = (4, 8);

/// A fact with the fields that both peers store, and that both give back as their answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fact {
    pub(super) created_at: i64,
    pub(super) subject: String,
    pub(super) relation: String,
    pub(super) object: String,
}

/// A fact ready to be stored.
#[derive(Debug)]
pub(super) struct Item {
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "a table stores it"))]
    pub(super) fact: Fact,
    pub(super) address: ContentAddress,
    pub(super) grain: Grain,
}

/// Two words to be searched for: some eight facts have the first, one in a hundred the second.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) rare: String,
    pub(super) common: String,
}

/// All facts of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    grains: u32,
    octaves: u32,
}

impl Data {
    /// So many facts, which must not be zero. Beyond that number there are more, of other subjects.
    pub(super) fn new(grains: u32) -> Self {
        let octaves = grains.next_power_of_two().ilog2().max(FEWEST_OCTAVES);
        Self { grains, octaves }
    }

    /// How many facts there are.
    pub(super) fn grains(self) -> u32 {
        self.grains
    }

    fn subjects(self) -> u32 {
        self.grains.div_ceil(FACTS_PER_SUBJECT)
    }

    /// The fact of a number. Facts of a subject are spread over the whole time.
    pub(super) fn fact(self, number: u32) -> Fact {
        let subjects = self.subjects();
        let (subject, relation) = match number.checked_sub(self.grains) {
            None => (number % subjects, number / subjects),
            Some(more) => (subjects + more / FACTS_PER_SUBJECT, more % FACTS_PER_SUBJECT),
        };
        let mut random = Random::new(1, number);
        let words = WORDS.0 + random.below(WORDS.1 + 1);
        let words: Vec<String> = (0..words).map(|_| word(self.rank(&mut random))).collect();
        Fact {
            created_at: FIRST_MS + i64::from(number),
            subject: subject_name(subject),
            relation: nth(&RELATIONS, u64::from(relation)).unwrap_or("prefers").to_owned(),
            object: words.join(" "),
        }
    }

    /// The rank of a word as texts have it: the n-th most frequent is about 1/n as frequent as the first.
    fn rank(self, random: &mut Random) -> u64 {
        let octave = random.below(u64::from(self.octaves));
        rank_in(octave, random)
    }

    /// The fact of a number as it is put into a store.
    pub(super) fn item(self, number: u32) -> Result<Item> {
        let fact = self.fact(number);
        let (time, object) = (EpochMs::new(fact.created_at), fact.object.as_str());
        let grain = BeliefBuilder::new(time, &fact.subject, &fact.relation, object, CONFIDENCE)
            .namespace(NAMESPACE)
            .build()?;
        let address = grain.encode(Encoding::default())?.address();
        Ok(Item { fact, address, grain })
    }

    /// The number of some fact.
    pub(super) fn some_number(self, question: u32) -> u32 {
        let number = Random::new(2, question).below(u64::from(self.grains));
        u32::try_from(number).unwrap_or_default()
    }

    /// Some subject, and the numbers of its facts, the newest first.
    pub(super) fn some_subject(self, question: u32) -> (String, Vec<u32>) {
        let subjects = self.subjects();
        let subject = Random::new(3, question).below(u64::from(subjects));
        let subject = u32::try_from(subject).unwrap_or_default();
        let last = FACTS_PER_SUBJECT - 1;
        let numbers = (0..=last).rev().map(|at| at * subjects + subject);
        (subject_name(subject), numbers.filter(|number| *number < self.grains).collect())
    }

    /// Some words to search for.
    pub(super) fn some_pair(self, question: u32) -> Pair {
        let mut random = Random::new(4, question);
        let words = u64::from(self.grains) * (WORDS.0 + WORDS.1 / 2);
        let occurrences = words / u64::from(self.octaves);
        let rare = u64::from((occurrences / (RARE / 2)).max(2).ilog2());
        Pair {
            rare: word(rank_in(rare, &mut random)),
            common: word(rank_in(u64::from(COMMON_OCTAVE), &mut random)),
        }
    }

    /// An ASSEMBLE of three sources: what is known of a subject, what has one of two words, what is new.
    pub(super) fn some_assembly(self, question: u32) -> (String, String) {
        let (subject, _) = self.some_subject(question);
        let Pair { rare, common } = self.some_pair(question);
        let statement = format!(
            "ASSEMBLE reply FOR \"the next reply\" \
             FROM facts: (RECALL beliefs ABOUT \"{subject}\" LIMIT 16), \
             found: (RECALL beliefs LIKE \"{rare} {common}\" LIMIT 20), \
             recent: (RECALL beliefs RECENT 30) \
             BUDGET 2000 tokens PRIORITY facts > found > recent"
        );
        (subject, statement)
    }
}

fn subject_name(number: u32) -> String {
    format!("person-{number}")
}

/// A rank of an octave: from 2 to its power up to twice that.
fn rank_in(octave: u64, random: &mut Random) -> u64 {
    let first = 1_u64 << octave.min(40);
    first + random.below(first)
}

/// The word of a rank: two syllables or more, without an ending that a stemmer would take.
fn word(rank: u64) -> String {
    const CONSONANTS: [char; 8] = ['b', 'd', 'k', 'm', 'n', 'p', 't', 'v'];
    const VOWELS: [char; 3] = ['a', 'o', 'u'];
    const SYLLABLES: u64 = 24;
    let mut left = rank + SYLLABLES - 1;
    let mut word = String::new();
    while left > 0 {
        let syllable = left % SYLLABLES;
        word.extend(nth(&CONSONANTS, syllable / 3));
        word.extend(nth(&VOWELS, syllable % 3));
        left /= SYLLABLES;
    }
    word
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_subject_has_twelve_facts_and_each_relation_once() {
        let data = Data::new(1_200);
        for question in 0..20 {
            let (subject, numbers) = data.some_subject(question);
            let facts: Vec<Fact> = numbers.iter().map(|number| data.fact(*number)).collect();
            assert!(facts.iter().all(|fact| fact.subject == subject), "{facts:?}");
            assert!(facts.is_sorted_by(|newer, older| newer.created_at > older.created_at));
            let relations: BTreeSet<_> = facts.iter().map(|fact| &fact.relation).collect();
            assert_eq!(relations.len(), 12);
        }
        let of_others = data.fact(1_200).subject;
        assert!((0..1_200).all(|number| data.fact(number).subject != of_others));
    }

    #[test]
    fn words_are_spread_as_in_texts_and_none_stands_for_two_ranks() {
        let data = Data::new(2_000);
        let facts: Vec<Fact> = (0..2_000).map(|number| data.fact(number)).collect();
        let with = |wanted: &str| {
            facts.iter().filter(|fact| fact.object.split(' ').any(|word| word == wanted)).count()
        };
        assert!(with(&word(1)) > 4 * with(&word(20)) && with(&word(20)) > 4 * with(&word(400)));
        let lengths: BTreeSet<_> =
            facts.iter().map(|fact| fact.object.split(' ').count()).collect();
        assert_eq!((lengths.first(), lengths.last()), (Some(&4), Some(&12)));
        assert_eq!((1..20_000).map(word).collect::<BTreeSet<_>>().len(), 19_999);
    }

    #[test]
    fn a_rare_word_is_in_few_facts_and_a_common_one_in_some_of_a_hundred() {
        let data = Data::new(5_000);
        let facts: Vec<Fact> = (0..5_000).map(|number| data.fact(number)).collect();
        let (mut rare, mut common) = (0, 0);
        for question in 0..50 {
            let pair = data.some_pair(question);
            let with = |word: &String| facts.iter().filter(|f| f.object.contains(&**word)).count();
            rare += with(&pair.rare);
            common += with(&pair.common);
        }
        assert!((50..50 * 20).contains(&rare), "{rare}");
        assert!((50 * 25..50 * 200).contains(&common), "{common}");
    }
}
