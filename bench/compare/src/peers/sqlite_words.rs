//! What is said to SQLite: how a connection commits, and a question in SQL.

use std::path::Path;

use rusqlite::{Connection, ToSql};

use crate::Result;
use crate::ask::Ask;
use crate::data::Kind;
use crate::peer::CACHE_BYTES;

/// What the pragma answers for FULL: the log is synced with every commit.
const SYNCHRONOUS_FULL: i64 = 2;

/// A connection whose commits are on the disk when they return.
///
/// # Errors
/// SQLite's; where it would not commit so.
pub(crate) fn connection(file: &Path) -> Result<Connection> {
    let connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let kibibytes = i64::try_from(CACHE_BYTES >> 10)?;
    connection.pragma_update(None, "cache_size", -kibibytes)?;
    // A pragma that is not understood is no error, and a comparison would be void.
    let mode: String = connection.pragma_query_value(None, "journal_mode", |r| r.get(0))?;
    let level: i64 = connection.pragma_query_value(None, "synchronous", |r| r.get(0))?;
    if (mode.as_str(), level) != ("wal", SYNCHRONOUS_FULL) {
        return Err(format!("SQLite would run with {mode}, synchronous {level}").into());
    }
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// The question in SQL, and the values it is bound to.
pub(super) fn statement<'a>(
    ask: &'a Ask,
    column: &str,
) -> Result<(String, Vec<Box<dyn ToSql + 'a>>)> {
    let mut sql = format!("SELECT address, {column} FROM grains");
    let mut values: Vec<Box<dyn ToSql + 'a>> = Vec::new();
    let mut newest = "time";
    let mut join = " WHERE ";
    if let Some(tag) = &ask.tag {
        sql.push_str(" JOIN tags USING (seq) WHERE tag = ?");
        values.push(Box::new(tag));
        newest = "tags.time";
        join = " AND ";
    }
    let texts = [
        ("namespace", &ask.namespace),
        ("subject", &ask.subject),
        ("relation", &ask.relation),
        ("object", &ask.object),
        ("user", &ask.user),
        ("session", &ask.session),
    ];
    for (name, wanted) in texts {
        if let Some(wanted) = wanted {
            sql.push_str(&format!("{join}{name} = ?"));
            values.push(Box::new(wanted));
            join = " AND ";
        }
    }
    if let Some(kind) = ask.kind {
        sql.push_str(&format!("{join}kind = ?"));
        values.push(Box::new(number(kind)));
        join = " AND ";
    }
    if let Some((from, to)) = ask.time_ms {
        sql.push_str(&format!("{join}{newest} BETWEEN ? AND ?"));
        values.push(Box::new(from));
        values.push(Box::new(to));
    }
    sql.push_str(&format!(" ORDER BY {newest} DESC LIMIT ?"));
    values.push(Box::new(i64::try_from(ask.limit)?));
    Ok((sql, values))
}

/// A grain type as a number.
pub(super) fn number(kind: Kind) -> u8 {
    match kind {
        Kind::Belief => 1,
        Kind::Event => 2,
    }
}
