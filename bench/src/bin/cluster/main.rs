//! A store whose journal is in PostgreSQL, beside plain inserts of the same rows in the same server, and beside a store
//! without a journal (docs/benchmarks.md, "Past one machine").
//!
//! `cluster URL [SECONDS]`: a database that may be filled, such as `postgresql://grain@127.0.0.1/bench`.

#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

mod plain;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use grainstore::cal::{Predicate, Query};
use grainstore::format::{BeliefBuilder, Encoding, Grain};
use grainstore::journal::{Journal, MemoryJournal, ShardId};
use grainstore::{
    ContentAddress, EpochMs, OpenOptions, PageOptions, Session, SessionOptions, Store,
};
use grainstore_cluster::{Node, NodeOptions, PostgresJournal, PostgresOptions};

use plain::Plain;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const PATIENCE: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(60);
/// Pairs of measured runs, in turns.
const TURNS: u32 = 20;
/// Shards that are written at once.
const SHARDS: u64 = 16;
/// Grains of a group.
const GROUP: usize = 64;
/// Writes a second under which the lag of a follower is measured.
const WRITES_A_SECOND: u64 = 1_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("name a database: cluster URL [SECONDS]")?;
    let seconds = arguments.next().map_or(Ok(20), |seconds| seconds.parse())?;
    let schema = format!("bench_{}", std::process::id());
    let options = PostgresOptions::new(&url).schema(&schema);
    let journal = PostgresJournal::new(&options)?;
    journal.init()?;
    println!("replication: {:?}", journal.replication()?);
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let directory = tempfile::tempdir()?;
    let mut plain = Plain::connect(&url, &schema)?;
    let leader = lead(directory.path(), &journal, 1)?;
    one_by_one(&leader, &mut plain)?;
    in_groups(&leader, &mut plain)?;
    leader.close()?;
    in_parts(directory.path(), &mut plain)?;
    reads(directory.path(), &journal)?;
    lag(directory.path(), &journal, Duration::from_secs(seconds))?;
    shards(directory.path(), &journal, (&url, &schema))?;
    plain.end()
}

fn lead(directory: &Path, journal: &Arc<dyn Journal>, shard: u64) -> Result<Store> {
    let lead = journal.lead(ShardId(shard), "bench", LEASE)?;
    let options = OpenOptions::new().create(true).leading(Arc::clone(journal), lead, PATIENCE);
    Ok(Store::open(directory.join(format!("leader {shard}")), &options)?)
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A grain of some 240 bytes, another each time.
fn grain() -> Result<Grain> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let at = EpochMs::new(1_768_471_200_000);
    let object =
        format!("a cup of tea at a quarter past {number}, with a slice of lemon and two biscuits");
    let grain = BeliefBuilder::new(at, format!("person {}", number % 1000), "prefers", object, 0.9);
    Ok(grain.namespace("bench:people").user_id(format!("user-{}", number % 1000)).build()?)
}

fn encoded(grain: &Grain) -> Result<Vec<u8>> {
    Ok(grain.encode(Encoding::default())?.into_bytes())
}

/// Takes the times of two things in turns, and tells the p50 of each and their ratio.
fn compare<'t>(
    what: &str,
    (first, mut one): (&str, Box<dyn FnMut() -> Result<()> + 't>),
    (second, mut other): (&str, Box<dyn FnMut() -> Result<()> + 't>),
    count: u32,
) -> Result<()> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (times, work) in times.iter_mut().zip([&mut one, &mut other]) {
            for _ in 0..count {
                let began = Instant::now();
                work()?;
                times.push(began.elapsed());
            }
        }
    }
    let [one, other] = times.map(|mut times| {
        times.sort_unstable();
        at(&times, 50).as_secs_f64() * 1e6
    });
    println!("{what}: {first} {one:.1} us, {second} {other:.1} us, ratio {:.2}", one / other);
    Ok(())
}

fn at(sorted: &[Duration], share: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * share / 100).copied().unwrap_or_default()
}

fn one_by_one(leader: &Store, plain: &mut Plain) -> Result<()> {
    let session = leader.session(SessionOptions::default());
    let put = || {
        session.put(grain()?)?;
        Ok(())
    };
    let insert = || plain.insert(&[encoded(&grain()?)?]);
    compare("one put, p50", ("put", Box::new(put)), ("insert", Box::new(insert)), 50)
}

/// What a put costs beside the database: with a journal in memory, and without one, synced.
fn in_parts(directory: &Path, plain: &mut Plain) -> Result<()> {
    let memory: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let leader = lead(directory, &memory, 4)?;
    let alone = Store::open(directory.join("alone 4"), &OpenOptions::new().create(true))?;
    for (name, store) in [("put, journal in memory", &leader), ("put, no journal", &alone)] {
        let session = store.session(SessionOptions::default());
        let put = || {
            session.put(grain()?)?;
            Ok(())
        };
        let insert = || plain.insert(&[encoded(&grain()?)?]);
        compare("one put, p50", (name, Box::new(put)), ("insert", Box::new(insert)), 50)?;
    }
    alone.close()?;
    Ok(leader.close()?)
}

fn in_groups(leader: &Store, plain: &mut Plain) -> Result<()> {
    let session = leader.session(SessionOptions::default());
    let put = || {
        let grains = (0..GROUP).map(|_| grain()).collect::<Result<Vec<_>>>()?;
        session.put_batch(grains)?;
        Ok(())
    };
    let insert = || {
        let blobs = (0..GROUP).map(|_| encoded(&grain()?));
        plain.insert(&blobs.collect::<Result<Vec<_>>>()?)
    };
    compare("64 at once, p50", ("put_batch", Box::new(put)), ("insert", Box::new(insert)), 5)
}

/// Reads of a leader and of a follower beside those of a store without a journal.
fn reads(directory: &Path, journal: &Arc<dyn Journal>) -> Result<()> {
    let leader = lead(directory, journal, 2)?;
    let alone = Store::open(directory.join("alone"), &OpenOptions::new().create(true))?;
    let grains = (0..20_000).map(|_| grain()).collect::<Result<Vec<_>>>()?;
    for some in grains.chunks(1_000) {
        for store in [&leader, &alone] {
            store.session(SessionOptions::default()).put_batch(some.iter().cloned())?;
        }
    }
    let following = OpenOptions::new().create(true).following(Arc::clone(journal), ShardId(2));
    let follower = Store::open(directory.join("follower 2"), &following)?;
    let addresses = grains.iter().map(|grain| Ok(ContentAddress::of(&encoded(grain)?)));
    let addresses = addresses.collect::<Result<Vec<_>>>()?;
    for store in [&leader, &alone, &follower] {
        store.flush()?;
    }
    for (name, store) in [("leader", &leader), ("follower", &follower)] {
        let sessions = [store, &alone].map(|store| store.session(SessionOptions::default()));
        let [one, other] = &sessions;
        let get = |session: &Session, number: &mut usize| {
            *number = (*number + 7919) % addresses.len();
            let address = addresses.get(*number).ok_or("no address")?;
            session.get(address)?;
            Ok(())
        };
        let (mut first, mut second) = (0, 0);
        compare(
            "get, p50",
            (name, Box::new(move || get(one, &mut first))),
            ("alone", Box::new(move || get(other, &mut second))),
            2_000,
        )?;
        let query = |session: &Session, number: &mut u64| {
            *number = (*number + 13) % 1000;
            let user = Predicate::text_is("user_id", format!("user-{number}"))?;
            let query = Query::default().when(user);
            session.query(&query, &PageOptions::first(10))?;
            Ok(())
        };
        let (mut first, mut second) = (0, 0);
        compare(
            "query by user, p50",
            (name, Box::new(move || query(one, &mut first))),
            ("alone", Box::new(move || query(other, &mut second))),
            500,
        )?;
    }
    follower.close()?;
    alone.close()?;
    Ok(leader.close()?)
}

/// How long after an acknowledgement a follower shows what was written.
fn lag(directory: &Path, journal: &Arc<dyn Journal>, time: Duration) -> Result<()> {
    let leader = lead(directory, journal, 3)?;
    let mut options = NodeOptions::new("follower", directory.join("follower 3"));
    (options.shard, options.leads) = (ShardId(3), false);
    let node = Node::start(options, Arc::clone(journal))?;
    let follower = node.store(PATIENCE)?;
    let written: Mutex<Vec<(u64, Instant)>> = Mutex::default();
    let ends = AtomicBool::new(false);
    let (mut lags, count) = thread::scope(|scope| {
        let writers: Vec<_> = (0..4_u64)
            .map(|writer| {
                let (leader, written) = (&leader, &written);
                scope.spawn(move || -> Result<u64> {
                    let session = leader.session(SessionOptions::default());
                    let began = Instant::now();
                    let mut count = 0_u64;
                    while began.elapsed() < time {
                        session.put(grain()?)?;
                        let at = leader.position()?.map_or(0, |at| at.commit);
                        written.lock().map_err(|_| "poisoned")?.push((at, Instant::now()));
                        count += 1;
                        let due = Duration::from_micros(
                            (count * 4 + writer) * 1_000_000 / WRITES_A_SECOND,
                        );
                        thread::sleep(due.saturating_sub(began.elapsed()));
                    }
                    Ok(count)
                })
            })
            .collect();
        let watching = scope.spawn(|| -> Result<Vec<(u64, Instant)>> {
            let mut seen: Vec<(u64, Instant)> = Vec::new();
            while !ends.load(Ordering::SeqCst) {
                let at = follower.position()?.map_or(0, |at| at.commit);
                if seen.last().is_none_or(|last| last.0 < at) {
                    seen.push((at, Instant::now()));
                }
                thread::sleep(Duration::from_micros(500));
            }
            Ok(seen)
        });
        let mut count = 0;
        for writer in writers {
            count += writer.join().map_err(|_| "a writer panicked")??;
        }
        node.wait_for(leader.position()?.ok_or("no position")?, PATIENCE)?;
        thread::sleep(Duration::from_millis(50));
        ends.store(true, Ordering::SeqCst);
        let seen = watching.join().map_err(|_| "the watcher panicked")??;
        let written = written.lock().map_err(|_| "poisoned")?;
        let lags = written.iter().filter_map(|(commit, at)| {
            let first = seen.partition_point(|(to, _)| to < commit);
            seen.get(first).map(|(_, shown)| shown.saturating_duration_since(*at))
        });
        Ok::<_, Box<dyn Error + Send + Sync>>((lags.collect::<Vec<_>>(), count))
    })?;
    lags.sort_unstable();
    println!(
        "lag of a follower at {:.0} writes a second: {:?} p50, {:?} p99, {:?} at most",
        count as f64 / time.as_secs_f64(),
        at(&lags, 50),
        at(&lags, 99),
        at(&lags, 100)
    );
    drop(follower);
    node.stop();
    Ok(leader.close()?)
}

/// Writers of several shards at once, beside as many that insert.
fn shards(directory: &Path, journal: &Arc<dyn Journal>, (url, schema): (&str, &str)) -> Result<()> {
    const TIME: Duration = Duration::from_secs(5);
    let leaders = (10..10 + SHARDS).map(|shard| lead(directory, journal, shard));
    let leaders = leaders.collect::<Result<Vec<_>>>()?;
    let mut plains =
        (0..SHARDS).map(|_| Plain::connect(url, schema)).collect::<Result<Vec<_>>>()?;
    let (mut puts, mut inserts) = (0_u64, 0_u64);
    for _ in 0..3 {
        puts += during(
            TIME,
            leaders.iter().map(|leader| {
                let session = leader.session(SessionOptions::default());
                move || {
                    session.put(grain()?)?;
                    Ok(())
                }
            }),
        )?;
        inserts += during(
            TIME,
            plains.iter_mut().map(|plain| move || plain.insert(&[encoded(&grain()?)?])),
        )?;
    }
    let a_second = |count: u64| count as f64 / (3.0 * TIME.as_secs_f64());
    println!(
        "{SHARDS} shards: {:.0} puts a second, {:.0} inserts, ratio {:.2}",
        a_second(puts),
        a_second(inserts),
        puts as f64 / inserts as f64
    );
    for leader in leaders {
        leader.close()?;
    }
    Ok(())
}

/// Does several things at once for a time, and returns how often they were done.
fn during<W: FnMut() -> Result<()> + Send>(
    time: Duration,
    works: impl Iterator<Item = W>,
) -> Result<u64> {
    let began = Instant::now();
    thread::scope(|scope| {
        let running: Vec<_> = works
            .map(|mut work| {
                scope.spawn(move || -> Result<u64> {
                    let mut count = 0;
                    while began.elapsed() < time {
                        work()?;
                        count += 1;
                    }
                    Ok(count)
                })
            })
            .collect();
        let mut all = 0;
        for one in running {
            all += one.join().map_err(|_| "a writer panicked")??;
        }
        Ok(all)
    })
}
