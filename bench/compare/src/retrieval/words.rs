//! Questions of two words, in all grains and in those of one subject.

use grainstore::cal::{Predicate, Query};
use grainstore::{PageOptions, Session};

use super::Run;
use super::data::{KINDS, SUBJECTS, subject};
use super::raw::Raw;
use super::table::{self, Target};
use super::timing::in_turns;
use crate::Result;

/// Rows of an answer.
const ROWS: usize = 10;

/// Times every kind of question beside the search library.
pub(super) fn measure(session: &Session, texts: &[String], run: &Run) -> Result<()> {
    let raw = Raw::of(texts)?;
    for kind in &KINDS {
        let pairs = kind.draw(run.pairs);
        let asked: Vec<(usize, &[String; 2])> = pairs.iter().enumerate().collect();
        for of_one in [false, true] {
            let ours = |(at, words): &(usize, &[String; 2])| -> Result<usize> {
                let query = Query::default().searching(words.join(" "));
                let query = match of_one {
                    false => query,
                    true => query.when(Predicate::text_is("subject", subject(*at))?),
                };
                Ok(session.query(&query, &PageOptions::first(ROWS))?.results.len())
            };
            let theirs = |(at, words): &(usize, &[String; 2])| {
                raw.ask(words, of_one.then_some(at % SUBJECTS))
            };
            for question in &asked {
                let (found, expected) = (ours(question)?, theirs(question)?);
                if found != expected {
                    return Err(format!("{found} answers to {question:?}, not {expected}").into());
                }
            }
            let (own, other) = in_turns(&asked, run.rounds, ours, theirs)?;
            let of = if of_one { ", of one subject" } else { "" };
            table::row(
                format!("ten best for {}{of}, decoded", kind.name),
                format!("{own:.1} us"),
                format!("tantivy, no grains: {other:.1} us"),
                (own / other, Target::AtMost(2.0)),
            )?;
        }
    }
    Ok(())
}
