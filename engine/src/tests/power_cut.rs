//! The power is cut at every sync point of a workload, and again while the store recovers.

use super::disk::{Change, Cut, Disk, Event, Image};
use super::examine::examine;
use super::kit::model::Model;
use super::kit::offers::Call;
use super::script::{Script, offered};
use super::{START_MS, assert_no_writer_panicked, clock_at, is_full, open};
use crate::SameFact;
use crate::format::{Grain, Map, Value};

/// How much of a story is cut.
struct Sweep<'s> {
    script: &'s Script,
    /// The first call to cut around.
    from: usize,
    /// The last call to cut after.
    until: usize,
    /// One image in so many is recovered under further cuts.
    nest: usize,
    points: usize,
    images: usize,
    nested: usize,
    /// Images on which a call was found done that had not been answered.
    in_flight: usize,
}

/// The disk at one point of a story.
pub(crate) struct Moment<'m> {
    pub(crate) synced: &'m Image,
    pub(crate) unsynced: &'m [Change],
}

impl<'s> Sweep<'s> {
    fn new(script: &'s Script, nest: usize) -> Self {
        Self {
            script,
            from: 0,
            until: usize::MAX,
            nest,
            points: 0,
            images: 0,
            nested: 0,
            in_flight: 0,
        }
    }

    /// Cuts the power before each sync is completed, and at the end.
    fn run(&mut self) {
        let settled = self.script.settled();
        let mut answered = Model::default();
        let (mut calls, mut answers) = (0, 0);
        replay(&self.script.image, &self.script.story, |event, moment| match event {
            Some(Event::Called(number)) => calls = number + 1,
            Some(Event::Answered(number)) => {
                answers = number + 1;
                answered.settle(settled[*number]).unwrap();
            }
            Some(Event::Changed(_)) => {}
            Some(Event::Synced(_)) | None => {
                if calls > self.from && answers <= self.until {
                    self.points += 1;
                    let mut states = vec![answered.clone()];
                    for in_flight in &settled[answers..calls] {
                        let mut next = states[states.len() - 1].clone();
                        next.settle(in_flight).unwrap();
                        states.push(next);
                    }
                    self.cut(moment, &states);
                }
            }
        });
        assert_no_writer_panicked();
    }

    fn cut(&mut self, moment: &Moment<'_>, states: &[Model]) {
        let seed = self.points as u64;
        for cut in [Cut::Dropped, Cut::Torn(seed), Cut::Applied] {
            let image = cut.image(moment.synced, moment.unsynced);
            let found = examine(image.clone(), states);
            let place = found.unwrap_or_else(|why| panic!("sync {}, {cut:?}: {why}", self.points));
            self.images += 1;
            self.in_flight += usize::from(place > 0);
            if self.images.is_multiple_of(self.nest) {
                self.cut_recovery(&image, &states[place..=place]);
            }
        }
    }

    /// Cuts the power while a store opens on what an earlier cut left, and closes again.
    fn cut_recovery(&mut self, image: &Image, state: &[Model]) {
        let disk = Disk::recording(image.clone());
        open(&disk, &clock_at(2 * START_MS)).unwrap().close().unwrap();
        replay(image, &disk.story(), |event, moment| {
            if matches!(event, Some(Event::Synced(_)) | None) {
                for cut in [Cut::Dropped, Cut::Torn(self.nested as u64), Cut::Applied] {
                    let found = examine(cut.image(moment.synced, moment.unsynced), state);
                    let point = self.points;
                    found.unwrap_or_else(|why| panic!("recovery of sync {point}, {cut:?}: {why}"));
                    self.nested += 1;
                }
            }
        });
    }

    fn report(&self, name: &str) {
        let Self { points, images, nested, in_flight, .. } = self;
        let calls = self.script.settled().len();
        println!(
            "power cut, {name}: {calls} calls, {points} sync points, {images} images ({in_flight} \
             with an unanswered call done), {nested} more while recovering"
        );
    }
}

/// Shows each event with the disk as it is before the event, and the end.
pub(crate) fn replay(
    image: &Image,
    story: &[Event],
    mut show: impl FnMut(Option<&Event>, &Moment<'_>),
) {
    let mut synced = image.clone();
    let mut unsynced: Vec<Change> = Vec::new();
    for event in story {
        show(Some(event), &Moment { synced: &synced, unsynced: &unsynced });
        match event {
            Event::Changed(change) => unsynced.push(change.clone()),
            Event::Synced(file) => {
                let done = |change: &&Change| change.is_of(*file);
                unsynced.iter().filter(done).for_each(|change| change.apply(&mut synced));
                unsynced.retain(|change| !change.is_of(*file));
            }
            Event::Called(_) | Event::Answered(_) => {}
        }
    }
    show(None, &Moment { synced: &synced, unsynced: &unsynced });
}

#[test]
fn what_was_acknowledged_is_there_whenever_the_power_goes() {
    let (seeds, calls) = if is_full() { (1..=12, 250) } else { (1..=1, 60) };
    for seed in seeds {
        let script = Script::random(seed, calls);
        let mut sweep = Sweep::new(&script, if is_full() { 20 } else { 40 });
        sweep.run();
        sweep.report(&format!("seed {seed}"));
        assert!(sweep.in_flight > 0, "some cuts come after the sync has all but ended");
    }
}

#[test]
fn a_tail_that_grows_full_is_folded_or_not_at_all() {
    let wide = Script::of((0..35).map(wide).collect());
    let mut sweep = Sweep::new(&wide, usize::MAX);
    assert!(!wide.folds.is_empty(), "some tail grew full");
    if !is_full() {
        // Each of these images takes seconds to open.
        (sweep.from, sweep.until) = (wide.folds[0], wide.folds[0] + 1);
    }
    sweep.run();
    sweep.report("wide grains");
    if is_full() {
        let large = Script::of(vec![many(100), many(9000), many(10)]);
        assert!(large.folds.contains(&1));
        let mut sweep = Sweep::new(&large, usize::MAX);
        sweep.run();
        sweep.report("large batch");
    }
}

#[test]
fn an_index_that_is_rebuilt_can_be_cut_short() {
    let script = Script::of((0..if is_full() { 40 } else { 2 }).map(wide).collect());
    let mut state = Model::default();
    script.settled().into_iter().for_each(|settled| state.settle(settled).unwrap());
    let image = Image { index: Vec::new(), ..script.end() };
    let mut sweep = Sweep::new(&script, usize::MAX);
    sweep.cut_recovery(&image, &[state]);
    sweep.report("rebuild");
    assert!(sweep.nested > 0);
}

/// Puts a grain with so many tags that some thirty like it fill a tail.
fn wide(number: i64) -> Call {
    let tags = (0..8000).map(|tag| format!("tag {number}.{tag}"));
    let mut fields = belief(number);
    fields.insert("structural_tags".to_owned(), tags.collect::<Vec<_>>().into());
    Call::Put(offered(Grain::from_fields(fields).unwrap()), SameFact::Add)
}

/// Puts as many small grains at once.
fn many(count: i64) -> Call {
    let grains = (0..count).map(|number| {
        let fields = belief(count * 100_000 + number);
        offered(Grain::from_fields(fields).unwrap())
    });
    Call::Batch(grains.collect())
}

fn belief(number: i64) -> Map {
    let fields: [(&str, Value); 6] = [
        ("type", "belief".into()),
        ("subject", format!("subject {number}").into()),
        ("relation", "prefers".into()),
        ("object", "tea".into()),
        ("confidence", 0.5.into()),
        ("created_at", number.into()),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into()
}
