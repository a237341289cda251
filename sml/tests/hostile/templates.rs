//! Templates filled with stored text that tries to break out: what is read back is what was given, in the
//! places the template gives it, and the text keeps to its budget.

use std::iter;

use grainstore_sml::{
    Assembly, AssemblyOptions, AssemblySource, Budget, CancelCheck, Estimator, Format, Item, Level,
    Preset, Section, Template, TokenCounter, assemble, project,
};
use proptest::prelude::*;

use crate::given::{Given, given_sources, hostile};
use crate::reader::{Element, parse};
use crate::{CLOCK, Counter, bytes, one_line};

/// Elements of markup, in the envelope of the preset.
const MARKUP: (Preset, &[(Section, &str)]) = (
    Preset::Structured,
    &[(
        Section::Element,
        "  <{{grain.type}}{{#grain.subject}} subject=\"{{grain.subject}}\"{{/grain.subject}}>{{grain.content}}</{{grain.type}}>\n",
    )],
);

/// One line a grain, and nothing else.
const LINES: (Preset, &[(Section, &str)]) = (
    Preset::Compact,
    &[(
        Section::Element,
        "- [{{grain.type}}] {{grain.subject}}: {{grain.content}} ({{grain.tags}})\n",
    )],
);

/// Every section, every kind of tag, and most variables.
const ALL: (Preset, &[(Section, &str)]) = (
    Preset::Readable,
    &[
        (
            Section::Header,
            "<head name='{{assembly.name}}' of=\"{{assembly.intent}}\" x={{assembly.intent}}>\n\
             {{! what it takes }}\n{{budget.used}}/{{budget.total}} {{budget.unit}} {{budget.utilization}}\n\
             {{#each}}\n* {{grain.content}} {{source.tokens_used}}\n{{/each}}\n{{^each}}\nnothing\n{{/each}}\n",
        ),
        (
            Section::Element,
            "<{{grain.type}} by=\"{{grain.object}}\" s={{grain.subject}}>{{grain.hash}}</{{grain.type}}>\n",
        ),
        (Section::ElementSummary, "- {{grain.humanized_relation}} \"{{grain.relation}}\"\n"),
        (Section::ElementOmit, "(left out: {{grain.content}})\n"),
        (
            Section::SourceBreak,
            "-- {{source.label}} {{source.priority}} {{#source.truncated}}cut{{/source.truncated}}\n",
        ),
        (Section::Footer, "{{timestamp}} {{budget.remaining}} {{disclosure.level}}\n"),
    ],
);

/// What is said of each grain again and again, more than its element is counted for.
const AGAIN: (Preset, &[(Section, &str)]) = (
    Preset::Compact,
    &[
        (Section::Header, "{{#each}}{{grain.content}} {{grain.content}} {{/each}}\n"),
        (Section::Element, "- {{grain.content}}\n"),
        (Section::Footer, "{{budget.used}}\n"),
    ],
);

fn template((preset, sections): (Preset, &[(Section, &str)])) -> Template {
    Template::new(preset, sections).unwrap_or_else(|error| panic!("{error}"))
}

fn run(
    (sources, priority, intent, disclosure): &Given,
    template: &Template,
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
        format: Format::Sml,
        template: Some(template),
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

/// What a reader of the markup must get back of an item.
fn element(item: &Item) -> Option<Element> {
    let shown = project(item, Level::Summary, &CLOCK)?;
    let subject = item.grain.text("subject").map(on_its_line).filter(|text| !text.is_empty());
    // A subject of control characters alone is there, and says nothing.
    let attributes = match item.grain.text("subject").filter(|text| !text.is_empty()) {
        Some(_) => vec![("subject".to_owned(), subject.unwrap_or_default())],
        None => Vec::new(),
    };
    let (name, text) = (shown.grain_type.name().to_owned(), on_its_line(&shown.text));
    Some(Element { name, attributes, text })
}

/// Text as a template holds it anywhere.
fn on_its_line(text: &str) -> String {
    one_line(text).trim().to_owned()
}

fn belief(object: &str) -> Item {
    let json = serde_json::json!({"type": "belief", "subject": "a", "relation": "is", "object": object,
        "confidence": 0.5, "created_at": 1_768_471_200_000_i64});
    let grain = grainstore_format::Grain::from_json(&json.to_string());
    let grain = grain.unwrap_or_else(|error| panic!("{error}"));
    Item { grain, verification: None, chosen: None, score: None }
}

fn shown(assembly: &Assembly) -> usize {
    assembly.sources.iter().map(|source| source.full + source.standard + source.summary).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stored_text_stays_in_the_markup_of_a_template(given in given_sources(), tokens in 60_usize..4000) {
        let Some(assembly) = run(&given, &template(MARKUP), Budget::Tokens(tokens), &Estimator) else {
            return Ok(());
        };
        let (intent, groups) = parse(&assembly.text)
            .map_err(|error| TestCaseError::fail(format!("{error}\nin\n{}", assembly.text)))?;
        prop_assert_eq!(intent, given.2.as_deref().map(one_line));
        let read: Vec<_> = groups.into_iter().flatten().collect();
        prop_assert_eq!(read.len(), shown(&assembly));
        let mut items = given.0.iter().filter(|(_, _, failed)| !failed).flat_map(|(items, ..)| items);
        for one in read {
            prop_assert!(items.any(|item| element(item).as_ref() == Some(&one)), "{:?}", one);
        }
    }

    #[test]
    fn stored_text_stays_on_its_line(given in given_sources()) {
        let assembly = run(&given, &template(LINES), Budget::Grains(200), &Estimator);
        let Some(assembly) = assembly else { return Ok(()) };
        prop_assert_eq!(assembly.text.lines().count(), shown(&assembly), "{}", assembly.text);
        let types = given.0.iter().flat_map(|(items, ..)| items).map(|item| item.grain.grain_type());
        let heads: Vec<_> = types.map(|of| format!("- [{}] ", of.name())).collect();
        for line in assembly.text.lines() {
            prop_assert!(heads.iter().any(|head| line.starts_with(head.as_str())), "{}", line);
        }
        let acts = |c: char| {
            c.is_control() && c != '\n'
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        prop_assert!(!assembly.text.contains(acts), "{:?}", assembly.text);
        prop_assert!(!assembly.text.contains('<'), "{}", assembly.text);
    }

    #[test]
    fn a_template_keeps_to_its_budget_in_tokens_and_characters(
        given in given_sources(),
        tokens in 0_usize..3000,
        grains in 0_usize..40,
    ) {
        for of in [MARKUP, LINES, ALL, AGAIN] {
            let template = template(of);
            for counter in [&Estimator as &dyn TokenCounter, &Counter(bytes)] {
                if let Some(assembly) = run(&given, &template, Budget::Tokens(tokens), counter) {
                    prop_assert!(assembly.tokens <= tokens);
                    prop_assert_eq!(assembly.tokens, counter.count(&assembly.text));
                    prop_assert!(assembly.text.chars().count() <= 2 * tokens);
                }
            }
            if let Some(assembly) = run(&given, &template, Budget::Grains(grains), &Estimator) {
                prop_assert!(shown(&assembly) <= grains);
                prop_assert!(assembly.text.chars().count() <= 32_000);
            }
        }
    }

    #[test]
    fn a_text_of_short_and_long_grains_keeps_to_its_budget_and_tells_what_it_omits(
        lengths in prop::collection::vec(prop_oneof![3 => 1_usize..60, 1 => 1_000_usize..20_000], 0..20),
        tokens in 20_usize..5000,
        grains in 1_usize..20,
    ) {
        let items: Vec<_> = lengths.iter().map(|length| belief(&"x".repeat(*length))).collect();
        let all = items.len();
        let disclosure = grainstore_sml::Disclosure::Fixed(Level::Standard);
        let given = (vec![(items, 20, false)], Vec::new(), None, disclosure);
        for of in [LINES, AGAIN] {
            let template = template(of);
            for (budget, most, chars) in [
                (Budget::Tokens(tokens), tokens, 2 * tokens),
                (Budget::Grains(grains), usize::MAX, 32_000),
            ] {
                let Some(assembly) = run(&given, &template, budget, &Estimator) else { continue };
                prop_assert!(assembly.tokens <= most && assembly.text.chars().count() <= chars);
                prop_assert_eq!(assembly.tokens, Estimator.count(&assembly.text));
                let written = assembly.text.lines().filter(|line| line.starts_with("- "));
                prop_assert_eq!(written.count(), shown(&assembly));
                prop_assert_eq!(shown(&assembly) + assembly.sources[0].omitted, all);
                // Nothing is shown where nothing fits, not where only the first does not.
                let smallest = lengths.iter().min().copied().unwrap_or(usize::MAX);
                let fits = smallest < 60 && tokens >= 500;
                prop_assert!(!fits || matches!(budget, Budget::Grains(_)) || shown(&assembly) > 0);
            }
        }
    }

    #[test]
    fn values_are_not_read_again(words in hostile(), tail in hostile()) {
        let words = format!("{words}{{{{grain.type}}}}{{{{#each}}}}{tail}{{{{/each}}}}");
        let intent = Some(words.clone());
        let head = [(Section::Header, "\"{{assembly.intent}}\"")];
        let given = (Vec::new(), Vec::new(), intent, grainstore_sml::Disclosure::Auto);
        let template = template((Preset::Compact, &head));
        let assembly = run(&given, &template, Budget::Tokens(4000), &Estimator);
        let text = assembly.map(|assembly| assembly.text).unwrap_or_default();
        prop_assert!(text.contains("{{grain.type}}{{#each}}") && text.contains("{{/each}}"), "{}", text);
        prop_assert_eq!(text.matches('"').count(), 2, "{}", text);
    }
}

#[test]
fn a_word_of_a_megabyte_is_left_out_whole() {
    let long: String = iter::repeat_n('x', 900_000).collect();
    let items = vec![belief("one"), belief(&long), belief("two")];
    let given = (
        vec![(items, 20, false)],
        Vec::new(),
        None,
        grainstore_sml::Disclosure::Fixed(Level::Standard),
    );
    let sections = [
        (Section::Element, "- {{grain.object}}\n"),
        (Section::ElementOmit, "({{grain.type}} left out)\n"),
    ];
    let template = template((Preset::Compact, &sections));
    for budget in [Budget::Tokens(100), Budget::Grains(3)] {
        let assembly = run(&given, &template, budget, &Estimator);
        let text = assembly.map(|assembly| assembly.text);
        assert_eq!(text.as_deref(), Some("- one\n(belief left out)\n- two\n"), "{budget:?}");
    }
}
