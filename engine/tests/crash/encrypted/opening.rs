//! What opens an encrypted store, and what does not.

use grainstore::cal::Query;
use grainstore::{KeyFile, MasterKey, OpenOptions, Passphrase, SessionOptions, Store};
use tempfile::TempDir;

use super::world::{World, as_user, asked, belief, options};

fn code(result: grainstore::Result<Store>) -> Option<&'static str> {
    result.err().map(|error| error.code())
}

#[test]
fn another_key_no_key_and_a_key_too_many_are_refused_before_anything() {
    let world = World::new();
    world.operator().put(belief(Some("ann"), "a", "b", 1)).unwrap();
    world.store.close().unwrap();
    let before = world.files();
    let path = world.dir.path();
    assert_eq!(code(Store::open(path, &options(MasterKey::new([8; 32])))), Some("ERR_KEY"));
    assert_eq!(code(Store::open(path, &options(Passphrase::new("words")))), Some("ERR_KEY"));
    assert_eq!(code(Store::open(path, &OpenOptions::new())), Some("ERR_KEY"));
    let missing = KeyFile::new(path.join("nowhere"));
    assert_eq!(code(Store::open(path, &options(missing))), Some("ERR_KEY"));
    assert_eq!(world.files(), before, "a refusal changes nothing");
    let plain = TempDir::new().unwrap();
    Store::open(plain.path(), &OpenOptions::new().create(true)).unwrap().close().unwrap();
    assert_eq!(code(Store::open(plain.path(), &options(MasterKey::new([8; 32])))), Some("ERR_KEY"));
}

#[test]
fn a_passphrase_opens_what_it_created() {
    let dir = TempDir::new().unwrap();
    let cheap = || Passphrase::new("open sesame").cost(64, 1, 1);
    let store = Store::open(dir.path(), &options(cheap())).unwrap();
    let session = store.session(SessionOptions::default());
    let address = session.put(belief(Some("ann"), "a", "b", 1)).unwrap().address();
    store.close().unwrap();
    // The cost lies in the store.
    let store = Store::open(dir.path(), &options(Passphrase::new("open sesame"))).unwrap();
    assert!(store.session(SessionOptions::default()).exists(&address).unwrap());
    store.close().unwrap();
    assert_eq!(code(Store::open(dir.path(), &options(Passphrase::new("sesame")))), Some("ERR_KEY"));
}

#[test]
fn a_store_without_its_keyring_or_with_anothers_does_not_open() {
    let (one, other) = (World::new(), World::new());
    one.store.close().unwrap();
    other.store.close().unwrap();
    let ring = |world: &World| world.dir.path().join("keyring");
    let kept = std::fs::read(ring(&one)).unwrap();
    std::fs::copy(ring(&other), ring(&one)).unwrap();
    let key = || options(MasterKey::new(super::world::KEY));
    assert_eq!(code(Store::open(one.dir.path(), &key())), Some("ERR_INTEGRITY"));
    std::fs::remove_file(ring(&one)).unwrap();
    for how in [key(), OpenOptions::new()] {
        assert_eq!(code(Store::open(one.dir.path(), &how)), Some("ERR_INTEGRITY"));
    }
    std::fs::write(ring(&one), kept).unwrap();
    assert_eq!(code(Store::open(one.dir.path(), &key())), None);
}

#[test]
fn a_backup_is_opened_with_the_same_key() {
    let world = World::new();
    let address = world.operator().put(belief(Some("ann"), "a", "b", 1)).unwrap().address();
    let to = TempDir::new().unwrap();
    let to = to.path().join("copy");
    world.store.backup(&to).unwrap();
    assert_eq!(code(Store::open(&to, &OpenOptions::new())), Some("ERR_KEY"));
    let copy = super::world::open(&to);
    assert!(copy.session(SessionOptions::default()).exists(&address).unwrap());
}

#[test]
fn a_keyring_without_its_store_is_never_written_over() {
    let world = World::new();
    let address = world.operator().put(belief(Some("ann"), "a", "b", 1)).unwrap().address();
    world.store.close().unwrap();
    let path = world.dir.path();
    let (grains, aside) = (path.join("grains.redb"), path.join("aside"));
    std::fs::rename(&grains, &aside).unwrap();
    let kept = std::fs::read(path.join("keyring")).unwrap();
    let create = OpenOptions::new().create(true);
    assert_eq!(code(Store::open(path, &create)), Some("ERR_KEY"));
    assert_eq!(code(Store::open(path, &options(MasterKey::new([8; 32])))), Some("ERR_KEY"));
    assert!(!grains.exists());
    // With its own key it is taken for what an attempt to create the store has left.
    super::world::open(path).close().unwrap();
    assert_eq!(std::fs::read(path.join("keyring")).unwrap(), kept);
    std::fs::rename(&aside, &grains).unwrap();
    let store = super::world::open(path);
    assert!(store.session(SessionOptions::default()).exists(&address).unwrap());
}

#[test]
fn a_keyring_from_before_somebody_came_is_refused() {
    let world = World::new();
    world.operator().put(belief(Some("ann"), "a", "b", 1)).unwrap();
    let ring = world.dir.path().join("keyring");
    let older = std::fs::read(&ring).unwrap();
    world.operator().put(belief(Some("bob"), "a", "b", 2)).unwrap();
    world.store.close().unwrap();
    let kept = std::fs::read(&ring).unwrap();
    std::fs::write(&ring, older).unwrap();
    let key = || options(MasterKey::new(super::world::KEY));
    assert_eq!(code(Store::open(world.dir.path(), &key())), Some("ERR_INTEGRITY"));
    std::fs::write(&ring, kept).unwrap();
    let store = Store::open(world.dir.path(), &key()).unwrap();
    assert!(store.verify(true).unwrap().problems.is_empty());
}

#[test]
fn a_damaged_slot_keeps_its_person_and_nobody_else() {
    let world = World::new();
    let of_ann = world.operator().put(belief(Some("ann"), "a", "b", 1)).unwrap().address();
    let of_bob = world.operator().put(belief(Some("bob"), "a", "b", 2)).unwrap().address();
    world.store.close().unwrap();
    let ring = world.dir.path().join("keyring");
    let mut bytes = std::fs::read(&ring).unwrap();
    bytes[128 + 60] ^= 1;
    std::fs::write(&ring, bytes).unwrap();
    let store = super::world::open(world.dir.path());
    let session = store.session(SessionOptions::default());
    let failed = |result: grainstore::Result<()>| result.err().map(|error| error.code());
    assert_eq!(failed(session.get(&of_ann).map(drop)), Some("ERR_INTEGRITY"));
    assert_eq!(failed(session.get(&of_bob).map(drop)), None);
    let again = session.put(belief(Some("ann"), "a", "c", 3)).map(drop);
    assert_eq!(failed(again), Some("ERR_INTEGRITY"), "nobody gets a second slot unseen");
    session.put(belief(Some("bob"), "a", "c", 3)).unwrap();
}

#[test]
fn a_slot_that_no_longer_says_whose_it_is_makes_nobodys_answer_shorter() {
    let world = World::new();
    let of_ann = world.operator().put(belief(Some("ann"), "a", "b", 1)).unwrap().address();
    world.operator().put(belief(Some("bob"), "a", "b", 2)).unwrap();
    world.store.reindex().unwrap();
    world.store.close().unwrap();
    let ring = world.dir.path().join("keyring");
    let whole = std::fs::read(&ring).unwrap();
    let mut bytes = whole.clone();
    // Of the token.
    bytes[128 + 10] ^= 1;
    std::fs::write(&ring, bytes).unwrap();
    let question = Query::default().searching("b");
    {
        let store = super::world::open(world.dir.path());
        assert_eq!(asked(&as_user(&store, "ann"), &question), Err("ERR_INTEGRITY"));
        assert_eq!(asked(&as_user(&store, "bob"), &question).unwrap().len(), 1);
        let session = store.session(SessionOptions::default());
        for user in ["ann", "cem"] {
            let put = session.put(belief(Some(user), "a", "c", 3)).map_err(|error| error.code());
            assert_eq!(put.err(), Some("ERR_INTEGRITY"), "{user}");
        }
        session.put(belief(Some("bob"), "a", "c", 3)).unwrap();
        store.close().unwrap();
    }
    std::fs::write(&ring, whole).unwrap();
    let store = super::world::open(world.dir.path());
    assert_eq!(asked(&as_user(&store, "ann"), &question), Ok(vec![of_ann]));
    assert!(store.verify(true).unwrap().ok);
}

const DESTROYED: redb::TableDefinition<'static, u64, &'static [u8]> =
    redb::TableDefinition::new("destroyed");
const META: redb::TableDefinition<'static, &'static str, &'static [u8]> =
    redb::TableDefinition::new("meta");

/// Changes the tables of a closed store.
fn change_tables(world: &World, change: impl FnOnce(&redb::WriteTransaction)) {
    let db = redb::Database::open(world.dir.path().join("grains.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    change(&txn);
    txn.commit().unwrap();
}

/// What ann, bob and somebody new get of a store whose first slot is ann's.
fn told(world: &World) -> [Result<usize, &'static str>; 3] {
    let store = super::world::open(world.dir.path());
    let question = Query::default().searching("b");
    let asked = |user| asked(&as_user(&store, user), &question).map(|found| found.len());
    let new = store.session(SessionOptions::default()).put(belief(Some("cem"), "a", "c", 9));
    let told = [asked("ann"), asked("bob"), new.map(|_| 1).map_err(|error| error.code())];
    store.close().unwrap();
    told
}

/// Slots of zeros with and without a mark, and slots that come back, are told apart.
#[test]
fn a_key_is_destroyed_where_the_rows_say_so_and_nowhere_else() {
    let world = World::new();
    for (user, at) in [("ann", 1), ("bob", 2)] {
        world.operator().put(belief(Some(user), "a", "b", at)).unwrap();
    }
    world.store.reindex().unwrap();
    world.store.close().unwrap();
    let ring = world.dir.path().join("keyring");
    let whole = std::fs::read(&ring).unwrap();
    let mut zeroed = whole.clone();
    zeroed[128..256].fill(0);
    let refused = [Err("ERR_INTEGRITY"), Ok(1), Err("ERR_INTEGRITY")];

    std::fs::write(&ring, &zeroed).unwrap();
    assert_eq!(told(&world), refused, "nobody erased her");
    // A mark that somebody made up is one row too many.
    change_tables(&world, |txn| {
        txn.open_table(DESTROYED).unwrap().insert(1, [7; 32].as_slice()).unwrap();
    });
    let key = options(MasterKey::new(super::world::KEY));
    assert_eq!(code(Store::open(world.dir.path(), &key)), Some("ERR_INTEGRITY"));
    change_tables(&world, |txn| {
        txn.open_table(DESTROYED).unwrap().remove(1).unwrap();
    });
    assert_eq!(told(&world), refused);
    std::fs::write(&ring, &whole).unwrap();
    let store = super::world::open(world.dir.path());
    assert!(store.verify(true).unwrap().ok);

    let operator = store.session(SessionOptions::default());
    operator.erase_user("ann", "she asked", &grainstore::EraseOptions::new().now(true)).unwrap();
    store.close().unwrap();
    assert_eq!(std::fs::read(&ring).unwrap(), zeroed);
    assert_eq!(told(&world), [Ok(0), Ok(1), Ok(1)], "a third has come");

    // Her slot is put back: it is destroyed once more.
    let mut back = std::fs::read(&ring).unwrap();
    back[128..256].copy_from_slice(&whole[128..256]);
    std::fs::write(&ring, back).unwrap();
    assert_eq!(told(&world), [Ok(0), Ok(1), Ok(1)]);
    assert_eq!(std::fs::read(&ring).unwrap()[..256], zeroed[..256]);
    let store = super::world::open(world.dir.path());
    assert!(store.verify(true).unwrap().ok);
}

/// The keys tell that the rows have sums, so that nobody who lacks them can take the sums away.
#[test]
fn a_store_that_was_made_to_say_it_is_of_format_1_is_refused() {
    let world = World::new();
    world.operator().put(belief(Some("bob"), "a", "b", 2)).unwrap();
    world.store.close().unwrap();
    change_tables(&world, |txn| {
        let stamp = 1_u32.to_be_bytes();
        let mut meta = txn.open_table(META).unwrap();
        meta.insert("format", stamp.as_slice()).unwrap();
        meta.remove("row_sums").unwrap();
    });
    let key = options(MasterKey::new(super::world::KEY));
    assert_eq!(code(Store::open(world.dir.path(), &key)), Some("ERR_INTEGRITY"));
}
