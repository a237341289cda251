//! The index is whatever somebody left beside the truth: missing, older, newer or of another history.
//! Answers follow the truth.

use super::disk::{Event, Image};
use super::examine::examine;
use super::kit::model::Model;
use super::power_cut::replay;
use super::script::Script;
use super::{assert_no_writer_panicked, is_full};

/// A store as it lay on the disk after some calls.
#[derive(Clone)]
struct Shot {
    image: Image,
    state: Model,
}

/// The disk after every so many answers, where no call waits for one, and at the end.
fn shots(script: &Script, every: usize) -> Vec<Shot> {
    let settled = script.settled();
    let mut state = Model::default();
    let (mut calls, mut shots) = (0, Vec::<Shot>::new());
    let mut next = 0;
    replay(&script.image, &script.story, |event, moment| match event {
        Some(Event::Called(number)) => calls = number + 1,
        Some(Event::Answered(number)) => {
            state.settle(settled[*number]).unwrap();
            if *number >= next && number + 1 == calls {
                shots.push(Shot { image: moment.synced.clone(), state: state.clone() });
                next = number + every;
            }
        }
        None => shots.push(Shot { image: script.end(), state: state.clone() }),
        Some(_) => {}
    });
    shots
}

fn calls() -> usize {
    if is_full() { 250 } else { 80 }
}

#[test]
fn answers_follow_the_truth_beside_an_index_of_any_time() {
    let (mut older, mut newer) = (0, 0);
    for seed in if is_full() { 1..=6 } else { 1..=2 } {
        let shots = shots(&Script::random(seed, calls()), if is_full() { 9 } else { 16 });
        for (at, truth) in shots.iter().enumerate() {
            for (from, other) in shots.iter().enumerate() {
                let image =
                    Image { truth: truth.image.truth.clone(), index: other.image.index.clone() };
                let found = examine(image, std::slice::from_ref(&truth.state));
                found.unwrap_or_else(|why| panic!("seed {seed}, {at} beside {from}: {why}"));
                older += usize::from(from < at);
                newer += usize::from(from > at);
            }
            let image = Image { index: Vec::new(), ..truth.image.clone() };
            let found = examine(image, std::slice::from_ref(&truth.state));
            found.unwrap_or_else(|why| panic!("seed {seed}, {at} without an index: {why}"));
        }
    }
    assert_no_writer_panicked();
    println!("stale index: {older} older copies and {newer} newer ones beside a truth");
}

#[test]
fn answers_follow_the_truth_beside_the_index_of_another_history() {
    let ours = shots(&Script::random(21, calls()), 20);
    let theirs = shots(&Script::random(22, calls()), 20);
    for (at, ours) in ours.iter().enumerate() {
        for (from, theirs) in theirs.iter().enumerate() {
            let image =
                Image { truth: ours.image.truth.clone(), index: theirs.image.index.clone() };
            let found = examine(image, std::slice::from_ref(&ours.state));
            found.unwrap_or_else(|why| panic!("{at} beside {from} of another: {why}"));
        }
    }
    assert_no_writer_panicked();
}
