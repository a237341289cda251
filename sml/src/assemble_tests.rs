//! Behaviour of assembly, with token counters simple enough to compute the expected sums by hand.

use grainstore_format::{EpochMs, Grain};

use super::*;
use crate::cancel::CancelCheck;
use crate::format::Format;
use crate::item::Item;
use crate::options::Disclosure;
use crate::time::Clock;
use crate::tokens::Estimator;

const CLOCK: Clock = Clock { now: EpochMs::new(1_768_471_200_000), iso_timestamps: false };

/// Counts one token per line. In these tests every element and every gap is one line; the envelope has
/// three.
struct Lines;

impl TokenCounter for Lines {
    fn count(&self, text: &str) -> usize {
        text.lines().count()
    }

    fn name(&self) -> &str {
        "lines"
    }
}

struct Bytes;

impl TokenCounter for Bytes {
    fn count(&self, text: &str) -> usize {
        text.len()
    }

    fn name(&self) -> &str {
        "bytes"
    }
}

fn item(json: &str) -> Item {
    Item {
        grain: Grain::from_json(json).expect(json),
        verification: None,
        chosen: None,
        score: None,
    }
}

fn belief(object: &str) -> Item {
    item(&format!(
        r#"{{"type": "belief", "subject": "a", "relation": "is", "object": "{object}",
            "confidence": 0.5, "created_at": 1768471200000}}"#
    ))
}

fn goal(description: &str) -> Item {
    item(&format!(
        r#"{{"type": "goal", "description": "{description}", "goal_state": "active",
            "created_at": 1768471200000}}"#
    ))
}

fn beliefs(objects: &[&str]) -> Vec<Item> {
    objects.iter().map(|object| belief(object)).collect()
}

fn source<'a>(label: &'a str, items: &'a [Item]) -> AssemblySource<'a> {
    AssemblySource { label, items, limit: 20, failed: false }
}

fn options<'a>(budget: Budget) -> AssemblyOptions<'a> {
    let disclosure = Disclosure::Fixed(Level::Standard);
    AssemblyOptions {
        template: None,
        format: Format::Sml,
        name: None,
        intent: None,
        budget,
        priority: &[],
        disclosure,
        clock: CLOCK,
        cancel: CancelCheck::NEVER,
    }
}

fn run(sources: &[AssemblySource<'_>], options: &AssemblyOptions<'_>) -> Assembly {
    assemble(sources, options, &Lines).expect("a budget above the envelope")
}

/// Returns the texts of the elements, in order.
fn texts(assembly: &Assembly) -> Vec<&str> {
    let elements = assembly.text.lines().filter(|line| line.starts_with("  <"));
    elements.filter_map(|line| line.split(['>', '<']).nth(2)).collect()
}

#[test]
fn sources_appear_in_their_own_order_with_the_intent() {
    let (first, second) = (beliefs(&["x"]), [goal("y"), belief("z")]);
    let sources = [source("b", &first), source("g", &second)];
    let priority = [1, 0];
    let options = AssemblyOptions {
        intent: Some("a test"),
        priority: &priority,
        ..options(Budget::Tokens(4000))
    };
    let assembly = assemble(&sources, &options, &Estimator).unwrap();
    let expected = "<context intent=\"a test\">\n\n  \
                    <belief subject=\"a\" confidence=\"0.5\">is x</belief>\n\n  \
                    <goal state=\"active\">y</goal>\n\n  \
                    <belief subject=\"a\" confidence=\"0.5\">is z</belief>\n\n</context>\n";
    assert_eq!(assembly.text, expected);
    assert_eq!(assembly.tokens, Estimator.count(expected));
    let reports: Vec<_> = assembly.sources.iter().map(|s| (s.label.as_str(), s.standard)).collect();
    assert_eq!(reports, [("b", 1), ("g", 2)]);
}

#[test]
fn a_budget_below_the_empty_envelope_is_refused() {
    let items = beliefs(&["x"]);
    for tokens in 0..3 {
        let refused = assemble(&[source("b", &items)], &options(Budget::Tokens(tokens)), &Lines);
        assert_eq!(refused.map_err(|e| e.code()), Err("CAL-E030"), "{tokens}");
    }
    for tokens in 3..5 {
        let assembly = run(&[source("b", &items)], &options(Budget::Tokens(tokens)));
        assert_eq!(assembly.text, "<context>\n\n</context>\n");
        assert_eq!((assembly.tokens, assembly.sources[0].omitted), (3, 1));
    }
    assert_eq!(run(&[source("b", &items)], &options(Budget::Tokens(5))).tokens, 5);
}

#[test]
fn the_budget_is_split_by_priority() {
    let items = beliefs(&["1"; 100]);
    let sources = [source("one", &items), source("two", &items)];
    for (priority, expected) in [(&[][..], [64, 34]), (&[1, 0], [34, 64]), (&[1, 1, 9], [34, 64])] {
        let options = AssemblyOptions { priority, ..options(Budget::Grains(98)) };
        let reports = run(&sources, &options).sources;
        let allocated: Vec<_> = reports.iter().map(|s| s.allocated).collect();
        let used: Vec<_> = reports.iter().map(|s| s.used).collect();
        assert_eq!(allocated, expected, "{priority:?}");
        assert_eq!(used, expected, "{priority:?}");
    }
}

#[test]
fn room_that_whole_grains_cannot_use_goes_to_another_source() {
    let (large, small) = (beliefs(&[&"x".repeat(300), &"x".repeat(300)]), beliefs(&["1"; 9]));
    let sources = [source("large", &large), source("small", &small)];
    let assembly = assemble(&sources, &options(Budget::Tokens(800)), &Bytes).unwrap();
    let [large, small] = assembly.sources.as_slice() else { panic!("two reports") };
    assert_eq!((large.standard, large.omitted), (1, 1));
    assert!(small.used > small.allocated);
    assert!(
        800 - assembly.tokens < "  <belief subject=\"a\" confidence=\"0.5\">is 1</belief>\n".len()
    );
}

#[test]
fn what_is_left_at_the_end_goes_back_to_the_first() {
    let large = |n: usize| belief(&"x".repeat(n));
    let (first, second) = ([large(150), large(90)], [large(200)]);
    let sources = [source("first", &first), source("second", &second)];
    let assembly = assemble(&sources, &options(Budget::Tokens(423)), &Bytes).unwrap();
    let shown: Vec<_> = assembly.sources.iter().map(|s| (s.standard, s.omitted)).collect();
    assert_eq!(shown, [(2, 0), (0, 1)]);
}

#[test]
fn a_group_pays_for_the_empty_line_after_it() {
    let (first, second) = ([belief("1"), belief("2"), goal("3")], [goal("4")]);
    let sources = [source("first", &first), source("second", &second)];
    let assembly = run(&sources, &options(Budget::Tokens(100)));
    let used: Vec<_> = assembly.sources.iter().map(|s| s.used).collect();
    assert_eq!((used, assembly.tokens), (vec![5, 2], 3 + 5 + 2));
}

#[test]
fn a_share_nobody_needs_flows_on_and_so_does_that_of_a_failed_source() {
    let (few, many) = (beliefs(&["1"; 5]), beliefs(&["2"; 100]));
    for failed in [false, true] {
        let first = AssemblySource { failed, ..source("first", &few) };
        let assembly = run(&[first, source("second", &many)], &options(Budget::Grains(40)));
        let shown: Vec<_> = assembly.sources.iter().map(|s| s.standard).collect();
        assert_eq!(shown, if failed { [0, 40] } else { [5, 35] });
        assert_eq!(assembly.sources[1].omitted, 100 - shown[1]);
        assert_eq!(assembly.sources[0].omitted, 0);
    }
}

#[test]
fn a_grain_too_large_leaves_room_for_smaller_ones_after_it() {
    let long = "x".repeat(200);
    let items = beliefs(&["1", &long, "2"]);
    let assembly = assemble(&[source("b", &items)], &options(Budget::Tokens(200)), &Bytes);
    let assembly = assembly.unwrap();
    assert_eq!(texts(&assembly), ["is 1", "is 2"]);
    assert_eq!((assembly.sources[0].standard, assembly.sources[0].omitted), (2, 1));
    assert!(!assembly.text.contains("xx"));
}

#[test]
fn a_fixed_level_is_kept_and_auto_steps_down_before_omitting() {
    let items = beliefs(&["1", "2"]);
    let empty = "<context>\n\n</context>\n".len();
    let summary = "  <belief subject=\"a\">is 1</belief>\n".len();
    let standard = "  <belief subject=\"a\" confidence=\"0.5\">is 1</belief>\n".len();
    // A long intent raises the budget above 1000 tokens, below which everything is shown as summary.
    let intent = "i".repeat(1000);
    let budget = Budget::Tokens(empty + " intent=\"\"".len() + 1000 + 1 + standard + summary);
    let run = |disclosure| {
        let options = AssemblyOptions { intent: Some(&intent), disclosure, ..options(budget) };
        let assembly = assemble(&[source("b", &items)], &options, &Bytes).unwrap();
        let report = &assembly.sources[0];
        (report.full, report.standard, report.summary, report.omitted)
    };
    assert_eq!(run(Disclosure::Auto), (0, 1, 1, 0));
    assert_eq!(run(Disclosure::Fixed(Level::Full)), (1, 0, 0, 1));
    assert_eq!(run(Disclosure::Fixed(Level::Standard)), (0, 1, 0, 1));
    assert_eq!(run(Disclosure::Fixed(Level::Summary)), (0, 0, 2, 0));
}

#[test]
fn auto_follows_the_budget_and_what_a_source_asks_for() {
    let items = beliefs(&["1", "2"]);
    for (budget, asked, expected) in [
        (Budget::Tokens(999), 2, (0, 0, 2)),
        (Budget::Tokens(1000), 5, (2, 0, 0)),
        (Budget::Tokens(1000), 6, (0, 2, 0)),
        (Budget::Grains(2), 5, (2, 0, 0)),
        (Budget::Grains(1), 5, (0, 1, 0)),
        (Budget::Grains(50), 20, (0, 2, 0)),
    ] {
        let auto = AssemblyOptions { disclosure: Disclosure::Auto, ..options(budget) };
        let source = AssemblySource { limit: asked, ..source("b", &items) };
        let report = &run(&[source], &auto).sources[0];
        let levels = (report.full, report.standard, report.summary);
        assert_eq!(levels, expected, "{budget:?} asking {asked}");
    }
}

#[test]
fn a_full_source_that_does_not_fit_leaves_the_others_in_full() {
    let (short, long) = (beliefs(&["1"]), beliefs(&[&"x".repeat(1500), "2"]));
    let sources = [
        AssemblySource { limit: 5, ..source("long", &long) },
        AssemblySource { limit: 5, ..source("short", &short) },
    ];
    let auto = AssemblyOptions { disclosure: Disclosure::Auto, ..options(Budget::Tokens(1600)) };
    let assembly = assemble(&sources, &auto, &Bytes).unwrap();
    let [first, second] = assembly.sources.as_slice() else { panic!("two reports") };
    assert_eq!((first.full, first.omitted), (0, 1));
    assert_eq!(second.full, 1);
}

#[test]
fn grains_that_must_not_be_shown_take_no_budget_and_no_part_in_the_report() {
    let hidden = item(
        r#"{"type": "reasoning", "conclusion": "secret", "requires_human_review": true,
            "created_at": 1768471200000}"#,
    );
    let items = [hidden, belief("1")];
    let assembly = run(&[source("b", &items)], &options(Budget::Grains(1)));
    assert_eq!(texts(&assembly), ["is 1"]);
    assert_eq!(assembly.sources[0].omitted, 0);
    assert_eq!(assembly.text, crate::render(&items, Format::Sml, Level::Standard, &CLOCK));
}

#[test]
fn no_source_gives_an_empty_envelope() {
    let assembly = run(&[], &options(Budget::Tokens(3)));
    assert_eq!(assembly.text, "<context>\n\n</context>\n");
    assert!(assembly.sources.is_empty());
}

/// Single elements are free; together they cost the square of their number.
struct Square;

impl TokenCounter for Square {
    fn count(&self, text: &str) -> usize {
        let elements = text.matches("</belief>").count();
        if elements < 2 { 0 } else { elements * elements }
    }

    fn name(&self) -> &str {
        "square"
    }
}

#[test]
fn a_counter_that_does_not_add_up_costs_grains_and_not_the_budget() {
    let items = beliefs(&["1"; 40]);
    let sources = [source("first", &items), source("second", &items)];
    let assembly = assemble(&sources, &options(Budget::Tokens(1700)), &Square).unwrap();
    let shown: Vec<_> = assembly.sources.iter().map(|s| (s.standard, s.omitted)).collect();
    assert_eq!(shown, [(40, 0), (1, 39)]);
    assert_eq!(assembly.tokens, 41 * 41);
}

/// Counts like [`Lines`], with a surcharge for a text that contains `heavy` and more than one other
/// element.
struct Crowded;

impl TokenCounter for Crowded {
    fn count(&self, text: &str) -> usize {
        let lines = Lines.count(text);
        if text.contains("heavy") && lines > 4 { lines + 50 } else { lines }
    }

    fn name(&self) -> &str {
        "crowded"
    }
}

#[test]
fn what_does_not_fit_the_finished_text_is_left_out_alone() {
    let items = beliefs(&["heavy", "1", "2", "3"]);
    let assembly = assemble(&[source("b", &items)], &options(Budget::Tokens(20)), &Crowded);
    let assembly = assembly.unwrap();
    assert_eq!(texts(&assembly), ["is 1", "is 2", "is 3"]);
    let report = &assembly.sources[0];
    // The opening of the group is paid by the grains of it that are left.
    assert_eq!((report.standard, report.omitted, report.used), (3, 1, 4));
    assert_eq!(assembly.tokens, 3 + 4);
}
