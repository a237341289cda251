//! Failovers to a standby that nobody waited for: what was acknowledged and lost is noticed by every node that saw it.
//!
//! A normal run is short; with `GRAINSTORE_CLUSTER=full` there are a hundred.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grainstore::format::BeliefBuilder;
use grainstore::journal::{Journal, ShardId};
use grainstore::{ContentAddress, EpochMs, OpenOptions, Result, SessionOptions, Store};
use grainstore_cluster::{PostgresJournal, PostgresOptions};

use crate::server::{Programs, Server, open_directory};

const SHARD: ShardId = ShardId(1);
const LEASE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);

fn lead(journal: &Arc<dyn Journal>, name: &str, path: &Path) -> Result<Store> {
    let lead = loop {
        match journal.lead(SHARD, name, LEASE) {
            Err(busy) if busy.code() == "ERR_BUSY" => std::thread::sleep(LEASE / 10),
            taken => break taken?,
        }
    };
    let options = OpenOptions::new().create(true).leading(Arc::clone(journal), lead, PATIENCE);
    Store::open(path, &options)
}

fn follow(journal: &Arc<dyn Journal>, path: &Path) -> Result<Store> {
    let options = OpenOptions::new().create(true).following(Arc::clone(journal), SHARD);
    Store::open(path, &options)
}

fn put(store: &Store, number: i64) -> ContentAddress {
    let grain = BeliefBuilder::new(EpochMs::new(number), "ann", "likes", "tea", 1.0);
    let session = store.session(SessionOptions::default());
    session.put(grain.build().unwrap()).unwrap().address()
}

fn code<T>(outcome: Result<T>) -> &'static str {
    outcome.err().map_or("none", |error| error.code())
}

/// One failover, after which `standby` is the primary. Returns what the next round begins with.
fn fail_over(directory: &Path, (mut primary, mut standby): (Server, Server), round: i64) -> Server {
    let url = format!(
        "host=127.0.0.1,127.0.0.1 port={},{} user=grain dbname=postgres",
        primary.port, standby.port
    );
    let options = PostgresOptions::new(&url).schema(format!("round_{round}"));
    let journal = PostgresJournal::new(&options).unwrap();
    journal.init().unwrap();
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let nodes = tempfile::tempdir_in(directory).unwrap();
    let path = |name: &str| nodes.path().join(name);
    let leader = lead(&journal, "one", &path("one")).unwrap();
    let follower = follow(&journal, &path("two")).unwrap();
    let kept: Vec<_> = (0..1 + round % 4).map(|number| put(&leader, number)).collect();
    primary.wait_for("SELECT bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication");
    standby.kill();
    let lost: Vec<_> = (0..1 + round % 3).map(|number| put(&leader, 100 + number)).collect();
    follower.follow().unwrap();
    primary.kill();
    standby.start();
    standby.promote();
    // Whoever saw what is lost refuses, the leader without having to write.
    assert_eq!(code(leader.renew_lead()), "ERR_DIVERGED", "{round}");
    assert_eq!(code(follower.follow()), "ERR_DIVERGED", "{round}");
    let _ = leader.close();
    follower.close().unwrap();
    assert_eq!(code(lead(&journal, "one", &path("one"))), "ERR_DIVERGED", "{round}");
    // Another goes on, writes other commits under these numbers, and more: nothing is merged.
    let other = lead(&journal, "three", &path("three")).unwrap();
    for number in 0..4 {
        put(&other, 200 + number);
        assert_eq!(code(follow(&journal, &path("one"))), "ERR_DIVERGED", "{round}");
        assert_eq!(code(follow(&journal, &path("two"))), "ERR_DIVERGED", "{round}");
    }
    let session = other.session(SessionOptions::default());
    assert!(kept.iter().all(|address| session.get(address).is_ok()), "{round}");
    assert!(lost.iter().all(|address| session.get(address).is_err()), "{round}");
    other.close().unwrap();
    standby
}

#[test]
fn a_failover_that_loses_commits_is_noticed_by_all_that_saw_them() {
    let Some(programs) = Programs::find() else { return };
    let full = std::env::var("GRAINSTORE_CLUSTER").is_ok_and(|sweep| sweep == "full");
    let directory = open_directory();
    let mut primary = Server::primary(&programs, &directory.path().join("server 0"));
    let rounds = if full { 100 } else { 2 };
    for round in 1..=rounds {
        let place = directory.path().join(format!("server {round}"));
        let standby = primary.standby(&place);
        // Nobody waits for it.
        primary.sql("ALTER SYSTEM RESET synchronous_standby_names");
        primary.sql("SELECT pg_reload_conf()");
        primary.wait_for("SELECT current_setting('synchronous_standby_names') = ''");
        primary = fail_over(directory.path(), (primary, standby), round);
    }
    eprintln!("{rounds} failovers with loss, each noticed by all that saw it");
}
