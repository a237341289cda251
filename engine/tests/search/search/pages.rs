//! The answer to a search, page by page, while others write.

use grainstore::cal::{Predicate, Query};
use grainstore::{Cursor, OpenOptions, PageOptions, SessionOptions, Store};
use tempfile::TempDir;

use crate::search::kit::{belief, paged, scored, store};

#[test]
fn pages_together_are_the_answer_there_was() {
    let (_dir, session) = store();
    let words = ["tea", "green tea", "tea and more tea", "green", "coffee and tea in the morning"];
    let grains =
        (0..500).map(|at| belief(&format!("s{}", at % 50), &format!("{} {at}", words[at % 5])));
    session.put_batch(grains).unwrap();
    let third = Predicate::text_is("subject", "s3").unwrap();
    for query in [
        Query::default().searching("green tea"),
        Query::default().searching("tea*"),
        Query::default().searching("tea").when(third),
    ] {
        let whole = scored(&session, &query);
        for rows in [1, 7, 64, 65, 400] {
            assert_eq!(paged(&session, &query, rows, |_| ()), whole, "{rows} rows");
        }
    }
}

#[test]
fn what_others_write_meanwhile_is_on_no_later_page_and_moves_no_row() {
    let (_dir, session) = store();
    let grains =
        (0..300).map(|at| belief(&format!("s{at}"), &format!("tea {at} {}", "x ".repeat(at % 9))));
    session.put_batch(grains).unwrap();
    let query = Query::default().searching("tea x");
    let whole = scored(&session, &query);
    let mut next = 0;
    let seen = paged(&session, &query, 20, |_| {
        next += 1;
        let more =
            (0..40).map(|at| belief(&format!("new {next}"), &format!("tea tea {at} {next}")));
        session.put_batch(more).unwrap();
        // What is superseded between pages was current on the first.
        let row = whole[whole.len() - next].0;
        session.supersede(&row, belief("s", &format!("gone {next}")), None).unwrap();
    });
    assert_eq!(seen, whole);
    assert_ne!(scored(&session, &query), whole, "a new search sees it all");
}

#[test]
fn a_cursor_is_of_one_search() {
    let (_dir, session) = store();
    session.put_batch((0..50).map(|at| belief("alice", &format!("green tea {at}")))).unwrap();
    let page = |text: &str, cursor| {
        let answer =
            session.query(&Query::default().searching(text), &PageOptions::first(5).after(cursor));
        answer.map(|answer| answer.next_cursor).map_err(|error| error.code())
    };
    let cursor = page("tea", None).unwrap();
    assert!(page("tea", cursor.clone()).is_ok());
    assert_eq!(page("green", cursor.clone()), Err("ERR_CURSOR"));
    let structural = session.query(&Query::default(), &PageOptions::first(5).after(cursor));
    assert_eq!(structural.map(drop).map_err(|error| error.code()), Err("ERR_CURSOR"));
}

#[test]
fn a_cursor_is_of_the_language_its_question_was_read_in() {
    let dir = TempDir::new().unwrap();
    let query = Query::default().searching("what is the common thing");
    let page = |language: &str, cursor: Option<Cursor>| {
        let options = OpenOptions::new().create(true).language(None, language).unwrap();
        let store = Store::open(dir.path(), &options).unwrap();
        let session = store.session(SessionOptions::default());
        if cursor.is_none() {
            session.put_batch((0..5).map(|at| belief("it", &format!("common {at}")))).unwrap();
        }
        let answer = session.query(&query, &PageOptions::first(2).after(cursor));
        store.close().unwrap();
        answer.map(|answer| answer.next_cursor).map_err(|error| error.code())
    };
    // In English it has two words that count, as it stands five.
    let cursor = page("en", None).unwrap();
    assert!(cursor.is_some());
    assert_eq!(page("und", cursor.clone()), Err("ERR_CURSOR"));
    assert!(page("en", cursor).unwrap().is_some());
}
