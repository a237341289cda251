//! What every journal does, by one in PostgreSQL; and what only a database can do.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use grainstore::journal::{Head, Journal, KEYRING_SLOT_BYTES, KeyringSlot, Lead, Record, ShardId};
use grainstore::{ErrorKind, Result};
use grainstore_cluster::{PostgresJournal, PostgresOptions, Replication};

use crate::server::{Programs, Server, open_directory};

const SHARD: ShardId = ShardId(7);
const LONG: Duration = Duration::from_secs(600);

pub(crate) fn journal_of(server: &Server) -> PostgresJournal {
    let journal = PostgresJournal::new(&PostgresOptions::new(server.url())).unwrap();
    journal.init().unwrap();
    journal
}

/// A record after a head, with these bytes as its changes.
pub(crate) fn record(lead: &Lead, after: &Head, changes: &[u8]) -> Record {
    let mut bytes = vec![1];
    for number in [lead.shard.0, after.commit + 1, lead.epoch] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes.extend_from_slice(&after.chain);
    bytes.extend_from_slice(changes);
    Record::from_bytes(bytes).unwrap()
}

fn code<T>(outcome: Result<T>) -> &'static str {
    outcome.err().map_or("none", |error| error.code())
}

fn appended(journal: &PostgresJournal, lead: &Lead, mut head: Head, count: usize) -> Vec<Record> {
    let mut all = Vec::new();
    for number in 0..count {
        let one = record(lead, &head, &vec![7; number * 100]);
        head = journal.append(lead, &head, &one).unwrap();
        all.push(one);
    }
    all
}

#[test]
fn a_record_is_taken_once_in_its_place_and_read_as_it_was() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal = journal_of(&server);
    journal.init().unwrap();
    assert_eq!(journal.replication().unwrap(), Replication::Asynchronous);
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    assert_eq!((lead.head, lead.epoch), (Head::EMPTY, 1));
    let mut all = appended(&journal, &lead, lead.head, 20);
    let (last, before) = (all[19].head(), all[18].head());
    for after in [&last, &before] {
        assert_eq!(code(journal.append(&lead, after, &all[19])), "ERR_FENCED");
    }
    // One of many parts.
    let changes: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
    let long = record(&lead, &last, &changes);
    let head = journal.append(&lead, &last, &long).unwrap();
    assert_eq!(code(journal.append(&lead, &last, &long)), "ERR_FENCED");
    all.push(long);
    assert_eq!(server.sql("SELECT max(part) FROM grainstore.journal"), "4");
    assert_eq!(journal.status(SHARD).unwrap().head, head);
    assert_eq!(journal.status(ShardId(8)).unwrap().head, Head::EMPTY);
    assert_eq!(journal.read(SHARD, 0, usize::MAX).unwrap(), all);
    assert_eq!(journal.read(SHARD, 18, usize::MAX).unwrap(), all[18..]);
    assert_eq!(journal.read(SHARD, 3, 1).unwrap(), all[3..4], "one at least");
    assert_eq!(journal.read(SHARD, 20, 1).unwrap(), all[20..]);
    assert_eq!(journal.read(SHARD, 21, usize::MAX).unwrap(), []);
    let some = journal.read(SHARD, 0, 1000).unwrap();
    assert!(some.len() > 1 && some.len() < 10, "{}", some.len());
}

#[test]
fn slots_of_a_keyring_are_written_with_their_record_or_not_at_all() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal = journal_of(&server);
    assert_eq!(journal.keyring(SHARD, 0..u32::MAX).unwrap(), (Head::EMPTY, Vec::new()));
    let slots = |numbers: std::ops::Range<u32>, byte: u8| {
        let slot = |number| KeyringSlot::new(number, [byte; KEYRING_SLOT_BYTES]);
        numbers.map(slot).collect::<Vec<_>>()
    };
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let one = record(&lead, &lead.head, b"1").with_slots(slots(0..2, 1));
    let first = journal.append(&lead, &lead.head, &one).unwrap();
    // More than one statement takes, and in many parts.
    let many = record(&lead, &first, &[2; 3_000_000]).with_slots(slots(2..20_000, 2));
    let second = journal.append(&lead, &first, &many).unwrap();
    assert_eq!(code(journal.append(&lead, &first, &one.with_slots(slots(0..9, 9)))), "ERR_FENCED");
    let third = record(&lead, &second, b"3").with_slots(slots(7..8, 0));
    let third = journal.append(&lead, &second, &third).unwrap();
    let mut all = [slots(0..2, 1), slots(2..20_000, 2)].concat();
    all.splice(7..8, slots(7..8, 0));
    assert!(journal.keyring(SHARD, 0..u32::MAX).unwrap() == (third, all.clone()));
    assert_eq!(journal.keyring(SHARD, 19_998..u32::MAX).unwrap(), (third, all[19_998..].to_vec()));
    assert_eq!(journal.keyring(SHARD, 20_000..u32::MAX).unwrap(), (third, Vec::new()));
    assert_eq!(journal.keyring(ShardId(8), 0..u32::MAX).unwrap(), (Head::EMPTY, Vec::new()));
    assert!(journal.read(SHARD, 0, usize::MAX).unwrap().iter().all(|one| one.slots().is_empty()));
    // Whoever lost the lead writes none.
    let other = journal.lead(ShardId(9), "b", LONG).unwrap();
    journal.release(&other).unwrap();
    let again = journal.lead(ShardId(9), "c", LONG).unwrap();
    let late = record(&other, &other.head, b"1").with_slots(slots(0..1, 1));
    assert_eq!(code(journal.append(&other, &other.head, &late)), "ERR_FENCED");
    assert_eq!(journal.keyring(ShardId(9), 0..u32::MAX).unwrap(), (again.head, Vec::new()));
    // Tables that were made before there were keyrings, and slots that were changed.
    server.sql("UPDATE grainstore.keyring SET bytes = 'x' WHERE slot = 3");
    assert_eq!(code(journal.keyring(SHARD, 0..u32::MAX)), "ERR_INTEGRITY");
    server.sql("DROP TABLE grainstore.keyring");
    assert_eq!(code(journal.keyring(SHARD, 0..u32::MAX)), "ERR_STORE_VERSION");
    journal.init().unwrap();
    assert_eq!(journal.keyring(SHARD, 0..u32::MAX).unwrap(), (third, Vec::new()));
}

#[test]
fn who_lost_the_lead_appends_nothing() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal = journal_of(&server);
    let first = journal.lead(SHARD, "a", LONG).unwrap();
    assert_eq!(code(journal.lead(SHARD, "b", LONG)), "ERR_BUSY");
    assert!(!journal.status(SHARD).unwrap().is_free());
    let head = appended(&journal, &first, Head::EMPTY, 1)[0].head();
    let again = journal.lead(SHARD, "a", Duration::ZERO).unwrap();
    assert!((again.epoch, again.head) == (2, head) && journal.status(SHARD).unwrap().is_free());
    let more = |lead: &Lead| journal.append(lead, &head, &record(lead, &head, b"2"));
    assert_eq!((code(more(&first)), code(journal.renew(&first))), ("ERR_FENCED", "ERR_FENCED"));
    journal.renew(&again).unwrap();
    let other = journal.lead(SHARD, "b", LONG).unwrap();
    assert_eq!((other.epoch, code(more(&again))), (3, "ERR_FENCED"));
    journal.release(&first).unwrap();
    assert_eq!(journal.status(SHARD).unwrap().leader.as_deref(), Some("b"));
    more(&other).unwrap();
    journal.release(&other).unwrap();
    let free = journal.status(SHARD).unwrap();
    assert!(free.is_free() && free.leader.is_none() && free.epoch == 3);
}

#[test]
fn of_many_that_append_after_one_head_one_does() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal = Arc::new(journal_of(&server));
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let mut head = lead.head;
    for round in 0..30_u8 {
        let taken = AtomicU32::new(0);
        thread::scope(|scope| {
            for number in 0..8_u8 {
                let (lead, taken, journal) = (&lead, &taken, Arc::clone(&journal));
                scope.spawn(move || {
                    let one = record(lead, &head, &[round, number]);
                    match journal.append(lead, &head, &one) {
                        Ok(_) => taken.fetch_add(1, Ordering::Relaxed),
                        Err(error) => u32::from(error.kind() != ErrorKind::Fenced) * 1000,
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), 1, "{round}");
        head = journal.status(SHARD).unwrap().head;
    }
    assert_eq!(head.commit, 30);
}

#[test]
fn what_is_wrong_with_the_database_is_told_by_its_code() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let mut server = Server::primary(&programs, &directory.path().join("primary"));
    let options = PostgresOptions::new(server.url());
    let journal = PostgresJournal::new(&options).unwrap();
    assert_eq!(code(journal.status(SHARD)), "ERR_STORE_VERSION", "there are no tables");
    journal.init().unwrap();
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let head = appended(&journal, &lead, lead.head, 1)[0].head();
    // Another cluster of the same database.
    let other = PostgresJournal::new(&options.clone().schema("other")).unwrap();
    assert_eq!(code(other.status(SHARD)), "ERR_STORE_VERSION");
    other.init().unwrap();
    assert_eq!(other.status(SHARD).unwrap().head, Head::EMPTY);
    // A later version.
    server.sql("UPDATE other.cluster SET version = 2");
    let later = PostgresJournal::new(&options.clone().schema("other")).unwrap();
    assert_eq!(code(later.status(SHARD)), "ERR_STORE_VERSION");
    assert_eq!(code(later.init()), "ERR_STORE_VERSION");
    // Records that were cut or lost.
    server.sql("UPDATE grainstore.journal SET body = substr(body, 1, 20)");
    assert_eq!(code(journal.read(SHARD, 0, 1)), "ERR_INTEGRITY");
    server.sql("UPDATE grainstore.journal SET part = 1");
    assert_eq!(code(journal.read(SHARD, 0, 1)), "ERR_INTEGRITY");
    server.sql("UPDATE grainstore.shard SET chain = 'x'");
    assert_eq!(code(journal.status(SHARD)), "ERR_INTEGRITY");
    server.sql("UPDATE grainstore.shard SET chain = decode(repeat('00', 32), 'hex')");
    // One that cannot be written, and one that is gone.
    server.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    server.sql("SELECT pg_reload_conf()");
    server.wait_for("SELECT current_setting('default_transaction_read_only') = 'on'");
    let append =
        |journal: &PostgresJournal| code(journal.append(&lead, &head, &record(&lead, &head, b"2")));
    assert_eq!(append(&journal), "ERR_IO");
    server.kill();
    assert_eq!((append(&journal), code(journal.status(SHARD))), ("ERR_IO", "ERR_IO"));
    let strange = PostgresJournal::new(&PostgresOptions::new("host=127.0.0.1 port=1")).unwrap();
    assert_eq!(code(strange.status(SHARD)), "ERR_IO");
    for url in ["nonsense", "postgresql://[", "host=a port=b"] {
        assert_eq!(code(PostgresJournal::new(&PostgresOptions::new(url))), "ERR_SCHEMA", "{url}");
    }
    for schema in ["", "A", "a b", "1a", "a\";drop", &"a".repeat(64)] {
        let options = PostgresOptions::new("host=a").schema(schema);
        assert_eq!(code(PostgresJournal::new(&options)), "ERR_SCHEMA", "{schema}");
    }
    let named = format!("{:?}", PostgresOptions::new("host=a password=secret"));
    assert!(!named.contains("secret"));
}

#[test]
fn a_commit_that_did_not_wait_for_its_standby_is_not_told_before_it_is_there() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let mut standby = server.standby(&directory.path().join("standby"));
    let journal = Arc::new(journal_of(&server));
    assert_eq!(journal.replication().unwrap(), Replication::Synchronous);
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let head = appended(&journal, &lead, lead.head, 1)[0].head();
    standby.kill();
    let one = record(&lead, &head, b"alone");
    let (appender, appending) = (Arc::clone(&journal), (lead.clone(), one.clone()));
    let append = thread::spawn(move || appender.append(&appending.0, &head, &appending.1));
    let waits = "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    server.wait_for(waits);
    server.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    assert_eq!(code(append.join().unwrap()), "ERR_IO", "it is on the primary alone");
    // Asking again waits for the standby, before the journal says that it has the record.
    let (appender, appending) = (Arc::clone(&journal), (lead, one.clone()));
    let again = thread::spawn(move || appender.append(&appending.0, &head, &appending.1));
    server.wait_for(waits);
    assert!(!again.is_finished());
    standby.start();
    assert_eq!(code(again.join().unwrap()), "ERR_FENCED", "it is there already");
    assert_eq!(journal.read(SHARD, 1, 1).unwrap(), [one]);
}

#[test]
fn a_database_that_does_not_answer_is_not_waited_for_without_end() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal = journal_of(&server);
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let first = record(&lead, &lead.head, b"one");
    let head = journal.append(&lead, &lead.head, &first).unwrap();
    let second = record(&lead, &head, b"two");
    // Somebody holds the row for longer than that.
    let locked =
        server.psql("BEGIN; SELECT * FROM grainstore.shard FOR UPDATE; SELECT pg_sleep(60)");
    server.wait_for("SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    assert_eq!(code(journal.append(&lead, &head, &second)), "ERR_IO");
    assert_eq!(journal.status(SHARD).unwrap().head, head, "reading does not wait");
    // It does not wait on in the database, where it could be made whenever the lock goes.
    let waiting = "SELECT count(*) = 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    server.wait_for(waiting);
    drop(locked);
    server
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    journal.append(&lead, &head, &second).unwrap();
    // A server that stands still, and whose kernel goes on.
    server.signal("-STOP");
    assert_eq!(code(journal.status(SHARD)), "ERR_IO");
    assert_eq!(code(journal.renew(&lead)), "ERR_IO");
    server.signal("-CONT");
    assert_eq!(journal.renew(&lead).unwrap(), second.head());
}

#[test]
fn commits_wait_for_the_disk_whatever_the_role_is_set_to() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    server.sql("ALTER ROLE grain SET synchronous_commit = off");
    let journal = journal_of(&server);
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let head = appended(&journal, &lead, lead.head, 3)[2].head();
    let mut server = server;
    server.kill();
    server.start();
    assert_eq!(journal.status(SHARD).unwrap().head, head);
}

#[test]
fn what_was_not_appended_is_not_read_into_memory() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal = journal_of(&server);
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let all = appended(&journal, &lead, lead.head, 2);
    let insert = "INSERT INTO grainstore.journal SELECT 7, 2, part, 1, decode(repeat('00', 40000000), 'hex')";
    server.sql(&format!("{insert} FROM generate_series(1, 8) part"));
    assert_eq!(code(journal.read(SHARD, 1, 1 << 20)), "ERR_INTEGRITY");
    assert_eq!(journal.read(SHARD, 0, 1 << 20).unwrap(), all[..1], "what is before it is read");
    server.sql("DELETE FROM grainstore.journal WHERE part > 0");
    for parts in ["256, 264", "-4200, -4190", "-8, -1"] {
        server.sql(&format!("{insert} FROM generate_series({parts}) part"));
        assert_eq!(journal.read(SHARD, 0, 1 << 20).unwrap(), all, "{parts}");
    }
    // Nor is more of a value than any has.
    server.sql("UPDATE grainstore.shard SET chain = decode(repeat('00', 40000000), 'hex')");
    assert_eq!(code(journal.status(SHARD)), "ERR_INTEGRITY");
    server
        .sql("INSERT INTO grainstore.keyring VALUES (7, 0, decode(repeat('00', 40000000), 'hex'))");
    server.sql("UPDATE grainstore.shard SET chain = decode(repeat('00', 32), 'hex')");
    assert_eq!(code(journal.keyring(SHARD, 0..1)), "ERR_INTEGRITY");
}

#[test]
fn a_lease_that_a_clock_set_back_made_endless_is_taken() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal = journal_of(&server);
    let second = Duration::from_secs(1);
    let first = journal.lead(SHARD, "a", second).unwrap();
    assert_eq!(code(journal.lead(SHARD, "b", second)), "ERR_BUSY");
    server.sql("UPDATE grainstore.shard SET until = now() + interval '1 hour'");
    assert!(journal.status(SHARD).unwrap().may_be_taken(second));
    assert_eq!(journal.lead(SHARD, "b", second).unwrap().epoch, 2);
    assert_eq!(code(journal.renew(&first)), "ERR_FENCED");
}

#[test]
fn nothing_crosses_a_network_in_the_clear_unless_that_is_said() {
    let of = |url: &str| PostgresJournal::new(&PostgresOptions::new(url)).map(drop);
    for url in [
        "postgresql://grain@db-1/memory",
        "postgresql://grain@db-1/memory?sslmode=prefer",
        "host=localhost,db-1",
        "host=localhost hostaddr=10.0.0.1",
    ] {
        assert_eq!(code(of(url)), "ERR_SCHEMA", "{url}");
    }
    for url in ["postgresql://grain@db-1/memory?sslmode=disable", "host=127.0.0.1", "host=/run"] {
        of(url).unwrap();
    }
    let roots = PostgresOptions::new("host=127.0.0.1").roots(b"none".to_vec());
    assert_eq!(code(PostgresJournal::new(&roots)), "ERR_IO", "they are read");
    let both = PostgresOptions::new("host=db-1 sslmode=disable").roots(b"none".to_vec());
    assert_eq!(code(PostgresJournal::new(&both)), "ERR_SCHEMA");
}

#[test]
fn a_schema_may_have_the_name_of_a_word_of_the_language() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let options = PostgresOptions::new(server.url()).schema("user");
    let journal = PostgresJournal::new(&options).unwrap();
    assert_eq!(code(journal.shards()), "ERR_STORE_VERSION");
    journal.init().unwrap();
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    appended(&journal, &lead, lead.head, 2);
    assert_eq!(journal.shards().unwrap(), [SHARD]);
}

#[test]
fn an_append_that_is_found_there_is_told_once_it_is_on_the_standby() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let primary = Server::primary(&programs, &directory.path().join("primary"));
    let journal = journal_of(&primary);
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let one = record(&lead, &lead.head, b"one");
    // A standby that is nowhere: the commit waits for it, and somebody ends that wait.
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'nowhere'");
    primary.sql("SELECT pg_reload_conf()");
    let cancel = "SELECT count(pg_cancel_backend(pid)) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let append = |journal: &PostgresJournal| {
        thread::scope(|scope| {
            let appending = scope.spawn(|| code(journal.append(&lead, &lead.head, &one)));
            primary.wait_for(cancel);
            appending.join().unwrap()
        })
    };
    assert_eq!(append(&journal), "ERR_IO");
    // It is there, by the primary alone. Another process that asks for it, which was not warned, is not told so either.
    let other = PostgresJournal::new(&PostgresOptions::new(primary.url())).unwrap();
    assert_eq!(append(&other), "ERR_IO");
    primary.sql("ALTER SYSTEM RESET synchronous_standby_names");
    primary.sql("SELECT pg_reload_conf()");
    primary.wait_for("SELECT current_setting('synchronous_standby_names') = ''");
    assert_eq!(code(other.append(&lead, &lead.head, &one)), "ERR_FENCED");
    assert_eq!(other.read(SHARD, 0, 1).unwrap(), [one]);
}

#[test]
fn heads_are_those_of_the_primary_whichever_host_is_named_first() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let primary = Server::primary(&programs, &directory.path().join("primary"));
    journal_of(&primary);
    let standby = primary.standby(&directory.path().join("standby"));
    standby.sql("ALTER SYSTEM SET recovery_min_apply_delay = '1min'");
    standby.sql("SELECT pg_reload_conf()");
    let hosts = format!(
        "host=127.0.0.1,127.0.0.1 port={},{} user=grain dbname=postgres",
        standby.port, primary.port
    );
    let journal = PostgresJournal::new(&PostgresOptions::new(hosts)).unwrap();
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let all = appended(&journal, &lead, lead.head, 5);
    assert_eq!(journal.status(SHARD).unwrap().head, all[4].head());
    assert_eq!(journal.read(SHARD, 0, usize::MAX).unwrap(), all);
}

#[test]
fn a_host_that_says_nothing_takes_no_time_of_the_one_that_writes() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let primary = Server::primary(&programs, &directory.path().join("primary"));
    journal_of(&primary);
    // The kernel takes the connection, and nobody greets.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = format!(
        "host=127.0.0.1,127.0.0.1 port={},{} user=grain dbname=postgres",
        silent.local_addr().unwrap().port(),
        primary.port
    );
    let journal = PostgresJournal::new(&PostgresOptions::new(hosts)).unwrap();
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    assert_eq!(journal.status(SHARD).unwrap().epoch, lead.epoch);
}

#[test]
fn an_append_that_lasts_for_longer_than_its_lease_prolongs_it() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let primary = Server::primary(&programs, &directory.path().join("primary"));
    let journal = journal_of(&primary);
    primary.sql(
        "CREATE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_sleep(1); RETURN NEW; END'",
    );
    primary.sql(
        "CREATE TRIGGER sleeps BEFORE INSERT ON grainstore.journal \
         FOR EACH ROW EXECUTE FUNCTION sleeps()",
    );
    let lead = journal.lead(SHARD, "a", Duration::from_secs(2)).unwrap();
    let long = record(&lead, &lead.head, &vec![7; 3 << 20]);
    journal.append(&lead, &lead.head, &long).unwrap();
    assert!(!journal.status(SHARD).unwrap().lease.is_zero(), "it has ended");
    assert_eq!(code(journal.lead(SHARD, "b", LONG)), "ERR_BUSY");
}

#[test]
fn a_url_that_is_wrong_is_told_as_such() {
    for (url, said) in [
        ("postgresql://grain:p@ss@127.0.0.1/memory", "before @127.0.0.1 has an @"),
        ("postgresql:///memory", "no host"),
        ("host=a,b,c port=1,2 user=grain sslmode=disable", "ports"),
        ("host=a hostaddr=127.0.0.1,127.0.0.2 user=grain sslmode=disable", "addresses"),
    ] {
        let refused = PostgresJournal::new(&PostgresOptions::new(url)).unwrap_err();
        assert_eq!(refused.code(), "ERR_SCHEMA", "{url}: {refused}");
        assert!(refused.to_string().contains(said), "{url}: {refused}");
        assert!(!refused.to_string().contains("ss@"), "{refused}");
    }
}
