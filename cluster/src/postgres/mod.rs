//! A journal in PostgreSQL: one row a shard with its head and its lead, one row a record.
//!
//! An append is one statement that moves the head and writes the record, or does neither. Only `SELECT`, `INSERT`,
//! `UPDATE` and transactions are used, so that other databases that speak this protocol do as well.

mod connection;
mod schema;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grainstore::journal::{
    Head, Journal, KEYRING_SLOT_BYTES, KeyringSlot, Lead, MAX_RECORD_BYTES, Record, ShardId,
    ShardStatus, damaged, fenced, invalid, led_by, refused, unreachable,
};
use grainstore::{Error, Result};
use tokio_postgres::IsolationLevel;
use tokio_postgres::types::{ToSql, Type};

pub use connection::PostgresOptions;
use connection::{Connection, Connector};
use schema::{MAX_PART_BYTES, Statements};

/// Time in which a renewal of a lead is answered, at least.
const MIN_RENEWAL_TIME: Duration = Duration::from_secs(1);
/// Connections that are kept while nobody uses them. A node uses two or three; a process may have many nodes.
const MAX_IDLE: usize = 32;

/// How the database keeps what it acknowledged when its machine is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replication {
    /// A commit waits for a standby.
    Synchronous,
    /// It does not: a failover may lose what was acknowledged. Nodes that saw it refuse to serve then.
    Asynchronous,
}

/// A journal in PostgreSQL, shared by the shards of a cluster. Calls of several threads use several connections.
pub struct PostgresJournal {
    connector: Connector,
    statements: Statements,
    idle: Mutex<Vec<Connection>>,
    /// Shards whose last commit may be on the primary alone: its wait for a standby ended early, or its answer was
    /// lost.
    unconfirmed: Mutex<BTreeSet<ShardId>>,
}

impl fmt::Debug for PostgresJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresJournal({})", self.statements.schema())
    }
}

impl PostgresJournal {
    /// A journal in a database whose schema was made by [`PostgresJournal::init`]. It connects with the first call.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for a connection string or the name of a schema that is none; `ERR_IO` for certificates that
    /// cannot be read.
    pub fn new(options: &PostgresOptions) -> Result<Self> {
        let statements = Statements::of(&options.schema)?;
        let connector = Connector::new(options)?;
        let (idle, unconfirmed) = (Mutex::default(), Mutex::default());
        Ok(Self { connector, statements, idle, unconfirmed })
    }

    /// Makes the schema and its tables, if they are not there.
    ///
    /// # Errors
    /// `ERR_STORE_VERSION` for the tables of a later version; `ERR_IO`.
    pub fn init(&self) -> Result<()> {
        let mut connection = self.connector.connect()?;
        for statement in self.statements.create() {
            connection.call(0, async |client| client.batch_execute(&statement).await)?;
        }
        self.check(&mut connection)
    }

    /// Returns whether the database waits for a standby before it acknowledges a commit.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn replication(&self) -> Result<Replication> {
        self.with(|connection| {
            let row = connection.row(schema::REPLICATION, &[])?;
            let row = row.ok_or_else(|| damaged("the database has no settings"))?;
            let (names, level): (String, String) = (row.get(0), row.get(1));
            Ok(match names.is_empty() || level == "off" || level == "local" {
                true => Replication::Asynchronous,
                false => Replication::Synchronous,
            })
        })
    }

    /// Returns the shards that were led at least once, in the order of their numbers.
    ///
    /// # Errors
    /// `ERR_STORE_VERSION` without tables; `ERR_IO`.
    pub fn shards(&self) -> Result<Vec<ShardId>> {
        let shards = self.statements.shards();
        let rows = self.with(|connection| connection.rows(shards, &[], 0))?;
        rows.into_iter().map(|row| count(row.get(0)).map(ShardId)).collect()
    }

    /// Refuses tables of another version.
    fn check(&self, connection: &mut Connection) -> Result<()> {
        let version = self.statements.version();
        let row = connection.row(version, &[])?;
        let version: Option<i32> = row.map(|row| row.get(0));
        match version {
            Some(schema::VERSION) => Ok(()),
            version => Err(schema::other_version(self.statements.schema(), version)),
        }
    }

    /// Runs a call on a connection, which is kept if it is still good.
    fn with<T>(&self, call: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle.filter(Connection::is_open) {
            Some(connection) => connection,
            None => {
                let mut connection = self.connector.connect()?;
                self.check(&mut connection)?;
                connection.rows(schema::SET_UP, &[], 0)?;
                connection
            }
        };
        let outcome = call(&mut connection);
        if connection.is_good() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MAX_IDLE {
                idle.push(connection);
            }
        } else {
            // The others may be those of a server that is gone as well.
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        outcome
    }

    /// Waits until what was committed before is where the database replicates to: a commit that waits comes after it.
    fn confirm(&self, connection: &mut Connection, shard: ShardId) -> Result<()> {
        // Whoever leads by now: a statement that changes no row waits for nobody.
        let (touch, id) = (self.statements.touch(), number(shard.0)?);
        let touched = connection.change(touch, &[int(&id)], 0)?;
        connection.check_waited()?;
        if touched != 1 {
            return Err(damaged(format!("shard {shard} is not in the journal any more")));
        }
        self.unconfirmed().remove(&shard);
        Ok(())
    }

    fn unconfirmed(&self) -> MutexGuard<'_, BTreeSet<ShardId>> {
        self.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_once(
        &self,
        connection: &mut Connection,
        (lead, after): (&Lead, &Head),
        record: &Record,
    ) -> Result<bool> {
        if !record.follows(after) {
            return Ok(false);
        }
        let head = record.head();
        let (shard, epoch) = (number(lead.shard.0)?, number(lead.epoch)?);
        let (from, to) = (number(after.commit)?, number(head.commit)?);
        let (before, chain) = (after.chain.as_slice(), head.chain.as_slice());
        let ttl = seconds(lead.ttl);
        let bytes = record.as_bytes();
        let moves = [
            int(&shard),
            int(&epoch),
            int(&from),
            blob(&before),
            int(&to),
            blob(&chain),
            real(&ttl),
        ];
        if bytes.len() <= MAX_PART_BYTES && record.slots().is_empty() {
            let append = self.statements.append();
            let values = [moves.as_slice(), &[blob(&bytes)]].concat();
            return Ok(connection.change(append, &values, bytes.len())? == 1);
        }
        let (advance, insert) = (self.statements.advance(), self.statements.insert());
        let (prolong, put_slots) = (self.statements.prolong(), self.statements.put_slots());
        let slots = record.slots().len().saturating_mul(KEYRING_SLOT_BYTES);
        connection.call(bytes.len().saturating_add(slots), async |client| {
            let transaction = client.transaction().await?;
            if transaction.execute_typed(advance, &moves).await? != 1 {
                return transaction.rollback().await.map(|()| false);
            }
            for (part, bytes) in (0_i32..).zip(bytes.chunks(MAX_PART_BYTES)) {
                let part = (&part as &(dyn ToSql + Sync), Type::INT4);
                let values = [int(&shard), int(&to), part, int(&epoch), blob(&bytes)];
                transaction.execute_typed(insert, &values).await?;
            }
            for slots in record.slots().chunks(schema::MAX_SLOTS_AT_ONCE) {
                let numbers: Vec<_> = slots.iter().map(|slot| i64::from(slot.number)).collect();
                let wrapped: Vec<_> = slots.iter().map(|slot| slot.bytes.as_slice()).collect();
                let numbers = (&numbers as &(dyn ToSql + Sync), Type::INT8_ARRAY);
                let values = [int(&shard), numbers, (&wrapped, Type::BYTEA_ARRAY)];
                transaction.execute_typed(put_slots, &values).await?;
            }
            // Nobody else can renew or take the lead meanwhile, and a long record takes a while to send.
            if bytes.len() > MAX_PART_BYTES {
                let values = [int(&shard), int(&epoch), real(&ttl)];
                transaction.execute_typed(prolong, &values).await?;
            }
            transaction.commit().await.map(|()| true)
        })
    }
}

impl Journal for PostgresJournal {
    fn lead(&self, shard: ShardId, node: &str, ttl: Duration) -> Result<Lead> {
        let id = number(shard.0)?;
        self.with(|connection| {
            let create = self.statements.create_shard();
            connection.change(create, &[int(&id)], 0)?;
            let take = self.statements.lead();
            let ttl_seconds = seconds(ttl);
            let taken = connection.row(take, &[int(&id), text(&node), real(&ttl_seconds)])?;
            connection.check_waited()?;
            let Some(row) = taken else {
                let status = self.statements.status();
                let row = connection.row(status, &[int(&id)])?;
                let leader: Option<String> = row.and_then(|row| row.get(3));
                return Err(led_by(leader.as_deref().unwrap_or("another node")));
            };
            let (epoch, head) = (count(row.get(0))?, head_of(row.get(1), row.get(2))?);
            Ok(Lead::new((shard, epoch), node, ttl, head))
        })
    }

    fn renew(&self, lead: &Lead) -> Result<Head> {
        let (shard, epoch, ttl) = (number(lead.shard.0)?, number(lead.epoch)?, seconds(lead.ttl));
        let renew = self.statements.renew();
        let values = [int(&shard), int(&epoch), real(&ttl)];
        // One that hangs leaves time for another, on another connection.
        let limit = (lead.ttl / 2).max(MIN_RENEWAL_TIME);
        let renewed = self.with(|connection| {
            connection.set_limit(Some(limit));
            let renewed = connection.row(renew, &values);
            connection.set_limit(None);
            renewed
        });
        match renewed? {
            Some(row) => head_of(row.get(0), row.get(1)),
            None => Err(fenced(format!("another node took the lead of shard {}", lead.shard))),
        }
    }

    fn release(&self, lead: &Lead) -> Result<()> {
        let (shard, epoch) = (number(lead.shard.0)?, number(lead.epoch)?);
        let release = self.statements.release();
        let values = [int(&shard), int(&epoch)];
        self.with(|connection| connection.change(release, &values, 0)).map(drop)
    }

    fn append(&self, lead: &Lead, after: &Head, record: &Record) -> Result<Head> {
        let appended = self.with(|connection| {
            if self.unconfirmed().contains(&lead.shard) {
                self.confirm(connection, lead.shard)?;
            }
            let appended = self.append_once(connection, (lead, after), record);
            let appended = match appended {
                Ok(true) => connection.check_waited().map(|()| true),
                // It may be there, by an attempt whose answer was lost: who looks is to see what will stay.
                Ok(false) => self.confirm(connection, lead.shard).map(|()| false),
                Err(failed) => Err(failed),
            };
            if appended.is_err() {
                self.unconfirmed().insert(lead.shard);
            }
            appended
        })?;
        match appended {
            true => Ok(record.head()),
            false => Err(fenced(format!(
                "shard {} does not end with commit {} under lead {} any more",
                lead.shard, after.commit, lead.epoch
            ))),
        }
    }

    fn read(&self, shard: ShardId, after: u64, bytes: usize) -> Result<Vec<Record>> {
        let (id, from) = (number(shard.0)?, number(after)?);
        let rows = self.with(|connection| {
            let sizes = self.statements.sizes();
            let rows = connection.rows(sizes, &[int(&id), int(&from)], 0)?;
            let sizes: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            let Some((to, size)) = last_within(&sizes, bytes)? else { return Ok(Vec::new()) };
            let read = self.statements.read();
            let most = i64::try_from(size).unwrap_or(i64::MAX);
            connection.rows(read, &[int(&id), int(&from), int(&to), int(&most)], size)
        })?;
        let mut whole: Vec<(i64, Vec<u8>)> = Vec::new();
        for row in rows {
            let (commit, part): (i64, i32) = (row.get(0), row.get(1));
            let body: &[u8] = row.get(2);
            match whole.last_mut().filter(|last| last.0 == commit) {
                Some(last) => last.1.extend_from_slice(body),
                None if part == 0 => whole.push((commit, body.to_vec())),
                None => return Err(damaged(format!("record {commit} has no beginning"))),
            }
        }
        whole.into_iter().map(|(_, bytes)| Record::from_bytes(bytes)).collect()
    }

    fn keyring(&self, shard: ShardId, slots: Range<u32>) -> Result<(Head, Vec<KeyringSlot>)> {
        let (id, from, to) = (number(shard.0)?, i64::from(slots.start), i64::from(slots.end));
        let (status, page) = (self.statements.status(), self.statements.keyring());
        let (head, rows) = self.with(|connection| {
            // All of one moment.
            connection.call(slots.len().saturating_mul(KEYRING_SLOT_BYTES), async |client| {
                let moment = client.build_transaction();
                let moment = moment.isolation_level(IsolationLevel::RepeatableRead).read_only(true);
                let moment = moment.start().await?;
                let head = moment.query_typed(status, &[int(&id)]).await?;
                let (mut all, mut next) = (Vec::new(), from);
                loop {
                    let rows = moment.query_typed(page, &[int(&id), int(&next), int(&to)]).await?;
                    let is_last = rows.len() < schema::MAX_SLOTS_AT_ONCE;
                    next = rows.last().map_or(next, |row| row.get::<_, i64>(0).saturating_add(1));
                    all.extend(rows);
                    if is_last {
                        break;
                    }
                }
                moment.commit().await.map(|()| (head, all))
            })
        })?;
        let head = head.first().map_or(Ok(Head::EMPTY), |row| head_of(row.get(1), row.get(2)))?;
        let slots = rows.iter().map(|row| slot_of(row.get(0), row.get(1)));
        Ok((head, slots.collect::<Result<_>>()?))
    }

    fn status(&self, shard: ShardId) -> Result<ShardStatus> {
        let id = number(shard.0)?;
        let status = self.statements.status();
        let row = self.with(|connection| connection.row(status, &[int(&id)]))?;
        let Some(row) = row else {
            return Ok(ShardStatus::new(Head::EMPTY, 0, None, Duration::ZERO));
        };
        let head = head_of(row.get(1), row.get(2))?;
        let left: Option<f64> = row.get(4);
        let lease = left.filter(|left| *left > 0.0).map_or(Ok(Duration::ZERO), |left| {
            Duration::try_from_secs_f64(left).map_err(|_| damaged("a lease has an impossible end"))
        })?;
        Ok(ShardStatus::new(head, count(row.get(0))?, row.get(3), lease))
    }
}

/// Returns the last commit of what is read at once, and the bytes up to its end: what fits, and one commit at least. The
/// sizes of the parts are given, of as many as are asked for at once: the last may lack parts then.
fn last_within(sizes: &[(i64, i64)], bytes: usize) -> Result<Option<(i64, usize)>> {
    let (mut read, mut whole) = (None, 0_usize);
    for parts in sizes.chunk_by(|one, next| one.0 == next.0) {
        let commit = parts.first().map_or(0, |part| part.0);
        let lengths = parts.iter().map(|part| usize::try_from(part.1).unwrap_or(usize::MAX));
        let length = lengths.fold(0, usize::saturating_add);
        let may_lack = sizes.len() >= schema::MAX_PARTS_AT_ONCE && sizes.last() == parts.last();
        let fits = whole.saturating_add(length) <= bytes && !may_lack;
        if read.is_some() && !fits {
            break;
        }
        if length > MAX_RECORD_BYTES {
            return Err(damaged(format!("record {commit} is longer than any that is written")));
        }
        whole = whole.saturating_add(length);
        read = Some((commit, whole));
    }
    Ok(read)
}

/// A value of a statement, with its type.
type Typed<'v> = (&'v (dyn ToSql + Sync), Type);

fn int(value: &i64) -> Typed<'_> {
    (value, Type::INT8)
}

fn real(value: &f64) -> Typed<'_> {
    (value, Type::FLOAT8)
}

fn text<'v>(value: &'v &str) -> Typed<'v> {
    (value, Type::TEXT)
}

fn blob<'v>(value: &'v &[u8]) -> Typed<'v> {
    (value, Type::BYTEA)
}

/// A number as a column has it.
fn number(number: u64) -> Result<i64> {
    let too_large =
        |_| invalid(format!("{number} is no number of a shard"), "they end at 2^63 - 1");
    i64::try_from(number).map_err(too_large)
}

fn count(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| damaged("a count of the journal is negative"))
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn slot_of(number: i64, bytes: &[u8]) -> Result<KeyringSlot> {
    let number = u32::try_from(number).ok().zip(bytes.try_into().ok());
    let (number, bytes) =
        number.ok_or_else(|| damaged("a slot of the keyring has another form"))?;
    Ok(KeyringSlot::new(number, bytes))
}

fn head_of(commit: i64, chain: &[u8]) -> Result<Head> {
    let chain = chain.try_into().map_err(|_| damaged("the head of a shard has no hash"))?;
    Ok(Head::new(count(commit)?, chain))
}

/// `ERR_IO` of the database.
fn failed(error: &tokio_postgres::Error, place: &str) -> Error {
    let Some(said) = error.as_db_error() else {
        if error.to_string().starts_with("invalid configuration") {
            let message = format!("PostgreSQL at {place}: {}", connection::causes(error));
            return refused(message, connection::URL_HINT);
        }
        return unreachable(format!("PostgreSQL at {place}: {}", connection::causes(error)));
    };
    let code = said.code().code();
    let message = format!("PostgreSQL at {place}: {} ({code})", said.message());
    match code {
        "28000" | "28P01" => refused(message, "check the user, the password and pg_hba.conf"),
        "3D000" => refused(message, "name another database in the URL, or make this one: createdb"),
        "42501" => refused(
            message,
            "`init` needs CREATE on the database; nodes need USAGE of the schema, and SELECT, INSERT and UPDATE",
        ),
        "53300" => refused(message, "raise max_connections; a node needs three"),
        "53100" => refused(message, "free some of the disk of the database"),
        _ => unreachable(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_at_once_ends_with_a_whole_record() {
        let sizes = [(3, 10), (4, 10), (4, 5), (5, 10), (6, 100)];
        let within = |bytes| last_within(&sizes, bytes).unwrap();
        assert_eq!(last_within(&[], 9).unwrap(), None);
        for (bytes, expected) in
            [(0, (3, 10)), (24, (3, 10)), (25, (4, 25)), (99, (5, 35)), (200, (6, 135))]
        {
            assert_eq!(within(bytes), Some(expected), "{bytes}");
        }
        // Of the last there may be more parts than were asked for.
        let mut many: Vec<(i64, i64)> = (1..).zip([1; 4090]).collect();
        many.extend([(4091, 1); 5]);
        assert_eq!(last_within(&many, 1 << 20).unwrap(), Some((4091, 4095)));
        many.push((4091, 1));
        assert_eq!(last_within(&many, 1 << 20).unwrap(), Some((4090, 4090)));
        let long = i64::try_from(MAX_RECORD_BYTES).unwrap();
        assert_eq!(last_within(&[(1, long)], 1).unwrap(), Some((1, MAX_RECORD_BYTES)));
        assert_eq!(last_within(&[(1, long), (1, 1)], 1).unwrap_err().code(), "ERR_INTEGRITY");
    }
}
