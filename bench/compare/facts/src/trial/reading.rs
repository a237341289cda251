//! Reading: facts, searches, questions in a language. Each kind is left out by a store that cannot.

use std::hint::black_box;
use std::time::Duration;

use crate::Result;
use crate::data::Frequency::{Common, Rare};
use crate::data::{Facts, Frequency};
use crate::peer::Peer;
use crate::question::Question;
use crate::record::{Figure, Unit, time_calls};
use crate::trial::{FOUND, LATEST, PER_RELATION, Trial, works};

/// Calls that warm caches before any is timed: one in this many of those timed.
const WARM_SHARE: usize = 10;
/// Calls that are timed however slow they are.
const LEAST_CALLS: usize = 10;
/// The longest that caches are warmed.
const PRELUDE: Duration = Duration::from_secs(2);
/// Facts of the search, and of the newest, that an ASSEMBLE asks for.
const FITS: u32 = 10;
/// The same where they do not fit into its tokens.
const TOO_MANY: u32 = 50;

impl Trial<'_> {
    /// Times every kind of read.
    pub(super) fn read<P: Peer>(&mut self, peer: &P) -> Result<()> {
        let facts = self.facts;
        self.time(
            works::SUBJECT,
            |n| Ok(facts.some_subject(n).0),
            |subject| Ok(black_box(peer.latest(subject, None, LATEST)?).is_some()),
        )?;
        let relation = |n| Ok((facts.some_subject(n).0, facts.some_relation(n).0));
        self.time(works::RELATION, relation, |(subject, relation)| {
            Ok(black_box(peer.latest(subject, Some(relation), PER_RELATION)?).is_some())
        })?;
        let key = |n| P::key(facts.fact(facts.some_number(n)));
        self.time(works::GET, key, |key| Ok(black_box(peer.get(key)?).is_some()))?;
        let search = |words: &[String; 2]| {
            let [one, other] = words;
            Ok(black_box(peer.search(&[one, other], FOUND)?).is_some())
        };
        self.time(works::RARE, |n| Ok(facts.some_words(Rare, n)), search)?;
        self.time(works::COMMON, |n| Ok(facts.some_words(Common, n)), search)?;
        let own = |n| Ok(Facts::own_word(facts.some_number(n)));
        self.time(works::IDENTIFIER, own, |own| {
            Ok(black_box(peer.search(&[own], FOUND)?).is_some())
        })?;
        self.ask(peer)
    }

    /// Times every kind of question in a language.
    fn ask<P: Peer>(&mut self, peer: &P) -> Result<()> {
        let facts = self.facts;
        let assemble = |n, frequency: Frequency, each| Question::Assemble {
            subject: facts.some_subject(n).0,
            words: facts.some_words(frequency, n),
            each,
        };
        type Draw<'d> = &'d dyn Fn(u32) -> Question;
        let draws: [(&str, Draw<'_>); 6] = [
            (works::RECALL_RARE, &|n| Question::Recall(facts.some_words(Rare, n))),
            (works::RECALL_COMMON, &|n| Question::Recall(facts.some_words(Common, n))),
            (works::TEXT, &|n| Question::Text(facts.some_subject(n).0)),
            (works::ASSEMBLE_RARE, &|n| assemble(n, Rare, FITS)),
            (works::ASSEMBLE_COMMON, &|n| assemble(n, Common, FITS)),
            (works::ASSEMBLE_TRIMMED, &|n| assemble(n, Common, TOO_MANY)),
        ];
        for (work, draw) in draws {
            self.time(
                work,
                |n| Ok(P::statement(&draw(n))),
                |statement| {
                    let Some(statement) = statement else { return Ok(false) };
                    black_box(peer.ask(statement)?);
                    Ok(true)
                },
            )?;
        }
        Ok(())
    }

    /// Times calls with what is drawn for each beforehand; none where the first says that the store
    /// cannot.
    fn time<Q>(
        &mut self,
        work: &str,
        draw: impl Fn(u32) -> Result<Q>,
        call: impl Fn(&Q) -> Result<bool>,
    ) -> Result<()> {
        let calls = u32::try_from(self.order.calls)?;
        let asks = (0..calls).map(draw).collect::<Result<Vec<Q>>>()?;
        match asks.first() {
            Some(first) if call(first)? => {}
            _ => return Ok(()),
        }
        let nth = |n: usize| asks.get(n).map_or(Ok(()), |ask| call(ask).map(drop));
        time_calls(asks.len() / WARM_SHARE, 1, PRELUDE, nth)?;
        let times = time_calls(asks.len(), LEAST_CALLS, self.patience(), nth)?;
        self.note(work, Unit::Micros, Figure::micros(times)?);
        Ok(())
    }
}

/// The ASSEMBLE whose facts all fit into its tokens.
pub(crate) fn assembly(subject: String, words: [String; 2]) -> Question {
    Question::Assemble { subject, words, each: FITS }
}
