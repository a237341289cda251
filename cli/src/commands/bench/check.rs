//! Answers compared before anything is timed: a store that answers wrongly has no speed.
//!
//! Each store is held against the facts themselves, so that all that agree with them agree with each other.

use std::collections::BTreeSet;

use super::data::{Data, Fact, Pair};
use super::turns::{Run, Side};
use super::work::{FOUND, LATEST};
use crate::error::{Code, Error, Result};

/// Facts that are read by their address, and subjects whose newest facts are read.
const QUESTIONS: u32 = 20;
/// Searches, for each of which every fact is looked at.
const SEARCHES: u32 = 5;
/// Facts that have a rare word, at most, where they are compared one by one.
const MOST_RARE: usize = 50;
/// Facts looked at between two looks whether to go on.
const LOOK_EVERY: u32 = 1 << 12;

/// Compares answers of everyone with what is right.
///
/// # Errors
/// For an answer that differs.
pub(super) fn compare(run: &mut Run<'_>) -> Result<()> {
    let data = run.data;
    run.tell("comparing answers", QUESTIONS);
    let pairs: Vec<Pair> = (0..SEARCHES).map(|question| data.some_pair(question)).collect();
    let wanted = scan(run, &pairs)?;
    for side in &mut run.sides {
        for question in 0..QUESTIONS {
            compare_reads(side, data, question)?;
        }
        for (pair, wanted) in pairs.iter().zip(&wanted) {
            compare_search(side, pair, wanted)?;
        }
        if let Some(text) = side.peer()?.assemble(&data.some_assembly(0).1)? {
            let (subject, numbers) = data.some_subject(0);
            let told = numbers.iter().filter(|at| text.contains(&data.fact(**at).object)).count();
            expect(side, told == numbers.len(), || format!("of {subject}, assembled"))?;
        }
    }
    Ok(())
}

/// What a search has to find.
struct Wanted {
    /// The facts with the rare word.
    rare: BTreeSet<Fact>,
    /// How many have one of the words.
    either: usize,
}

/// Looks at every fact for the words.
fn scan(run: &Run<'_>, pairs: &[Pair]) -> Result<Vec<Wanted>> {
    let mut wanted: Vec<Wanted> =
        pairs.iter().map(|_| Wanted { rare: BTreeSet::new(), either: 0 }).collect();
    for number in 0..run.data.grains() {
        if number.is_multiple_of(LOOK_EVERY) {
            run.check_cancelled()?;
        }
        let fact = run.data.fact(number);
        for (pair, wanted) in pairs.iter().zip(&mut wanted) {
            let rare = has(&fact, &pair.rare);
            wanted.either += usize::from(rare || has(&fact, &pair.common));
            if rare {
                wanted.rare.insert(fact.clone());
            }
        }
    }
    Ok(wanted)
}

fn has(fact: &Fact, wanted: &str) -> bool {
    fact.object.split(' ').any(|word| word == wanted)
}

/// Compares a fact by its address, and the newest of a subject.
fn compare_reads(side: &mut Side, data: Data, question: u32) -> Result<()> {
    let number = data.some_number(question);
    let address = data.item(number)?.address;
    let found = side.peer()?.get(&address)?;
    expect(side, found == Some(data.fact(number)), || format!("at {address}"))?;
    let (subject, numbers) = data.some_subject(question);
    let newest: Vec<Fact> = numbers.iter().map(|number| data.fact(*number)).collect();
    let found = side.peer()?.latest(&subject, LATEST)?;
    expect(side, found == newest, || format!("of {subject}"))
}

/// Compares the facts with a rare word, and how many a page of two words has. Which of the common ones stand on
/// it is up to the scores of each.
fn compare_search(side: &mut Side, pair: &Pair, wanted: &Wanted) -> Result<()> {
    let Pair { rare, common } = pair;
    let what = || format!("for {rare} {common}");
    if wanted.rare.len() <= MOST_RARE {
        let limit = u32::try_from(MOST_RARE).unwrap_or(u32::MAX);
        let found = side.peer()?.search(&[rare], limit)?;
        let is_same = found.len() == wanted.rare.len();
        expect(side, is_same && BTreeSet::from_iter(found) == wanted.rare, what)?;
    }
    let found = side.peer()?.search(&[rare, common], FOUND)?;
    let page = usize::try_from(FOUND).unwrap_or(usize::MAX).min(wanted.either);
    let are_matches = found.iter().all(|fact| has(fact, rare) || has(fact, common));
    expect(side, are_matches && found.len() == page, what)
}

fn expect(side: &Side, is_right: bool, what: impl FnOnce() -> String) -> Result<()> {
    if is_right {
        return Ok(());
    }
    let message = format!("{} gave a wrong answer {}", side.contender.name, what());
    Err(Error::new(Code::Integrity, message, "nothing was measured: please report it"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use grainstore::ContentAddress;
    use grainstore::cal::CancelHandle;
    use indicatif::ProgressBar;

    use super::super::data::Item;
    use super::super::peer::{Contender, Peer};
    use super::*;

    /// A store that forgets everything.
    struct Forgetful;

    impl Peer for Forgetful {
        fn put(&mut self, _: Item) -> Result<()> {
            Ok(())
        }
        fn put_batch(&mut self, _: Vec<Item>) -> Result<()> {
            Ok(())
        }
        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
        fn settle(&mut self) -> Result<()> {
            Ok(())
        }
        fn get(&mut self, _: &ContentAddress) -> Result<Option<Fact>> {
            Ok(None)
        }
        fn latest(&mut self, _: &str, _: u32) -> Result<Vec<Fact>> {
            Ok(Vec::new())
        }
        fn search(&mut self, _: &[&str], _: u32) -> Result<Vec<Fact>> {
            Ok(Vec::new())
        }
        fn assemble(&mut self, _: &str) -> Result<Option<String>> {
            Ok(None)
        }
        fn compact(&mut self) -> Result<()> {
            Ok(())
        }
        fn close(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    fn forgetful(_: &Path) -> Result<Box<dyn Peer>> {
        Ok(Box::new(Forgetful))
    }

    static FORGETFUL: Contender = Contender { name: "Forgetful", open: forgetful };

    #[test]
    fn a_store_that_answers_wrongly_is_not_measured() {
        let place = tempfile::tempdir().unwrap();
        let (cancel, bar) = (CancelHandle::new(), ProgressBar::hidden());
        let mut run = Run::new(Data::new(1_000), place.path(), &cancel, &bar).unwrap();
        run.sides.iter_mut().for_each(|side| side.contender = &FORGETFUL);
        let error = compare(&mut run).unwrap_err();
        assert!(error.has_code(Code::Integrity), "{error}");
        assert!(error.to_string().contains("Forgetful gave a wrong answer at "), "{error}");
    }
}
