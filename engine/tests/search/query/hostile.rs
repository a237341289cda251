//! Questions that are wrong, huge or impossible: a clear answer each, within bounds.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use grainstore::cal::{CancelHandle, Comparator, Floor, Order};
use grainstore::format::{Map, Value};
use grainstore::limits::MAX_PAGE;
use grainstore::{Cursor, Grain, PageOptions, SessionOptions};

use crate::query::grains::CREATED_MS;
use crate::query::naive;
use crate::query::planned::{addresses, patient, rows_are};
use crate::query::question::{Condition, Question};
use crate::query::world::{World, encoded};

fn code<T: std::fmt::Debug>(result: grainstore::Result<T>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "OK")
}

fn belief(number: usize, subject: &str, object: impl Into<Value>) -> Map {
    let fields: [(&str, Value); 7] = [
        ("type", "belief".into()),
        ("subject", subject.into()),
        ("relation", "counts".into()),
        ("object", object.into()),
        ("confidence", 0.5.into()),
        ("created_at", (CREATED_MS + i64::try_from(number).unwrap()).into()),
        ("entity_id", number.to_string().into()),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into()
}

/// A world of beliefs about few subjects.
fn few(count: usize) -> World {
    let mut world = World::new(1);
    let blobs = (0..count).map(|at| encoded(belief(at, &format!("subject {}", at % 3), "tea")));
    world.put_blobs(blobs.collect());
    world
}

fn copy(from: &Path, to: &Path) {
    for name in ["grains.redb", "index.redb"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[test]
fn a_cursor_goes_on_only_where_it_came_from() {
    let mut world = few(20);
    let all = Question::default();
    let cursor = |world: &World| {
        let answer = world.session(None).query(&all.query(), &patient(5)).unwrap();
        answer.next_cursor.unwrap()
    };
    let refused = |world: &World, cursor: Cursor, question: &Question, namespace| {
        let page = patient(5).after(Some(cursor));
        code(world.session(namespace).query(&question.query(), &page))
    };
    let first = cursor(&world);
    assert_eq!(refused(&world, first.clone(), &all, None), "OK");
    let tea = Condition::TextIs("object", "tea".to_owned());
    for other in [
        Question { order: Order::Oldest, ..all.clone() },
        Question { during: Some((0, i64::MAX)), ..all.clone() },
        Question::when(tea),
    ] {
        assert_eq!(refused(&world, first.clone(), &other, None), "ERR_CURSOR", "{other:?}");
    }
    assert_eq!(refused(&world, first.clone(), &all, Some("shared")), "ERR_CURSOR");
    let user_id = Some("u1".to_owned());
    let somebody = world.store.session(SessionOptions { user_id, ..SessionOptions::default() });
    assert_eq!(
        code(somebody.query(&all.query(), &patient(5).after(Some(first.clone())))),
        "ERR_CURSOR"
    );
    // Upgraded stores are copies of one fixture, so a cursor of one goes on in another.
    if std::env::var_os("GRAINSTORE_UPGRADED").is_none() {
        let elsewhere = refused(&few(20), first.clone(), &all, None);
        assert_eq!(elsewhere, "ERR_CURSOR", "the same grains, elsewhere");
    }

    let kept = tempfile::TempDir::new().unwrap();
    world.reopen(|path| copy(path, kept.path()));
    assert_eq!(refused(&world, first.clone(), &all, None), "OK", "after opening again");
    world.put(10);
    let later = cursor(&world);
    world.reopen(|path| copy(kept.path(), path));
    assert_eq!(
        refused(&world, first.clone(), &all, None),
        "OK",
        "the older copy had what it was taken from"
    );
    assert_eq!(refused(&world, later.clone(), &all, None), "ERR_CURSOR", "the older copy had not");
    world.put(30);
    assert_eq!(refused(&world, later.clone(), &all, None), "ERR_CURSOR", "nor has its new history");
}

#[test]
fn a_cursor_that_was_changed_is_none() {
    let world = few(9);
    let session = world.session(None);
    let query = Question::default().query();
    let text = session.query(&query, &patient(5)).unwrap().next_cursor.unwrap().to_string();
    let ask = |text: &str| {
        let cursor = text.parse::<Cursor>()?;
        session.query(&query, &patient(5).after(Some(cursor)))
    };
    assert!(ask(&text).is_ok());
    for end in 0..text.len() {
        assert_eq!(code(ask(text.get(..end).unwrap())), "ERR_CURSOR", "cut at {end}");
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[end] ^= 1 << bit;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert_eq!(code(ask(&changed)), "ERR_CURSOR", "bit {bit} of {end}");
        }
    }
    assert_eq!(code(ask(&format!("{text}A"))), "ERR_CURSOR");
}

#[test]
fn a_limit_beyond_the_bounds_is_refused_and_none_gives_no_rows() {
    let world = few(9);
    let session = world.session(None);
    let query = Question::default().query();
    for limit in [MAX_PAGE + 1, 1_000_000_000, usize::MAX] {
        assert_eq!(code(session.query(&query, &patient(limit))), "ERR_LIMIT", "{limit}");
    }
    let none = PageOptions { count_to: u64::MAX, ..patient(0) };
    let answer = session.query(&query, &none).unwrap();
    assert_eq!((answer.results.len(), answer.total), (0, Some(9)));
    assert_eq!(answer.next_cursor, None, "no row to go on after");
    // The index alone cannot tell how many have a score.
    let query = query.scoring(Floor { least: 0.5, above: false });
    for (count_to, total) in [(8, None), (9, Some(9))] {
        let answer = session.query(&query, &PageOptions { count_to, ..patient(0) }).unwrap();
        assert_eq!(answer.total, total, "counted to {count_to}");
    }
}

#[test]
fn bounds_that_contradict_each_other_match_nothing() {
    let world = few(9);
    let one = world.items[0].address;
    let at = CREATED_MS;
    for question in [
        Question { during: Some((at, at - 1)), ..Question::default() },
        Question { during: Some((i64::MAX, i64::MIN)), ..Question::default() },
        Question { among: Some(Vec::new()), ..Question::default() },
        Question { address: Some(one), among: Some(Vec::new()), ..Question::default() },
        Question { known_at: Some(i64::MIN), ..Question::default() },
        Question::when(Condition::TextIn("subject", Vec::new())),
        Question::when(Condition::Names("derived_from", Vec::new())),
    ] {
        let page = PageOptions { count_to: u64::MAX, explain: true, ..patient(10) };
        let answer = world.session(None).query(&question.query(), &page).unwrap();
        assert_eq!((answer.results.len(), answer.total), (0, Some(0)), "{question:?}");
    }
    let during = |from, to| grainstore::cal::TimeRange {
        from: grainstore::EpochMs::new(from),
        to: grainstore::EpochMs::new(to),
    };
    let query = Question::default().query().during(during(0, at)).during(during(at + 1, i64::MAX));
    let answer = world.session(None).query(&query, &patient(10)).unwrap();
    assert_eq!(answer.total, Some(0));
}

#[test]
fn a_term_of_a_megabyte_is_looked_up_like_any_other() {
    let mut world = few(9);
    let long = |last: &str| "x".repeat(1_000_000) + last;
    let city = |value: String| Value::Map(Map::from([("city".to_owned(), value.into())]));
    let with = |at, name: &str, value: Value| {
        let mut fields = belief(at, "subject 1", "tea");
        fields.insert(name.to_owned(), value);
        encoded(fields)
    };
    world.put_blobs(vec![
        with(100, "subject", long("s").into()),
        with(101, "object", long("o").into()),
        with(102, "object", city(long("m"))),
        with(103, "structural_tags", vec![long("t")].into()),
        with(104, "user_id", long("u").into()),
        with(105, "hc:patient_id", long("p").into()),
    ]);
    assert_eq!((world.items.len(), world.refused), (15, 0));
    for folded in [false, true] {
        if folded {
            world.flush();
        }
        for last in ["s", "o", "m", "t", "u", "p", "nobody"] {
            let text = long(last);
            for condition in [
                Condition::TextIs("subject", text.clone()),
                Condition::Object(text.clone().into()),
                Condition::Object(city(text.clone())),
                Condition::TagsInclude(vec![text.clone()]),
                Condition::TextIs("user_id", text.clone()),
                Condition::Domain("hc:patient_id".to_owned(), Comparator::Equal, text.into()),
            ] {
                let question = Question::when(condition);
                let expected = naive::answer(&world.items, None, &question);
                let answer = world.session(None).query(&question.query(), &patient(10)).unwrap();
                let name = question.conditions.len();
                rows_are(&answer, &expected).unwrap_or_else(|why| panic!("{name} {last}: {why}"));
            }
        }
    }
}

#[test]
fn a_subject_of_fifty_thousand_grains_answers_its_newest_first() {
    let world = World::new(2);
    let session = world.session(None);
    for part in 0..5 {
        let grains = (part * 10_000..(part + 1) * 10_000).map(|at| {
            let mut fields = belief(at, "everybody", if at % 2 == 0 { "tea" } else { "rice" });
            let tag = if at % 2 == 0 { "even" } else { "odd" };
            fields.insert("structural_tags".to_owned(), vec![tag].into());
            Grain::from_fields(fields).unwrap()
        });
        session.put_batch(grains).unwrap();
    }
    let subject = Condition::TextIs("subject", "everybody".to_owned());
    let query = Question::when(subject.clone()).query();
    let page = PageOptions { count_to: u64::MAX, explain: true, ..patient(16) };
    let answer = session.query(&query, &page).unwrap();
    assert_eq!(answer.total, Some(50_000));
    let newest = answer.results.iter().map(|row| row.grain.text("entity_id").unwrap());
    assert!(newest.eq((0..16).map(|at| (49_999 - at).to_string())));
    let plan =
        session.query(&query, &PageOptions { explain: true, ..patient(16) }).unwrap().plan.unwrap();
    assert!(
        plan.scanned.is_some_and(|scanned| scanned <= 17),
        "it stops at its last row: {plan:?}"
    );

    // Two long lists that share nothing are told apart without looking at a grain.
    let tags = vec!["even".to_owned(), "odd".to_owned()];
    let disjoint = Question::when(Condition::TagsInclude(tags)).query();
    let answer = session.query(&disjoint, &page).unwrap();
    assert_eq!(answer.total, Some(0));
    assert_eq!(answer.plan.unwrap().scanned, Some(0));

    let no_time =
        PageOptions { count_to: u64::MAX, timeout: Duration::ZERO, ..PageOptions::first(0) };
    assert_eq!(code(session.query(&query, &no_time)), "ERR_TIMEOUT");
    let cancel = CancelHandle::new();
    cancel.cancel();
    let cancelled = PageOptions { cancel, ..patient(16) };
    assert_eq!(code(session.query(&query, &cancelled)), "ERR_TIMEOUT");

    // Somebody who counts over and over is stopped from outside.
    let cancel = CancelHandle::new();
    let page = PageOptions { count_to: u64::MAX, cancel: cancel.clone(), ..patient(0) };
    thread::scope(|scope| {
        let counting = scope.spawn(|| {
            loop {
                if let Err(error) = session.query(&query, &page) {
                    return error.code();
                }
            }
        });
        cancel.cancel();
        assert_eq!(counting.join().unwrap(), "ERR_TIMEOUT");
    });
}

#[test]
fn ten_thousand_tags_are_stored_and_asked_for_at_once() {
    let mut world = few(9);
    let tags: Vec<String> = (0..10_000).map(|tag| format!("tag {tag}")).collect();
    let tagged = |at: usize| {
        let mut fields = belief(at, "tagged", "tea");
        fields.insert("structural_tags".to_owned(), tags.clone().into());
        encoded(fields)
    };
    world.put_blobs(vec![tagged(100)]);
    assert_eq!(world.refused, 0);
    let but_one =
        Condition::TagsInclude(tags.iter().cloned().chain(["another".to_owned()]).collect());
    for (condition, rows) in
        [(Condition::TagsInclude(tags.clone()), 1), (but_one, 0), (Condition::TagsExclude(tags), 9)]
    {
        let question = Question::when(condition);
        let expected = naive::answer(&world.items, None, &question);
        assert_eq!(expected.len(), rows);
        let page = PageOptions { explain: true, ..patient(100) };
        let answer = world.session(None).query(&question.query(), &page).unwrap();
        rows_are(&answer, &expected).unwrap_or_else(|why| panic!("{rows} rows: {why}"));
    }
}

#[test]
fn a_hundred_values_for_each_of_three_parts_are_not_a_million_lookups() {
    let mut world = World::new(9);
    let blobs = (0..500).map(|at| {
        let mut fields = belief(at, &format!("s{}", at % 130), format!("o{}", at % 170));
        fields.insert("relation".to_owned(), format!("r{}", at % 150).into());
        encoded(fields)
    });
    world.put_blobs(blobs.collect());
    let texts = |letter: &str| (0..100).map(|at| format!("{letter}{at}")).collect::<Vec<_>>();
    let conditions = vec![
        Condition::TextIn("subject", texts("s")),
        Condition::FieldIn("relation", texts("r")),
        Condition::FieldIn("object", texts("o")),
    ];
    for order in [Order::Newest, Order::Oldest] {
        let question = Question { conditions: conditions.clone(), order, ..Question::default() };
        let expected = naive::answer(&world.items, None, &question);
        assert!(expected.len() > 50);
        let page = PageOptions { explain: true, ..patient(MAX_PAGE) };
        let answer = world.session(None).query(&question.query(), &page).unwrap();
        rows_are(&answer, &expected).unwrap();
        let plan = answer.plan.unwrap();
        assert!(plan.lists.iter().all(|list| list.lookups.len() <= 100));
        assert!(plan.scanned.unwrap() <= 500, "{:?}", addresses(&expected).len());
    }
}
