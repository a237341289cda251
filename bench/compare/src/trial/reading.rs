//! Reading: every kind of question is checked against the scan of all rows before it is timed. A
//! store that answers wrongly has no speed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use grainstore::ContentAddress;

use crate::Result;
use crate::ask::{Ask, Line};
use crate::data::Part;
use crate::peer::Peer;
use crate::shapes::{Form, Shape};
use crate::trial::Trial;
use compare_facts::Random;
use compare_facts::{Figure, Unit, time_calls};

/// Questions of a shape whose answers are compared.
const CHECKED: usize = 20;
/// Calls that warm caches before any is timed: one in this many of those timed.
const WARM_SHARE: usize = 10;
/// Calls that are timed however slow they are.
const LEAST_CALLS: usize = 10;
/// The longest that answers of one shape are compared, or caches warmed.
const PRELUDE: Duration = Duration::from_secs(5);

/// The questions of some shapes, with the right answers to the first of each.
pub(crate) struct Questions(Vec<(Shape, Vec<Ask>, Vec<Vec<Line>>)>);

impl Questions {
    /// Draws `calls` questions of each shape about these rows. A shape nothing can be asked of is
    /// left out.
    #[must_use]
    pub(crate) fn about(data: Part<'_>, shapes: &[Shape], calls: usize) -> Self {
        let drawn = shapes.iter().map(|shape| {
            let asks = shape.asks(data, calls);
            let answers = asks.iter().take(CHECKED).map(|ask| ask.scan(data)).collect();
            (*shape, asks, answers)
        });
        Self(drawn.filter(|(_, asks, _)| !asks.is_empty()).collect())
    }

    /// The questions that bind nothing but a subject.
    pub(super) fn by_subject(&self) -> impl Iterator<Item = &Ask> {
        self.0
            .iter()
            .filter(|(shape, ..)| shape.name.starts_with("s:"))
            .flat_map(|(_, asks, _)| asks)
    }
}

impl Trial<'_> {
    /// Checks and times every shape the peer has an index for.
    pub(super) fn read(&mut self, peer: &dyn Peer, questions: &Questions) -> Result<()> {
        for (shape, asks, answers) in &questions.0 {
            if !asks.iter().all(|ask| peer.answers(ask)) {
                continue;
            }
            check(asks, answers, |ask| lines(peer, shape.form, ask))
                .map_err(|error| format!("{}, {}: {error}", self.contender.name, shape.name))?;
            let call = |n: usize| -> Result<()> {
                let Some(ask) = asks.get(n) else { return Ok(()) };
                answer(peer, shape.form, ask)
            };
            time_calls(asks.len() / WARM_SHARE, 1, PRELUDE, call)?;
            let times = time_calls(asks.len(), LEAST_CALLS, self.patience(), call)?;
            self.note(shape.name, Unit::Micros, Figure::micros(times)?);
        }
        Ok(())
    }

    /// Checks and times reading by address.
    pub(super) fn get(&mut self, peer: &dyn Peer, addresses: &[ContentAddress]) -> Result<()> {
        if !peer.has_addresses() {
            return Ok(());
        }
        let mut random = Random::new(6);
        let calls = self.options.calls;
        let keys: Vec<_> = (0..calls).filter_map(|_| random.pick(addresses)).collect();
        for key in keys.iter().take(CHECKED) {
            let blob = peer.get(key)?.ok_or("a stored grain was not found")?;
            key.verify(&blob)?;
        }
        let call = |n: usize| -> Result<()> {
            let Some(key) = keys.get(n) else { return Ok(()) };
            black_box(peer.get(key)?);
            Ok(())
        };
        time_calls(calls / WARM_SHARE, 1, PRELUDE, call)?;
        let times = time_calls(calls, LEAST_CALLS, self.patience(), call)?;
        self.note("get by address", Unit::Micros, Figure::micros(times)?);
        Ok(())
    }
}

fn answer(peer: &dyn Peer, form: Form, ask: &Ask) -> Result<()> {
    match form {
        Form::Lines => drop(black_box(peer.lines(ask)?)),
        Form::Decoded => drop(black_box(peer.hits(ask)?)),
    }
    Ok(())
}

/// An answer as lines, however it is read.
fn lines(peer: &dyn Peer, form: Form, ask: &Ask) -> Result<Vec<Line>> {
    match form {
        Form::Lines => peer.lines(ask),
        Form::Decoded => Ok(peer.hits(ask)?.iter().map(Line::from).collect()),
    }
}

/// Compares answers with the right ones, until there are no more or [`PRELUDE`] is over.
///
/// # Errors
/// For an answer that differs in a row, a field or the order.
fn check(
    asks: &[Ask],
    answers: &[Vec<Line>],
    mut answer: impl FnMut(&Ask) -> Result<Vec<Line>>,
) -> Result<()> {
    let begun = Instant::now();
    for (ask, expected) in asks.iter().zip(answers) {
        let found = answer(ask)?;
        if found != *expected {
            let (rows, wanted) = (found.len(), expected.len());
            let message = format!("{rows} rows where {wanted} are right, or others, for {ask:?}");
            return Err(message.into());
        }
        if begun.elapsed() > PRELUDE {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(byte: u8, object: &str) -> Line {
        let address = ContentAddress::from_bytes([byte; 32]);
        Line { address, object: Some(object.to_owned()) }
    }

    #[test]
    fn an_answer_that_differs_in_anything_is_refused() {
        let right = vec![line(1, "tea"), line(2, "tea")];
        for (found, accepted) in [
            (right.clone(), true),
            (vec![line(1, "tea")], false),
            (vec![line(2, "tea"), line(1, "tea")], false),
            (vec![line(1, "tea"), line(2, "mate")], false),
            (vec![line(1, "tea"), line(3, "tea")], false),
            (vec![line(1, "tea"), line(2, "tea"), line(3, "tea")], false),
        ] {
            let checked =
                check(&[Ask::default()], std::slice::from_ref(&right), |_| Ok(found.clone()));
            assert_eq!(checked.is_ok(), accepted, "{found:?}");
        }
    }
}
