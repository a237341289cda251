//! Stored text against the promises of the output: no forged markup, no budget exceeded, the same
//! bytes again. Uses the public interface only.

#![expect(clippy::panic, reason = "helpers of tests, which the allowance for tests does not reach")]

mod chunks;
mod decoder;
mod formats;
mod given;
mod reader;
mod readers;
mod templates;

use std::sync::atomic::{AtomicUsize, Ordering};

use grainstore_format::EpochMs;
use grainstore_sml::{
    Assembly, AssemblyOptions, AssemblySource, Budget, CancelCheck, Clock, Estimator, Format, Item,
    Level, TokenCounter, assemble, project, render,
};
use proptest::prelude::*;

use given::{Given, LEVELS, given_sources, item};
use reader::{Element, parse};

pub(crate) const CLOCK: Clock =
    Clock { now: EpochMs::new(1_768_471_200_000), iso_timestamps: false };

/// What a reader must get back of an item, or nothing where it must not be shown.
fn expected(item: &Item, level: Level) -> Option<Element> {
    let projection = project(item, level, &CLOCK)?;
    let attributes = projection.attributes.iter();
    Some(Element {
        name: projection.grain_type.name().to_owned(),
        attributes: attributes
            .map(|(name, value)| (name.to_string(), one_line(value.as_str())))
            .collect(),
        text: printable(&projection.text),
    })
}

/// Text without the characters that are dropped.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !formats::hides(*c) || matches!(c, '\n' | '\t')).collect()
}

/// Text as an attribute holds it.
fn one_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

fn elements(sml: &str) -> Vec<Element> {
    let (_, groups) = parse(sml).unwrap_or_else(|error| panic!("{error}\nin\n{sml}"));
    groups.into_iter().flatten().collect()
}

pub(crate) fn bytes(text: &str) -> usize {
    text.len()
}

fn squared_lines(text: &str) -> usize {
    text.lines().count().pow(2)
}

fn parts_are_free(text: &str) -> usize {
    if text.starts_with("<context") && text.ends_with("</context>\n") { text.len() } else { 0 }
}

fn shrinking(text: &str) -> usize {
    10_000_usize.saturating_sub(text.len())
}

fn huge(_: &str) -> usize {
    usize::MAX
}

pub(crate) struct Counter(pub(crate) fn(&str) -> usize);

impl TokenCounter for Counter {
    fn count(&self, text: &str) -> usize {
        (self.0)(text)
    }

    fn name(&self) -> &str {
        "test"
    }
}

/// Never gives the same answer twice.
struct Forgetful(AtomicUsize);

impl TokenCounter for Forgetful {
    fn count(&self, text: &str) -> usize {
        let calls = self.0.fetch_add(1, Ordering::Relaxed);
        (text.len() * (calls % 7)) / 3
    }

    fn name(&self) -> &str {
        "forgetful"
    }
}

fn run(
    (sources, priority, intent, disclosure): &Given,
    budget: Budget,
    counter: &dyn TokenCounter,
) -> Option<Assembly> {
    let sources: Vec<_> = sources
        .iter()
        .map(|(items, asked, failed)| AssemblySource {
            label: "s",
            items,
            limit: *asked,
            failed: *failed,
        })
        .collect();
    let options = AssemblyOptions {
        template: None,
        format: Format::Sml,
        name: None,
        intent: intent.as_deref(),
        budget,
        priority,
        disclosure: *disclosure,
        clock: CLOCK,
        cancel: CancelCheck::NEVER,
    };
    assemble(&sources, &options, counter).ok()
}

/// Every element shown is one of the projections of its source, whole, in order; and the report
/// accounts for each.
fn check_elements(given: &Given, assembly: &Assembly) {
    let mut shown = elements(&assembly.text).into_iter();
    for ((items, _, failed), report) in given.0.iter().zip(&assembly.sources) {
        let mut items = items.iter();
        let count = report.full + report.standard + report.summary;
        for element in shown.by_ref().take(count) {
            assert!(!failed, "a failed source shows nothing");
            let is_it = |item: &Item| {
                LEVELS.iter().any(|level| expected(item, *level).as_ref() == Some(&element))
            };
            assert!(items.any(is_it), "{element:?} is no item of its source, in order");
        }
    }
    assert_eq!(shown.next(), None, "an element of no source");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn stored_text_cannot_forge_markup(items in prop::collection::vec(item(), 0..8)) {
        for level in LEVELS {
            let wanted: Vec<_> = items.iter().filter_map(|item| expected(item, level)).collect();
            prop_assert_eq!(elements(&render(&items, Format::Sml, level, &CLOCK)), wanted);
        }
    }

    #[test]
    fn the_budget_holds_with_any_counter(given in given_sources(), tokens in 0_usize..4000) {
        let mut counters: Vec<Box<dyn TokenCounter>> = vec![Box::new(Estimator)];
        for count in [bytes, squared_lines, parts_are_free, shrinking, huge] {
            counters.push(Box::new(Counter(count)));
        }
        for counter in &counters {
            if let Some(assembly) = run(&given, Budget::Tokens(tokens), counter.as_ref()) {
                prop_assert!(assembly.tokens <= tokens);
                prop_assert_eq!(assembly.tokens, counter.count(&assembly.text));
                check_elements(&given, &assembly);
            }
        }
        if let Some(assembly) = run(&given, Budget::Tokens(tokens), &Forgetful(AtomicUsize::new(0))) {
            prop_assert!(assembly.tokens <= tokens);
            check_elements(&given, &assembly);
        }
    }

    #[test]
    fn no_more_grains_than_asked_and_no_fewer_than_possible(
        given in given_sources(),
        grains in 0_usize..40,
    ) {
        let assembly = run(&given, Budget::Grains(grains), &Estimator).expect("no envelope to pay");
        let usable = given.0.iter().filter(|(_, _, failed)| !failed).flat_map(|(items, ..)| items);
        let showable = usable.filter(|item| project(item, Level::Summary, &CLOCK).is_some()).count();
        prop_assert_eq!(elements(&assembly.text).len(), grains.min(showable));
        let omitted: usize = assembly.sources.iter().map(|source| source.omitted).sum();
        prop_assert_eq!(omitted, showable - grains.min(showable));
        check_elements(&given, &assembly);
    }

    #[test]
    fn a_budget_large_enough_shows_everything(given in given_sources()) {
        let assembly = run(&given, Budget::Tokens(1_000_000), &Estimator).expect("large enough");
        prop_assert!(assembly.sources.iter().all(|source| source.omitted == 0));
        let (intent, _) = parse(&assembly.text).expect("well formed");
        prop_assert_eq!(intent, given.2.as_deref().map(one_line));
        let used: usize = assembly.sources.iter().map(|source| source.used).sum();
        let shown = !elements(&assembly.text).is_empty();
        prop_assert!(assembly.tokens >= used);
        prop_assert_eq!(used > 0, shown);
    }

    #[test]
    fn the_same_input_gives_the_same_bytes(given in given_sources(), tokens in 0_usize..2000) {
        let budget = Budget::Tokens(tokens);
        let first = run(&given, budget, &Estimator);
        prop_assert_eq!(first, run(&given, budget, &Estimator));
    }
}
