//! A subject, a relation, an object, a namespace, a user as long as the format allows.

use grainstore::cal::{Predicate, Query};
use grainstore::{EraseOptions, SessionOptions};
use serde_json::{Value, json};

use crate::hostile_store::world::{Target, World, belief, grain, is_full, taken, told};

/// The fields that hold the long text.
const FIELDS: [&str; 7] =
    ["subject", "relation", "object", "namespace", "user_id", "session_id", "structural_tags"];

/// A belief with a text of so many bytes in a field, and one that differs in its last character only.
fn with(field: &str, bytes: usize, last: char) -> Value {
    let mut fields = belief("plain", "is", "simple", 1);
    let text = format!("{}{last}", format!("{field} ").repeat(bytes / (field.len() + 1)));
    match field {
        "structural_tags" => fields[field] = json!([text]),
        _ => fields[field] = text.into(),
    }
    fields
}

fn texts_of(fields: &Value) -> [String; 2] {
    ["subject", "relation"].map(|name| fields[name].as_str().unwrap_or_default().to_owned())
}

#[test]
fn texts_of_64_kib_are_stored_and_found() {
    long_texts("64 KiB", 64 << 10, &FIELDS, &['x', 'y']);
}

#[test]
fn texts_of_a_megabyte_are_stored_and_found() {
    let (fields, last): (&[_], &[_]) = match is_full() {
        true => (&FIELDS, &['x', 'y']),
        false => (&["subject", "relation", "object", "namespace"], &['x']),
    };
    long_texts("1 MB", 1_000_000, fields, last);
}

/// Grains with such a text in each of these fields, for each of these last characters.
fn long_texts(name: &'static str, bytes: usize, fields: &[&str], last: &[char]) {
    let world = World::new(name);
    let mut targets = Vec::new();
    let each = fields.iter().flat_map(|field| last.iter().map(|last| (*field, *last)));
    for (field, last) in each {
        let fields = with(field, bytes, last);
        let put = world.timed(&format!("put of {field}"), || world.session().put(grain(&fields)));
        let Some(put) = taken(&world, field, put) else { continue };
        let [subject, relation] = texts_of(&fields);
        // The first 50,000 words of a grain are indexed, in the order of its keys: `o` of object, `r` of relation, `s`
        // of subject. A long object leaves no room for the others.
        let words = if field == "object" { "object" } else { "simple" }.to_owned();
        let address = put.address();
        targets.push(Target { address, subject, relation, words, is_current: true });
    }
    assert_eq!(targets.len(), fields.len() * last.len(), "a grain has room for each");
    let has = |field: &str, end: char| fields.contains(&field) && last.contains(&end);
    told_apart(&world, bytes, &has);
    world.examine(&targets);
    erased(&world, bytes, &has);
}

/// Texts that differ in their last character are not taken for one another.
fn told_apart(world: &World, bytes: usize, has: &dyn Fn(&str, char) -> bool) {
    let session = world.session();
    for field in ["subject", "relation", "object", "user_id", "session_id"] {
        for last in ['x', 'y', 'z'] {
            let fields = with(field, bytes, last);
            let text = fields[field].as_str().unwrap_or_default();
            let query = Query::default().when(Predicate::text_is(field, text).unwrap());
            let found = world.all(&session, &format!("query by {field}"), &query).unwrap();
            assert_eq!(found.len(), usize::from(has(field, last)), "{field} {last}");
        }
    }
    let simple = Query::default().searching("simple");
    let text = |field: &str, last| with(field, bytes, last)[field].as_str().map(str::to_owned);
    for last in ['x', 'y', 'z'] {
        let within = SessionOptions { namespace: text("namespace", last), ..Default::default() };
        let inside = session.store().session(within);
        let found = world.all(&inside, "search within a namespace", &simple).unwrap();
        assert_eq!(found.len(), usize::from(has("namespace", last)), "{last}");
        let everybodys = SessionOptions { user_id: Some("zoe".into()), ..Default::default() };
        let personal = SessionOptions { user_id: text("user_id", last), ..Default::default() };
        let [everybodys, theirs] = [everybodys, personal].map(|options| {
            let session = session.store().session(options);
            world.all(&session, "all grains of a user", &Query::default()).unwrap().len()
        });
        assert_eq!(theirs, everybodys + usize::from(has("user_id", last)), "{last}");
    }
}

/// The users of long names are erased, each alone.
fn erased(world: &World, bytes: usize, has: &dyn Fn(&str, char) -> bool) {
    let session = world.session();
    for last in ['x', 'y', 'z'] {
        let user = with("user_id", bytes, last)["user_id"].as_str().unwrap_or_default().to_owned();
        let now = EraseOptions::new().now(true);
        let erase = || session.erase_user(&user, "asked for", &now).map_err(told);
        let done = world.answered("erase_user", erase);
        let expected = u64::from(has("user_id", last));
        assert!(done.is_none_or(|done| done.erased == expected && done.scrubbed), "{last}");
    }
    let report = session.store().verify(true).unwrap();
    assert!(report.ok, "{:?}", report.problems);
}
