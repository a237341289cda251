//! Scores tell nothing of a rare word of others: two stores that differ in such a word alone answer alike, bit
//! for bit, whoever sees the word not.

use grainstore::cal::Query;
use grainstore::{ErrorKind, PageOptions, Session};

use crate::isolation::kit::{NOW, Place, belief, put, with};

/// What a reader may ask to learn of a word that begins like one of their own.
const ASKED: [&str; 11] = [
    "river zebulon",
    "river ze*",
    "river zeb*",
    "river zebu*",
    "zeb* zebu*",
    "zebraa~ river",
    "zebulom~2 river",
    "\"river zebulon\" zebra",
    "river -zebu*",
    "+zeb* river",
    "river zebulon quartzo",
];

/// Who asks: a namespace, a user.
type Asker = (Option<&'static str>, Option<&'static str>);
const ASKERS: [Asker; 3] = [(None, Some("ann")), (Some("own"), None), (Some("own"), Some("ann"))];

/// A store where others have this word, in as many grains: of bob, or of nobody where grains of bob are
/// under a key of his own.
fn with_word(place: Place, word: &str, grains: i64) -> Place {
    place.at(NOW);
    for at in 0..grains.max(8) {
        let text = if at < grains { word } else { "others" };
        let hidden = belief(&format!("river {text}"), 2000 + at);
        let others = match place.keyed {
            true => serde_json::json!({ "namespace": "other" }),
            false => serde_json::json!({ "user_id": "bob", "namespace": "other" }),
        };
        put(&place.all(), &with(hidden, &others));
    }
    for at in 0..12 {
        let text = ["river zebra", "river bank", "zebra"][usize::try_from(at % 3).unwrap()];
        let own = belief(text, 1000 + at);
        let of_ann = serde_json::json!({ "user_id": "ann", "namespace": "own" });
        put(&place.all(), &with(own, &of_ann));
    }
    place
}

/// The addresses and scores of an answer, or its error.
fn told(session: &Session, asked: &str) -> Result<Vec<(String, u64)>, ErrorKind> {
    let page = session.query(&Query::default().searching(asked), &PageOptions::default());
    let rows = page.map_err(|error| error.kind())?.results;
    Ok(rows.iter().map(|row| (row.content_address.to_string(), row.score.to_bits())).collect())
}

fn are_alike(make: fn() -> Place, grains: i64) {
    let [one, other] = ["zebulon", "quartzo"].map(|word| with_word(make(), word, grains));
    // Grains of users are found by who names a user; grains of nobody in another namespace are visible to who is
    // limited to no namespace.
    let askers = ASKERS
        .into_iter()
        .filter(|(namespace, user)| !one.keyed || (namespace.is_some() && user.is_some()));
    for (namespace, user) in askers {
        let of = |place: &Place| place.session(namespace, user);
        let (one, other) = (of(&one), of(&other));
        for asked in ASKED {
            let (one, other) = (told(&one, asked), told(&other, asked));
            assert_eq!(one, other, "{asked} as {namespace:?} {user:?}, {grains} grains");
        }
        let found = told(&one, "river zebra").unwrap();
        assert_eq!(found.len(), 12, "{namespace:?} {user:?}");
    }
}

#[test]
fn a_rare_word_of_others_is_told_by_no_score() {
    for grains in [1, 2, 8, 30] {
        are_alike(Place::new, grains);
    }
}

#[test]
fn nor_in_an_encrypted_store() {
    are_alike(Place::encrypted, 3);
}

/// Who sees the word has other scores: the comparison can fail.
#[test]
fn who_sees_the_word_is_told() {
    let [one, other] = ["zebulon", "quartzo"].map(|word| with_word(Place::new(), word, 2));
    for asked in ["river zebulon", "river zeb*", "river zebu*"] {
        assert_ne!(told(&one.all(), asked), told(&other.all(), asked), "{asked}");
    }
}
