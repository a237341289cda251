//! Texts and questions nobody would type: each is answered or refused with its code.

use grainstore::cal::{self, Query};
use grainstore::{PageOptions, SessionOptions};

use crate::search::kit::{belief, found, grain, put, store};

#[test]
fn any_text_is_a_question() {
    let (_dir, session) = store();
    let at = put(&session, belief("alice", "green tea"));
    let long = "a".repeat(100_000);
    #[rustfmt::skip]
    let texts = [
        "\"", "\"\"", "\"green", "green\"tea\"", "*", "~", "~9", "+", "-", "+-", "--", "-tea", "+-tea", "\\", "(",
        "(.*)+tea[", "^$", "tea) OR 1=1", "NOT", "AND", "tea^999", "field:tea", "\u{0}", "\u{202e}tea", "\u{200d}", "tea\u{301}\u{301}",
        "💚", "\u{feff}tea", long.as_str(), "~tea", "*tea", "tea**", "tea~~2", "\"tea\"~3", "+\"\" tea",
    ];
    for text in texts {
        let answer = session.query(&Query::default().searching(text), &PageOptions::first(3));
        assert!(answer.is_ok(), "{text:.20}: {answer:?}");
    }
    for text in ["\"green", "(tea)", "tea) OR 1=1", "\u{feff}tea", "TEA!!!"] {
        assert_eq!(found(&session, text), [at], "{text}");
    }
}

#[test]
fn what_is_too_long_is_refused_with_its_code() {
    let (_dir, session) = store();
    put(&session, belief("alice", "green tea"));
    let long = (0..10_000).map(|at| format!("word{at}")).collect::<Vec<_>>().join(" ");
    let refused = session.query(&Query::default().searching(long.as_str()), &PageOptions::first(3));
    assert_eq!(refused.map(drop).map_err(|error| error.code()), Err("ERR_LIMIT"));
    let statement = format!("RECALL LIKE \"{long}\"");
    let reading = session.reading().unwrap();
    let options = cal::ExecuteOptions::at(session.now());
    let refused = cal::execute(&reading, &statement, &options, &cal::WriteQuotas::default());
    let code = refused.map(drop).map_err(|error| error.code().to_owned());
    assert!(matches!(&code, Err(code) if code == "ERR_LIMIT" || code == "CAL-E001"), "{code:?}");
    let many = PageOptions::first(1_000_000_000);
    let refused = session.query(&Query::default().searching("tea"), &many);
    assert_eq!(refused.map(drop).map_err(|error| error.code()), Err("ERR_LIMIT"));
}

#[test]
fn long_and_strange_grains_are_stored_and_found() {
    let (_dir, session) = store();
    let said = |content: &str| {
        let content = serde_json::Value::from(content);
        grain(&format!(
            r#"{{"type": "event", "content": {content}, "role": "user", "created_at": 1000}}"#
        ))
    };
    let word = put(&session, said(&"x".repeat(900_000)));
    let marks = put(&session, said(&format!("needle{}", "\u{301}".repeat(100_000))));
    let many = put(&session, said(&"haystack needle ".repeat(50_000)));
    assert_eq!(found(&session, "haystack"), [many]);
    assert_eq!(found(&session, &"x".repeat(900_000)), [word]);
    let needles = found(&session, "needle");
    assert!(needles.contains(&many) && !needles.contains(&word), "{marks} may be another word");
    session.store().close().unwrap();
    let other = session.store().session(SessionOptions::default());
    let closed = other.query(&Query::default().searching("tea"), &PageOptions::first(1));
    assert_eq!(closed.map(drop).map_err(|error| error.code()), Err("ERR_IO"));
}
