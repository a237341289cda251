//! Whatever became of records before they are purged, and whatever is imported after: no byte of them is left.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use grainstore::cal::{CancelHandle, Query, Visibility};
use grainstore::prelude::*;
use grainstore::{MasterKey, PageOptions, VerificationStatus};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ExportOptions, ImportMode, ImportOptions, PurgeScope};
use grainstore_interop::archive::{Archive, Limits};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::erased::{all, assert_gone};
use crate::kit::*;
use crate::purge::{SECRET, found_in, options, purge, secretive};

const COUNT: u32 = 6;
const KINDS: [&str; 3] = ["semantic", "episodic", "procedural"];

/// What happens to a record.
#[derive(Debug, Clone, Copy)]
enum Event {
    Edit,
    Retype(usize),
    Move(bool),
    Status(&'static str),
    Embed,
    /// An agent supersedes its grain.
    Replace,
    /// An agent retracts its grain.
    Retract,
    Export(bool),
}

fn event() -> impl Strategy<Value = (u32, Event)> {
    let kind = prop_oneof![
        3 => Just(Event::Edit),
        2 => (0..3_usize).prop_map(Event::Retype),
        1 => any::<bool>().prop_map(Event::Move),
        2 => prop::sample::select(vec!["active", "deleted", "archived", "superseded"]).prop_map(Event::Status),
        1 => Just(Event::Embed),
        2 => Just(Event::Replace),
        1 => Just(Event::Retract),
        1 => any::<bool>().prop_map(Event::Export),
    ];
    (0..COUNT, kind)
}

/// The text of a version of a record, and the part of it that nothing else has.
fn token(number: u32, version: usize) -> String {
    format!("token-{number}-{version:04}-of-this")
}

struct Agent {
    world: World,
    records: Vec<Value>,
    versions: Vec<usize>,
    /// Archives of what was, that may be imported later.
    archives: Vec<PathBuf>,
}

impl Agent {
    fn new(options: OpenOptions) -> Self {
        let time = |number| ["2026-02-01T00:00:00Z", "2026-07-02T00:00:00Z"][number as usize % 2];
        let records = (0..COUNT).map(|number| record(number, time(number))).collect();
        let mut agent = Self {
            world: World::with(options),
            records,
            versions: vec![0; COUNT as usize],
            archives: Vec::new(),
        };
        (0..COUNT).for_each(|number| agent.edit(number));
        agent.import();
        agent
    }

    fn edit(&mut self, number: u32) {
        let version = &mut self.versions[number as usize];
        *version += 1;
        let text = format!("what {} says: {}", number, token(number, *version));
        self.records[number as usize]["content"] = json!(text);
        // The store takes no new content of a deleted record: its files would have what the store never had.
        if self.records[number as usize]["status"] == "deleted" {
            self.records[number as usize]["status"] = json!("active");
        }
    }

    fn import(&mut self) {
        let of = |quarter: &str| {
            let is_first = quarter == "2026-Q1";
            let records = self.records.iter().filter(|record| {
                (record["temporal"]["created_at"] == "2026-02-01T00:00:00Z") == is_first
            });
            records.cloned().collect()
        };
        let mut made = Made::of(vec![("2026-Q1", of("2026-Q1")), ("2026-Q3", of("2026-Q3"))]);
        for (number, record) in self.records.iter().enumerate() {
            let content = record["content"].as_str().unwrap();
            let spelled = content.replace('k', "\\u006b");
            made = made
                .file(&format!("raw/r/{number}.md"), content.replace(' ', "\n").as_bytes())
                .file(&format!("raw/r/{number}.json"), format!("[\"{spelled}\"]").as_bytes());
        }
        let name = format!("{}.alf", self.archives.len());
        let path = made.write(self.world.dir.path(), &name);
        self.world.import_with(&path, &ImportOptions::default());
        self.archives.push(path);
    }

    /// The newest grain of a record, if it is current.
    fn grain(&self, number: u32) -> Option<ContentAddress> {
        let current =
            self.world.session.query(&Query::default(), &PageOptions::first(500)).unwrap();
        let own = |grain: &Grain| {
            let context = grain.map("context")?;
            Some(context.get("alf:id")?.as_str()? == id(number))
        };
        let found = current.results.iter().find(|row| own(&row.grain) == Some(true));
        found.map(|row| row.content_address)
    }

    fn happen(&mut self, number: u32, event: Event) {
        let at = number as usize;
        let session = &self.world.session;
        match event {
            Event::Edit => self.edit(number),
            Event::Retype(kind) => {
                self.records[at]["memory_type"] = json!(KINDS[kind]);
                self.edit(number);
            }
            Event::Move(of_person) => {
                let namespace = format!("principal_context:{PERSON}");
                self.records[at]["namespace"] =
                    json!(if of_person { &namespace } else { "default" });
            }
            Event::Status(status) => self.records[at]["status"] = json!(status),
            Event::Embed => {
                self.records[at]["embeddings"] = json!([{"model": "m", "dimensions": 2,
                    "vector": [0.6, 0.8], "computed_at": "2026-08-01T00:00:00Z", "source": "runtime"}]);
            }
            Event::Replace => {
                let Some(old) = self.grain(number) else { return };
                let mut grain = session.get(&old).unwrap().grain().unwrap().into_fields();
                grain.remove("derived_from");
                grain.remove("supersession_justification");
                grain.insert(
                    "context".to_owned(),
                    grainstore::format::Value::Map(Default::default()),
                );
                for name in ["object", "content"] {
                    if grain.contains_key(name) {
                        grain.insert(name.to_owned(), "an agent says so".into());
                    }
                }
                if grain.contains_key("steps") {
                    grain.insert("steps".to_owned(), vec!["an agent says so"].into());
                }
                let grain = Grain::from_fields(grain).unwrap();
                let _ = session.supersede(&old, grain, None);
                return;
            }
            Event::Retract => {
                if let Some(old) = self.grain(number) {
                    session
                        .set_verification(&old, VerificationStatus::Retracted, "x", None)
                        .unwrap();
                }
                return;
            }
            Event::Export(native) => {
                let path = self.world.dir.path().join(format!("{}.alf", self.archives.len()));
                let options = ExportOptions {
                    native,
                    agent_id: Some(AGENT.to_owned()),
                    agent_name: Some("Ada".to_owned()),
                    ..ExportOptions::default()
                };
                alf::export(session, &path, &options, &Monitor::default()).unwrap();
                self.archives.push(path);
                return;
            }
        }
        self.import();
    }

    fn assert_gone(&self, numbers: &BTreeSet<u32>, when: &str) {
        self.world.store.scrub().unwrap();
        self.world.store.compact().unwrap();
        self.world.store.flush().unwrap();
        for number in numbers {
            let found = found_in(&self.world, &format!("token-{number}-"));
            assert_eq!(found, [""; 0], "{when} {number} of {numbers:?}");
        }
        self.world.verify();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(16), ..ProptestConfig::default() })]

    #[test]
    fn nothing_of_purged_records_is_left_or_comes_back(
        events in prop::collection::vec(event(), 1..14),
        purged in prop::collection::btree_set(0..COUNT, 1..4),
        again in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..4),
    ) {
        let mut agent = Agent::new(OpenOptions::new());
        for (number, event) in events {
            agent.happen(number, event);
        }
        let numbers: Vec<u32> = purged.iter().copied().collect();
        purge(&agent.world, &numbers, &options()).unwrap();
        agent.assert_gone(&purged, "after the purge");
        for stored in all(&agent.world) {
            let grain = stored.grain().unwrap();
            let own = grain.map("context").and_then(|context| context.get("alf:id"));
            prop_assert!(!numbers.iter().any(|n| own.and_then(|id| id.as_str()) == Some(&id(*n))));
        }
        let (out, _) = agent.world.export();
        for number in 0..COUNT {
            prop_assert_eq!(out.records.contains_key(&id(number)), !purged.contains(&number));
        }
        // Archives of before come again.
        for (archive, mirror) in again {
            let mode = if mirror { ImportMode::Mirror } else { ImportMode::Merge };
            let options = ImportOptions { mode, ..ImportOptions::default() };
            agent.world.import_with(archive.get(agent.archives.as_slice()) as &PathBuf, &options);
        }
        agent.world.export();
        agent.assert_gone(&purged, "after the imports");
        // And the files of before are purged by themselves.
        let ids: Vec<String> = numbers.iter().map(|number| id(*number)).collect();
        for path in &agent.archives {
            let to = agent.world.dir.path().join("purged.alf");
            let now = agent.world.session.now();
            let done = alf::purge_archive(path, &to, &ids, now, &options(), Limits::default(), &Monitor::default());
            done.unwrap();
            let archive = Archive::open(&to, Limits::default()).unwrap();
            for entry in archive.entries() {
                let bytes = archive.read(entry.name(), 1 << 24).unwrap().unwrap();
                let text = String::from_utf8_lossy(&bytes);
                for number in &numbers {
                    prop_assert!(!text.contains(&format!("token-{number}-")), "{} {}", entry.name(), text);
                }
            }
            let found = alf::validate(&to, Limits::default(), &Monitor::default()).unwrap();
            prop_assert!(found.valid, "{:?}", found);
        }
    }
}

#[test]
fn an_encrypted_store_loses_every_version_too() {
    let world = World::with(OpenOptions::new().key(MasterKey::new([7; 32])));
    let secret = |members: Value| {
        let base = with(
            record(50, "2026-07-02T00:00:00Z"),
            json!({"content": SECRET,
            "namespace": format!("principal_context:{PERSON}")}),
        );
        with(base, members)
    };
    let of =
        |record: Value| Made::of(vec![("2026-Q3", vec![record])]).layer("identity", identity(3));
    world.import_made(&of(secret(json!({}))));
    let first: BTreeSet<_> = shown(&world);
    world.import_made(&of(secret(json!({"memory_type": "episodic"}))));
    world.import_made(&of(secret(
        json!({"memory_type": "procedural", "content": "harmless words"}),
    )));
    assert!(first.len() < shown(&world).len());
    let records = |world: &World| shown(world).len();
    let before = records(&world);
    purge(&world, &[50], &options()).unwrap();
    assert_eq!(records(&world), before - 3);
    let mirror = ImportOptions { mode: ImportMode::Mirror, ..ImportOptions::default() };
    let none = Made::of(vec![("2026-Q3", vec![record(1, "2026-07-02T00:00:00Z")])]);
    world.import_with(&none.write(world.dir.path(), "none.alf"), &mirror);
    alf::purge(&world.session, &PurgeScope::Agent, &options(), &Monitor::default()).unwrap();
    assert_eq!(records(&world), 0);
    assert_gone(&world);
}

/// The grains that a person and nobody are shown.
fn shown(world: &World) -> BTreeSet<ContentAddress> {
    let user_id = Some(PERSON.to_owned());
    let part = world.session.part(SessionOptions { user_id, ..SessionOptions::default() });
    let all = Query::default().seeing(Visibility::EVERYTHING);
    let found = part.query(&all, &PageOptions::first(1000)).unwrap().results;
    found.iter().map(|row| row.content_address).collect()
}

#[test]
fn what_did_not_fit_into_a_grain_goes_with_it() {
    let world = World::new();
    let noise = |from: u32| {
        let words =
            (from..from + 20_000).map(|n| format!("4929 1234 {}", sha256(&n.to_be_bytes())));
        words.collect::<Vec<_>>().join(" ")
    };
    let (long, entity) = (noise(0), noise(1 << 20));
    let of = |content: &str| {
        let record = with(
            record(50, "2026-07-02T00:00:00Z"),
            json!({"content": content,
            "entities": [{"name": entity, "type": "person"}]}),
        );
        Made::of(vec![("2026-Q3", vec![record])]).file("raw/r/a.md", long.as_bytes())
    };
    world.import_made(&of(&long));
    world.import_made(&of("harmless words of another version"));
    let done = purge(&world, &[50], &options()).unwrap();
    assert_eq!(done.raw_files_affected, ["raw/r/a.md"]);
    assert_gone(&world);
}

#[test]
fn a_purge_of_what_the_store_does_not_have_takes_nothing() {
    let world = World::new();
    world.import_made(&rich());
    let (before, _) = world.export();
    let done = purge(&world, &[77], &options()).unwrap();
    assert_eq!((done.records_removed, done.raw_files_affected.len()), (0, 0));
    let (after, _) = world.export();
    assert_eq!((after.records, after.files), (before.records, before.files));
}

#[test]
fn a_cancelled_purge_has_changed_nothing_or_is_done() {
    for scope in [PurgeScope::Records(vec![id(2), id(60)]), PurgeScope::Agent] {
        for last in 0.. {
            let world = World::new();
            world.import_made(&secretive());
            let (before, _) = world.export();
            let cancel = CancelHandle::default();
            let (count, cancels) = (Cell::new(0), cancel.clone());
            let progress = |done: u64, of: u64| {
                assert!(done <= of);
                count.set(count.get() + 1);
                if count.get() > last {
                    cancels.cancel();
                }
            };
            let monitor = Monitor { progress: Some(&progress), cancel };
            let done = alf::purge(&world.session, &scope, &options(), &monitor);
            if let Err(error) = &done {
                assert_eq!(error.code(), "ERR_TIMEOUT");
                let (after, _) = world.export();
                assert_eq!((after.records, after.files), (before.records, before.files));
                alf::purge(&world.session, &scope, &options(), &Monitor::default()).unwrap();
            }
            assert_gone(&world);
            if count.get() <= last {
                assert!(last > 2, "{scope:?} {last}");
                break;
            }
        }
    }
}
