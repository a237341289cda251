//! An encrypted store answers as a plain one does, where the session or the question says whose grains
//! it is about.

use grainstore::cal::Query;
use grainstore::{ContentAddress, ExportOptions, PutOutcome, SameFact};

use super::world::{World, asked, belief, turn};

/// A statement's grains, or the code it was refused with.
fn said(session: &grainstore::Session, statement: &str) -> Result<Vec<String>, String> {
    let response = session.ask(statement).map_err(|error| error.code().to_owned())?;
    let response = serde_json::to_value(response).unwrap();
    let mut found = Vec::new();
    gather(&response, &mut found);
    found.sort();
    Ok(found)
}

/// Every object of a belief that is shown.
fn gather(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            found.extend(map.get("object").and_then(|o| o.as_str()).map(str::to_owned));
            map.values().for_each(|value| gather(value, found));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
        _ => {}
    }
}

fn full() -> (World, Vec<ContentAddress>) {
    let world = World::new();
    let session = world.operator();
    let put = |user, subject, object, at| {
        session.put(belief(user, subject, object, at)).unwrap().address()
    };
    let addresses = vec![
        put(Some("ann"), "ann", "green tea", 1000),
        put(Some("bob"), "bob", "green tea", 2000),
        put(Some("ann"), "kim", "black coffee", 3000),
        put(None, "kim", "green paint", 4000),
        put(Some("ann"), "kim", "white paint", 5000),
    ];
    (world, addresses)
}

#[test]
fn the_same_questions_work_for_a_session_that_names_the_person() {
    let (world, of) = full();
    for world in [world].into_iter().flat_map(|w| [w.reopened()]) {
        let (ann, bob) = (world.user("ann"), world.user("bob"));
        for (statement, by_ann, by_bob) in [
            (
                r#"RECALL beliefs WHERE subject = "kim""#,
                vec!["black coffee", "green paint", "white paint"],
                vec!["green paint"],
            ),
            (
                r#"RECALL beliefs WHERE subject = "kim" AND relation = "likes" AND object = "white paint""#,
                vec!["white paint"],
                vec![],
            ),
            (r#"RECALL beliefs WHERE object = "green tea""#, vec!["green tea"], vec!["green tea"]),
            (
                r#"RECALL beliefs WHERE tags INCLUDE ["taste"] LIMIT 2"#,
                vec!["green paint", "white paint"],
                vec!["green paint", "green tea"],
            ),
            (
                r#"RECALL beliefs WHERE query = "paint""#,
                vec!["green paint", "white paint"],
                vec!["green paint"],
            ),
            (
                r#"RECALL beliefs WHERE query = "green -paint""#,
                vec!["green tea"],
                vec!["green tea"],
            ),
            (r#"RECALL beliefs WHERE query = "+white +paint""#, vec!["white paint"], vec![]),
            (r#"RECALL beliefs WHERE query = "\"black coffee\"""#, vec!["black coffee"], vec![]),
            (
                "RECALL MY beliefs",
                vec!["black coffee", "green tea", "white paint"],
                vec!["green tea"],
            ),
        ] {
            assert_eq!(said(&ann, statement).unwrap(), by_ann, "{statement}");
            assert_eq!(said(&bob, statement).unwrap(), by_bob, "{statement}");
        }
        let by_words = asked(&ann, &Query::default().searching("tea")).unwrap();
        assert_eq!(by_words, [of[0]]);
        for address in [of[0], of[2], of[3], of[4]] {
            assert_eq!(ann.get(&address).unwrap().address, address);
        }
        let digits = of[2].to_string();
        assert_eq!(ann.resolve(&digits[..12], 5).unwrap(), [of[2]]);
        assert_eq!(world.operator().get(&of[1]).unwrap().address, of[1], "an address is enough");
    }
}

#[test]
fn an_operator_names_the_person_in_the_question_or_is_refused() {
    let (world, of) = full();
    let operator = world.operator();
    let named =
        |user: &str, rest: &str| format!(r#"RECALL beliefs WHERE user_id = "{user}" AND {rest}"#);
    assert_eq!(
        said(&operator, &named("ann", r#"subject = "kim""#)).unwrap(),
        ["black coffee", "white paint"]
    );
    assert_eq!(said(&operator, &named("bob", r#"query = "tea""#)).unwrap(), ["green tea"]);
    assert_eq!(said(&operator, &named("eve", r#"query = "tea""#)).unwrap(), Vec::<String>::new());
    for refused in [
        r#"RECALL beliefs WHERE subject = "kim""#,
        r#"RECALL beliefs WHERE query = "tea""#,
        "RECALL beliefs",
        r#"RECALL beliefs WHERE tags INCLUDE ["taste"]"#,
    ] {
        let code = said(&operator, refused).unwrap_err();
        assert_eq!(code, "ERR_KEY", "{refused}");
    }
    assert_eq!(asked(&operator, &Query::default().at_address(of[1])), Ok(vec![of[1]]));
}

#[test]
fn what_tokens_do_not_tell_is_refused_and_never_partial() {
    let (world, _) = full();
    let ann = world.user("ann");
    for words in ["gree*", "grene~", "+whit*"] {
        let refused = asked(&ann, &Query::default().searching(words));
        assert_eq!(refused, Err("ERR_LIMIT"), "{words}");
    }
}

#[test]
fn a_store_without_people_is_asked_like_a_plain_one() {
    let world = World::new();
    let operator = world.operator();
    operator.put(belief(None, "sky", "blue", 1000)).unwrap();
    assert_eq!(said(&operator, r#"RECALL beliefs WHERE subject = "sky""#).unwrap(), ["blue"]);
    assert_eq!(said(&operator, r#"RECALL beliefs WHERE query = "blue""#).unwrap(), ["blue"]);
}

#[test]
fn supersession_history_and_twins_work_on_tokens() {
    let (world, of) = full();
    let ann = world.user("ann");
    let new = ann
        .supersede(&of[0], belief(Some("ann"), "ann", "oolong", 9000), Some("asked again"))
        .unwrap();
    let world = world.reopened();
    let ann = world.user("ann");
    assert_eq!(ann.get(&of[0]).unwrap().state.superseded_by, Some(new));
    assert_eq!(said(&ann, r#"RECALL beliefs WHERE subject = "ann""#).unwrap(), ["oolong"]);
    assert_eq!(ann.history(&new).unwrap().len(), 2);
    let twin = ann.put_fact(belief(Some("ann"), "ann", "oolong", 9500), SameFact::Keep).unwrap();
    assert_eq!(twin, PutOutcome::Kept(new));
    let audit = world.operator().audit(None, 100).unwrap();
    let entry = audit.iter().find(|entry| entry.operation == "supersede").unwrap();
    assert_eq!(entry.subjects, [of[0], new]);
    assert_eq!(entry.reason.as_deref(), Some("asked again"));
}

#[test]
fn neighbours_lend_their_words_within_one_person() {
    let world = World::new();
    let operator = world.operator();
    let put = |user, words, at| operator.put(turn(user, "talk", words, at)).unwrap().address();
    let first = put("ann", "shall we sail tomorrow", 1000);
    let second = put("ann", "yes at dawn", 2000);
    put("bob", "yes at dusk", 3000);
    let found = asked(&world.user("ann"), &Query::default().searching("sail")).unwrap();
    assert_eq!(found, [first, second]);
    assert_eq!(asked(&world.user("bob"), &Query::default().searching("sail")), Ok(vec![]));
}

#[test]
fn an_export_with_a_condition_looks_for_the_people_it_names() {
    let (world, of) = full();
    let file = world.dir.path().with_extension("mg");
    let conditions = |operator: &grainstore::Session, text: &str| {
        grainstore::cal::conditions(text, &operator.reading().unwrap(), operator.now()).unwrap()
    };
    let operator = world.operator();
    for (text, expected) in [
        (r#"object = "green tea" AND user_id = "ann""#, 1),
        (r#"subject = "kim" AND user_id = "ann""#, 2),
        (r#"subject = "kim" AND user_id = "eve""#, 0),
    ] {
        let query = conditions(&operator, text);
        let exported = operator.export(&file, &query, &ExportOptions::default()).unwrap();
        assert_eq!(exported.exported, expected, "{text}");
    }
    let all = operator.export(&file, &Query::default(), &ExportOptions::default()).unwrap();
    assert_eq!(all.exported, of.len() as u64, "without a condition nobody has to be named");
    std::fs::remove_file(&file).unwrap();
}
