//! Vectors: given with a grain, to a grain, removed with their model, and searched by nearness. A search of so
//! few is exact, so it is held against comparing all (ruling 56: whoever may not replace a grain gives it no
//! place in search).

use std::collections::BTreeMap;

use super::engine::cal::{Near, Query};
use super::engine::embed::{Embedding, Metric};
use super::engine::format::{ContentAddress, EpochMs};
use super::engine::{Offer, PageOptions, SameFact, Session, Store};
use super::kit::agree::same;
use super::kit::calls::Caller;
use super::kit::marked;
use super::kit::model::{Broken, DENIED, Entry, Known, Model, NOT_FOUND, allow};
use super::kit::offers::{Answer, Call, Offered, Settled};
use super::kit::random::Random;
use super::kit::rules::{self, Lock};
use super::tally::Tally;

const MODELS: [&str; 3] = ["eyes", "ears", "nose"];
const DIMENSION: &str = "ERR_DIMENSION";
const CONFLICT: &str = "ERR_CONFLICT";
/// Rows of an answer.
const NEAREST: usize = 10;
/// How far two grains may lie from each other and still count as equally near.
const EQUAL: f64 = 1e-5;

/// The vectors of a store, by model: their length, and which grain has which.
#[derive(Debug, Default)]
pub(crate) struct Vectors(BTreeMap<&'static str, Space>);

#[derive(Debug)]
struct Space {
    dimension: usize,
    given: BTreeMap<ContentAddress, Vec<f32>>,
}

/// A vector that somebody gives.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    model: &'static str,
    values: Vec<f32>,
}

impl Given {
    pub(crate) fn random(random: &mut Random) -> Self {
        let model = random.pick(&[MODELS[0], MODELS[0], MODELS[1], MODELS[2]]);
        let dimension = if random.percent(88) { 4 } else { 3 };
        Self { model, values: values(random, dimension) }
    }

    fn embedding(&self) -> Embedding {
        Embedding::new(self.model, Metric::Cosine, self.values.clone()).expect("a vector")
    }

    /// A grain with this vector.
    pub(crate) fn with(&self, offered: &Offered) -> Offer {
        let offer: Offer = match offered.finished {
            true => offered.blob().into(),
            false => offered.grain.clone().into(),
        };
        offer.with_vectors(vec![self.embedding()])
    }
}

fn values(random: &mut Random, dimension: usize) -> Vec<f32> {
    (0..dimension).map(|_| random.below(2_000_001) as f32 / 1e6 - 1.0).collect()
}

impl Vectors {
    /// The rules that giving a grain this vector breaks, and whether it replaces another.
    fn judge(
        &self,
        model: &Model,
        (namespace, now): (Option<&str>, EpochMs),
        address: &ContentAddress,
        given: &Given,
    ) -> (Broken, bool) {
        let space = self.0.get(given.model);
        let had = space.and_then(|space| space.given.get(address));
        let mut broken = Broken::new();
        if had == Some(&given.values) {
            return (broken, false);
        }
        if space.is_some_and(|space| space.dimension != given.values.len()) {
            broken.insert(DIMENSION);
        }
        // Those without a namespace are the operator's.
        let locks = match namespace.is_some() && model.find(address).is_some() {
            true => marked::locks_over(model, address, now),
            false => Vec::new(),
        };
        if locks.iter().any(|lock| *lock != Lock::Open) {
            broken.insert(DENIED);
        }
        (broken, had.is_some())
    }

    fn take(
        &mut self,
        model: &mut Model,
        now: EpochMs,
        (address, given, replaces): (ContentAddress, &Given, bool),
    ) {
        let dimension = given.values.len();
        let new = || Space { dimension, given: BTreeMap::new() };
        let space = self.0.entry(given.model).or_insert_with(new);
        space.given.insert(address, given.values.clone());
        if replaces {
            note(model, now, address, "done");
        }
    }

    /// Judges the put of a grain that comes with a vector.
    pub(crate) fn settle_put(
        &mut self,
        model: &mut Model,
        given: &Given,
        settled: &Settled,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let Settled { namespace, now, call, answer } = settled;
        let Call::Put(offered, SameFact::Add) = call else { return Err("no put".to_owned()) };
        let address = offered.blob().address();
        let (broken, replaces) = self.judge(model, (*namespace, *now), &address, given);
        if let Answer::Refused(code) = answer
            && broken.contains(code)
        {
            if *code == DENIED {
                note(model, *now, address, "refused");
            }
            tally.note("put with a vector", false);
            return Ok(());
        }
        model.settle(settled)?;
        if matches!(answer, Answer::Refused(_)) {
            return Ok(());
        }
        allow(&broken, answer)?;
        self.take(model, *now, (address, given, replaces));
        tally.note("put with a vector", true);
        Ok(())
    }

    /// Gives a stored grain a vector: another, sometimes the one it has.
    pub(crate) fn embed(
        &mut self,
        (store, model, caller): (&Session, &mut Model, &mut Caller),
        namespace: Option<&str>,
        now: EpochMs,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let mut given = Given::random(&mut caller.random);
        let again = self.0.get(given.model).filter(|space| !space.given.is_empty());
        let again = again.filter(|_| caller.random.percent(40));
        let address = match again {
            Some(space) => {
                let place = caller.random.below(space.given.len());
                let (address, had) = space.given.iter().nth(place).expect("one of them");
                if caller.random.percent(30) {
                    given.values.clone_from(had);
                }
                *address
            }
            None => match caller.known(model, 70) {
                Some(known) if caller.random.percent(97) => known.address,
                _ => ContentAddress::of(b"never stored"),
            },
        };
        let outcome = store.embed(&address, vec![given.embedding()]);
        let code = outcome.err().map(|error| error.code());
        let answer = code.map_or(Answer::Marked, Answer::Refused);
        let reached = |known: &Known| rules::reaches(namespace, rules::partition(&known.grain));
        let (broken, replaces) = match model.find(&address).is_some_and(reached) {
            true => self.judge(model, (namespace, now), &address, &given),
            false => (Broken::from([NOT_FOUND]), false),
        };
        allow(&broken, &answer).map_err(|why| format!("embed {address} {given:?}: {why}"))?;
        tally.note("embed", code.is_none());
        match code {
            None => {
                self.take(model, now, (address, &given, replaces));
                self.expect_models(store, &address)
            }
            Some(DENIED) => {
                tally.note("vector of a protected grain", false);
                note(model, now, address, "refused");
                Ok(())
            }
            Some(_) => Ok(()),
        }
    }

    /// Removes all vectors of a model, unless it is the only one: that serves.
    pub(crate) fn remove(
        &mut self,
        (store, model, random): (&Store, &mut Model, &mut Random),
        now: EpochMs,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let name = random.pick(&MODELS);
        let expected = match self.0.get(name) {
            None => Err(NOT_FOUND),
            Some(_) if self.0.len() == 1 => Err(CONFLICT),
            Some(space) => Ok(space.given.len() as u64),
        };
        let removed = store.remove_vectors(name).map_err(|error| error.code());
        same(&format!("removed of {name}"), &removed, &expected)?;
        tally.note("remove_vectors", removed.is_ok());
        if removed.is_ok() {
            self.0.remove(name);
            let (operation, subjects) = ("remove_vectors", Vec::new());
            model.audit.push(Entry { time: now, operation, subjects, decision: "done" });
        }
        Ok(())
    }

    /// Searches by nearness.
    pub(crate) fn search(
        &self,
        (session, model, random): (&Session, &Model, &mut Random),
        namespace: Option<&str>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let asked = Given::random(random);
        let near = Near { model: Some(asked.model.to_owned()), values: (*asked.values).into() };
        let found = session.query(&Query::default().nearing(near), &PageOptions::first(NEAREST));
        let space = match self.0.get(asked.model) {
            // Where there are no vectors at all, nothing is near.
            None if self.0.is_empty() => {
                let rows = found.map(|found| found.results.len()).map_err(|error| error.code());
                return same("near in nothing", &rows, &Ok(0));
            }
            None => Err(NOT_FOUND),
            Some(space) if space.dimension != asked.values.len() => Err(DIMENSION),
            Some(space) => Ok(space),
        };
        tally.note("near", found.is_ok());
        let (found, space) = match (found.map_err(|error| error.code()), space) {
            (Ok(found), Ok(space)) => (found, space),
            (found, space) => {
                return same("near", &found.map(drop), &space.map(drop));
            }
        };
        let seen = |address: &ContentAddress| {
            model.find(address).is_some_and(|known| {
                known.is_current() && rules::reaches(namespace, rules::partition(&known.grain))
            })
        };
        let all = space.given.iter().filter(|(address, _)| seen(address));
        let mut nearest: Vec<f64> = all.map(|(_, had)| cosine(had, &asked.values)).collect();
        nearest.sort_by(|a, b| b.total_cmp(a));
        nearest.truncate(NEAREST);
        let found: Vec<_> = found.results.iter().map(|row| row.content_address).collect();
        same("rows of near", &found.len(), &nearest.len())?;
        for (place, (address, expected)) in found.iter().zip(nearest).enumerate() {
            let had = space.given.get(address).filter(|_| seen(address));
            let is_once = !found[..place].contains(address);
            let is_near = |had: &Vec<f32>| (cosine(had, &asked.values) - expected).abs() < EQUAL;
            if !is_once || !had.is_some_and(is_near) {
                return Err(format!("near {asked:?}: row {place} of {found:?} is not the next"));
            }
        }
        Ok(())
    }

    /// That the store has these vectors, and no others.
    pub(crate) fn agree(&self, store: &Store, operator: &Session) -> Result<(), String> {
        let given: usize = self.0.values().map(|space| space.given.len()).sum();
        let rows = store.stats().map_err(|error| error.to_string())?.rows;
        same("vectors", &rows.get("vectors").copied().unwrap_or(0), &(given as u64))?;
        let mut all = self.0.values().flat_map(|space| space.given.keys());
        all.try_for_each(|address| self.expect_models(operator, address))
    }

    fn expect_models(&self, session: &Session, address: &ContentAddress) -> Result<(), String> {
        let refs = session.embedding_refs(address).map_err(|error| error.to_string())?;
        let mut found: Vec<_> = refs.into_iter().map(|one| one.model).collect();
        found.sort_unstable();
        let has = |(name, space): (&&str, &Space)| {
            space.given.contains_key(address).then(|| (*name).to_owned())
        };
        same("models of a grain", &found, &self.0.iter().filter_map(has).collect())
    }
}

fn note(model: &mut Model, time: EpochMs, address: ContentAddress, decision: &'static str) {
    model.audit.push(Entry { time, operation: "embed", subjects: vec![address], decision });
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
