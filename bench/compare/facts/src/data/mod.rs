//! The facts and what is looked for among them: made up, and the same in every run.
//!
//! A fact is known by its number alone, so that a million of them need no memory. Each has 4 to 12
//! words, the last of which no other fact has. Of the others the n-th most frequent is about 1/n as
//! frequent as the first (`word`).

mod word;

use self::word::word;
use crate::Result;
use crate::random::Random;

/// The namespace of all facts.
pub const NAMESPACE: &str = "bench";
/// Facts of one subject.
pub const FACTS_PER_SUBJECT: u32 = 12;
/// The confidence of all facts.
pub const CONFIDENCE: f64 = 0.9;

/// The relations of a subject, each twice.
const RELATIONS: [&str; 6] = ["prefers", "works_at", "lives_in", "plays", "owns", "speaks"];
/// The time of the first fact; each has a millisecond of its own.
const FIRST_MS: i64 = 1_700_000_000_000;
/// Fewest doublings of the vocabulary.
const FEWEST_OCTAVES: u32 = 15;
/// The octave of words that about one fact in a hundred has.
const COMMON_OCTAVE: u32 = 5;
/// Fewest facts that have a rare word, on average.
const RARE: u64 = 4;
/// Fewest words of an object beside its own, and how many more it may have.
const WORDS: (usize, usize) = (3, 8);

/// A fact with the fields that every store keeps and answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Epoch milliseconds; distinct, so that newest first means the same to every store.
    pub created_at: i64,
    /// Whom it is about.
    pub subject: String,
    /// What it says about the subject.
    pub relation: String,
    /// 4 to 12 words.
    pub object: String,
}

/// How many facts have a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frequency {
    /// Four to eight.
    Rare,
    /// About one in a hundred.
    Common,
}

/// All facts of a run.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    count: u32,
    octaves: u32,
}

impl Facts {
    /// So many facts. Beyond that number there are more, of other subjects.
    ///
    /// # Errors
    /// For none at all, and for more than a number of 31 bits.
    pub fn new(count: usize) -> Result<Self> {
        let count = u32::try_from(count).ok().filter(|count| (1..1 << 31).contains(count));
        let count = count.ok_or("a comparison needs from one to two thousand million facts")?;
        let octaves = count.next_power_of_two().ilog2().max(FEWEST_OCTAVES);
        Ok(Self { count, octaves })
    }

    /// How many there are.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count
    }

    /// The fact of a number. Facts of a subject are spread over the whole time.
    #[must_use]
    pub fn fact(self, number: u32) -> Fact {
        let (subjects, more) = (self.subjects(), number.checked_sub(self.count));
        let (subject, at) = more.map_or((number % subjects, number / subjects), |more| {
            (subjects + more / FACTS_PER_SUBJECT, more % FACTS_PER_SUBJECT)
        });
        Fact {
            created_at: FIRST_MS + i64::from(number),
            subject: name(subject),
            relation: relation(at).to_owned(),
            object: self.words(number),
        }
    }

    /// What takes the place of a fact: the same subject and relation, the words of another number.
    #[must_use]
    pub fn successor(self, of: u32, number: u32) -> Fact {
        let Fact { subject, relation, .. } = self.fact(of);
        Fact { subject, relation, ..self.fact(number) }
    }

    /// The number of the fact of a time.
    #[must_use]
    pub fn number_at(self, created_at: i64) -> Option<u32> {
        u32::try_from(created_at.checked_sub(FIRST_MS)?).ok()
    }

    /// The word that one fact alone has.
    #[must_use]
    pub fn own_word(number: u32) -> String {
        format!("number{number}")
    }

    /// The number of some fact.
    #[must_use]
    pub fn some_number(self, question: u32) -> u32 {
        below(&mut of_question(2, question), self.count)
    }

    /// Some subject, and the numbers of its facts, the newest first.
    #[must_use]
    pub fn some_subject(self, question: u32) -> (String, Vec<u32>) {
        let subject = below(&mut of_question(3, question), self.subjects());
        let numbers = (0..FACTS_PER_SUBJECT).rev().map(|at| at * self.subjects() + subject);
        (name(subject), numbers.filter(|number| *number < self.count).collect())
    }

    /// Some relation of [`Facts::some_subject`], and the numbers of its facts, the newest first.
    #[must_use]
    pub fn some_relation(self, question: u32) -> (String, Vec<u32>) {
        let (_, numbers) = self.some_subject(question);
        let at = below(&mut of_question(4, question), self.count.div_ceil(self.subjects()));
        let wanted = relation(at);
        let of_relation = |number: &u32| relation(*number / self.subjects()) == wanted;
        (wanted.to_owned(), numbers.into_iter().filter(of_relation).collect())
    }

    /// Two different words to search for.
    #[must_use]
    pub fn some_words(self, frequency: Frequency, question: u32) -> [String; 2] {
        let octave = match frequency {
            Frequency::Rare => self.rare_octave(),
            Frequency::Common => COMMON_OCTAVE,
        };
        let mut random = of_question(5, question);
        let (first, size) = (1_u32 << octave, 1_u32 << octave);
        let one = below(&mut random, size);
        let other = (one + 1 + below(&mut random, size - 1)) % size;
        [word(first + one), word(first + other)]
    }

    fn subjects(self) -> u32 {
        self.count.div_ceil(FACTS_PER_SUBJECT)
    }

    fn words(self, number: u32) -> String {
        let mut random = of_question(1, number);
        let count = WORDS.0 + random.below(WORDS.1 + 1);
        let rank = |random: &mut Random| {
            let octave = below(random, self.octaves);
            (1 << octave) + below(random, 1 << octave)
        };
        let mut words: Vec<String> = (0..count).map(|_| word(rank(&mut random))).collect();
        words.push(Self::own_word(number));
        words.join(" ")
    }

    /// The octave of words of which each is in [`RARE`] facts to twice as many.
    fn rare_octave(self) -> u32 {
        let words = u64::from(self.count) * 7 / u64::from(self.octaves);
        (words / RARE).max(2).ilog2().min(self.octaves - 1)
    }
}

/// A source of numbers for a stream and a number in it.
fn of_question(stream: u64, number: u32) -> Random {
    Random::new(stream << 32 | u64::from(number))
}

fn below(random: &mut Random, bound: u32) -> u32 {
    let bound = usize::try_from(bound).unwrap_or(usize::MAX);
    u32::try_from(random.below(bound)).unwrap_or(0)
}

fn name(subject: u32) -> String {
    format!("person-{subject}")
}

/// The relation of the fact at a place among those of its subject.
fn relation(at: u32) -> &'static str {
    let at = usize::try_from(at).unwrap_or(0) % RELATIONS.len();
    RELATIONS.get(at).copied().unwrap_or("prefers")
}

#[cfg(test)]
mod tests;
