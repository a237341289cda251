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

/// How often grains were read, without looking at them through a read that counts.
fn counts(session: &Session, grains: &[ContentAddress]) -> Vec<u64> {
    grains.iter().map(|one| session.inspect(one).unwrap().access.count).collect()
}

#[test]
fn an_assembled_context_counts_the_grains_it_shows() {
    let place = Place::new();
    let (_store, session) = place.open();
    let grains = ["b", "c", "d"].map(|object| put(&session, object));
    let assemble = |rest: &str| {
        let asked = format!(r#"ASSEMBLE FROM one: (RECALL beliefs ABOUT "a"), {rest}"#);
        session.ask(&asked).unwrap().text().unwrap().to_owned()
    };
    // A grain that two sources find is shown once, and counts once.
    assemble(r#"two: (RECALL beliefs ABOUT "a") BUDGET 50 grains"#);
    assert_eq!(counts(&session, &grains), [1, 1, 1]);
    let text = assemble(r#"two: (RECALL beliefs ABOUT "nobody") BUDGET 2 grains"#);
    let shown = ["b", "c", "d"].map(|object| text.contains(&format!("knows {object}")));
    assert_eq!(shown.iter().filter(|shown| **shown).count(), 2, "{text}");
    let expected: Vec<_> = shown.iter().map(|shown| 1 + u64::from(*shown)).collect();
    assert_eq!(counts(&session, &grains), expected, "what the budget left out was not read");
    let asked = r#"ASSEMBLE FROM (RECALL beliefs ABOUT "a") BUDGET 50 grains STREAM"#;
    let stream = grainstore::StreamOptions::default();
    session.stream(asked, stream).unwrap().for_each(drop);
    let expected: Vec<_> = expected.iter().map(|count| count + 1).collect();
    assert_eq!(counts(&session, &grains), expected, "a stream shows them, too");
}

#[test]
fn a_context_counts_no_grain_that_no_text_may_show() {
    let place = Place::new();
    let (_store, session) = place.open();
    let unreviewed = r#"{"type": "reasoning", "conclusion": "it rains", "requires_human_review": true,
        "premises": ["clouds"], "confidence": 0.5, "created_at": 2000}"#;
    let unreviewed = grainstore::Grain::from_json(unreviewed).unwrap();
    let unreviewed = session.put(unreviewed).unwrap().address();
    let shown = put(&session, "b");
    let context = session.ask("ASSEMBLE FROM (RECALL) BUDGET 50 grains").unwrap();
    assert!(context.text().is_some_and(|text| !text.contains("rains")), "{context:?}");
    assert_eq!(counts(&session, &[unreviewed, shown]), [0, 1]);
}

#[test]
fn answers_of_cal_count_the_grains_they_give_and_no_others() {
    let place = Place::new();
    let (_store, session) = place.open();
    let grains = ["b", "c"].map(|object| put(&session, object));
    for (asked, given) in [
        (r#"RECALL beliefs ABOUT "a""#, 1),
        (r#"BATCH { x: RECALL beliefs ABOUT "a", y: RECALL beliefs ABOUT "a" }"#, 2),
        (r#"COALESCE (RECALL goals, RECALL beliefs ABOUT "a")"#, 1),
        (r#"RECALL beliefs ABOUT "a" | COUNT"#, 0),
        (r#"RECALL beliefs ABOUT "a" | OBJECTS"#, 0),
        (r#"RECALL beliefs ABOUT "a" | GROUP BY relation"#, 0),
        (r#"EXPLAIN RECALL beliefs ABOUT "a""#, 0),
        ("DESCRIBE capabilities", 0),
    ] {
        let before = counts(&session, &grains);
        session.ask(asked).unwrap_or_else(|error| panic!("{asked}: {error}"));
        let expected: Vec<_> = before.iter().map(|count| count + given).collect();
        assert_eq!(counts(&session, &grains), expected, "{asked}");
    }
}

#[test]
fn a_store_that_does_not_count_writes_nothing_when_it_is_read() {
    let place = Place::new();
    let (store, session) = place.open();
    let one = put(&session, "b");
    session.get(&one).unwrap();
    store.close().unwrap();
    let options = place.options().count_access(false).audit_reads(false);
    let (store, session) = opened(place.dir.path(), &options);
    store.flush().unwrap();
    let before = bytes_of(place.dir.path());
    session.get(&one).unwrap();
    session.get_batch(&[one, one]).unwrap();
    session.latest("a", "knows").unwrap();
    let query = grainstore::cal::Query::default().searching("b");
    session.query(&query, &grainstore::PageOptions::first(3)).unwrap();
    session.ask(r#"RECALL beliefs ABOUT "a""#).unwrap();
    session.ask(r#"ASSEMBLE FROM (RECALL beliefs ABOUT "a") BUDGET 50 grains"#).unwrap();
    place.clock.set(EpochMs::new(NOW + 2 * ACCESS_AGE_MS));
    store.flush().unwrap();
    assert_eq!(bytes_of(place.dir.path()), before);
    assert_eq!(access(&session, &one), read(1, NOW));
}

/// The files of a directory, by name.
fn bytes_of(
    directory: &std::path::Path,
) -> std::collections::BTreeMap<std::ffi::OsString, Vec<u8>> {
    let mut files = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(bytes_of(&entry.path())),
            false => _ = files.insert(entry.file_name(), std::fs::read(entry.path()).unwrap()),
        }
    }
    files
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
