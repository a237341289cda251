//! Conversations: a turn is found by what was said around it, as long as that is current.

use grainstore::SessionOptions;

use crate::search::kit::{found, grain, open, put, scored, store, turn};
use grainstore::cal::Query;

#[test]
fn a_turn_is_found_by_the_turns_around_it_until_they_are_gone() {
    let (_dir, session) = store();
    let question = put(&session, turn("s", "ann", 0, "where do we go on holiday"));
    let answer = put(&session, turn("s", "ann", 1, "to Norway in July"));
    assert_eq!(found(&session, "norway holiday").len(), 2);
    assert_eq!(found(&session, "norway")[0], answer, "who says it comes first");
    assert_eq!(found(&session, "norway")[1], question);
    session.contradict(&answer, "not so", None).unwrap();
    assert!(found(&session, "norway").is_empty(), "what is not current lends nothing");
    let other = put(&session, turn("s", "ann", 2, "to Sweden then"));
    assert_eq!(found(&session, "sweden"), [other, question]);
}

#[test]
fn words_are_lent_two_turns_far_within_one_session_user_and_namespace() {
    let (_dir, session) = store();
    let said = ["one", "two", "three", "four", "five", "six"];
    for (at, word) in (0..).zip(said) {
        put(&session, turn("s", "ann", at, &format!("word {word}here")));
    }
    put(&session, turn("t", "ann", 2, "another session"));
    put(&session, turn("s", "bob", 3, "another user"));
    put(
        &session,
        grain(
            r#"{"type": "event", "content": "another namespace", "role": "user", "session_id": "s",
                "user_id": "ann", "created_at": 1700000002500, "timestamp_ms": 1700000002500,
                "namespace": "elsewhere"}"#,
        ),
    );
    for (word, count) in [("onehere", 3), ("twohere", 4), ("threehere", 5), ("sixhere", 3)] {
        assert_eq!(found(&session, word).len(), count, "{word}");
    }
    for word in ["session", "user", "namespace"] {
        assert_eq!(found(&session, word).len(), 1, "{word}");
    }
}

#[test]
fn however_a_conversation_was_written_it_has_the_same_scores() {
    let said = |at: i64| turn("s", "ann", at, &format!("turn {at} of a talk about {}", at % 5));
    let words = ["turn 7", "talk about 3", "+12 talk", "\"talk about\" 4"];
    let answers = |session: &grainstore::Session| {
        words.map(|text| scored(session, &Query::default().searching(text)))
    };
    let (_forward, one) = store();
    for at in 0..40 {
        put(&one, said(at));
    }
    let expected = answers(&one);
    assert!(expected.iter().all(|found| !found.is_empty()));

    let (_backward, other) = store();
    for at in (0..40).rev() {
        put(&other, said(at));
        if at % 7 == 0 {
            found(&other, "turn");
        }
    }
    assert_eq!(answers(&other), expected, "backwards, with searches in between");

    let (dir, batch) = store();
    batch.put_batch((0..40).step_by(2).map(said)).unwrap();
    batch.store().reindex().unwrap();
    batch.put_batch((1..40).step_by(2).map(said)).unwrap();
    assert_eq!(answers(&batch), expected, "every other turn after a fold");
    batch.store().close().unwrap();
    let store = open(&dir);
    assert_eq!(answers(&store.session(SessionOptions::default())), expected, "reopened");
    store.reindex().unwrap();
    assert_eq!(answers(&store.session(SessionOptions::default())), expected, "built anew");
}
