//! Access counters as a host sees them (OMS 22.10): what counts, what does not, and what stays.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use std::sync::Arc;

use grainstore::format::BeliefBuilder;
use grainstore::graph::{EdgeQuery, GraphOptions};
use grainstore::limits::ACCESS_AGE_MS;
use grainstore::{
    AccessCounts, ContentAddress, EpochMs, ManualClock, OpenOptions, Session, SessionOptions, Store,
};
use tempfile::TempDir;

const NOW: i64 = 1_800_000_000_000;

/// A store whose clock stands where it is told.
struct Place {
    dir: TempDir,
    clock: Arc<ManualClock>,
}

impl Place {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::following());
        clock.set(EpochMs::new(NOW));
        Self { dir: TempDir::new().unwrap(), clock }
    }

    fn options(&self) -> OpenOptions {
        let clock = Arc::<ManualClock>::clone(&self.clock);
        OpenOptions::new().create(true).clock(clock)
    }

    fn open(&self) -> (Store, Session) {
        opened(self.dir.path(), &self.options())
    }

    /// What a store that was killed now would say.
    fn after_a_kill(&self, address: &ContentAddress) -> AccessCounts {
        let copy = TempDir::new().unwrap();
        std::fs::copy(self.dir.path().join("grains.redb"), copy.path().join("grains.redb"))
            .unwrap();
        let (_store, session) = opened(copy.path(), &self.options());
        session.get(address).unwrap().access
    }
}

fn opened(path: &std::path::Path, options: &OpenOptions) -> (Store, Session) {
    let store = Store::open(path, options).unwrap();
    let session = store.session(SessionOptions::default());
    (store, session)
}

fn put(session: &Session, object: &str) -> ContentAddress {
    let grain = BeliefBuilder::new(EpochMs::new(1000), "a", "knows", object, 1.0);
    session.put(grain.build().unwrap()).unwrap().address()
}

/// What is known before this look at it, which counts itself.
fn access(session: &Session, address: &ContentAddress) -> AccessCounts {
    session.get(address).unwrap().access
}

fn read(count: u64, last: i64) -> AccessCounts {
    AccessCounts { count, last_accessed_at: Some(EpochMs::new(last)) }
}

#[test]
fn answers_to_users_count_and_what_the_store_reads_for_itself_does_not() {
    let place = Place::new();
    let (_store, session) = place.open();
    let one = put(&session, "b");
    assert!(session.exists(&one).unwrap());
    session.resolve(&one.to_string(), 1).unwrap();
    session.inspect(&one).unwrap();
    session.history(&one).unwrap();
    session.history_of("a", "knows", None, None).unwrap();
    session.older_versions(&one, 10).unwrap();
    session.neighbours("a", &EdgeQuery::default()).unwrap();
    session.paths("a", "b", 2, &EdgeQuery::default()).unwrap();
    session.ancestry(&one, 16, 10, &GraphOptions::default()).unwrap();
    session.children(&one, 10, &GraphOptions::default()).unwrap();
    session.related(&one, None, 10, &GraphOptions::default()).unwrap();
    session.audit(None, 100).unwrap();
    assert_eq!(access(&session, &one), AccessCounts::default());
    place.clock.set(EpochMs::new(NOW + 5));
    session.get_batch(&[one, one]).unwrap();
    assert_eq!(access(&session, &one), read(3, NOW + 5));
    session.latest("a", "knows").unwrap();
    assert_eq!(access(&session, &one), read(5, NOW + 5));
    assert_eq!(session.history(&one).unwrap()[0].access.count, 6, "histories show it");
}

#[test]
fn counts_stay_when_the_store_is_closed_or_flushed() {
    let place = Place::new();
    let (store, session) = place.open();
    let one = put(&session, "b");
    session.get(&one).unwrap();
    store.close().unwrap();
    let (store, session) = place.open();
    assert_eq!(access(&session, &one), read(1, NOW));
    assert_eq!(place.after_a_kill(&one), read(1, NOW), "not written yet");
    store.flush().unwrap();
    assert_eq!(place.after_a_kill(&one), read(2, NOW));
    assert_eq!(access(&session, &one), read(2, NOW), "and once only");
}

#[test]
fn counts_ride_on_the_first_write_after_they_are_due() {
    let place = Place::new();
    let (_store, session) = place.open();
    let one = put(&session, "b");
    session.get(&one).unwrap();
    put(&session, "c");
    assert_eq!(place.after_a_kill(&one), AccessCounts::default(), "not due yet");
    place.clock.set(EpochMs::new(NOW + ACCESS_AGE_MS));
    put(&session, "d");
    assert_eq!(place.after_a_kill(&one), read(1, NOW));
    assert_eq!(access(&session, &one), read(1, NOW));
}

#[test]
fn a_store_that_does_not_count_says_what_it_knew_before() {
    let place = Place::new();
    let (store, session) = place.open();
    let one = put(&session, "b");
    session.get(&one).unwrap();
    store.close().unwrap();
    let (store, session) = opened(place.dir.path(), &place.options().count_access(false));
    session.get(&one).unwrap();
    assert_eq!(access(&session, &one), read(1, NOW));
    store.close().unwrap();
    let (_store, session) = place.open();
    assert_eq!(access(&session, &one), read(1, NOW));
}

#[test]
fn counts_of_many_readers_and_a_writer_add_up() {
    const READERS: u64 = 4;
    const READS: u64 = 2_000;
    let place = Place::new();
    let (store, session) = place.open();
    let grains: Vec<_> = (0..50).map(|n| put(&session, &n.to_string())).collect();
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                let mut last = 0;
                for n in 0..READS {
                    let at = usize::try_from(n).unwrap() % grains.len();
                    let count = access(&session, &grains[at]).count;
                    if at == 0 {
                        assert!(count >= last, "a count never goes back");
                        last = count;
                    }
                }
            });
        }
        scope.spawn(|| (0..20).for_each(|_| store.flush().unwrap()));
    });
    let sum: u64 = grains.iter().map(|one| access(&session, one).count).sum();
    assert_eq!(sum, READERS * READS);
}
