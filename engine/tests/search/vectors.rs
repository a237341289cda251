//! Vectors that are stored with grains: found by their nearness, alone and beside words.
#![expect(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test stops at a surprise")]

use crate::random;
use crate::search::kit;

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use grainstore::cal::{Near, Predicate, Query};
use grainstore::embed::{Embedding, Metric};
use grainstore::{ContentAddress, Error, Offer, PageOptions, PutOutcome, Session, SessionOptions};

use kit::{addresses, belief, open, put, store, turn};
use random::Random;
use redb::ReadableTable;

/// A belief with a vector of three numbers.
fn seen(object: &str, values: [f32; 3]) -> Offer {
    let vector = Embedding::new("eyes", Metric::Cosine, values.to_vec()).unwrap();
    Offer::Grain(belief("alice", object)).with_vectors(vec![vector])
}

fn near(values: &[f32]) -> Query {
    Query::default().nearing(Near { model: None, values: values.into() })
}

fn code<T>(outcome: Result<T, Error>) -> Result<(), &'static str> {
    outcome.map(drop).map_err(|error| error.code())
}

#[test]
fn the_nearest_comes_first_right_after_the_write_and_after_reopening() {
    let (dir, session) = store();
    let east = session.put(seen("east", [1.0, 0.0, 0.0])).unwrap().address();
    assert_eq!(addresses(&session, &near(&[1.0, 0.1, 0.0])), [east]);
    let north = session.put(seen("north", [0.0, 1.0, 0.0])).unwrap().address();
    let between = session.put(seen("between", [0.7, 0.7, 0.0])).unwrap().address();
    put(&session, belief("alice", "no vector"));
    let expected = [east, between, north];
    assert_eq!(addresses(&session, &near(&[1.0, 0.1, 0.0])), expected);
    let answer = session.query(&near(&[1.0, 0.0, 0.0]), &PageOptions::first(1)).unwrap();
    assert!((answer.results[0].score - 1.0).abs() < 1e-6);
    session.contradict(&east, "not so", None).unwrap();
    assert_eq!(addresses(&session, &near(&[1.0, 0.1, 0.0])), [between, north]);
    session.store().close().unwrap();
    let session = open(&dir).session(SessionOptions::default());
    assert_eq!(addresses(&session, &near(&[1.0, 0.1, 0.0])), [between, north]);
    let stats = session.store().stats().unwrap();
    assert_eq!(stats.vectors[0].model, "eyes");
    assert_eq!(stats.vectors[0].vectors, Some(3));
    assert_eq!(stats.rows["vectors"], 3);
}

#[test]
fn a_vector_that_is_refused_refuses_its_grain() {
    let (_dir, session) = store();
    session.put(seen("first", [1.0, 0.0, 0.0])).unwrap();
    let of = |model: &str, metric, values: &[f32]| Embedding::new(model, metric, values.to_vec());
    assert_eq!(code(of("eyes", Metric::Cosine, &[f32::NAN, 0.0])), Err("ERR_SCHEMA"));
    assert_eq!(code(of("eyes", Metric::Cosine, &[0.0, 0.0])), Err("ERR_SCHEMA"));
    assert_eq!(code(of("eyes", Metric::Cosine, &[])), Err("ERR_DIMENSION"));
    assert_eq!(code(of("eyes", Metric::Cosine, &vec![0.5; 4097])), Err("ERR_DIMENSION"));
    assert_eq!(code(of("", Metric::Dot, &[1.0])), Err("ERR_SCHEMA"));
    let offer =
        |object: &str, embedding| Offer::Grain(belief("bob", object)).with_vectors(vec![embedding]);
    let short = of("eyes", Metric::Cosine, &[1.0, 0.0]).unwrap();
    assert_eq!(code(session.put(offer("short", short.clone()))), Err("ERR_DIMENSION"));
    let dot = of("eyes", Metric::Dot, &[1.0, 0.0, 0.0]).unwrap();
    assert_eq!(code(session.put(offer("dot", dot))), Err("ERR_DIMENSION"));
    let new = || of("ears", Metric::L2, &[1.0]).unwrap();
    let batch = [offer("good", new()), offer("short", short)];
    assert_eq!(code(session.put_batch(batch)), Err("ERR_DIMENSION"));
    assert_eq!(addresses(&session, &Query::default()).len(), 1, "none of them is there");
    // The space that came with a refused batch is not there either.
    let other = of("ears", Metric::Cosine, &[1.0, 2.0]).unwrap();
    assert!(session.put(offer("other", other)).is_ok());
    let asked = |values: &[f32]| {
        let near = Near { model: Some("eyes".to_owned()), values: values.into() };
        code(session.query(&Query::default().nearing(near), &PageOptions::first(3)))
    };
    assert_eq!(asked(&[1.0, 0.0]), Err("ERR_DIMENSION"));
    assert_eq!(asked(&[0.0, 0.0, 0.0]), Err("ERR_SCHEMA"));
    assert_eq!(asked(&[f32::INFINITY, 0.0, 0.0]), Err("ERR_SCHEMA"));
    let whose = session.query(&near(&[1.0, 0.0, 0.0]), &PageOptions::first(3));
    assert_eq!(code(whose), Err("ERR_SCHEMA"), "two models, and none is named");
    let nobody = Near { model: Some("nose".to_owned()), values: [1.0].as_slice().into() };
    let asked = session.query(&Query::default().nearing(nobody), &PageOptions::first(3));
    assert_eq!(code(asked), Err("ERR_NOT_FOUND"));
}

#[test]
fn a_grain_that_is_stored_again_takes_the_later_vectors() {
    let (dir, session) = store();
    let one = session.put(seen("one", [1.0, 0.0, 0.0])).unwrap().address();
    let two = session.put(seen("two", [0.0, 1.0, 0.0])).unwrap().address();
    let x = || near(&[1.0, 0.0, 0.0]);
    assert_eq!(addresses(&session, &x()), [one, two]);
    assert_eq!(session.put(seen("one", [0.0, 0.0, 1.0])).unwrap(), PutOutcome::Duplicate(one));
    session.put(seen("two", [0.9, 0.0, 0.1])).unwrap();
    assert_eq!(addresses(&session, &x()), [two, one]);
    assert_eq!(session.store().stats().unwrap().rows["vectors"], 2);
    let parts = (0..3).map(|chunk| {
        let mut values = vec![0.0; 3];
        values[chunk] = 1.0;
        Embedding::new("eyes", Metric::Cosine, values)
            .unwrap()
            .of_chunk(u32::try_from(chunk).unwrap())
    });
    session.put(Offer::Grain(belief("alice", "one")).with_vectors(parts.collect())).unwrap();
    let answer = session.query(&near(&[0.0, 1.0, 0.0]), &PageOptions::first(9)).unwrap();
    assert_eq!(answer.results[0].content_address, one, "its nearest part counts");
    assert_eq!(answer.results.len(), 2, "and it comes once");
    session.store().close().unwrap();
    let session = open(&dir).session(SessionOptions::default());
    assert_eq!(addresses(&session, &near(&[0.0, 1.0, 0.0]))[0], one);
    session.supersede(&one, seen("newer", [0.0, 1.0, 0.0]), Some("grew")).unwrap();
    let answer = session.query(&near(&[0.0, 1.0, 0.0]), &PageOptions::first(1)).unwrap();
    assert_eq!(answer.results[0].grain.text("object"), Some("newer"));
}

/// Many grains with random vectors.
fn many(session: &Session, count: usize) -> Vec<(ContentAddress, Vec<f32>, usize)> {
    let mut random = Random::new(7);
    let mut all = Vec::new();
    for from in (0..count).step_by(1000) {
        let rows: Vec<(Offer, Vec<f32>, usize)> = (from..from + 1000)
            .map(|at| {
                let values: Vec<f32> =
                    (0..8).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect();
                let vector = Embedding::new("m", Metric::Cosine, values.clone()).unwrap();
                let grain = belief(&format!("s{}", at % 100), &format!("object {at}"));
                (Offer::Grain(grain).with_vectors(vec![vector]), values, at % 100)
            })
            .collect();
        let puts = session.put_batch(rows.iter().map(|row| row.0.clone())).unwrap();
        let rows = puts.iter().zip(rows);
        all.extend(rows.map(|(put, (_, values, subject))| (put.address(), values, subject)));
    }
    all
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn a_condition_beside_a_vector_is_met_exactly() {
    let (_dir, session) = store();
    let all = many(&session, 3000);
    let wanted = vec![0.3, -0.2, 0.9, 0.1, -0.7, 0.4, 0.0, 0.2];
    for subject in [None, Some(3), Some(42)] {
        let mut expected: Vec<_> =
            all.iter().filter(|row| subject.is_none_or(|subject| row.2 == subject)).collect();
        expected.sort_by(|a, b| cosine(&b.1, &wanted).total_cmp(&cosine(&a.1, &wanted)));
        let mut query = near(&wanted);
        if let Some(subject) = subject {
            query = query.when(Predicate::text_is("subject", format!("s{subject}")).unwrap());
        }
        let answer = session.query(&query, &PageOptions::first(10)).unwrap();
        let found: Vec<_> = answer.results.iter().map(|row| row.content_address).collect();
        let expected: Vec<_> = expected.iter().take(10).map(|row| row.0).collect();
        assert_eq!(found, expected, "{subject:?}");
    }
}

#[test]
fn a_graph_is_saved_and_whatever_happens_to_its_file_costs_no_answer() {
    let (dir, session) = store();
    many(&session, 9000);
    let queries: Vec<Query> = (0..20)
        .map(|at| near(&(0..8).map(|i| ((at * 7 + i * 3) % 11) as f32 - 5.0).collect::<Vec<_>>()))
        .collect();
    let answers = |session: &Session| -> Vec<Vec<ContentAddress>> {
        let one = |query| session.query(query, &PageOptions::first(10)).unwrap();
        let ten = queries.iter().map(one);
        ten.map(|answer| answer.results.iter().map(|row| row.content_address).collect()).collect()
    };
    let exact = answers(&session);
    assert!(session.store().wait_for_graphs(Duration::from_secs(120)).unwrap());
    assert_eq!(session.store().stats().unwrap().vectors[0].beside, 0);
    let near_enough = |found: &[Vec<ContentAddress>], what: &str| {
        let hits: usize =
            found.iter().zip(&exact).map(|(a, b)| a.iter().filter(|x| b.contains(x)).count()).sum();
        assert!(hits >= 190, "{what}: {hits} of 200");
    };
    let graph = || {
        let mut files = fs::read_dir(dir.path().join("vectors")).unwrap();
        files.next().unwrap().unwrap().path()
    };
    let file = graph();
    let bytes = fs::read(&file).unwrap();
    session.store().close().unwrap();
    for harm in ["none", "flip", "cut", "empty", "delete"] {
        match harm {
            "flip" => {
                let mut other = bytes.clone();
                other[bytes.len() / 2] ^= 1;
                fs::write(graph(), other).unwrap();
            }
            "cut" => fs::write(graph(), &bytes[..bytes.len() / 2]).unwrap(),
            "empty" => fs::write(graph(), b"").unwrap(),
            "delete" => fs::remove_file(graph()).unwrap(),
            _ => {}
        }
        let store = open(&dir);
        let session = store.session(SessionOptions::default());
        near_enough(&answers(&session), harm);
        store.close().unwrap();
        near_enough(&answers(&open(&dir).session(SessionOptions::default())), harm);
    }
    let changed = (0..1000).map(|at| {
        let values: Vec<f32> = (0..8).map(|i| (at * 5 + i * 13) as f32 % 17.0 - 8.0).collect();
        let vector = Embedding::new("m", Metric::Cosine, values).unwrap();
        let grain = belief(&format!("s{}", at % 100), &format!("object {at}"));
        Offer::Grain(grain).with_vectors(vec![vector])
    });
    let store = open(&dir);
    store.session(SessionOptions::default()).put_batch(changed).unwrap();
    store.close().unwrap();
    fs::write(&file, &bytes).unwrap();
    let store = open(&dir);
    assert!(store.wait_for_graphs(Duration::from_secs(120)).unwrap());
    let vectors = store.stats().unwrap().vectors;
    assert_eq!((vectors[0].outdated, vectors[0].beside), (1000, 0), "taken in since");
    let told = store.doctor().findings;
    let told = told.iter().find(|finding| finding.name == "vectors").unwrap();
    assert!(told.detail.starts_with("1000 vectors are others"), "{}", told.detail);
}

#[test]
fn words_and_vectors_answer_together() {
    let (_dir, session) = store();
    let both = session.put(seen("green tea", [1.0, 0.0, 0.0])).unwrap().address();
    let words = session.put(seen("tea from the hills", [-1.0, 0.1, 0.0])).unwrap().address();
    let meaning = session.put(seen("a hot drink", [0.9, 0.2, 0.0])).unwrap().address();
    let query = near(&[1.0, 0.0, 0.0]).searching("tea");
    let answer = session.query(&query, &PageOptions::first(10)).unwrap();
    let found: Vec<_> = answer.results.iter().map(|row| row.content_address).collect();
    assert_eq!(found[0], both);
    assert!(found.contains(&words) && found.contains(&meaning));
    let scores: Vec<f64> = answer.results.iter().map(|row| row.score).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|s| (0.0..=1.0).contains(s)));
    assert_eq!(answer.results[0].matched_fields, ["object"]);
    let mut paged = Vec::new();
    let mut cursor = None;
    loop {
        let page = session.query(&query, &PageOptions::first(1).after(cursor)).unwrap();
        paged.extend(page.results.iter().map(|row| row.content_address));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(paged, found);
}

#[test]
fn what_the_words_exclude_is_no_answer_however_near() {
    let (_dir, session) = store();
    let green = session.put(seen("green tea", [1.0, 0.0, 0.0])).unwrap().address();
    let black = session.put(seen("black tea", [1.0, 0.0, 0.0])).unwrap().address();
    let drink = session.put(seen("a hot drink", [1.0, 0.0, 0.0])).unwrap().address();
    let both = |text: &str| {
        let query = near(&[1.0, 0.0, 0.0]).searching(text);
        addresses(&session, &query).into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(both("tea"), [green, black, drink].into());
    assert_eq!(both("tea -black"), [green].into());
    assert_eq!(both("+tea"), [green, black].into());
}

#[test]
fn a_nearest_answer_that_is_cut_has_no_total() {
    let (_dir, session) = store();
    many(&session, 1000);
    let total = |rows: usize| {
        let page = PageOptions { count_to: 5000, ..PageOptions::first(rows) };
        session.query(&near(&[1.0; 8]), &page).unwrap().total
    };
    assert_eq!(total(1000), Some(1000));
    assert_eq!(total(10), None, "no more than its nearest were looked for");
}

#[test]
fn beside_words_a_right_angle_is_worth_nothing() {
    let (_dir, session) = store();
    let words = session.put(seen("green tea", [0.0, 1.0, 0.0])).unwrap().address();
    let meaning = session.put(seen("a hot drink", [1.0, 0.0, 0.0])).unwrap().address();
    let between = session.put(seen("a warm cup", [1.0, 1.0, 0.0])).unwrap().address();
    let query = near(&[1.0, 0.0, 0.0]).searching("tea");
    let answer = session.query(&query, &PageOptions::first(10)).unwrap();
    let expected = [(words, 0.6), (meaning, 0.4), (between, 0.4 * 0.5_f64.sqrt())];
    assert_eq!(answer.results.len(), expected.len());
    for (row, (address, score)) in answer.results.iter().zip(expected) {
        assert_eq!(row.content_address, address);
        assert!((row.score - score).abs() < 1e-6, "{} {score}", row.score);
    }
}

#[test]
fn a_turn_is_near_what_is_said_around_it() {
    let (_dir, session) = store();
    let said = |second: i64, values: [f32; 3]| {
        let vector = Embedding::new("eyes", Metric::Cosine, values.to_vec()).unwrap();
        let turn = turn("s", "ann", second, &format!("turn {second}"));
        session.put(Offer::Grain(turn).with_vectors(vec![vector])).unwrap().address()
    };
    let beside = said(0, [0.5, 0.5, 0.0]);
    let named = said(1, [1.0, 0.0, 0.0]);
    let apart = said(100, [0.5, 0.5, 0.0]);
    (3..9).for_each(|second| drop_address(said(second * 10, [0.0, 0.0, 1.0])));
    let found = addresses(&session, &near(&[1.0, 0.0, 0.0]));
    let place = |of| found.iter().position(|address| *address == of).unwrap();
    assert_eq!(place(named), 0);
    assert!(place(beside) < place(apart), "as near by itself, in better company");
}

fn drop_address(_: ContentAddress) {}

#[test]
fn damage_to_the_vectors_of_the_truth_is_named() {
    let (dir, session) = store();
    let put = session.put(seen("east", [1.0, 0.0, 0.0])).unwrap();
    session.put(seen("north", [0.0, 1.0, 0.0])).unwrap();
    let whole = session.store().verify(true).unwrap();
    assert!(whole.ok, "{:?}", whole.problems);
    assert_eq!(whole.checked.unwrap().vectors, 2);
    session.store().close().unwrap();
    let vectors = redb::TableDefinition::<u64, &[u8]>::new("vectors");
    let rows = redb::TableDefinition::<u64, &[u8]>::new("vector_rows");
    let change = |harm: &str| {
        let db = redb::Database::open(dir.path().join("grains.redb")).unwrap();
        let txn = db.begin_write().unwrap();
        {
            let mut vectors = txn.open_table(vectors).unwrap();
            let mut rows = txn.open_table(rows).unwrap();
            let mut bytes = vectors.get(1).unwrap().unwrap().value().to_vec();
            match harm {
                "flipped" => *bytes.last_mut().unwrap() ^= 1,
                "gone" => drop(vectors.remove(1).unwrap()),
                _ => drop(rows.remove(1).unwrap()),
            }
            if harm == "flipped" {
                vectors.insert(1, bytes.as_slice()).unwrap();
            }
        }
        txn.commit().unwrap();
    };
    let truth = fs::read(dir.path().join("grains.redb")).unwrap();
    for harm in ["flipped", "gone", "unlisted"] {
        fs::write(dir.path().join("grains.redb"), &truth).unwrap();
        change(harm);
        let store = open(&dir);
        let found = store.verify(false).unwrap();
        assert_eq!(found.problems.len(), 1, "{harm}: {:?}", found.problems);
        assert!(format!("{:?}", found.problems).contains("Vector"), "{harm}");
        let session = store.session(SessionOptions::default());
        assert!(session.get(&put.address()).is_ok(), "{harm}: the grain is as it was");
        store.close().unwrap();
    }
}
