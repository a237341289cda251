//! Cancellation, tested by counting checks: every phase checks, does so often enough, and stops for
//! good.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use grainstore_format::{EpochMs, Grain};

use super::*;
use crate::assemble::{Assembly, SourceReport, assemble};
use crate::budget::Budget;
use crate::format::{Format, render_cancellable};
use crate::item::Item;
use crate::level::Level;
use crate::options::{AssemblyOptions, AssemblySource, Disclosure};
use crate::template::{Preset, Section, Template};
use crate::time::Clock;
use crate::tokens::TokenCounter;

const CLOCK: Clock = Clock { now: EpochMs::new(1_768_471_200_000), iso_timestamps: false };

/// Counts bytes, and the number of counts since the last cancellation check.
struct Busy<'b> {
    since: &'b AtomicUsize,
    most: AtomicUsize,
}

impl TokenCounter for Busy<'_> {
    fn count(&self, text: &str) -> usize {
        let since = self.since.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(since, Ordering::Relaxed);
        text.len()
    }

    fn name(&self) -> &str {
        "busy"
    }
}

fn items(count: usize) -> Vec<Item> {
    let item = |at| {
        let json = format!(
            r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "number {at}",
                "confidence": 0.5, "created_at": 1768471200000}}"#
        );
        Item {
            grain: Grain::from_json(&json).unwrap(),
            verification: None,
            chosen: None,
            score: None,
        }
    };
    (0..count).map(item).collect()
}

/// Assembles up to `most` checks. Returns the result, the number of checks, and the most counts between
/// two checks.
fn looked(
    items: &[Item],
    budget: usize,
    format: Format,
    most: usize,
) -> (Result<Assembly, Error>, usize, usize) {
    looked_by(items, (budget, format, None), most)
}

/// Like [`looked`], with a template if one is given.
fn looked_by(
    items: &[Item],
    (budget, format, template): (usize, Format, Option<&Template>),
    most: usize,
) -> (Result<Assembly, Error>, usize, usize) {
    let (looks, since) = (Cell::new(0), AtomicUsize::new(0));
    let stops = || {
        looks.set(looks.get() + 1);
        since.store(0, Ordering::Relaxed);
        looks.get() > most
    };
    let counter = Busy { since: &since, most: AtomicUsize::new(0) };
    let source = |label| AssemblySource { label, items, limit: 3, failed: false };
    let options = AssemblyOptions {
        format,
        template,
        name: None,
        intent: None,
        budget: Budget::Tokens(budget),
        priority: &[],
        disclosure: Disclosure::Auto,
        clock: CLOCK,
        cancel: CancelCheck::from_fn(&stops),
    };
    let done = assemble(&[source("a"), source("b")], &options, &counter);
    (done, looks.get(), counter.most.into_inner())
}

#[test]
fn an_assembly_stops_at_the_very_look_that_says_so() {
    let items = items(50);
    for format in Format::ALL {
        let (done, all, _) = looked(&items, 1_200, format, usize::MAX);
        let done = done.unwrap();
        assert!(done.sources.iter().any(|source| source.omitted > 0), "the budget is tight");
        // Setting two levels per source first, then selecting twice, then writing.
        assert!(all > 4 * items.len(), "{format:?}: {all}");
        for most in (0..all).step_by(11).chain([all - 1]) {
            let (stopped, looks, _) = looked(&items, 1_200, format, most);
            assert_eq!(stopped.unwrap_err().code(), "CAL-E082", "{format:?} at {most}");
            assert_eq!(looks, most + 1, "{format:?}: nothing goes on");
        }
        let (again, looks, _) = looked(&items, 1_200, format, all);
        assert_eq!((again.unwrap(), looks), (done, all), "{format:?}");
    }
}

#[test]
fn what_stands_for_grains_left_out_stops_too() {
    let sections =
        [(Section::Element, "- {{grain.content}}\n"), (Section::ElementOmit, "omitted\n")];
    let template = Template::new(Preset::Compact, &sections).unwrap();
    let items = items(300);
    let of = |template| (60, Format::Sml, Some(template));
    let (done, all, _) = looked_by(&items, of(&template), usize::MAX);
    let done = done.unwrap();
    let sum = |count: fn(&SourceReport) -> usize| done.sources.iter().map(count).sum::<usize>();
    let (shown, omitted) = (sum(|of| of.standard + of.summary + of.full), sum(|of| of.omitted));
    assert!(omitted > 50 * shown && shown > 0, "{shown} and {omitted}");
    // The text of all omitted grains is tried, with one check per grain.
    let silent = Template::new(Preset::Compact, &sections[..1]).unwrap();
    let (_, without, _) = looked_by(&items, of(&silent), usize::MAX);
    assert!(all - without >= omitted, "{all} and {without}");
    for most in [without, all - 1] {
        let (stopped, looks, _) = looked_by(&items, of(&template), most);
        assert_eq!(stopped.unwrap_err().code(), "CAL-E082", "at {most}");
        assert_eq!(looks, most + 1);
    }
}

#[test]
fn the_work_between_two_looks_does_not_grow_with_the_grains() {
    for count in [10, 1_000] {
        let (done, _, most) = looked(&items(count), 4_000, Format::Toon, usize::MAX);
        done.unwrap();
        assert!(most <= 16, "{most} counts between two looks at {count} grains");
    }
}

#[test]
fn a_text_of_grains_stops_between_two_of_them() {
    let items = items(20);
    for format in Format::ALL {
        for most in [0, 7, 19] {
            let looks = Cell::new(0);
            let stops = || {
                looks.set(looks.get() + 1);
                looks.get() > most
            };
            let watch = CancelCheck::from_fn(&stops);
            let stopped = render_cancellable(&items, format, Level::Full, &CLOCK, watch);
            assert_eq!(stopped.unwrap_err().code(), "CAL-E082", "{format:?} at {most}");
            assert_eq!(looks.get(), most + 1);
        }
        let written =
            render_cancellable(&items, format, Level::Full, &CLOCK, CancelCheck::NEVER).unwrap();
        assert_eq!(written, crate::render(&items, format, Level::Full, &CLOCK));
    }
}
