//! The pages of an answer add up to what the first one was taken from, whatever happens between them.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use grainstore::cal::{Order, Visibility};
use grainstore::format::{BeliefBuilder, EpochMs};
use grainstore::{ContentAddress, Cursor, PageOptions, Session, VerificationStatus};

use crate::query::grains::CREATED_MS;
use crate::query::naive;
use crate::query::planned::{Stage, addresses, from_env, patient, same};
use crate::query::question::{Condition, Question};
use crate::query::world::{World, encoded};

/// An instant that most grains of these tests share.
const INSTANT: i64 = CREATED_MS + 2_000;

/// What may happen between two pages.
const EVENTS: [Stage; 8] = [
    ("more grains", |world| world.put(20)),
    ("more grains of the instant", |world| world.put_at(INSTANT, 20)),
    ("supersessions", |world| world.supersede(25)),
    ("supersessions by what is stored", |world| world.supersede_by_heirs(25)),
    ("a fold in the background", |world| world.put_wide(12)),
    ("a whole fold", |world| world.flush()),
    ("closed and opened", |world| world.reopen(|_| {})),
    ("opened without its index", |world| {
        let index = world.index();
        world.reopen(|_| std::fs::remove_file(index).unwrap());
    }),
];

fn questions() -> Vec<Question> {
    let everything = Question { seeing: Visibility::EVERYTHING, ..Question::default() };
    let instant = Question { during: Some((INSTANT, INSTANT)), ..Question::default() };
    let tagged = Question::when(Condition::TagsInclude(vec!["red".to_owned()]));
    let subject = Question::when(Condition::TextIs("subject", "alice".to_owned()));
    let users = vec!["u1".to_owned(), "u2".to_owned()];
    let users = Question::when(Condition::TextIn("user_id", users));
    let both = [Question::default(), everything, instant, tagged, subject, users];
    let oldest = both.clone().map(|question| Question { order: Order::Oldest, ..question });
    both.into_iter().chain(oldest).collect()
}

#[test]
fn pages_show_the_store_as_the_first_page_found_it() {
    let seed = from_env("GRAINSTORE_QUERIES_SEED", 1) as u64;
    let is_full = std::env::var_os("GRAINSTORE_QUERIES").is_some();
    let (some, many, parts) = if is_full { (150, 300, 4) } else { (120, 150, 2) };
    let mut world = World::new(seed);
    world.put(some);
    world.put_at(INSTANT, many);
    world.put_at(i64::MAX, 20);
    world.put_at(i64::MIN, 20);
    let mut pages = 0;
    for question in questions() {
        world.put_heirs(60);
        let expected = addresses(&naive::answer(&world.items, None, &question));
        assert!(expected.len() > 20, "{question:?} has {} rows", expected.len());
        let mut found: Vec<ContentAddress> = Vec::new();
        let mut cursor: Option<Cursor> = None;
        let mut events = Vec::new();
        loop {
            let limit = 1 + world.author.random.below(expected.len() / parts);
            let page = PageOptions { count_to: u64::MAX, ..patient(limit) }.after(cursor);
            let answer = world.session(None).query(&question.query(), &page).unwrap();
            found.extend(answer.results.iter().map(|row| row.content_address));
            pages += 1;
            assert_eq!(answer.total, Some(expected.len() as u64), "seed {seed}, {question:?}");
            let Some(next) = answer.next_cursor else { break };
            assert!(!answer.results.is_empty(), "a page with a next one has rows");
            // A cursor lives on as text.
            cursor = Some(next.to_string().parse().unwrap());
            let (name, event) = EVENTS[world.author.random.below(EVENTS.len())];
            event(&mut world);
            events.push(name);
        }
        let checked = same("rows of all pages", &found, &expected);
        checked.unwrap_or_else(|why| panic!("seed {seed}, {question:?}, {events:?}: {why}"));
    }
    assert!(world.inherited > 50, "{} superseded by what was stored", world.inherited);
    println!("pages: {pages} of {} answers, an event between each two", questions().len());
}

#[test]
fn a_row_superseded_between_pages_by_a_grain_stored_before_is_on_its_page_once() {
    let mut world = World::new(13);
    world.put(40);
    world.put_heirs(40);
    for order in [Order::Newest, Order::Oldest] {
        let question = Question { order, ..Question::default() };
        let expected = addresses(&naive::answer(&world.items, None, &question));
        let first = world.session(None).query(&question.query(), &patient(1)).unwrap();
        let before = world.inherited;
        world.supersede_by_heirs(10);
        assert!(world.inherited > before, "{order:?}");
        let rest = patient(1000).after(first.next_cursor);
        let rest = world.session(None).query(&question.query(), &rest).unwrap();
        assert!(rest.results.iter().all(|row| row.state.is_current()), "shown as page 1 saw them");
        let rows = first.results.iter().chain(&rest.results).map(|row| row.content_address);
        assert_eq!(rows.collect::<Vec<_>>(), expected, "{order:?}");
        let again = world.session(None).query(&question.query(), &patient(1000)).unwrap();
        let now = addresses(&naive::answer(&world.items, None, &question));
        assert!(now.len() < expected.len());
        let rows = again.results.iter().map(|row| row.content_address);
        assert_eq!(rows.collect::<Vec<_>>(), now, "a new first page shows what is current now");
    }
}

#[test]
fn thousands_of_rows_of_one_instant_are_paged_by_address() {
    let mut world = World::new(7);
    world.put_at(INSTANT, 3000);
    world.put_at(INSTANT + 1, 3);
    world.put_at(INSTANT - 1, 3);
    for order in [Order::Newest, Order::Oldest] {
        let question = Question { order, ..Question::default() };
        let expected = addresses(&naive::answer(&world.items, None, &question));
        let session = world.session(None);
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let answer = session.query(&question.query(), &patient(700).after(cursor)).unwrap();
            found.extend(answer.results.iter().map(|row| row.content_address));
            cursor = answer.next_cursor;
            if cursor.is_none() {
                break;
            }
            world.put_at(INSTANT, 5);
        }
        assert!(found == expected, "{order:?}: {} of {} rows", found.len(), expected.len());
    }
}

/// What a writer did so far: what it put, and what it began to supersede.
#[derive(Debug, Default, Clone)]
struct Done {
    put: Vec<ContentAddress>,
    superseded: BTreeSet<ContentAddress>,
}

/// Grains that are put beside who reads, at most.
const MOST_PUT: i64 = 600;

#[test]
fn pages_hold_while_others_write() {
    let mut world = World::new(11);
    world.put(100);
    let done = Mutex::new(Done {
        put: world.items.iter().map(|item| item.address).collect(),
        superseded: BTreeSet::new(),
    });
    let stop = AtomicBool::new(false);
    let session = world.session(None);
    thread::scope(|scope| {
        scope.spawn(|| write(&session, &done, &stop));
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                world.store.flush().unwrap();
            }
        });
        // Who fails here must not leave the others at it for ever.
        let _stopped = Stopped(&stop);
        for round in 0..12 {
            read(&session, &done, if round % 2 == 0 { Order::Newest } else { Order::Oldest });
        }
    });
}

/// Tells the others to stop, however it ends.
struct Stopped<'s>(&'s AtomicBool);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Puts grains of few instants and supersedes some, until it is told to stop. On a busy machine it would
/// put them faster than all of them are read, again and again: there is an end to them.
fn write(session: &Session, done: &Mutex<Done>, stop: &AtomicBool) {
    for number in 1..=MOST_PUT {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let time = EpochMs::new(INSTANT + number % 3);
        let name = format!("subject {number}");
        let belief = |object: &str| {
            let builder = BeliefBuilder::new(time, name.clone(), "prefers", object, 0.5);
            builder.build().unwrap()
        };
        let old = session.put(belief("tea")).unwrap().address();
        done.lock().unwrap().put.push(old);
        if number % 3 == 0 {
            done.lock().unwrap().superseded.insert(old);
            let new = session.supersede(&old, belief("rice"), None).unwrap();
            done.lock().unwrap().put.push(new);
        }
    }
}

/// Reads all pages and holds them against what was done before the first and until it was there.
fn read(session: &Session, done: &Mutex<Done>, order: Order) {
    let question = Question { order, ..Question::default() };
    let query = question.query();
    let before = done.lock().unwrap().clone();
    let first = session.query(&query, &PageOptions { count_to: u64::MAX, ..patient(7) }).unwrap();
    let after = done.lock().unwrap().clone();
    let mut rows = first.results;
    let mut cursor = first.next_cursor;
    while cursor.is_some() {
        let answer = session.query(&query, &patient(23).after(cursor)).unwrap();
        rows.extend(answer.results);
        cursor = answer.next_cursor;
    }
    assert_eq!(first.total, Some(rows.len() as u64), "rows of all pages");
    let places: Vec<_> = rows
        .iter()
        .map(|row| {
            let time = i128::from(row.grain.time().get());
            (if order == Order::Newest { -time } else { time }, row.content_address)
        })
        .collect();
    assert!(places.is_sorted_by(|a, b| a < b), "rows are in order, none is repeated");
    let found: BTreeSet<_> = rows.iter().map(|row| row.content_address).collect();
    for address in &before.put {
        let gone = after.superseded.contains(address);
        assert!(gone || found.contains(address), "{address} was there before the first page");
    }
    // One write may be on the disk and not yet noted.
    let known: BTreeSet<_> = after.put.iter().collect();
    let extra = found.iter().filter(|address| !known.contains(address)).count();
    assert!(extra <= 1, "{extra} rows were written after the first page");
    // The last supersession that was begun may not have been done.
    let gone = before.superseded.iter().filter(|address| found.contains(address));
    assert!(gone.count() <= 1, "what was superseded before the first page is on none");
}

#[test]
fn a_grain_named_before_it_is_stored_is_on_no_later_page() {
    let mut world = World::new(3);
    let blobs: Vec<_> = (0..6).map(|_| encoded(world.author.fields())).collect();
    let named: Vec<_> = blobs.iter().map(grainstore::format::Blob::address).collect();
    world.put_blobs(blobs[..5].to_vec());
    let question = Question { among: Some(named), ..Question::default() };
    let expected = addresses(&naive::answer(&world.items, None, &question));
    let session = world.session(None);
    let first = session.query(&question.query(), &patient(1)).unwrap();
    world.put_blobs(blobs[5..].to_vec());
    let rest = patient(100).after(first.next_cursor);
    let rest = session.query(&question.query(), &rest).unwrap();
    let rows = first.results.iter().chain(&rest.results).map(|row| row.content_address);
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn a_grain_put_last_in_an_instant_between_pages_hides_no_row_before_it() {
    let mut world = World::new(5);
    world.put_at(INSTANT, 30);
    for order in [Order::Newest, Order::Oldest] {
        let question = Question { order, ..Question::default() };
        let expected = addresses(&naive::answer(&world.items, None, &question));
        let first = world.session(None).query(&question.query(), &patient(1)).unwrap();
        let last = expected[expected.len() - 1];
        // Until one has the greatest address of all.
        while world.items.iter().all(|item| item.address <= last) {
            world.put_at(INSTANT, 1);
        }
        let rest = patient(100).after(first.next_cursor);
        let rest = world.session(None).query(&question.query(), &rest).unwrap();
        let rows = first.results.iter().chain(&rest.results).map(|row| row.content_address);
        assert_eq!(rows.collect::<Vec<_>>(), expected, "{order:?}");
    }
}

#[test]
fn between_pages_an_ended_grain_shows_as_current_and_a_status_as_it_is_now() {
    let mut world = World::new(7);
    world.put_at(INSTANT, 30);
    let session = world.session(None);
    let question = Question::default();
    let expected = addresses(&naive::answer(&world.items, None, &question));
    let first = session.query(&question.query(), &patient(1)).unwrap();
    let mut marked = Vec::new();
    for address in &expected[1..] {
        // Some of them are protected, and stay as they are.
        let turn = marked.len() % 3;
        let done = match turn {
            0 => session.set_verification(address, VerificationStatus::Contested, "why", None),
            1 => session.set_verification(address, VerificationStatus::Retracted, "why", None),
            _ => session.contradict(address, "why", None),
        };
        if done.is_ok() {
            marked.push((*address, turn));
        }
    }
    assert!(marked.len() >= 6, "{marked:?}");
    let rest = patient(100).after(first.next_cursor);
    let rest = session.query(&question.query(), &rest).unwrap().results;
    let rows = first.results.iter().chain(&rest).map(|row| row.content_address);
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    for (address, turn) in marked {
        let row = rest.iter().find(|row| row.content_address == address).unwrap();
        assert!(row.state.is_current());
        let contested = row.state.verification_status == VerificationStatus::Contested;
        assert_eq!(contested, turn == 0, "{:?}", row.state);
    }
}
