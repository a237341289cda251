//! The read log: one entry for every call in CAL that reads or is refused to, in every store; whom it is
//! shown to, and that nothing of it is changed or cut off unseen.

use std::fs;
use std::path::{Path, PathBuf};

use grainstore::cal::Tier;
use grainstore::format::EpochMs;
use grainstore::{
    AuditEntry, Health, MasterKey, OpenOptions, PrepareOptions, ReadsDestination, Session,
    SessionOptions, Store, VerifyReport,
};
use sha2::{Digest, Sha256};

use crate::calls::kit::{ADD, START_MS, World, code};

fn reads(session: &Session) -> Vec<AuditEntry> {
    session.reads(None, 10_000).unwrap()
}

fn directory(world: &World) -> PathBuf {
    world.dir.path().join("s.grains")
}

/// Opens the store of a world that was closed.
fn opened(path: &Path) -> Store {
    Store::open(path, &OpenOptions::new()).unwrap()
}

fn verified(path: &Path) -> VerifyReport {
    grainstore::verify(path, &OpenOptions::new(), false).unwrap()
}

/// A world that was asked this often, and closed.
fn asked(times: usize) -> World {
    let world = World::new();
    world.put("work", "tea");
    for at in 0..times {
        world.operator().ask(&format!("RECALL beliefs ABOUT \"topic {at}\"")).unwrap();
    }
    world.store.close().unwrap();
    world
}

#[test]
fn every_statement_that_reads_or_is_refused_has_one_entry() {
    let world = World::new();
    let tea = world.put("work", "tea");
    let agent = world.agent("work");
    let (exists, history) = (format!("EXISTS sha256:{tea}"), format!("HISTORY sha256:{tea}"));
    let statements = [
        ("RECALL beliefs", "recall", Ok(1)),
        ("RECALL beliefs | COUNT", "recall", Ok(1)),
        ("RECALL beliefs | SUBJECTS", "recall", Ok(1)),
        ("RECALL beliefs | GROUP BY relation", "recall", Ok(1)),
        (&exists, "exists", Ok(1)),
        (&history, "history", Ok(1)),
        ("EXPLAIN RECALL beliefs", "explain", Ok(0)),
        ("DESCRIBE server", "describe", Ok(0)),
        ("BATCH { a: RECALL beliefs, b: RECALL goals }", "batch", Ok(1)),
        ("COALESCE ( RECALL goals, RECALL beliefs )", "coalesce", Ok(1)),
        ("ASSEMBLE FROM a: (RECALL beliefs)", "assemble", Ok(1)),
        ("(RECALL beliefs) UNION (RECALL goals)", "set_op", Ok(1)),
        ("RECALL beleifs", "", Err("CAL-E003")),
        ("SELECT * FROM grains", "", Err("CAL-E002")),
    ];
    let hashes: Vec<[u8; 32]> = statements
        .iter()
        .map(|(query, ..)| match grainstore::cal::parse(query) {
            Ok(statement) => Sha256::digest(statement.to_string()).into(),
            Err(_) => Sha256::digest(query).into(),
        })
        .collect();
    for (query, _, expected) in &statements {
        let told = code(agent.ask(query));
        assert_eq!(told, expected.map_or_else(str::to_owned, |_| "done".to_owned()), "{query}");
    }
    let found = reads(&world.operator());
    assert_eq!(found.len(), statements.len());
    for (at, ((query, name, expected), entry)) in statements.iter().zip(&found).enumerate() {
        let call = entry.call.clone().unwrap();
        assert_eq!((entry.sequence, entry.time), (at as u64, EpochMs::new(START_MS)), "{query}");
        assert_eq!(entry.operation, "cal");
        assert_eq!(entry.decision, if expected.is_ok() { "done" } else { "refused" }, "{query}");
        assert_eq!(call.query_hash, hashes[at], "{query}");
        assert_eq!(call.namespace.as_deref(), Some("work"));
        assert_eq!((entry.actor.len(), call.agent.as_ref().map(String::len)), (32, Some(32)));
        assert_eq!((call.tier, call.code.as_deref()), (0, expected.err()), "{query}");
        if expected.is_ok() {
            assert_eq!(call.statement.as_deref(), Some(*name), "{query}");
        }
        assert_eq!(call.result_count.unwrap_or(0), expected.unwrap_or(0), "{query}");
    }
    assert!(world.entries().iter().all(|entry| entry.call.is_none()), "in one log alone");
    let found = world.store.verify(true).unwrap();
    assert!(found.ok, "{found:?}");
    assert_eq!((found.checked.unwrap().reads, found.checked.unwrap().lost_reads), (14, 0));
}

#[test]
fn what_writes_and_its_refusal_stay_in_the_audit_log() {
    let world = World::new();
    let agent = world.agent("work");
    let evolving = grainstore::cal::ExecuteOptions {
        tier: Tier::Evolve,
        ..grainstore::cal::ExecuteOptions::at(EpochMs::new(START_MS))
    };
    agent.ask_with(ADD.as_bytes(), &evolving).unwrap();
    assert_eq!(code(agent.ask(ADD)), "CAL-E044");
    assert_eq!(reads(&world.operator()), []);
    let of_calls = world.entries().iter().filter(|entry| entry.call.is_some()).count();
    assert_eq!(of_calls, 2);
    agent.ask_with(b"RECALL beliefs", &evolving).unwrap();
    agent.prepare(ADD.as_bytes(), &crate::calls::kit::evolving()).unwrap();
    agent.prepare(b"RECALL beliefs", &PrepareOptions::default()).unwrap();
    let named: Vec<_> = world.reads().into_iter().map(|call| call.statement.unwrap()).collect();
    assert_eq!(named, ["recall", "add", "recall"], "what prepares a write writes nothing");
    assert_eq!(world.entries().iter().filter(|entry| entry.call.is_some()).count(), of_calls);
}

#[test]
fn it_outlives_the_store_that_wrote_it_and_the_audit_log_says_where_it_stood() {
    let world = asked(300).reopened();
    assert_eq!(reads(&world.operator()).len(), 300);
    let last = world.entries().pop().unwrap();
    assert_eq!(last.operation, "read_log");
    let note = last.reads.unwrap();
    assert_eq!((note.entries, note.first), (300, 0));
    let (count, hash) = world.operator().reads_head().unwrap().unwrap();
    assert_eq!((count, hash), (300, data_encoding::HEXLOWER.encode(&note.head)));
    world.operator().ask("RECALL").unwrap();
    let after = world.operator().reads(Some(299), 5).unwrap();
    assert_eq!(after.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [300]);
    let page = world.operator().reads(Some(254), 3).unwrap();
    assert_eq!(page.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [255, 256, 257]);
    let entries = world.entries().len();
    let world = world.reopened();
    assert_eq!(world.entries().len(), entries + 1, "it was told of one more");
    let world = world.reopened();
    assert_eq!(world.entries().len(), entries + 1, "and of nothing where nobody read");
    assert!(world.store.verify(true).unwrap().ok);
}

#[test]
fn a_read_waits_a_second_at_most_and_takes_few_bytes() {
    let world = World::new();
    let log = directory(&world).join("reads/00000001.log");
    let head = directory(&world).join("reads/head");
    world.operator().ask("RECALL").unwrap();
    let start = std::time::Instant::now();
    while !head.exists() && start.elapsed() < std::time::Duration::from_secs(20) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(head.exists(), "nobody closed it, and nobody asked for it");
    for at in 0..2_560 {
        world.operator().ask(&format!("RECALL beliefs ABOUT \"topic {at}\"")).unwrap();
    }
    world.store.flush().unwrap();
    world.operator().reads_head().unwrap();
    assert!(fs::metadata(log).unwrap().len() < 80 * 2_560);
}

#[test]
fn a_session_is_shown_its_own() {
    let world = World::new();
    world.operator().ask("RECALL").unwrap();
    let session = |namespace: &str, user: Option<&str>| {
        world.store.session(SessionOptions {
            namespace: Some(namespace.to_owned()),
            user_id: user.map(str::to_owned),
            ..SessionOptions::default()
        })
    };
    let asked =
        [("work", None), ("work:bot", Some("mina")), ("work", Some("joe")), ("works", None)];
    for (namespace, user) in asked {
        session(namespace, user).ask("RECALL").unwrap();
    }
    let sees =
        |session: &Session| reads(session).iter().map(|entry| entry.sequence).collect::<Vec<_>>();
    assert_eq!(sees(&world.operator()), [0, 1, 2, 3, 4]);
    assert_eq!(sees(&session("work", None)), [1, 2, 3]);
    assert_eq!(sees(&session("work", Some("mina"))), [2]);
    assert_eq!(sees(&session("work", Some("joe"))), [3]);
    assert!(sees(&session("works", Some("joe"))).is_empty());
    let agent = world.agent("work");
    agent.ask("RECALL").unwrap();
    let by = world.operator().reads_by("did:web:agent.example", None, 10).unwrap();
    assert_eq!(by.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [5]);
}

#[test]
fn in_an_encrypted_store_nothing_of_a_call_can_be_tested() {
    let world = World::with(OpenOptions::new().key(MasterKey::new([7; 32])));
    let agent = world.agent("quetzalcoatl-wing");
    agent.ask("DESCRIBE server").unwrap();
    let call = world.reads().pop().unwrap();
    let hash: [u8; 32] = Sha256::digest("DESCRIBE server").into();
    assert_ne!(call.query_hash, hash);
    assert_eq!(call.namespace.as_ref().map(String::len), Some(32));
    let seen = agent.reads(None, 10).unwrap();
    assert_eq!(seen.len(), 1, "its own");
    assert_eq!(world.agent("quetzalcoatl").reads(None, 10).unwrap(), []);
    world.store.close().unwrap();
    let bytes = fs::read(directory(&world).join("reads/00000001.log")).unwrap();
    for name in [&b"quetzalcoatl"[..], b"alice", b"agent"] {
        assert!(!bytes.windows(name.len()).any(|window| window == name));
    }
}

#[test]
fn switched_off_it_records_nothing_and_the_store_says_so() {
    let world = World::with(OpenOptions::new().audit_reads(false));
    world.agent("work").ask("RECALL").unwrap();
    assert_eq!(world.store.reads_recorded(), ReadsDestination::Nowhere);
    assert_eq!(reads(&world.operator()), []);
    assert!(!directory(&world).join("reads").exists());
    let told = world.operator().ask("DESCRIBE capabilities").unwrap();
    let told = serde_json::to_string(&told).unwrap();
    assert!(told.contains("reads are recorded nowhere"), "{told}");
    let checks = world.store.check_cal().unwrap();
    let check = checks.iter().find(|check| check.name == "cal_audit_logging").unwrap();
    assert_eq!(check.health, Health::Notice);
    assert!(check.detail.contains("switched off"), "{}", check.detail);

    let on = World::new();
    let told = serde_json::to_string(&on.operator().ask("DESCRIBE capabilities").unwrap()).unwrap();
    assert!(!told.contains("reads are"), "{told}");
    let checks = on.store.check_cal().unwrap();
    let check = checks.iter().find(|check| check.name == "cal_audit_logging").unwrap();
    assert_eq!(check.health, Health::Good, "{}", check.detail);
    assert_eq!(on.reads().len(), 2, "the check is a call like any other");
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let world = asked(5);
    let path = directory(&world);
    let log = path.join("reads/00000001.log");
    let whole = fs::read(&log).unwrap();
    assert!(verified(&path).ok);
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&log, &changed).unwrap();
        let found = verified(&path);
        assert!(!found.ok, "byte {at}");
        assert!(found.problems[0].place.starts_with("reads"), "{:?}", found.problems);
    }
    fs::write(&log, &whole).unwrap();
    assert!(verified(&path).ok);
}

#[test]
fn what_is_cut_off_rolled_back_or_taken_away_is_found() {
    let world = asked(5);
    let path = directory(&world);
    let (log, head) = (path.join("reads/00000001.log"), path.join("reads/head"));
    let before = (fs::read(&log).unwrap(), fs::read(&head).unwrap());
    let store = opened(&path);
    for _ in 0..300 {
        store.session(SessionOptions::default()).ask("RECALL").unwrap();
    }
    store.close().unwrap();
    let after = (fs::read(&log).unwrap(), fs::read(&head).unwrap());
    let detail = || {
        let found = verified(&path);
        let (ok, problems) = (found.ok, found.problems);
        assert!(!ok && problems.iter().all(|problem| problem.place.starts_with("reads")));
        problems.iter().map(|problem| problem.detail.clone()).collect::<Vec<_>>().join("; ")
    };
    fs::write(&log, &after.0[..after.0.len() - 1]).unwrap();
    assert!(detail().contains("tells of 305 entries"), "{}", detail());
    fs::write(&log, &before.0).unwrap();
    assert!(detail().contains("its signed head tells of 305") || detail().contains("audit log"));
    fs::write(&head, &before.1).unwrap();
    assert!(detail().contains("the audit log tells of 305 entries"), "a whole former log");
    fs::remove_file(&head).unwrap();
    fs::write(&log, &after.0).unwrap();
    assert!(detail().contains("its signed head is missing"));
    fs::write(&head, b"another").unwrap();
    assert!(detail().contains("not signed by this store"));
    fs::write(&head, &after.1).unwrap();
    assert!(verified(&path).ok);
    fs::remove_dir_all(path.join("reads")).unwrap();
    assert!(detail().contains("it is missing; it had 305 entries"));
    // Who goes on from there does not make it good.
    let store = opened(&path);
    for _ in 0..400 {
        store.session(SessionOptions::default()).ask("RECALL").unwrap();
    }
    store.close().unwrap();
    assert!(detail().contains("305"), "{}", detail());
}

#[test]
fn what_a_crash_left_of_a_group_is_cut_off_and_the_log_goes_on() {
    let world = asked(5);
    let path = directory(&world);
    let log = path.join("reads/00000001.log");
    let whole = fs::read(&log).unwrap();
    for torn in [&[0_u8][..], &[0, 0, 0, 9, 1, 2, 3], &[0xff; 400], &[0; 4096]] {
        let before = fs::read(&log).unwrap();
        fs::write(&log, [&before[..], torn].concat()).unwrap();
        assert!(verified(&path).ok, "a crash is no damage");
        let store = opened(&path);
        let operator = store.session(SessionOptions::default());
        let there = reads(&operator).len();
        operator.ask("RECALL").unwrap();
        assert_eq!(reads(&operator).len(), there + 1);
        assert!(store.verify(true).unwrap().ok);
        store.close().unwrap();
        assert!(verified(&path).ok);
    }
    assert!(fs::read(&log).unwrap().starts_with(&whole));
    assert!(!path.join("reads/00000002.log").exists());
}

#[test]
fn a_backup_has_it_and_a_compaction_leaves_it() {
    let world = World::new();
    world.operator().ask("RECALL").unwrap();
    world.store.compact().unwrap();
    world.operator().ask("RECALL").unwrap();
    let to = world.dir.path().join("backup");
    world.store.backup(&to).unwrap();
    assert!(verified(&to).ok);
    let copy = opened(&to);
    assert_eq!(reads(&copy.session(SessionOptions::default())), reads(&world.operator()));
}

/// The files of a store that goes on: what a kill would leave.
fn left_by_a_kill(from: &Path, to: &Path) {
    for directory in ["", "reads"] {
        fs::create_dir_all(to.join(directory)).unwrap();
        for entry in fs::read_dir(from.join(directory)).unwrap().map(Result::unwrap) {
            let is_log = entry.file_name() != "LOCK" && entry.file_type().unwrap().is_file();
            if is_log {
                fs::copy(entry.path(), to.join(directory).join(entry.file_name())).unwrap();
            }
        }
    }
}

#[test]
fn reads_of_a_killed_process_that_are_cut_off_with_the_head_are_missed_for_good() {
    let world = asked(5);
    let path = directory(&world);
    let noted = fs::read(path.join("reads/00000001.log")).unwrap();
    let store = opened(&path);
    let operator = store.session(SessionOptions::default());
    for _ in 0..50 {
        operator.ask("RECALL").unwrap();
    }
    operator.reads_head().unwrap();
    for head in [None, Some("no head")] {
        let killed = world.dir.path().join(format!("killed {head:?}"));
        left_by_a_kill(&path, &killed);
        assert!(verified(&killed).ok, "a kill is no damage");
        fs::write(killed.join("reads/00000001.log"), &noted).unwrap();
        match head {
            None => fs::remove_file(killed.join("reads/head")).unwrap(),
            Some(text) => fs::write(killed.join("reads/head"), text).unwrap(),
        }
        assert!(!verified(&killed).ok);
        for _ in 0..3 {
            let again = opened(&killed);
            again.session(SessionOptions::default()).ask("RECALL").unwrap();
            again.close().unwrap();
            let found = verified(&killed);
            let details: Vec<_> = found.problems.iter().map(|one| one.detail.as_str()).collect();
            let told = "the log breaks off behind entry 5, and 00000002.log goes on with 5";
            assert_eq!(details, [told], "{head:?}");
        }
    }
}
