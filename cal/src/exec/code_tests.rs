//! A table of every code of the registry: a query that raises it, the text its position covers, and its
//! suggestion.

use std::collections::BTreeSet;
use std::time::Duration;

use grainstore_format::ContentAddress;

use super::tests::{belief, options};
use super::{execute_bytes, stream};
use crate::codes::ErrorKind;
use crate::event::Event;
use crate::memory::{NamedTemplate, TemplateOwner};
use crate::testutil::Fake;
use crate::tier::Tier;
use crate::write_quotas::{WriteLimits, WriteQuotas};

/// The mode a query runs in.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Read,
    Evolve,
    /// No write is left in this minute.
    Spent,
    Late,
    Cancelled,
    /// With a listener.
    Streamed,
}
use How::{Cancelled, Evolve, Late, Read, Spent, Streamed};

/// A memory with one belief in two versions, a goal, a belief of another namespace, a subject whose recalls
/// fail, and as many templates as there may be.
struct Given {
    memory: Fake,
    old: ContentAddress,
    new: ContentAddress,
    goal: ContentAddress,
    elsewhere: ContentAddress,
}

fn given() -> Given {
    let mut memory = Fake::at_work();
    let old = memory.keep(&belief("s", "r", "one", ""));
    let new = memory.keep(&belief("s", "r", "two", &format!(r#", "derived_from": ["{old}"]"#)));
    memory.mark(old, |state| state.superseded_by = Some(new));
    let goal = memory.keep(r#"{"type": "goal", "description": "d", "goal_state": "active"}"#);
    let elsewhere = memory.keep(&belief("s", "r", "o", r#", "namespace": "home""#));
    memory.broken_subject = Some("broken".to_owned());
    for n in 0..NamedTemplate::MAX_PER_OWNER {
        let (name, definition) =
            (format!("brief_{n}"), format!("DEFINE TEMPLATE brief_{n} ELEMENT {{}}"));
        let template = NamedTemplate { name, keeper: TemplateOwner::Namespace, definition };
        memory.templates.lock().unwrap().push(template);
    }
    Given { memory, old, new, goal, elsewhere }
}

/// A query, its mode, its code, the text at its position, and a part of the suggestion.
type Case = (String, How, &'static str, String, &'static str);

fn case(how: How, source: &str, code: &'static str, place: &str, advice: &'static str) -> Case {
    (source.to_owned(), how, code, place.to_owned(), advice)
}

#[rustfmt::skip]
fn cases(given: &Given) -> Vec<Case> {
    let Given { old, new, goal, elsewhere, .. } = given;
    let set = "SET subject = \"s\" SET relation = \"r\" SET object = \"o\"";
    let nested = format!("{}RECALL{}", "RECALL WHERE subject IN (".repeat(4), " | SUBJECTS)".repeat(4));
    let values = format!("RECALL WHERE subject IN ({}\"z\")", "\"v\", ".repeat(100));
    let sources = format!("ASSEMBLE FROM {}x: (RECALL)", "(RECALL), ".repeat(8));
    let long = format!("RECALL ABOUT \"{}\"", "é".repeat(4_100));
    let add = format!("ADD belief {set} REASON \"r\"");
    let large = format!("DEFINE TEMPLATE t HEADER {{{}}} FOOTER {{xx}}", "é".repeat(2_047));
    let deep = format!("DEFINE TEMPLATE t ELEMENT {{ {}{{{{#grain.object}}}} }}", "{{#grain.subject}}".repeat(5));
    vec![
        case(Read, &long, "CAL-E001", long.get(8_192..).unwrap(), "shorten"),
        case(Read, "RECALL beliefs\nbeliefs", "CAL-E002", "beliefs", "expected IN"),
        case(Read, "RECALL beleifs", "CAL-E003", "beleifs", "Did you mean \"beliefs\"?"),
        case(Read, "RECALL WHERE subjct = \"a\"", "CAL-E004", "subjct", "Did you mean \"subject\"?"),
        case(Read, "RECALL ABOUT \"a", "CAL-E005", "\"a", "close the string"),
        case(Read, "RECALL LIMIT 0", "CAL-E006", "LIMIT 0", "from 1 to 1000"),
        case(Read, &nested, "CAL-E007", "RECALL", "run the inner query first"),
        case(Read, "RECALL OFFSET $n", "CAL-E008", "OFFSET $n", "bind the parameter"),
        case(Read, "BATCH { a: RECALL, a: RECALL }", "CAL-E009", "a", "keep one of the two"),
        case(Read, "RECALL LIMIT 1001", "CAL-E010", "LIMIT 1001", "at most 1000"),
        case(Read, &values, "CAL-E011", "\"z\"", "narrow it"),
        case(Read, "RECALL LIMIT 6 LIMIT 5 LIMIT 4 LIMIT 3 LIMIT 2 FIRST", "CAL-E012", "FIRST", "at most 5 stages"),
        case(Read, &sources, "CAL-E013", "x", "split the request"),
        case(Read, " -- nothing", "CAL-E014", "", "RECALL beliefs"),
        case(Read, "EXISTS sha256:0123", "CAL-E015", "sha256:0123", "8 to 64 lowercase hex digits"),
        case(Evolve, &format!("REVERT sha256:{new} REASON \" \""), "CAL-E016", "\" \"", "1 to 500 characters"),
        case(Evolve, &format!("SUPERSEDE sha256:{new} SET objct = \"o\" REASON \"r\""), "CAL-E017", "objct", "Did you mean \"object\"?"),
        case(Evolve, &format!("REVERT sha256:{new}"), "CAL-E018", "", "REASON \"why\""),
        case(Evolve, &format!("SUPERSEDE sha256:{new} REASON \"r\""), "CAL-E019", "REASON", "at least one SET"),
        case(Read, "RECALL WHERE subject > \"a\"", "CAL-E020", "> \"a\"", "subject takes ="),
        case(Read, "RECALL COUNT LIMIT 1", "CAL-E021", "LIMIT 1", "write COUNT last"),
        case(Read, "RECALL goals | SUBJECTS", "CAL-E022", "SUBJECTS", "use HASHES"),
        case(Read, "ASSEMBLE FROM (RECALL) BUDGET 0 tokens", "CAL-E030", "0", "within the limits"),
        case(Late, "RECALL", "CAL-E031", "RECALL", "narrow the query"),
        case(Evolve, &format!("SUPERSEDE sha256:{old} SET object = \"x\" REASON \"r\""), "CAL-E040", &format!("sha256:{old}"), "its successor is sha256:"),
        case(Evolve, &format!("REVERT sha256:{old} REASON \"r\""), "CAL-E041", &format!("sha256:{old}"), "see HISTORY"),
        case(Evolve, &format!("REVERT sha256:{goal} REASON \"r\""), "CAL-E042", &format!("sha256:{goal}"), "add a new grain"),
        case(Spent, &format!("REVERT sha256:{new} REASON \"r\""), "CAL-E043", "REVERT", "wait a minute"),
        case(Read, &add, "CAL-E044", "ADD", "ask the host"),
        case(Evolve, &format!("REVERT sha256:{elsewhere} REASON \"r\""), "CAL-E045", &format!("sha256:{elsewhere}"), "namespace of the target"),
        case(Read, "HISTORY sha256:00000000", "CAL-E046", "sha256:00000000", "check the hash"),
        case(Evolve, "ADD belief SET object = \"o\" REASON \"r\"", "CAL-E050", "belief", "set subject, relation and object"),
        case(Evolve, &format!("ADD event {set} REASON \"r\""), "CAL-E051", "event", "add a belief, observation or goal"),
        case(Spent, &add, "CAL-E052", "ADD", "wait a minute"),
        case(Read, "RECALL goals WHERE role = \"user\"", "CAL-E060", "role", "use one of the listed fields"),
        case(Read, "RECALL WHERE role = \"user\"", "CAL-E061", "role", "RECALL events WHERE role"),
        case(Read, "RECALL actions WHERE action_phase = \"done\"", "CAL-E062", "\"done\"", "listed values"),
        case(Read, "RECALL goals WHERE goal_state = \"actve\"", "CAL-E063", "\"actve\"", "active"),
        case(Read, "RECALL consents WHERE consent_action = \"no\"", "CAL-E064", "\"no\"", "listed values"),
        case(Read, "RECALL WHERE recall_priority = \"whenever\"", "CAL-E065", "\"whenever\"", "listed values"),
        case(Read, "RECALL WHERE epistemic_status = \"sure\"", "CAL-E066", "\"sure\"", "listed values"),
        case(Read, "RECALL ABOUT \"\\u202e\"", "CAL-E071", "\"\\u202e\"", "remove the invisible control"),
        case(Late, "ASSEMBLE FROM (RECALL)", "CAL-E075", "ASSEMBLE", "fewer or narrower sources"),
        case(Read, "ASSEMBLE FROM (RECALL ABOUT \"broken\")", "CAL-E076", "ASSEMBLE", "run the sources one by one"),
        case(Read, "ASSEMBLE FROM (RECALL THREAD FROM sha256:00000000)", "CAL-E076", "ASSEMBLE", "check the hash"),
        case(Read, "ASSEMBLE FROM (RECALL) STREAM { chunk }", "CAL-E077", "chunk", "Did you mean \"chunks\"?"),
        case(Read, "ASSEMBLE FROM (RECALL) STREAM { chunk_size = 19 }", "CAL-E078", "chunk_size = 19", "20 to 1000"),
        case(Streamed, "RECALL", "CAL-E079", "RECALL", "as a whole"),
        case(Cancelled, "RECALL", "CAL-E082", "RECALL", "still wanted"),
        case(Read, "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE breif_7", "CAL-E085", "breif_7", "Did you mean \"brief_7\"?"),
        case(Read, "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE sml", "CAL-E085", "sml", "write FORMAT sml"),
        case(Read, "DEFINE TEMPLATE t EXTENDS data ELEMENT {}", "CAL-E086", "data", "structured, readable or compact"),
        case(Read, "DEFINE TEMPLATE t EXTENDS compct ELEMENT {}", "CAL-E087", "compct", "Did you mean \"compact\"?"),
        case(Read, "DEFINE TEMPLATE t EXTENDS sml ELEMENT {}", "CAL-E087", "sml", "EXTENDS structured"),
        case(Read, "DEFINE TEMPLATE t EXTENDS brief_1 ELEMENT {}", "CAL-E087", "brief_1", "say the rest anew"),
        case(Read, "DEFINE TEMPLATE brief_1 ELEMENT {}", "CAL-E088", "brief_1", "choose another name"),
        case(Read, "DEFINE TEMPLATE Readable ELEMENT {}", "CAL-E088", "Readable", "choose another name"),
        case(Evolve, "DEFINE TEMPLATE one_more ELEMENT {}", "CAL-E089", "one_more", "in braces"),
        case(Read, "DEFINE TEMPLATE t ELEMENT { {{grain.bogus}} }", "CAL-E090", "{{grain.bogus}}", "use one of the listed variables"),
        case(Read, "DEFINE TEMPLATE t\nELEMENT {\n- {{grain.contnt}}\n}", "CAL-E090", "{{grain.contnt}}", "Did you mean \"grain.content\"?"),
        case(Read, "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ELEMENT { {{#grain.confidence}}x } }", "CAL-E091", "{{#grain.confidence}}", "{{/grain.confidence}} behind it"),
        case(Read, "DEFINE TEMPLATE t ELEMENT { x{{/grain.tags}} }", "CAL-E091", "{{/grain.tags}}", "open it with"),
        case(Read, &large, "CAL-E092", "FOOTER", "shorten"),
        case(Read, &deep, "CAL-E093", "{{#grain.object}}", "out of the others"),
        case(Read, "DEFINE TEMPLATE t ELEMENT { {{> other}} }", "CAL-E094", "{{> other}}", "check the tags"),
        case(Read, "DEFINE TEMPLATE t ELEMENT { {{{grain.content}}} }", "CAL-E094", "{{{grain.content}}}", "write {{name}}"),
        case(Read, "DEFINE TEMPLATE t ELEMENT { {{#each}}x{{/each}} }", "CAL-E094", "{{#each}}", "HEADER or FOOTER"),
        case(Read, "DEFINE TEMPLATE t ELEMENT { {x }", "CAL-E094", "{", "close it with }"),
        case(Read, "DEFINE TEMPLATE t HEADER {a} ELEMENT {b} HEADER {c}", "CAL-E095", "HEADER", "keep one"),
        case(Read, "DEFINE TEMPLATE t ELEMENT { {{^grain.is_summary}}x{{/grain.is_summary}} } ELEMENT_SUMMARY {y}", "CAL-E096", "ELEMENT", "leave grain.is_summary out"),
        case(Read, "CAL/2 RECALL", "CAL-E100", "2", "write CAL/1"),
    ]
}

fn refused(memory: &Fake, source: &[u8], how: How) -> crate::Error {
    let mut options = options();
    let mut limits = WriteLimits::default();
    match how {
        Read | Streamed => {}
        Evolve => options.tier = Tier::Evolve,
        Spent => {
            options.tier = Tier::Evolve;
            limits = WriteLimits { adds: 0, supersedes: 0, reverts: 0 };
        }
        Late => options.cancel = options.cancel.with_deadline(Duration::ZERO),
        Cancelled => options.cancel.cancel(),
    }
    let writes = WriteQuotas::new(limits);
    if how == Streamed {
        let mut silent = |event: Event| panic!("no event is due: {event:?}");
        return stream(memory, source, &options, &writes, &mut silent).unwrap_err();
    }
    execute_bytes(memory, source, &options, &writes).unwrap_err()
}

#[test]
fn every_code_has_a_query_that_raises_it_with_its_place_and_what_to_do() {
    let given = given();
    let mut raised = BTreeSet::from(["CAL-E070".to_owned()]);
    for (source, how, code, place, advice) in cases(&given) {
        let error = refused(&given.memory, source.as_bytes(), how);
        assert_eq!(error.code(), code, "{source}: {error}");
        let at = error.position().unwrap_or_else(|| panic!("{source}: no position"));
        assert_eq!(source.get(at.start..at.end), Some(place.as_str()), "{source}");
        let line = source.get(..at.start).unwrap().matches('\n').count() + 1;
        assert_eq!(at.line, line, "{source}");
        assert!(error.suggestion().contains(advice), "{source}: {}", error.suggestion());
        assert!(!error.message().is_empty(), "{source}");
        raised.insert(code.to_owned());
    }
    let all: BTreeSet<String> = ErrorKind::ALL.iter().map(|kind| kind.code().to_owned()).collect();
    assert_eq!(raised, all);
}

#[test]
fn bytes_that_are_no_text_are_placed_too() {
    let error = refused(&given().memory, b"RECALL\n \xFF\xFE", Read);
    let at = error.position().unwrap();
    assert_eq!(error.code(), "CAL-E070");
    assert_eq!((at.start, at.end, at.line, at.col), (8, 9, 2, 2));
    assert_eq!(error.suggestion(), "send the query as UTF-8");
}

#[test]
fn an_error_in_a_slot_is_placed_at_its_statement() {
    let given = given();
    let cancelled = "BATCH { a: RECALL ABOUT \"broken\", b: HISTORY sha256:00000000 }";
    let response =
        execute_bytes(&given.memory, cancelled.as_bytes(), &options(), &WriteQuotas::default());
    let answer = serde_json::to_value(response.unwrap()).unwrap();
    let slot = |label: &str| answer["batch"][label]["error"].clone();
    assert_eq!(slot("a")["code"], "ERR_BROKEN");
    assert_eq!(slot("a").get("position"), None, "the memory knows of no query");
    assert_eq!(slot("b")["position"]["start"], 45);
}
