//! What is found by which words, and with what beside it.

use std::collections::BTreeSet;

use grainstore::cal::{Floor, Order, Predicate, Query, TypeSet, Visibility};
use grainstore::format::GrainType;
use grainstore::{OpenOptions, PageOptions, SessionOptions, Store};
use tempfile::TempDir;

use crate::search::kit::{addresses, belief, found, grain, open, put, scored, store, turn};

#[test]
fn what_was_just_written_is_found_and_what_was_superseded_is_not() {
    let (_dir, session) = store();
    assert!(found(&session, "tea").is_empty());
    let old = put(&session, belief("alice", "green tea"));
    assert_eq!(found(&session, "tea"), [old]);
    let new = session.supersede(&old, belief("alice", "black tea"), Some("changed")).unwrap();
    assert_eq!(found(&session, "tea"), [new]);
    assert!(found(&session, "green").is_empty());
    let all = Visibility { superseded: true, ..Visibility::default() };
    let both = addresses(&session, &Query::default().searching("tea").seeing(all));
    assert_eq!(both.len(), 2);
    session.contradict(&new, "not so", None).unwrap();
    assert!(found(&session, "tea").is_empty());
}

#[test]
fn words_are_found_by_their_stems_their_parts_and_whole() {
    let (_dir, session) = store();
    let at =
        put(&session, belief("src/main.rs", "user-id of 2024-05-07, Café Zürich, running late"));
    let other = put(&session, belief("elsewhere", "東京都に住んでいます"));
    for text in [
        "run",
        "RUNNING",
        "cafe",
        "zurich",
        "user-id",
        "user",
        "id",
        "2024-05-07",
        "main.rs",
        "main",
        "src/main.rs",
        "\"running late\"",
        "ru*",
        "runing~",
        "+late -early",
    ] {
        assert_eq!(found(&session, text), [at], "{text}");
    }
    for text in ["東京", "京都", "住んで"] {
        assert_eq!(found(&session, text), [other], "{text}");
    }
    for text in ["\"late running\"", "runs -late", "+late +early", "unseen"] {
        assert!(found(&session, text).is_empty(), "{text}");
    }
}

#[test]
fn conditions_hold_beside_words_whatever_the_plan() {
    let (_dir, session) = store();
    let mut puts = Vec::new();
    for at in 0..3000 {
        let mut fields = belief(&format!("s{}", at % 7), &format!("tea number {at}")).into_fields();
        fields.insert("created_at".to_owned(), (1000 + at).into());
        puts.push(grainstore::Grain::from_fields(fields).unwrap());
    }
    session.put_batch(puts).unwrap();
    session.put(turn("s", "u", 0, "tea in a turn")).unwrap();
    let tea = || Query::default().searching("tea");
    let count = |query: &Query| addresses(&session, query).len();
    assert_eq!(count(&tea()), 3001);
    assert_eq!(count(&tea().of_types(TypeSet::of(GrainType::Event))), 1);
    assert_eq!(count(&tea().of_types(TypeSet::of(GrainType::Belief))), 3000);
    let third = Predicate::text_is("subject", "s3").unwrap();
    assert_eq!(count(&tea().when(third.clone())), 429);
    assert_eq!(count(&Query::default().searching("tea 17").when(third.clone())), 429);
    let best = scored(&session, &Query::default().searching("+17").when(third));
    assert_eq!(best.len(), 1, "it is 17 and 17 % 7 is 3");
    // One and the same score, however it was found.
    let everywhere = scored(&session, &Query::default().searching("+17"));
    assert_eq!(best, everywhere);
    let oldest = scored(&session, &tea().ordered(Order::Oldest));
    assert_eq!(oldest, scored(&session, &tea()), "a search has an order of its own");
}

#[test]
fn a_word_is_found_by_its_beginning_whatever_it_is_kept_under() {
    let (_dir, session) = store();
    let one = put(&session, belief("alice", "an activity of the city"));
    let many = put(&session, belief("bob", "operating two activities"));
    let other = put(&session, belief("carol", "a unit of universities"));
    let set = |text: &str| found(&session, text).into_iter().collect::<BTreeSet<_>>();
    for beginning in ["act", "activ", "activi", "activit", "activity", "activities"] {
        assert_eq!(set(&format!("{beginning}*")), [one, many].into(), "{beginning}");
        assert_eq!(set(&format!("+{beginning}*")), [one, many].into(), "{beginning}");
        assert_eq!(found(&session, &format!("unit two city -{beginning}*")), [other]);
    }
    for (beginning, whole) in [("city", one), ("operat", many), ("operati", many)] {
        assert_eq!(found(&session, &format!("{beginning}*")), [whole], "{beginning}");
    }
    for beginning in ["uni", "univ", "universi", "universit", "university"] {
        assert_eq!(found(&session, &format!("{beginning}*")), [other], "{beginning}");
    }
    let answer =
        session.query(&Query::default().searching("operat*"), &PageOptions::first(1)).unwrap();
    assert_eq!(answer.results.first().unwrap().matched_fields, ["object"]);
}

#[test]
fn a_prefix_that_must_be_there_or_must_not_is_kept_to_in_every_form() {
    let (_dir, session) = store();
    let forms = (0..300).map(|at| belief("alice", &format!("tea grade{at}")));
    session.put_batch(forms).unwrap();
    let plain = put(&session, belief("bob", "tea"));
    assert_eq!(found(&session, "tea -grade*"), [plain]);
    assert_eq!(found(&session, "+grade*").len(), 300);
    assert_eq!(found(&session, "tea +grade*").len(), 300);
    let all = (0..9000).map(|at| format!("w{at}")).collect::<Vec<_>>().join(" ");
    let many = put(&session, belief("carol", &format!("tea {all}")));
    let code = |text: &str| {
        let answer = session.query(&Query::default().searching(text), &PageOptions::first(1));
        answer.map(drop).map_err(|error| error.code())
    };
    assert_eq!(code("tea -w*"), Err("ERR_LIMIT"), "refused rather than cut");
    assert_eq!(code("+w*"), Err("ERR_LIMIT"));
    assert_eq!(found(&session, "w*"), [many]);
    assert_eq!(found(&session, "+w12*"), [many]);
}

#[test]
fn an_identifier_means_itself_or_its_parts_side_by_side() {
    let (_dir, session) = store();
    for at in 0..60 {
        put(&session, belief("stock", &format!("item{at} on the shelf")));
    }
    let apart = put(&session, belief("note", "item-17 is gone"));
    let seventeen = found(&session, "item17");
    assert_eq!(seventeen.len(), 2);
    assert!(seventeen.contains(&apart));
    assert_eq!(found(&session, "item17 item12").len(), 3);
    assert_eq!(found(&session, "+item17").len(), 2);
    let bye = put(&session, belief("talk", "bye now"));
    assert!(found(&session, "bye-bye").is_empty(), "a word twice is not the word once");
    assert_eq!(found(&session, "now -bye-bye"), [bye]);
    let slug: Vec<String> = (0..40).map(|at| format!("w{}x", "abcdefgh".repeat(1 + at))).collect();
    let slug = slug.join("-");
    let long = put(&session, belief("slug", &slug));
    assert_eq!(found(&session, &slug), [long]);
    assert_eq!(found(&session, &format!("+{slug}")), [long]);
    let ids: Vec<String> =
        (1..9).map(|n| format!("{n}f7a3b2c-9d4e-4a6b-8c1d-{n}2e3f4a5b6c7")).collect();
    let last = put(&session, belief("id", &ids[7]));
    assert_eq!(found(&session, &ids.join(" ")), [last]);
    assert!(found(&session, "item99").is_empty(), "none of its parts alone");
    assert_eq!(addresses(&session, &Query::default().searching("item")).len(), 61);
    let spoken = put(&session, belief("api", "we parse http response bodies"));
    let written = put(&session, belief("code", "call parseHTTPResponse twice"));
    put(&session, belief("other", "parse the response"));
    let both: BTreeSet<_> = found(&session, "parseHTTPResponse").into_iter().collect();
    assert_eq!(both, BTreeSet::from([spoken, written]));
    // A part ranks higher what is found by another word.
    let near = put(&session, belief("x", "gone with the item"));
    put(&session, belief("y", "gone with the wind"));
    let ranked = found(&session, "gone item99");
    assert!(ranked.iter().position(|at| *at == near) < Some(2), "{ranked:?}");
    assert_eq!(ranked.len(), 3);
}

#[test]
fn a_total_is_told_where_the_index_alone_tells_it() {
    let (_dir, session) = store();
    let first = put(&session, belief("alice", "tea 0"));
    for at in 1..30 {
        put(&session, belief("alice", &format!("tea {at}")));
    }
    let total = |query: &Query| session.query(query, &PageOptions::first(2)).unwrap().total;
    let beliefs = Query::default().of_types(TypeSet::of(GrainType::Belief));
    assert_eq!(total(&beliefs), Some(30));
    session.supersede(&first, belief("alice", "coffee"), Some("changed")).unwrap();
    let newest = addresses(&session, &beliefs)[0];
    session.contradict(&newest, "not so", None).unwrap();
    assert_eq!(total(&beliefs), Some(29));
    let alice = beliefs.clone().when(Predicate::text_is("subject", "alice").unwrap());
    assert_eq!(total(&alice), None, "grains would have to be read");
    assert_eq!(total(&beliefs.clone().searching("tea")), None);
    let namespace = Some("shared".to_owned());
    let inner = SessionOptions { namespace, ..SessionOptions::default() };
    let inner = session.store().session(inner);
    let told = inner.query(&beliefs, &PageOptions::first(2)).unwrap().total;
    assert_eq!(told, None, "what others' consents hide must not show");
    let user = SessionOptions { user_id: Some("bob".to_owned()), ..SessionOptions::default() };
    let limited = session.store().session(user);
    assert_eq!(limited.query(&beliefs, &PageOptions::first(2)).unwrap().total, None);
    put(
        &session,
        grain(
            r#"{"type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b", "scope": ["x"], "is_withdrawal": false, "created_at": 5}"#,
        ),
    );
    assert_eq!(total(&beliefs), None, "a consent may hide some");
}

#[test]
fn an_answer_tells_its_score_and_its_fields_and_a_floor_is_held() {
    let (_dir, session) = store();
    put(&session, belief("alice", "green tea"));
    put(&session, belief("tea", "a plant that grows on green hills far away from here"));
    let query = Query::default().searching("green tea");
    let answer = session.query(&query, &PageOptions::first(5)).unwrap();
    let [best, other] = answer.results.as_slice() else { panic!("two answers") };
    assert!(0.0 < other.score && other.score < best.score && best.score <= 1.0);
    assert_eq!(best.matched_fields, ["object"]);
    assert_eq!(other.matched_fields, ["subject", "object"]);
    assert_eq!(answer.total, Some(2));
    let floor = |least, above| query.clone().scoring(Floor { least, above });
    assert_eq!(addresses(&session, &floor(other.score, false)).len(), 2);
    assert_eq!(addresses(&session, &floor(other.score, true)).len(), 1);
    assert_eq!(addresses(&session, &floor(1.0, true)).len(), 0);
    let honest = Query::default().searching("elephants");
    let answer = session.query(&honest, &PageOptions::first(5)).unwrap();
    assert_eq!((answer.results.len(), answer.total), (0, Some(0)));
}

#[test]
fn a_session_searches_its_own_namespace() {
    let (_dir, session) = store();
    let of = |namespace: &str| SessionOptions {
        namespace: Some(namespace.to_owned()),
        ..SessionOptions::default()
    };
    let text =
        r#"{"type": "event", "content": "tea", "role": "user", "created_at": 1000, "namespace": "#;
    let work = put(&session, grain(&format!("{text}\"work\"}}")));
    let team = put(&session, grain(&format!("{text}\"work:team\"}}")));
    put(&session, grain(&format!("{text}\"workshop\"}}")));
    let mut both = [work, team];
    both.sort();
    let store = session.store();
    assert_eq!(found(&store.session(of("work")), "tea"), both);
    assert_eq!(found(&store.session(of("work:team")), "tea"), [team]);
    assert!(found(&store.session(of("home")), "tea").is_empty());
}

#[test]
fn a_namespace_has_words_of_its_language() {
    let dir = TempDir::new().unwrap();
    let options = |language: Option<&str>| {
        let options = OpenOptions::new().create(true);
        language.map(|code| options.clone().language(Some("de"), code).unwrap()).unwrap_or(options)
    };
    let said = r#"{"type": "event", "content": "die Häuser am See", "role": "user", "created_at": 1000,
        "namespace": "de"}"#;
    let at = |language: Option<&str>, text: &str| {
        let store = Store::open(dir.path(), &options(language)).unwrap();
        let namespace = Some("de".to_owned());
        let session = store.session(SessionOptions { namespace, ..SessionOptions::default() });
        let count = found(&session, text).len();
        store.close().unwrap();
        count
    };
    let store = Store::open(dir.path(), &options(Some("de"))).unwrap();
    put(&store.session(SessionOptions::default()), grain(said));
    store.close().unwrap();
    assert_eq!(at(Some("de"), "Haus"), 1, "the plural has the stem of the singular");
    assert_eq!(at(None, "Haus"), 1, "the store knows what was said");
    assert_eq!(at(Some("en"), "Haus"), 0, "not in English");
    assert_eq!(at(None, "Häuser"), 1);
    assert_eq!(at(None, "Haus"), 0, "what was said last holds");
    assert_eq!(at(Some("de"), "Haus"), 1, "built anew with the other language");
    assert!(OpenOptions::new().language(None, "klingon").is_err());
    drop(open(&dir));
}

#[test]
fn observations_of_a_domain_that_is_not_searched_are_found_by_what_else_they_say() {
    let dir = TempDir::new().unwrap();
    let options = |searched: bool| {
        let types = ["thermometer", "lidar"];
        OpenOptions::new().create(true).observer_domain("physical", types, searched)
    };
    let found_by_words = |searched: bool| {
        let store = Store::open(dir.path(), &options(searched)).unwrap();
        let session = store.session(SessionOptions::default());
        let count = found(&session, "reading").len();
        let subject = Predicate::text_is("subject", "room 7").unwrap();
        assert_eq!(addresses(&session, &Query::default().when(subject)).len(), 1);
        assert_eq!(store.stats().unwrap().observer_domains.len(), 1);
        store.close().unwrap();
        count
    };
    let store = Store::open(dir.path(), &options(false)).unwrap();
    let session = store.session(SessionOptions::default());
    for (observer_type, subject) in [("thermometer", "room 7"), ("annotator", "page 3")] {
        put(
            &session,
            grain(&format!(
                r#"{{"type": "observation", "observer_id": "o", "observer_type": "{observer_type}",
                    "subject": "{subject}", "object": "a reading", "created_at": 1000}}"#
            )),
        );
    }
    store.close().unwrap();
    assert_eq!(found_by_words(false), 1, "the annotator's alone");
    assert_eq!(found_by_words(true), 2, "assigned in another way");
}
