//! A workload that is the same for the same seed: single calls, bursts that become one group,
//! flushes and reopenings. Every answer is held against the model while it runs.

use std::sync::Arc;

use grainstore_format::{BeliefBuilder, Encoding, EpochMs, Grain};

use super::disk::{Disk, Event, Image};
use super::kit::agree::agree;
use super::kit::calls::{Caller, Made, session};
use super::kit::model::Model;
use super::kit::offers::{Call, Offered, Settled};
use super::{START_MS, assert_no_writer_panicked, clock_at, empty_image, open};
use crate::{ManualClock, SameFact, Store};

/// Calls of one burst.
const BURST: usize = 6;

/// A step of a workload.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Call(Box<Settled>),
    Flush,
    Reopen,
}

/// What was done to a disk, and what came of it.
pub(crate) struct Script {
    /// What was on the disk before.
    pub(crate) image: Image,
    pub(crate) story: Vec<Event>,
    pub(crate) steps: Vec<Step>,
    /// The calls whose grains made the tail full, or that came while it was being folded.
    pub(crate) folds: Vec<usize>,
}

/// Somebody at work.
struct Worker {
    disk: Disk,
    clock: Arc<ManualClock>,
    store: Store,
    model: Model,
    caller: Caller,
    now: i64,
    calls: usize,
    steps: Vec<Step>,
    folds: Vec<usize>,
}

/// A grain offered as its fields.
pub(crate) fn offered(grain: Grain) -> Offered {
    Offered { grain, encoding: Encoding::default(), finished: false, signed: None }
}

impl Script {
    /// Makes at least this many random calls on an empty store.
    pub(crate) fn random(seed: u64, calls: usize) -> Self {
        Self::run(seed, |worker| {
            while worker.calls < calls {
                match worker.caller.random.below(100) {
                    0..3 => worker.reopen(),
                    3..8 => worker.flush(),
                    8..14 => worker.burst(),
                    _ => {
                        let (namespace, call) = worker.caller.next(&worker.model);
                        worker.call(namespace, call);
                    }
                }
            }
        })
    }

    /// Makes these calls as the operator, one after another.
    pub(crate) fn of(calls: Vec<Call>) -> Self {
        Self::run(0, |worker| calls.into_iter().for_each(|call| worker.call(None, call)))
    }

    fn run(seed: u64, work: impl FnOnce(&mut Worker)) -> Self {
        let image = empty_image();
        let disk = Disk::recording(image.clone());
        let clock = clock_at(START_MS);
        let mut worker = Worker {
            store: open(&disk, &clock).unwrap(),
            disk,
            clock,
            model: Model::default(),
            caller: Caller::new(seed),
            now: START_MS,
            calls: 0,
            steps: Vec::new(),
            folds: Vec::new(),
        };
        work(&mut worker);
        agree(&worker.store, &worker.model).unwrap();
        worker.store.close().unwrap();
        assert_no_writer_panicked();
        Self { image, story: worker.disk.story(), steps: worker.steps, folds: worker.folds }
    }

    /// What is on the disk after all of it.
    pub(crate) fn end(&self) -> Image {
        let mut image = self.image.clone();
        for event in &self.story {
            if let Event::Changed(change) = event {
                change.apply(&mut image);
            }
        }
        image
    }

    /// The calls and their answers.
    pub(crate) fn settled(&self) -> Vec<&Settled> {
        let calls = self.steps.iter().filter_map(|step| match step {
            Step::Call(settled) => Some(&**settled),
            Step::Flush | Step::Reopen => None,
        });
        calls.collect()
    }
}

impl Worker {
    fn tick(&mut self) -> EpochMs {
        self.now += 7;
        let now = EpochMs::new(self.now);
        self.clock.set(now);
        now
    }

    fn call(&mut self, namespace: Option<&'static str>, call: Call) {
        let now = self.tick();
        let before = self.folded_to();
        self.disk.note(Event::Called(self.calls));
        let made = Made::submit(&session(&self.store, namespace), &call);
        self.answered(made, Settled::awaited(namespace, now, call));
        if self.folded_to() > before || self.is_folding() {
            self.folds.push(self.calls - 1);
        }
    }

    fn answered(&mut self, made: Made, mut settled: Settled) {
        settled.answer = made.wait();
        self.disk.note(Event::Answered(self.calls));
        self.calls += 1;
        let judged = self.model.settle(&settled);
        judged.unwrap_or_else(|why| panic!("call {}: {settled:#?}\n{why}", self.calls));
        self.steps.push(Step::Call(Box::new(settled)));
    }

    /// Lets calls pile up behind a slow sync, so that the writer takes them as one group.
    fn burst(&mut self) {
        let now = self.tick();
        let name = format!("burst {}", self.calls);
        let first = BeliefBuilder::new(now, name, "opens", "a group", 1.0).build().unwrap();
        let first = offered(first);
        let mut calls = vec![(None, Call::Put(first, SameFact::Add))];
        // A mark waits for the disk itself, which stands still here.
        let next = std::iter::repeat_with(|| self.caller.next(&self.model));
        let next = next.filter(|(_, call)| !matches!(call, Call::Mark(..)));
        calls.extend(next.take(BURST - 1));

        let shut = self.disk.shut();
        let mut made = Vec::new();
        for (number, (namespace, call)) in (self.calls..).zip(calls) {
            self.disk.note(Event::Called(number));
            let pending = Made::submit(&session(&self.store, namespace), &call);
            if made.is_empty() {
                self.disk.await_sync();
            }
            made.push((pending, Settled::awaited(namespace, now, call)));
        }
        drop(shut);
        made.into_iter().for_each(|(pending, settled)| self.answered(pending, settled));
    }

    fn is_folding(&self) -> bool {
        self.store.inner().view().unwrap().tail().frozen().is_some()
    }

    fn folded_to(&self) -> u64 {
        self.store.stats().unwrap().folded_to
    }

    fn flush(&mut self) {
        self.store.flush().unwrap();
        self.steps.push(Step::Flush);
    }

    fn reopen(&mut self) {
        self.store.close().unwrap();
        // Refusals of the minute before a store is opened are counted with those after it.
        self.now += 61_000;
        self.clock.set(EpochMs::new(self.now));
        self.store = open(&self.disk, &self.clock).unwrap();
        self.steps.push(Step::Reopen);
    }
}
