//! Answers compared with the facts themselves before anything is timed: a store that answers wrongly
//! has no speed.

use crate::data::{Fact, Facts, Frequency};
use crate::peer::{Peer, Row, Told};
use crate::question::Question;
use crate::trial::{FOUND, LATEST, assembly};
use crate::{Error, Result};

/// Questions of each kind.
const QUESTIONS: u32 = 20;
/// Searches of each kind, for which every fact is looked at.
const SEARCHES: u32 = 5;

/// Compares answers of every kind with what is right. `key` gives the key of the fact of a number.
///
/// # Errors
/// For an answer that differs.
pub(crate) fn compare<P: Peer>(
    peer: &P,
    facts: Facts,
    key: impl Fn(u32) -> Result<P::Key>,
) -> Result<()> {
    for question in 0..QUESTIONS {
        let number = facts.some_number(question);
        if let Some(found) = peer.get(&key(number)?)? {
            expect(found == facts.fact(number), || format!("to the get of fact {number}"))?;
        }
        let (subject, numbers) = facts.some_subject(question);
        let found = peer.latest(&subject, None, LATEST)?;
        expect_facts(found, facts, &numbers, || format!("about {subject}"))?;
        let (relation, numbers) = facts.some_relation(question);
        let found = peer.latest(&subject, Some(&relation), LATEST)?;
        expect_facts(found, facts, &numbers, || format!("about {subject}, {relation}"))?;
        let own = Facts::own_word(number);
        let found = peer.search(&[&own], FOUND)?;
        expect_rows(found, facts, 1, &[own])?;
    }
    searches(peer, facts)?;
    let (subject, numbers) = facts.some_subject(0);
    let objects: Vec<String> = numbers.iter().map(|number| facts.fact(*number).object).collect();
    let words = facts.some_words(Frequency::Rare, 0);
    let whole = [Question::Text(subject.clone()), assembly(subject, words)];
    whole.iter().try_for_each(|question| expect_text(peer, question, &objects))
}

/// Compares searches, both ways of asking.
fn searches<P: Peer>(peer: &P, facts: Facts) -> Result<()> {
    let of = |frequency| (0..SEARCHES).map(move |at| facts.some_words(frequency, at));
    let pairs: Vec<_> = of(Frequency::Rare).chain(of(Frequency::Common)).collect();
    let mut matches = vec![0; pairs.len()];
    for number in 0..facts.count() {
        let fact = facts.fact(number);
        for (pair, matches) in pairs.iter().zip(&mut matches) {
            *matches += usize::from(has_one_of(&fact, pair));
        }
    }
    for (pair, matches) in pairs.into_iter().zip(matches) {
        let wanted = matches.min(usize::try_from(FOUND)?);
        let [one, other] = &pair;
        expect_rows(peer.search(&[one, other], FOUND)?, facts, wanted, &pair)?;
        let question = Question::Recall(pair);
        let Some(statement) = P::statement(&question) else { continue };
        let told = peer.ask(&statement)?;
        expect(told == Told::Rows(wanted), || {
            format!("of {wanted} rows to {statement}: {told:?}")
        })?;
    }
    Ok(())
}

fn has_one_of(fact: &Fact, words: &[String]) -> bool {
    fact.object.split(' ').any(|word| words.iter().any(|wanted| wanted == word))
}

fn expect_facts(
    found: Option<Vec<Fact>>,
    facts: Facts,
    numbers: &[u32],
    what: impl FnOnce() -> String,
) -> Result<()> {
    let wanted = numbers.iter().map(|number| facts.fact(*number));
    expect(found.is_none_or(|found| found.into_iter().eq(wanted)), what)
}

/// So many different facts, each with one of the words. Which of them is up to the scores.
fn expect_rows(
    found: Option<Vec<Row>>,
    facts: Facts,
    wanted: usize,
    words: &[String],
) -> Result<()> {
    let Some(found) = found else { return Ok(()) };
    let mut times: Vec<i64> = found.iter().map(Row::created_at).collect();
    times.sort_unstable();
    times.dedup();
    let is_right = |row: &Row| {
        let fact = facts.number_at(row.created_at()).map(|number| facts.fact(number));
        fact.is_some_and(|fact| {
            has_one_of(&fact, words) && (matches!(row, Row::Time(_)) || *row == Row::Fact(fact))
        })
    };
    let is_right = times.len() == wanted && found.len() == wanted && found.iter().all(is_right);
    expect(is_right, || format!("of {} rows for {words:?}, not {wanted}", found.len()))
}

fn expect_text<P: Peer>(peer: &P, question: &Question, objects: &[String]) -> Result<()> {
    let Some(statement) = P::statement(question) else { return Ok(()) };
    let told = peer.ask(&statement)?;
    let Told::Text(text) = &told else { return Err(format!("no text for {statement}").into()) };
    let missing = objects.iter().find(|object| !text.contains(object.as_str()));
    expect(missing.is_none(), || format!("without {missing:?} to {statement}: {text}"))
}

fn expect(is_right: bool, what: impl FnOnce() -> String) -> Result<()> {
    if is_right { Ok(()) } else { Err(Error::from(format!("a wrong answer {}", what()))) }
}

impl Row {
    /// The time of the fact.
    #[must_use]
    pub fn created_at(&self) -> i64 {
        match self {
            Self::Fact(fact) => fact.created_at,
            Self::Time(time) => *time,
        }
    }
}
