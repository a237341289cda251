//! What lies on disk: nothing that can be read, or tested without the key.

use grainstore::embed::{Embedding, Metric};
use grainstore::{ContentAddress, EraseOptions, Grain, Offer, Session, SessionOptions};
use sha2::{Digest, Sha256};

use super::world::{World, belief, open, turn};

/// Sixteen letters no text has, which no stemmer changes.
const CANARY: &str = "zyxqjkvbwphgmfdc";

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Where a part stands in the files of a store.
fn found(world: &World, part: &[u8]) -> Vec<String> {
    let files = world.files().into_iter();
    files.filter(|(_, bytes)| has(bytes, part)).map(|(name, _)| name).collect()
}

fn canaries() -> Vec<Grain> {
    let belief = serde_json::json!({
        "type": "belief", "subject": format!("{CANARY} subject"), "relation": format!("{CANARY} relation"),
        "object": format!("{CANARY} object"), "confidence": 0.5, "created_at": 1000, "user_id": CANARY,
        "structural_tags": [format!("pii:{CANARY}")], "session_id": CANARY,
        format!("{CANARY}_key"): {format!("{CANARY}_inner"): CANARY}, "context": {"hc:fhir_id": CANARY},
    });
    let mut grains = vec![Grain::from_json(&belief.to_string()).unwrap()];
    // As many as it takes for words to be saved.
    grains
        .extend((0..80).map(|at| turn(CANARY, CANARY, &format!("{at} {CANARY} again"), 2000 + at)));
    grains
}

/// Everything that can be done with what a person says, and the addresses it is stored under.
fn live(session: &Session) -> Vec<ContentAddress> {
    let mut addresses = Vec::new();
    for grain in canaries() {
        addresses.push(session.put(Offer::from(grain)).unwrap().address());
    }
    let vector = Embedding::new("m", Metric::Cosine, vec![0.125, 0.25, 0.5]).unwrap();
    let with = Offer::from(belief(Some(CANARY), CANARY, "x", 4000)).with_vectors(vec![vector]);
    let old = session.put(with).unwrap().address();
    let next = belief(Some(CANARY), CANARY, "y", 5000);
    let next = session.supersede(&old, next, Some(&format!("because {CANARY}"))).unwrap();
    session.hold(&next, &format!("held for {CANARY}")).unwrap();
    search(session);
    addresses.extend([old, next]);
    addresses
}

fn search(session: &Session) {
    session.ask(&format!(r#"RECALL beliefs WHERE query = "{CANARY}""#)).unwrap();
}

/// What nobody may find without the key.
fn hidden(addresses: &[ContentAddress]) -> Vec<Vec<u8>> {
    let hash = |text: &[u8]| Sha256::digest(text).to_vec();
    let mut hidden = vec![CANARY.as_bytes().to_vec(), hash(CANARY.as_bytes())];
    for address in addresses {
        hidden.push(address.as_bytes().to_vec());
        hidden.push(hash(address.as_bytes()));
    }
    hidden.push([0.125_f32, 0.25, 0.5].iter().flat_map(|number| number.to_be_bytes()).collect());
    hidden
}

#[test]
fn no_file_tells_what_a_person_said_or_gives_anything_to_test_guesses_against() {
    let world = World::new();
    let addresses = live(&world.user(CANARY));
    world.store.flush().unwrap();
    let world = world.reopened();
    search(&world.user(CANARY));
    world.store.close().unwrap();
    let names: Vec<String> = world.files().into_keys().collect();
    for name in ["grains.redb", "index.redb", "keyring", "text/manifest"] {
        assert!(names.iter().any(|file| file == name), "{names:?}");
    }
    for part in hidden(&addresses) {
        assert_eq!(found(&world, &part), Vec::<String>::new(), "{part:02x?}");
    }
}

/// The bytes of a slot of the keyring.
fn slot(world: &World, number: usize) -> Vec<u8> {
    world.files()["keyring"][number * 128..][..128].to_vec()
}

#[test]
fn erasing_a_person_takes_the_key_the_rows_and_every_token_and_leaves_the_others() {
    let world = World::new();
    let bob = world.user("bob");
    let kept = bob.put(turn("bob", CANARY, &format!("1 {CANARY} again"), 2001)).unwrap().address();
    let addresses = live(&world.user(CANARY));
    let operator = world.operator();
    operator.lift_hold(addresses.last().unwrap(), "for the test", None).unwrap();
    world.store.flush().unwrap();
    let of_canary = slot(&world, 2);
    // What is wrapped is the last sixty bytes but for padding and checksum.
    let wrapped = of_canary[40..100].to_vec();
    assert_eq!(found(&world, &wrapped), ["keyring"]);
    let rows = world.rows_of_slot(2);
    assert!(rows.len() >= addresses.len());
    for row in &rows {
        assert!(!found(&world, row).is_empty(), "the scan finds the rows");
    }
    let done = operator.erase_user(CANARY, "asked to", &EraseOptions::new().now(true)).unwrap();
    assert_eq!(done.erased, u64::try_from(addresses.len()).unwrap());
    let all = |session: &Session| {
        for address in &addresses {
            assert_eq!(session.get(address).map_err(|e| e.code()).err(), Some("ERR_ERASED"));
        }
    };
    all(&operator);
    world.store.close().unwrap();
    assert_eq!(slot(&world, 2), [0; 128]);
    let mut gone = hidden(&addresses);
    gone.push(wrapped);
    gone.extend(rows);
    for part in gone {
        assert_eq!(found(&world, &part), Vec::<String>::new(), "{part:02x?}");
    }
    let store = open(world.dir.path());
    let operator = store.session(SessionOptions::default());
    all(&operator);
    assert_eq!(operator.get(&kept).unwrap().address, kept);
    let again = operator.put(canaries().remove(0));
    assert_eq!(again.map_err(|e| e.code()).err(), Some("ERR_ERASED"));
    let later = belief(Some(CANARY), "a", "new start", 4_000_000_000_000);
    let later = operator.put(later).unwrap().address();
    assert_eq!(operator.get(&later).unwrap().address, later, "under a new key");
    let verified = store.verify(true).unwrap();
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
}

#[test]
fn the_same_scan_finds_it_all_in_a_plain_store() {
    let world = World::plain();
    let addresses = live(&world.user(CANARY));
    world.store.flush().unwrap();
    world.store.close().unwrap();
    let word = CANARY.as_bytes();
    for name in ["grains.redb", "index.redb"] {
        assert!(found(&world, word).iter().any(|file| file == name), "{name}");
    }
    // A dictionary of words is packed: it has them, and not in one piece.
    assert!(world.files().into_keys().any(|file| file.starts_with("text/")));
    for address in addresses {
        assert!(!found(&world, address.as_bytes()).is_empty());
    }
}

#[test]
fn two_people_with_one_sentence_have_nothing_in_common_on_disk() {
    let world = World::new();
    let operator = world.operator();
    let row =
        |user: &str| operator.put(turn(user, "talk", "the very same sentence", 1000)).unwrap();
    row("ann");
    row("bob");
    world.store.flush().unwrap();
    world.store.close().unwrap();
    let (ann, bob) = (world.user_rows("ann"), world.user_rows("bob"));
    assert!(!ann.is_empty() && ann.len() == bob.len());
    for (one, other) in ann.iter().zip(&bob) {
        assert_eq!(one.len(), other.len());
        assert!(!one.windows(8).any(|part| has(other, part)), "eight bytes are in both");
    }
}

#[test]
fn a_changed_byte_of_one_grain_is_found_and_the_others_are_read() {
    let world = World::new();
    let operator = world.operator();
    let first = operator.put(belief(Some("ann"), "a", "first", 1)).unwrap().address();
    let second = operator.put(belief(Some("ann"), "a", "second", 2)).unwrap().address();
    world.store.close().unwrap();
    world.flip_a_byte_of_row(1);
    let store = open(world.dir.path());
    let session = store.session(SessionOptions::default());
    assert_eq!(session.get(&first).map_err(|error| error.code()).err(), Some("ERR_INTEGRITY"));
    assert_eq!(session.get(&second).unwrap().address, second);
    let verified = store.verify(true).unwrap();
    assert!(!verified.problems.is_empty());
}
