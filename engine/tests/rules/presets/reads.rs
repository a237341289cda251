//! Reads in the audit log: there where the preset wants them, and nowhere else.

use grainstore::cal::Query;
use grainstore::format::{BeliefBuilder, EpochMs, Grain};
use grainstore::{
    AuditEntry, ExportOptions, OpenOptions, PageOptions, Preset, Session, SessionOptions, Store,
};
use tempfile::TempDir;

fn open(dir: &TempDir, preset: Preset) -> Store {
    Store::open(dir.path(), &OpenOptions::new().create(true).preset(preset)).unwrap()
}

fn agent(store: &Store) -> Session {
    store.session(SessionOptions {
        actor: Some("did:web:a".to_owned()),
        ..SessionOptions::default()
    })
}

fn grain(object: &str) -> Grain {
    BeliefBuilder::new(EpochMs::new(1000), "alice", "likes", object, 1.0).build().unwrap()
}

fn reads(session: &Session) -> Vec<AuditEntry> {
    let entries = session.audit(None, 1000).unwrap();
    entries.into_iter().filter(|entry| entry.operation == "read").collect()
}

#[test]
fn each_way_to_read_has_an_entry_under_a_preset_that_wants_it_and_none_under_others() {
    for preset in Preset::all() {
        let wanted = preset.rules().unwrap().settings.audit_reads.value;
        let dir = TempDir::new().unwrap();
        let store = open(&dir, preset);
        let session = agent(&store);
        let puts = session.put_batch([grain("tea"), grain("water")]).unwrap();
        let [tea, water] = puts.iter().map(grainstore::PutOutcome::address).collect::<Vec<_>>()[..]
        else {
            panic!("two grains")
        };
        session.get(&tea).unwrap();
        session.get_batch(&[tea, water]).unwrap();
        session.query(&Query::default(), &PageOptions::default()).unwrap();
        session.ask("RECALL beliefs WHERE object = \"water\"").unwrap();
        session.ask("RECALL beliefs | COUNT").unwrap();
        session.latest("alice", "likes").unwrap();
        session.history(&tea).unwrap();
        session.history_of("alice", "likes", None, None).unwrap();
        let found = reads(&session);
        if !wanted {
            assert!(found.is_empty(), "{}", preset.name());
            continue;
        }
        let counts: Vec<_> = found.iter().map(|entry| entry.subjects.len()).collect();
        assert_eq!(counts, [1, 2, 2, 1, 0, 1, 1, 2], "{}", preset.name());
        assert_eq!(found[0].subjects, [tea]);
        assert_eq!(found[3].subjects, [water]);
        assert!(found.iter().all(|entry| entry.decision == "done" && entry.actor != "operator"));
        assert!(session.get(&grainstore::ContentAddress::of(b"nothing")).is_err());
        assert_eq!(reads(&session).len(), found.len(), "what is not there was not read");
        assert!(store.verify(true).unwrap().ok);
    }
}

#[test]
fn reads_are_written_with_the_next_commit_and_when_the_store_closes() {
    let dir = TempDir::new().unwrap();
    let preset = Preset::from_name("hipaa").unwrap();
    let store = open(&dir, preset);
    let session = agent(&store);
    let tea = session.put(grain("tea")).unwrap().address();
    let before = store.stats().unwrap().audit_entries;
    session.get(&tea).unwrap();
    session.put(grain("water")).unwrap();
    assert_eq!(store.stats().unwrap().audit_entries, before + 2, "the put, and the read before it");
    session.get(&tea).unwrap();
    drop(session);
    store.close().unwrap();
    let store = open(&dir, preset);
    assert_eq!(reads(&agent(&store)).len(), 2);
    assert!(store.verify(true).unwrap().ok);
}

#[test]
fn many_reads_at_once_are_all_there() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir, Preset::from_name("gdpr").unwrap());
    let session = agent(&store);
    let tea = session.put(grain("tea")).unwrap().address();
    for _ in 0..5000 {
        session.get(&tea).unwrap();
    }
    let entries = session.audit(None, 10_000).unwrap();
    assert_eq!(entries.iter().filter(|entry| entry.operation == "read").count(), 5000);
}

#[test]
fn what_is_told_of_a_person_has_its_entries() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir, Preset::from_name("gdpr").unwrap());
    let operator = store.session(SessionOptions::default());
    let of_alice = r#"{"type": "belief", "subject": "alice", "relation": "likes", "object": "tea",
        "confidence": 1.0, "created_at": 1000, "user_id": "alice", "processing_basis": "contract"}"#;
    let address = operator.put(Grain::from_json(of_alice).unwrap()).unwrap().address();
    operator.subject_report("alice").unwrap();
    operator.subject_grains("alice").unwrap();
    operator.subject_report("nobody").unwrap();
    let found = reads(&operator);
    let subjects: Vec<_> = found.iter().map(|entry| entry.subjects.clone()).collect();
    assert_eq!(subjects, [vec![address], vec![address]]);
    let file = dir.path().with_extension("mg");
    operator.export_subject(&file, "alice", &ExportOptions::default()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let last = operator.audit(None, 1000).unwrap().pop().unwrap();
    assert_eq!((last.operation.as_str(), last.decision.as_str()), ("export", "done"));
}

const HIDING: &str = r#"
    [[rule]]
    id = "own.hidden"
    on = ["read"]
    when = { equals = { subject = ["sick"] } }
    forbid = true
    article = "house rule 1"
    because = "it is nobody's business"
    fix = "ask somebody else"
"#;

#[test]
fn a_plan_tells_nothing_of_grains_that_a_rule_hides() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir, Preset::from_name("open").unwrap());
    let session = agent(&store);
    let hidden = BeliefBuilder::new(EpochMs::new(1000), "sick", "has", "flu", 1.0);
    session.put_batch([grain("tea"), hidden.build().unwrap()]).unwrap();
    let estimated = |query: &str| {
        let plan = session.ask(&format!("EXPLAIN {query}")).unwrap();
        serde_json::to_value(&plan).unwrap()["plan"]["recalls"][0]["estimated"].clone()
    };
    let query = r#"RECALL beliefs WHERE subject = "sick" AND object = "flu""#;
    assert_eq!(estimated(query), 1);
    store.session(SessionOptions::default()).change_rules(HIDING, false, "why").unwrap();
    assert_eq!(estimated(query), 0);
    assert_eq!(estimated(r#"RECALL beliefs WHERE subject = "alice""#), 1);
}

#[test]
fn a_plan_of_what_cannot_be_searched_for_is_a_plan_all_the_same() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir, Preset::from_name("open").unwrap());
    let session = agent(&store);
    session.put_batch((0..2_100).map(|n| grain(&format!("tea {n}")))).unwrap();
    let query = format!("RECALL beliefs ABOUT \"{}\"", "word ".repeat(1_100));
    let plan = session.ask(&format!("EXPLAIN {query}")).unwrap();
    let plan = serde_json::to_value(&plan).unwrap()["plan"]["recalls"][0].clone();
    assert!(plan["otherwise"].is_string() && plan.get("otherwise_plan").is_none(), "{plan}");
    session.prepare(query.as_bytes(), &grainstore::PrepareOptions::default()).unwrap();
}
