//! Other keys: everything stays readable, and what the former key opened it opens no more.

use grainstore::cal::Query;
use grainstore::{Derivation, EraseOptions, KeyFile, KeyProvider, MasterKey, Passphrase, Store};

use super::world::{World, asked, belief, open, options, turn};

#[test]
fn another_master_key_opens_everything_and_the_former_one_nothing() {
    let world = World::new();
    let address = world.operator().put(belief(Some("ann"), "a", "tea", 1)).unwrap().address();
    let before = world.rows_of_slot(1);
    world.store.rotate_key(Passphrase::new("words").cost(64, 1, 1)).unwrap();
    assert_eq!(world.rows_of_slot(1), before, "no row is written anew");
    let later = world.operator().put(belief(Some("bob"), "b", "tea", 2)).unwrap().address();
    world.store.close().unwrap();
    let opened = Store::open(world.dir.path(), &options(MasterKey::new(super::world::KEY)));
    assert_eq!(opened.map_err(|error| error.code()).err(), Some("ERR_KEY"));
    let store = Store::open(world.dir.path(), &options(Passphrase::new("words"))).unwrap();
    let session = store.session(Default::default());
    assert!(session.exists(&address).unwrap() && session.exists(&later).unwrap());
    let entries = session.audit(None, 99).unwrap();
    assert!(entries.iter().any(|entry| entry.operation == "rotate_key"));
}

#[test]
fn another_key_of_a_person_takes_all_of_theirs_and_nothing_of_others() {
    let world = World::new();
    let operator = world.operator();
    let mut kept = Vec::new();
    for at in 0..40 {
        let words = if at == 7 { "a zebra" } else { "some tea" };
        kept.push(operator.put(turn("ann", "s", words, 10 + at)).unwrap());
    }
    let old = operator.put(belief(Some("ann"), "ann", "tea", 100)).unwrap().address();
    let new = belief(Some("ann"), "ann", "coffee", 200);
    let new = operator.supersede(&old, new, Some("said so")).unwrap();
    operator.put(belief(Some("bob"), "bob", "tea", 100)).unwrap();
    let (of_ann, of_bob) = (world.rows_of_slot(1), world.rows_of_slot(2));
    let rows = world.store.rotate_user_key("ann").unwrap();
    // The grains, and the reason of the supersession.
    assert_eq!(rows, u64::try_from(of_ann.len() + 1).unwrap());
    assert!(world.rows_of_slot(1).is_empty());
    assert_eq!(world.rows_of_slot(3).len(), of_ann.len());
    assert_eq!(world.rows_of_slot(2), of_bob);
    let check = |world: &World| {
        let ann = world.user("ann");
        assert_eq!(
            asked(&ann, &Query::default().searching("zebra")).unwrap().len(),
            5,
            "with its neighbours"
        );
        assert_eq!(asked(&ann, &Query::default().searching("coffee")), Ok(vec![new]));
        assert_eq!(ann.get(&old).unwrap().state.superseded_by, Some(new));
        let bob = world.user("bob");
        assert_eq!(asked(&bob, &Query::default().searching("tea")).unwrap().len(), 1);
        let audit = world.operator().audit(None, 999).unwrap();
        let reason = audit.iter().find(|entry| entry.operation == "supersede").unwrap();
        assert_eq!(reason.reason.as_deref(), Some("said so"));
        let problems = world.store.verify(true).unwrap().problems;
        assert!(problems.is_empty(), "{problems:?}");
    };
    check(&world);
    let world = world.reopened();
    check(&world);
    assert_eq!(world.files()["keyring"][128..256], [0; 128], "the former key is destroyed");
    let erased =
        world.operator().erase_user("ann", "asked to", &EraseOptions::new().now(true)).unwrap();
    assert_eq!(erased.erased, u64::try_from(kept.len() + 2).unwrap());
    world.store.close().unwrap();
    assert_eq!(world.files()["keyring"][3 * 128..4 * 128], [0; 128]);
    assert!(open(world.dir.path()).verify(true).unwrap().problems.is_empty());
}

#[test]
fn a_change_of_a_persons_key_that_was_cut_short_is_ended_by_the_next_opening() {
    let world = World::new();
    for at in 0..30 {
        world.operator().put(turn("ann", "s", "some tea", at)).unwrap();
    }
    world.store.reindex().unwrap();
    world.store.close().unwrap();
    let before = world.files();
    let world = world.reopened();
    world.store.rotate_user_key("ann").unwrap();
    world.store.close().unwrap();
    let after = world.files();
    let both = [&before["keyring"][..256], &after["keyring"][256..]].concat();
    // Killed with the new slot, and with the last row under it.
    for (truth, index) in [(&before, &before), (&after, &before)] {
        let path = world.dir.path();
        std::fs::write(path.join("keyring"), &both).unwrap();
        std::fs::write(path.join("grains.redb"), &truth["grains.redb"]).unwrap();
        std::fs::write(path.join("index.redb"), &index["index.redb"]).unwrap();
        let store = open(path);
        let tea = Query::default().searching("tea");
        let ann = super::world::as_user(&store, "ann");
        assert_eq!(asked(&ann, &tea).unwrap().len(), 30);
        let verified = store.verify(true).unwrap();
        assert!(verified.ok, "{:?}", verified.problems);
        assert_eq!(asked(&ann, &tea).unwrap().len(), 30);
        assert_eq!(std::fs::read(path.join("keyring")).unwrap()[128..256], [0; 128]);
        store.close().unwrap();
        assert_eq!(asked(&super::world::as_user(&open(path), "ann"), &tea).unwrap().len(), 30);
    }
}

#[test]
fn a_key_within_the_store_opens_nothing_anew_and_the_former_one_still_does() {
    let world = World::new();
    let address = world.operator().put(belief(Some("ann"), "a", "tea", 1)).unwrap().address();
    let code = |error: grainstore::Error| error.code();
    for name in ["keyring.new", "keyring.old", "grains.redb.new", "probe-0.redb.new", "new.key"] {
        let file = world.dir.path().join(name);
        assert_eq!(KeyFile::create(&file).map_err(code).err(), Some("ERR_CONFLICT"), "{name}");
        assert!(!file.exists());
        let elsewhere = tempfile::TempDir::new().unwrap();
        let outside = elsewhere.path().join("key");
        KeyFile::create(&outside).unwrap();
        std::fs::copy(&outside, &file).unwrap();
        let refused = world.store.rotate_key(KeyFile::new(&file));
        assert_eq!(refused.map_err(code), Err("ERR_CONFLICT"), "{name}");
        assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(&outside).unwrap());
        std::fs::remove_file(&file).unwrap();
    }
    let world = world.reopened();
    assert!(world.operator().exists(&address).unwrap());
    let entries = world.operator().audit(None, 99).unwrap();
    assert!(entries.iter().all(|entry| entry.operation != "rotate_key"));
}

#[test]
fn a_store_is_not_made_with_a_key_in_its_own_directory() {
    let dir = tempfile::TempDir::new().unwrap();
    for name in ["keyring.new", "grains.redb.new", "mine"] {
        let file = dir.path().join(name);
        let key = KeyFile::create(&file).unwrap();
        let refused = Store::open(dir.path(), &options(key)).map_err(|error| error.code());
        assert_eq!(refused.err(), Some("ERR_CONFLICT"), "{name}");
        assert_eq!(std::fs::read(&file).unwrap().len(), 32, "{name}");
        std::fs::remove_file(&file).unwrap();
    }
}

/// A key that is another one each time it is asked for.
#[derive(Debug)]
struct Forgetful;

impl KeyProvider for Forgetful {
    fn master_key(&self, _: &Derivation) -> grainstore::Result<MasterKey> {
        MasterKey::random()
    }
}

#[test]
fn a_key_that_is_another_one_when_it_is_read_again_is_not_changed_to() {
    let world = World::new();
    let address = world.operator().put(belief(Some("ann"), "a", "tea", 1)).unwrap().address();
    let refused = world.store.rotate_key(Forgetful).map_err(|error| error.code());
    assert_eq!(refused, Err("ERR_KEY"));
    assert!(world.reopened().operator().exists(&address).unwrap());
}

#[test]
fn who_has_no_key_has_none_to_change() {
    let (world, plain) = (World::new(), World::plain());
    let code = |result: grainstore::Result<u64>| result.map_err(|error| error.code()).err();
    assert_eq!(code(world.store.rotate_user_key("nobody")), Some("ERR_NOT_FOUND"));
    assert_eq!(code(plain.store.rotate_user_key("ann")), Some("ERR_KEY"));
    let refused = plain.store.rotate_key(MasterKey::new([1; 32]));
    assert_eq!(refused.map_err(|error| error.code()).err(), Some("ERR_KEY"));
}
