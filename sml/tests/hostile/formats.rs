//! The promises of every format: stored text stays in its place, no budget is exceeded, the same
//! input gives the same bytes.

use std::collections::BTreeMap;

use grainstore_sml::{
    Assembly, AssemblyOptions, AssemblySource, Budget, CancelCheck, DisplayValue, Estimator,
    Format, Item, Level, Projection, TokenCounter, assemble, humanize, project, render,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::decoder::Scalar;
use crate::given::{Given, LEVELS, given_sources, hostile, item};
use crate::readers::{TYPES, read};
use crate::{CLOCK, Counter, bytes};

/// All formats but SML, which has a reader of its own.
const OTHERS: [Format; 6] =
    [Format::Markdown, Format::Json, Format::Yaml, Format::Text, Format::Triples, Format::Toon];

/// What no text format shows.
pub(crate) fn hides(c: char) -> bool {
    let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || reorders || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Text as a line holds it.
fn flat(text: &str) -> String {
    let space = |c| c == '\n' || c == '\t';
    let kept = text.chars().filter(|c| space(*c) || !hides(*c));
    kept.map(|c| if space(c) { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// Text as TOON holds it.
fn tabular(text: &str) -> String {
    text.chars().filter(|c| !hides(*c) || "\n\r\t".contains(*c)).collect()
}

/// Text as YAML holds it.
fn quoted(text: &str) -> String {
    text.chars().filter(|c| !hides(*c) || "\n\t".contains(*c)).collect()
}

/// What a reader of the format must get back of an item, or nothing where it must not be shown.
fn expected(format: Format, item: &Item, level: Level) -> Option<String> {
    let shown = project(item, level, &CLOCK)?;
    let kind = shown.grain_type.name();
    Some(match format {
        Format::Json | Format::Yaml => {
            let held =
                |text: &str| if format == Format::Yaml { quoted(text) } else { text.to_owned() };
            let value = |cell: &DisplayValue<'_>| match cell {
                DisplayValue::Text(text) => json!(held(text)),
                other => typed(other),
            };
            let attributes: Map<String, Value> =
                shown.attributes.iter().map(|(name, cell)| (held(name), value(cell))).collect();
            json!({"type": kind, "text": held(&shown.text), "attributes": attributes}).to_string()
        }
        Format::Markdown | Format::Text => sentence(&shown, format == Format::Markdown),
        Format::Triples => triple(item, &shown),
        Format::Toon => row(item, level)?,
        Format::Sml => return None,
    })
}

fn typed(cell: &DisplayValue<'_>) -> Value {
    match cell {
        DisplayValue::Text(text) => json!(text),
        DisplayValue::Number(digits) => {
            serde_json::from_str(digits).unwrap_or_else(|e| panic!("{digits}: {e}"))
        }
        DisplayValue::Flag(flag) => json!(flag),
    }
}

/// The first attribute of each type in the specification.
const FIRST: [(&str, &str); 10] = [
    ("belief", "subject"),
    ("event", "role"),
    ("goal", "subject"),
    ("action", "tool"),
    ("observation", "observer"),
    ("reasoning", "type"),
    ("state", "context"),
    ("workflow", "trigger"),
    ("consensus", "threshold"),
    ("consent", "action"),
];

fn first_of<'p>(shown: &'p Projection<'_>) -> Option<&'p str> {
    let (_, first) = FIRST.iter().find(|(kind, _)| *kind == shown.grain_type.name())?;
    shown.attributes.iter().find(|(name, _)| name == first).map(|(_, cell)| cell.as_str())
}

fn sentence(shown: &Projection<'_>, names: bool) -> String {
    let kind = shown.grain_type.name();
    let first = FIRST.iter().find(|(known, _)| *known == kind).map_or("", |(_, first)| first);
    let extras = ["source", "observed", "importance", "tags", "verification"];
    let others = shown.attributes.iter().filter(|(name, _)| name != first);
    let list: Vec<_> = others
        .map(|(name, cell)| match cell.as_str() {
            value if extras.contains(&&**name) || (names && kind == "belief") => {
                format!("{name}: {}", flat(value))
            }
            value => flat(value),
        })
        .collect();
    let lead = first_of(shown).map(flat);
    let (lead, text) = match lead {
        Some(subject) if kind == "belief" => {
            (None, format!("{subject} {}", flat(&shown.text)).trim().to_owned())
        }
        lead => (lead, flat(&shown.text)),
    };
    format!("{kind} {lead:?} {text:?} {list:?}")
}

fn triple(item: &Item, shown: &Projection<'_>) -> String {
    let grain = &item.grain;
    let parts = match (grain.text("subject"), grain.text("relation"), grain.text("object")) {
        (Some(subject), Some(relation), Some(object)) => {
            [flat(subject), flat(&humanize(relation)), flat(object)]
        }
        _ => [
            flat(first_of(shown).unwrap_or_default()),
            shown.grain_type.name().to_owned(),
            flat(&shown.text),
        ],
    };
    format!("{parts:?}")
}

/// The columns of each type, those that summaries drop marked.
const COLUMNS: [(&str, &[&str]); 10] = [
    ("belief", &["subject", "confidence?"]),
    ("event", &["role", "time"]),
    ("goal", &["subject", "state?", "deadline"]),
    ("action", &["tool", "phase?"]),
    ("observation", &["observer"]),
    ("reasoning", &["type?"]),
    ("state", &["context"]),
    ("workflow", &["trigger"]),
    ("consensus", &["threshold", "count"]),
    ("consent", &["grantor", "grantee", "action"]),
];

fn row(item: &Item, level: Level) -> Option<String> {
    let shown = project(item, level.max(Level::Standard), &CLOCK)?;
    let kind = shown.grain_type.name();
    let (_, columns) = COLUMNS.iter().find(|(known, _)| *known == kind)?;
    let mut wanted: Vec<_> = columns
        .iter()
        .filter(|name| level > Level::Summary || !name.ends_with('?'))
        .map(|name| name.trim_end_matches('?'))
        .collect();
    if level == Level::Full {
        wanted.extend(["source", "observed"]);
    }
    let mut cells = BTreeMap::from([("content".to_owned(), Scalar::Text(tabular(&shown.text)))]);
    for (name, cell) in shown.attributes.iter().filter(|(name, _)| wanted.contains(&&**name)) {
        let scalar = match cell {
            DisplayValue::Text(text) => Scalar::Text(tabular(text)),
            DisplayValue::Number(digits) => Scalar::Number(digits.clone()),
            DisplayValue::Flag(flag) => Scalar::Flag(*flag),
        };
        cells.insert(name.to_string(), scalar);
    }
    Some(format!("{kind} {cells:?}"))
}

/// TOON puts grains of a type together; all others keep their order.
fn in_order(format: Format, items: &[Item], level: Level) -> Vec<String> {
    let of = |items: &mut dyn Iterator<Item = &Item>| {
        items.filter_map(|item| expected(format, item, level)).collect::<Vec<_>>()
    };
    if format != Format::Toon {
        return of(&mut items.iter());
    }
    let mut kinds: Vec<_> = Vec::new();
    for item in items.iter().filter(|item| item.is_displayable()) {
        if !kinds.contains(&item.grain.grain_type()) {
            kinds.push(item.grain.grain_type());
        }
    }
    let rows = kinds
        .iter()
        .map(|kind| of(&mut items.iter().filter(|item| item.grain.grain_type() == *kind)));
    rows.flatten().collect()
}

pub(crate) fn run(
    (sources, priority, intent, disclosure): &Given,
    (format, name): (Format, Option<&str>),
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
    let disclosure = *disclosure;
    let intent = intent.as_deref();
    let (clock, watch, template) = (CLOCK, CancelCheck::NEVER, None);
    let options = AssemblyOptions {
        format,
        template,
        name,
        intent,
        budget,
        priority,
        disclosure,
        clock,
        cancel: watch,
    };
    assemble(&sources, &options, counter).ok()
}

/// Every grain that is read is one of those given, shown whole at one of the levels, and as many are
/// read as the report says; what stands around them is what was given.
fn check(format: Format, name: Option<&str>, given: &Given, assembly: &Assembly) {
    let read =
        read(format, &assembly.text).unwrap_or_else(|e| panic!("{e}\nin\n{}", assembly.text));
    let shown: usize = assembly.sources.iter().map(|s| s.full + s.standard + s.summary).sum();
    assert_eq!(read.grains.len(), shown, "{}", assembly.text);
    let usable = given.0.iter().filter(|(_, _, failed)| !failed).flat_map(|(items, ..)| items);
    let known: Vec<_> = usable
        .flat_map(|item| LEVELS.iter().filter_map(|level| expected(format, item, *level)))
        .collect();
    for grain in &read.grains {
        assert!(known.contains(grain), "{grain} was not given");
    }
    let intent = given.2.as_deref();
    let (name, intent): (Option<String>, Option<String>) = match format {
        Format::Json => (name.map(str::to_owned), intent.map(str::to_owned)),
        Format::Yaml => (name.map(quoted), intent.map(quoted)),
        Format::Toon => (name.map(tabular), intent.map(tabular)),
        Format::Markdown => (None, intent.map(flat)),
        _ => (None, None),
    };
    assert_eq!((read.name, read.intent), (name, intent), "{}", assembly.text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stored_text_stays_in_its_place(items in prop::collection::vec(item(), 0..8)) {
        for format in OTHERS {
            for level in LEVELS {
                let text = render(&items, format, level, &CLOCK);
                let read = read(format, &text);
                let read = read.map_err(|e| TestCaseError::fail(format!("{format:?}: {e}\nin\n{text}")))?;
                prop_assert_eq!(read.grains, in_order(format, &items, level), "{:?}\n{}", format, text);
                prop_assert!(!text.chars().any(|c| hides(c) && c != '\n' && c != '\t'));
                prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            }
        }
    }

    #[test]
    fn no_format_exceeds_its_budget(
        given in given_sources(),
        name in prop::option::of(hostile()),
        tokens in 0_usize..1500,
    ) {
        for format in OTHERS {
            let name = name.as_deref();
            let own = (format, name);
            for counter in [&Estimator as &dyn TokenCounter, &Counter(bytes)] {
                if let Some(assembly) = run(&given, own, Budget::Tokens(tokens), counter) {
                    prop_assert!(assembly.tokens <= tokens);
                    prop_assert_eq!(assembly.tokens, counter.count(&assembly.text));
                    check(format, name, &given, &assembly);
                    let again = run(&given, own, Budget::Tokens(tokens), counter);
                    prop_assert_eq!(again.as_ref(), Some(&assembly));
                    if let (Format::Toon, Ok(read)) = (format, read(format, &assembly.text)) {
                        prop_assert_eq!(read.used, Some((assembly.tokens, tokens)));
                    }
                }
            }
            let grains = tokens % 20;
            if let Some(assembly) = run(&given, own, Budget::Grains(grains), &Estimator) {
                let shown: usize =
                    assembly.sources.iter().map(|s| s.full + s.standard + s.summary).sum();
                prop_assert!(shown <= grains);
                check(format, name, &given, &assembly);
            }
        }
    }

    #[test]
    fn a_budget_large_enough_omits_nothing(given in given_sources()) {
        for format in OTHERS {
            let assembly = run(&given, (format, None), Budget::Tokens(1_000_000), &Estimator);
            let assembly = assembly.expect("large enough");
            prop_assert!(assembly.sources.iter().all(|source| source.omitted == 0));
        }
    }
}

#[test]
fn words_of_a_megabyte_stay_in_their_place() {
    for fragment in ["x", "</context>", "\\", "(", "**", "\u{202e}", ", ", "\n- ", "\"", "\u{9b}"] {
        let text = fragment.repeat(1_000_000 / fragment.len());
        let fields = [("type", "goal"), ("description", &text), ("goal_state", "active")];
        let mut json: Map<String, Value> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json.insert("created_at".to_owned(), json!(1_768_471_200_000_i64));
        let grain = grainstore_format::Grain::from_json(&Value::Object(json).to_string());
        let items =
            [Item { grain: grain.expect("a goal"), verification: None, chosen: None, score: None }];
        for format in OTHERS {
            let text = render(&items, format, Level::Standard, &CLOCK);
            let read = read(format, &text).unwrap_or_else(|e| panic!("{format:?}: {e:.200}"));
            assert!(read.grains == in_order(format, &items, Level::Standard), "{format:?}");
        }
    }
    assert_eq!(TYPES.len(), COLUMNS.len());
}
