//! Output of templates: values, sections, breaks and levels; and the errors of invalid ones.

use grainstore_format::{EpochMs, Grain};

use super::*;
use crate::assemble::{Assembly, assemble};
use crate::budget::Budget;
use crate::cancel::CancelCheck;
use crate::display_value::DisplayValue;
use crate::format::Format;
use crate::item::{ChosenFields, Item};
use crate::level::Level;
use crate::options::{AssemblyOptions, AssemblySource, Disclosure};
use crate::time::Clock;
use crate::tokens::{Estimator, TokenCounter};

const CLOCK: Clock = Clock { now: EpochMs::new(1_768_474_800_000), iso_timestamps: false };

fn item(json: &str) -> Item {
    let json = json.replacen('{', r#"{"created_at": 1768471200000, "#, 1);
    let grain = Grain::from_json(&json).unwrap();
    Item { grain, verification: None, chosen: None, score: Some(0.123_456) }
}

fn belief(object: &str) -> Item {
    item(&format!(
        r#"{{"type": "belief", "subject": "alice", "relation": "mg:works_at", "object": "{object}",
            "confidence": 0.90, "structural_tags": ["a", "b"], "namespace": "work"}}"#
    ))
}

fn goal(description: &str) -> Item {
    item(&format!(r#"{{"type": "goal", "description": "{description}", "goal_state": "active"}}"#))
}

/// Renders sources by a template, with these options changed.
fn assembled(
    (preset, sections): (Preset, &[(Section, &str)]),
    sources: &[(&str, &[Item])],
    change: impl FnOnce(&mut AssemblyOptions<'_>),
) -> Assembly {
    let template = Template::new(preset, sections).unwrap();
    let sources: Vec<_> = sources
        .iter()
        .map(|(label, items)| AssemblySource { label, items, limit: 20, failed: false })
        .collect();
    let mut options = AssemblyOptions {
        cancel: CancelCheck::NEVER,
        format: Format::Sml,
        template: Some(&template),
        name: Some("brief"),
        intent: Some("to <help>"),
        budget: Budget::Tokens(4000),
        priority: &[],
        disclosure: Disclosure::Fixed(Level::Standard),
        clock: CLOCK,
    };
    change(&mut options);
    assemble(&sources, &options, &Estimator).unwrap()
}

fn text(of: (Preset, &[(Section, &str)]), sources: &[(&str, &[Item])]) -> String {
    assembled(of, sources, |_| {}).text
}

#[test]
fn each_variable_says_what_it_stands_for() {
    for (written, expected) in [
        ("{{assembly.name}} {{assembly.intent}}", "brief to &lt;help>"),
        ("{{assembly.source_count}} {{assembly.grain_count}}", "2 3"),
        ("{{budget.total}} {{budget.unit}}", "4000 tokens"),
        ("{{disclosure.level}} {{timestamp}}", "standard 2026-01-15T11:00:00Z"),
        ("{{source.label}} {{source.index}} {{source.priority}}", "one 0 1"),
        ("{{source.grain_count}} {{source.truncated}}", "2 false"),
        ("{{grain.content}}|{{grain.type}}", "works at acme|belief"),
        ("{{grain.subject}} {{grain.relation}} {{grain.object}}", "alice mg:works_at acme"),
        ("{{grain.humanized_relation}}", "works at"),
        ("{{grain.confidence}} [{{grain.importance}}]", "0.9 []"),
        ("{{ grain.tags }}", "a,b"),
        ("{{grain.created_at}} {{grain.relative_time}}", "2026-01-15T10:00:00Z 1h ago"),
        ("{{grain.score}} [{{grain.hash}}]", "0.1235 []"),
        ("{{grain.is_full}} {{grain.is_summary}}", "false false"),
    ] {
        let element = format!("{written}\n");
        let of = (Preset::Compact, &[(Section::Element, element.as_str())][..]);
        let items = [belief("acme"), belief("acme")];
        let all = text(of, &[("one", &items), ("two", &[goal("rest")])]);
        assert_eq!(all.lines().next(), Some(expected), "{written}");
    }
    let names: Vec<_> = template_variables().collect();
    assert_eq!(names.len(), 32);
}

#[test]
fn what_a_text_takes_is_told_as_it_is() {
    let header = "{{budget.used}} {{budget.remaining}} {{budget.utilization}}\n";
    let of = (Preset::Compact, &[(Section::Header, header)][..]);
    let assembly = assembled(of, &[("s", &[belief("acme")])], |_| {});
    let used = assembly.tokens;
    let first = format!("{used} {} 0\n", 4000 - used);
    assert!(assembly.text.starts_with(&first), "{}", assembly.text);
    let grains = assembled(of, &[("s", &[belief("acme"), goal("rest")])], |options| {
        options.budget = Budget::Grains(3);
    });
    assert!(grains.text.starts_with("2 1 0.66\n"), "{}", grains.text);
    let break_of = (
        Preset::Compact,
        &[
            (Section::Element, "x y z\n"),
            (Section::SourceBreak, "{{source.label}} {{source.tokens_used}}\n"),
        ][..],
    );
    let items = [belief("a"), belief("b")];
    let all = text(break_of, &[("one", &items), ("two", &items)]);
    let tokens = 2 * Estimator.count("x y z\n");
    assert_eq!(all, format!("x y z\nx y z\ntwo {tokens}\nx y z\nx y z\n"));
}

#[test]
fn sections_ask_whether_a_value_is_there_and_neither_empty_nor_false() {
    for (written, expected) in [
        ("{{#grain.confidence}}yes{{/grain.confidence}}", "yes"),
        ("{{^grain.confidence}}no{{/grain.confidence}}", ""),
        ("{{#grain.importance}}yes{{/grain.importance}}", ""),
        ("{{^grain.importance}}no{{/grain.importance}}", "no"),
        ("{{#grain.hash}}yes{{/grain.hash}}{{^grain.hash}}no{{/grain.hash}}", "no"),
        ("{{#source.index}}zero is a value{{/source.index}}", "zero is a value"),
        (
            "{{#grain.is_full}}full{{/grain.is_full}}{{^grain.is_full}}less{{/grain.is_full}}",
            "less",
        ),
        ("{{#grain.subject}}{{#grain.tags}}both{{/grain.tags}}{{/grain.subject}}", "both"),
        ("a{{! not } this }}b", "ab"),
    ] {
        let of = (Preset::Compact, &[(Section::Element, written)][..]);
        assert_eq!(text(of, &[("s", &[belief("acme")])]), expected, "{written}");
    }
    let outside = "[{{grain.content}}{{source.label}}{{#grain.type}}x{{/grain.type}}]";
    let of = (Preset::Compact, &[(Section::Header, outside), (Section::Element, "")][..]);
    assert_eq!(text(of, &[("s", &[belief("acme")])]), "[]");
}

#[test]
fn lines_of_one_tag_are_not_written() {
    let header = "Known:\n{{#each}}\n  {{! of each }}\n- {{grain.object}} ({{source.label}})\n{{/each}}\n{{^each}}\nnothing\n{{/each}}\nend\n";
    let of = (Preset::Compact, &[(Section::Header, header), (Section::Element, "")][..]);
    let known = text(of, &[("s", &[belief("acme"), belief("home")]), ("t", &[belief("x")])]);
    assert_eq!(known, "Known:\n- acme (s)\n- home (s)\n- x (t)\nend\n");
    assert_eq!(text(of, &[("s", &[])]), "Known:\nnothing\nend\n");
}

#[test]
fn no_more_than_two_hundred_grains_are_listed() {
    let items: Vec<_> = (0..210).map(|n| belief(&n.to_string())).collect();
    let of = (
        Preset::Compact,
        &[(Section::Header, "{{#each}}.{{/each}}\n"), (Section::Element, "x\n")][..],
    );
    let all = text(of, &[("s", &items)]);
    assert_eq!(all.lines().next().map(str::len), Some(200));
    assert_eq!(all.matches('x').count(), 210);
}

#[test]
fn values_are_escaped_for_the_place_they_stand_in() {
    let hostile = r#"a<b> \"c\" &lt; d'e\n- f"#;
    for (written, expected) in [
        ("{{grain.object}}", "a&lt;b> \"c\" &amp;lt; d'e - f"),
        ("<x>{{grain.object}}</x>", "<x>a&lt;b> \"c\" &amp;lt; d'e - f</x>"),
        ("<br>{{grain.object}}", "<br>a&lt;b> \"c\" &amp;lt; d'e - f"),
        ("<x y=\"{{grain.object}}\">", "<x y=\"a&lt;b> &quot;c&quot; &amp;lt; d'e - f\">"),
        ("\"{{grain.object}}\"", "\"a&lt;b> &quot;c&quot; &amp;lt; d'e - f\""),
        (
            "<x y='\"' z='{{grain.object}}'>",
            "<x y='\"' z='a&lt;b&gt; &quot;c&quot; &amp;lt; d&apos;e - f'>",
        ),
        (
            "<!-- don't \" --><y a='{{grain.object}}'>",
            "<!-- don't \" --><y a='a&lt;b&gt; &quot;c&quot; &amp;lt; d&apos;e - f'>",
        ),
        ("<_x a='{{grain.object}}'>", "<_x a='a&lt;b&gt; &quot;c&quot; &amp;lt; d&apos;e - f'>"),
        ("5\" <x y=\"{{grain.object}}\">", "5\" <x y=\"a&lt;b> &quot;c&quot; &amp;lt; d'e - f\">"),
        ("<x y={{grain.object}}>", "<x y=a_b___c___lt__d_e_-_f>"),
        (
            "<!-- a > b {{grain.object}} -->",
            "<!-- a > b a&lt;b&gt; &quot;c&quot; &amp;lt; d&apos;e - f -->",
        ),
        ("\"<b>{{grain.object}}</b>\"", "\"<b>a&lt;b> &quot;c&quot; &amp;lt; d'e - f</b>\""),
        ("a < b {{grain.object}}", "a < b a&lt;b> \"c\" &amp;lt; d'e - f"),
    ] {
        let of = (Preset::Compact, &[(Section::Element, written)][..]);
        assert_eq!(text(of, &[("s", &[belief(hostile)])]), expected, "{written}");
    }
}

#[test]
fn what_a_template_does_not_say_is_the_presets() {
    let sources: [(&str, &[Item]); 3] = [
        ("a", &[belief("one"), goal("two")]),
        ("b", &[goal("three")]),
        ("c", &[goal("four"), belief("five")]),
    ];
    for preset in Preset::ALL {
        let plain = assembled((preset, &[(Section::ElementOmit, "")]), &sources, |_| {});
        let own = assembled((preset, &[(Section::ElementOmit, "")]), &sources, |options| {
            (options.template, options.format) = (None, preset.format());
        });
        assert_eq!(plain.text, own.text, "{preset:?}");
    }
    let element = (Section::Element, "- {{grain.content}}\n");
    let readable = text((Preset::Readable, &[element]), &sources);
    assert_eq!(
        readable,
        "## Context: to &lt;help>\n\n- works at one\n- two\n\n- three\n\n- four\n- works at five\n"
    );
    let structured = text((Preset::Structured, &[element]), &sources);
    assert_eq!(
        structured,
        "<context intent=\"to &lt;help>\">\n\n- works at one\n- two\n\n- three\n\n- four\n\
         - works at five\n\n</context>\n"
    );
    let broken = text((Preset::Readable, &[(Section::SourceBreak, "---\n")]), &sources[1..]);
    assert_eq!(
        broken,
        "## Context: to &lt;help>\n\n**Goals**\n- three (active)\n---\n- four (active)\n\n**Beliefs**\n\
         - alice works at five (confidence: 0.9)\n"
    );
}

#[test]
fn summaries_have_a_section_of_their_own_or_that_of_all() {
    let summary = |sections: &[(Section, &str)]| {
        assembled((Preset::Compact, sections), &[("s", &[belief("acme")])], |options| {
            options.disclosure = Disclosure::Fixed(Level::Summary);
        })
        .text
    };
    let own = (Section::ElementSummary, "s {{disclosure.level}}\n");
    assert_eq!(summary(&[(Section::Element, "e\n"), own]), "s summary\n");
    let asks = "{{#grain.is_summary}}short{{/grain.is_summary}}\n";
    assert_eq!(summary(&[(Section::Element, asks)]), "short\n");
    let (element, others) = ((Section::Element, "{{grain.content}}\n"), (Section::Footer, ""));
    assert_eq!(summary(&[element, others]), "works at acme\n");
}

#[test]
fn grains_that_do_not_fit_are_left_out_whole_and_may_be_told_of() {
    let long = "word ".repeat(60);
    let items = [belief("one"), belief(&long), belief("two")];
    let omits = "({{grain.type}}{{grain.subject}}{{grain.content}})\n";
    let sections = [(Section::Element, "- {{grain.content}}\n"), (Section::ElementOmit, omits)];
    let assembly = assembled((Preset::Compact, &sections), &[("s", &items)], |options| {
        options.budget = Budget::Tokens(60);
    });
    assert_eq!(assembly.text, "- works at one\n(belief)\n- works at two\n");
    assert_eq!((assembly.sources[0].standard, assembly.sources[0].omitted), (2, 1));
    // Notes for omitted grains are dropped before a grain is.
    let assembly = assembled((Preset::Compact, &sections), &[("s", &items)], |options| {
        options.budget = Budget::Tokens(18);
    });
    assert_eq!(assembly.text, "- works at one\n- works at two\n");
}

#[test]
fn a_text_has_two_characters_for_each_token_of_its_budget() {
    let items: Vec<_> = (0..50).map(|n| belief(&format!("place {n}"))).collect();
    let sections = [(Section::Element, "- {{grain.content}}\n")];
    let assembly = assembled((Preset::Compact, &sections), &[("s", &items)], |options| {
        options.budget = Budget::Tokens(100);
    });
    let chars = assembly.text.chars().count();
    assert!((180..=200).contains(&chars), "{chars}");
    let template = Template::new(Preset::Compact, &[(Section::Header, "a header of 20 char\n")]);
    let options = AssemblyOptions {
        cancel: CancelCheck::NEVER,
        format: Format::Sml,
        template: Some(&template.unwrap()),
        name: None,
        intent: None,
        budget: Budget::Tokens(9),
        priority: &[],
        disclosure: Disclosure::Auto,
        clock: CLOCK,
    };
    let error = assemble(&[], &options, &Estimator).unwrap_err();
    assert_eq!(error.code(), "CAL-E030");
    assert!(error.to_string().contains("20 characters"), "{error}");
}

#[test]
fn small_grains_stay_behind_one_that_is_too_long_for_the_text() {
    let event = |chars| {
        item(&format!(r#"{{"type": "event", "role": "user", "content": "{}"}}"#, "x".repeat(chars)))
    };
    let each = "{{#each}}{{grain.content}} {{/each}}\n";
    let element = (Section::Element, "- {{grain.content}}\n");
    for (sections, budget, long) in [
        (&[element][..], Budget::Grains(10), 36_000),
        (&[element, (Section::Header, each)], Budget::Tokens(4000), 7_000),
        (&[element, (Section::Footer, each)], Budget::Tokens(4000), 7_000),
    ] {
        for place in 0..7 {
            let items: Vec<_> =
                (0..7).map(|at| event(if at == place { long } else { 30 })).collect();
            let assembly = assembled((Preset::Compact, sections), &[("s", &items)], |options| {
                options.budget = budget;
            });
            let source = &assembly.sources[0];
            assert_eq!((source.standard, source.omitted), (6, 1), "{budget:?}, {long} at {place}");
            assert_eq!(assembly.text.lines().filter(|line| line.starts_with("- ")).count(), 6);
        }
    }
}

#[test]
fn what_a_query_chose_is_all_a_template_shows_of_a_grain() {
    let attributes = vec![("confidence".to_owned(), DisplayValue::Number("0.9".to_owned()))];
    let chosen = Some(ChosenFields { text: Some("chosen".to_owned()), attributes });
    let items = [Item { chosen, ..belief("acme") }];
    let element =
        "{{grain.content}} [{{grain.subject}}] [{{grain.confidence}}] [{{grain.created_at}}]";
    let of = (Preset::Compact, &[(Section::Element, element)][..]);
    assert_eq!(text(of, &[("s", &items)]), "chosen [] [0.9] []");
}

#[test]
fn templates_are_refused_with_code_and_place() {
    let deep = format!("{}x", "{{#grain.subject}}".repeat(6));
    let long = "x".repeat(4097);
    for (written, code, place) in [
        ("{{grain.text}}", "CAL-E090", Some(0..14)),
        ("a{{#grain.contents}}{{/grain.contents}}", "CAL-E090", Some(1..20)),
        ("{{#grain.tags}}", "CAL-E091", Some(0..15)),
        ("{{/grain.tags}}", "CAL-E091", Some(0..15)),
        ("{{#grain.tags}}{{#grain.type}}{{/grain.tags}}{{/grain.type}}", "CAL-E091", Some(30..45)),
        (&long, "CAL-E092", None),
        (&deep, "CAL-E093", Some(90..108)),
        ("{{}}", "CAL-E094", Some(0..4)),
        ("{{a b}}", "CAL-E094", Some(0..7)),
        ("{{{grain.tags}}}", "CAL-E094", Some(0..16)),
        ("{{&grain.tags}}", "CAL-E094", Some(0..15)),
        ("{{>part}}", "CAL-E094", Some(0..9)),
        ("{{=<% %>=}}", "CAL-E094", Some(0..11)),
        ("x {{grain.tags", "CAL-E094", Some(2..4)),
        ("{{each}}", "CAL-E094", Some(0..8)),
        ("{{#each}}{{#each}}{{/each}}{{/each}}", "CAL-E094", Some(9..18)),
        ("\u{1b}[2J", "CAL-E094", Some(0..1)),
    ] {
        let error = Template::new(Preset::Readable, &[(Section::Header, written)]).unwrap_err();
        assert_eq!(error.code(), code, "{written}: {error}");
        let found = error.place().and_then(|place| place.range.clone());
        assert_eq!(found, place, "{written}: {error}");
        assert!(!error.hint().is_empty() && !error.to_string().is_empty(), "{written}");
    }
    let element = (Section::Element, "{{#each}}{{/each}}");
    let code = |sections: &[(Section, &str)]| {
        let error = Template::new(Preset::Readable, sections).unwrap_err();
        (error.code(), error.place().map(|place| place.section))
    };
    assert_eq!(code(&[(Section::Header, ""), element]), ("CAL-E094", Some(1)));
    assert_eq!(code(&[(Section::Footer, "a"), (Section::Footer, "a")]), ("CAL-E095", Some(1)));
    let asks = (Section::Element, "{{#grain.tags}}{{grain.is_summary}}{{/grain.tags}}");
    assert_eq!(code(&[(Section::ElementSummary, ""), asks]), ("CAL-E096", Some(1)));
}

#[test]
fn presets_are_extended_and_nothing_else_is() {
    assert_eq!(Preset::from_extends("COMPACT").unwrap(), Preset::Compact);
    for (name, code, advice) in [
        ("data", "CAL-E086", "structured, readable or compact"),
        ("other", "CAL-E087", "say the rest anew"),
        ("markdown", "CAL-E087", "write EXTENDS readable"),
    ] {
        let error = Preset::from_extends(name).unwrap_err();
        assert_eq!(error.code(), code, "{name}");
        assert!(error.hint().contains(advice), "{name}: {}", error.hint());
    }
}
