//! The tables, and the statements on them.

use grainstore::Error;
use grainstore::journal::{KEYRING_SLOT_BYTES, incompatible, invalid};

/// The version of the tables.
pub(super) const VERSION: i32 = 1;

/// Slots of a keyring that one statement reads or writes: a mebibyte of them.
pub(super) const MAX_SLOTS_AT_ONCE: usize = 8192;

/// Parts of records that one statement looks at: more than one record has.
pub(super) const MAX_PARTS_AT_ONCE: usize = 4096;

/// Size of the parts of a record that has several: a row of the journal each.
pub(super) const MAX_PART_BYTES: usize = 1 << 20;

/// Who a commit waits for, and whether it does.
pub(super) const REPLICATION: &str = "SELECT current_setting('synchronous_standby_names'), \
                                      current_setting('synchronous_commit')";

/// Sets up a connection, whatever the database or the role says: a commit waits for the disk, and it is told if one did
/// not wait for its standby. Nothing waits for a lock for longer than a call is waited for, and a node that stands still
/// in the middle of a record keeps nobody from the lead.
pub(super) const SET_UP: &str = "SELECT set_config('client_min_messages', 'warning', false), \
    set_config('lock_timeout', '4s', false), \
    set_config('idle_in_transaction_session_timeout', '4s', false), \
    CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') \
    THEN set_config('synchronous_commit', 'on', false) END";

/// The statements, with the name of the schema in them.
#[derive(Debug)]
pub(super) struct Statements {
    schema: String,
    version: String,
    create_shard: String,
    lead: String,
    renew: String,
    touch: String,
    release: String,
    append: String,
    advance: String,
    prolong: String,
    insert: String,
    sizes: String,
    read: String,
    put_slots: String,
    keyring: String,
    status: String,
    shards: String,
}

// A record has 256 parts at most: what else is there was not appended, and is not read. Nor is more of a value than any has
// that a node wrote.

/// What moves the head of a shard: its lead and its end are compared, and the lead is kept.
const ADVANCE: &str = "UPDATE {s}.shard SET commit_no = $5, chain = $6, \
                       until = now() + $7 * interval '1 second' \
                       WHERE shard = $1 AND epoch = $2 AND commit_no = $3 AND chain = $4";

impl Statements {
    /// The statements on the tables of a schema.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for a name that is none.
    pub(super) fn of(schema: &str) -> Result<Self, Error> {
        let mut letters = schema.chars();
        let begins = letters.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_');
        let goes_on = letters
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
        if !begins || !goes_on || schema.len() > 63 {
            return Err(invalid(
                format!("{schema:?} is no name of a schema"),
                "use lower-case letters, digits and _, 63 at most, and no digit first",
            ));
        }
        let chain = "substring(chain from 1 for 33)";
        let of =
            |statement: &str| statement.replace("{s}", &quoted(schema)).replace("{chain}", chain);
        Ok(Self {
            schema: schema.to_owned(),
            version: of("SELECT version FROM {s}.cluster"),
            create_shard: of("INSERT INTO {s}.shard \
                (shard, epoch, commit_no, chain) \
                VALUES ($1, 0, 0, decode(repeat('00', 32), 'hex')) ON CONFLICT (shard) DO NOTHING"),
            lead: of("UPDATE {s}.shard SET epoch = epoch + 1, holder = $2, \
                until = now() + $3 * interval '1 second' \
                WHERE shard = $1 AND (holder IS NULL OR until IS NULL OR until <= now() \
                OR until > now() + 2 * $3 * interval '1 second') \
                RETURNING epoch, commit_no, {chain}"),
            renew: of("UPDATE {s}.shard SET until = now() + $3 * interval '1 second' \
                WHERE shard = $1 AND epoch = $2 RETURNING commit_no, {chain}"),
            touch: of("UPDATE {s}.shard SET until = until WHERE shard = $1"),
            release: of("UPDATE {s}.shard SET holder = NULL, until = NULL \
                WHERE shard = $1 AND epoch = $2"),
            append: of(&format!(
                "WITH moved AS ({ADVANCE} RETURNING commit_no) \
                INSERT INTO {{s}}.journal (shard, commit_no, part, epoch, body) \
                SELECT $1, moved.commit_no, 0, $2, $8 FROM moved"
            )),
            advance: of(ADVANCE),
            prolong: of(
                "UPDATE {s}.shard SET until = clock_timestamp() + $3 * interval '1 second' \
                WHERE shard = $1 AND epoch = $2",
            ),
            insert: of("INSERT INTO {s}.journal (shard, commit_no, part, epoch, body) \
                VALUES ($1, $2, $3, $4, $5)"),
            sizes: of(&format!(
                "SELECT commit_no, octet_length(body)::bigint FROM {{s}}.journal \
                WHERE shard = $1 AND commit_no > $2 AND part BETWEEN 0 AND 255 \
                ORDER BY commit_no, part LIMIT {MAX_PARTS_AT_ONCE}"
            )),
            read: of(&format!(
                "SELECT commit_no, part, body FROM (SELECT commit_no, part, \
                substring(body from 1 for {}) AS body, \
                sum(octet_length(body)) OVER (ORDER BY commit_no, part) AS length FROM {{s}}.journal \
                WHERE shard = $1 AND commit_no > $2 AND commit_no <= $3 AND part BETWEEN 0 AND 255) \
                AS parts WHERE length <= $4 ORDER BY commit_no, part",
                MAX_PART_BYTES + 1
            )),
            put_slots: of("INSERT INTO {s}.keyring (shard, slot, bytes) \
                SELECT $1, number, wrapped FROM unnest($2::bigint[], $3::bytea[]) AS new (number, wrapped) \
                ON CONFLICT (shard, slot) DO UPDATE SET bytes = excluded.bytes"),
            keyring: of(&format!(
                "SELECT slot, substring(bytes from 1 for {}) FROM {{s}}.keyring \
                WHERE shard = $1 AND slot >= $2 AND slot < $3 ORDER BY slot LIMIT {MAX_SLOTS_AT_ONCE}",
                KEYRING_SLOT_BYTES + 1
            )),
            status: of("SELECT epoch, commit_no, {chain}, left(holder, 1000), \
                extract(epoch FROM until - now())::float8 FROM {s}.shard WHERE shard = $1"),
            shards: of("SELECT shard FROM {s}.shard ORDER BY shard"),
        })
    }

    /// The statements that make the tables, each to be run by itself.
    pub(super) fn create(&self) -> Vec<String> {
        [
            "CREATE SCHEMA IF NOT EXISTS {s}",
            "CREATE TABLE IF NOT EXISTS {s}.cluster (one int PRIMARY KEY, version int NOT NULL)",
            "CREATE TABLE IF NOT EXISTS {s}.shard (shard bigint PRIMARY KEY, epoch bigint NOT NULL, \
             commit_no bigint NOT NULL, chain bytea NOT NULL, holder text, until timestamptz) \
             WITH (fillfactor = 50)",
            "CREATE TABLE IF NOT EXISTS {s}.journal (shard bigint NOT NULL, commit_no bigint NOT NULL, \
             part int NOT NULL, epoch bigint NOT NULL, body bytea NOT NULL, \
             PRIMARY KEY (shard, commit_no, part))",
            "CREATE TABLE IF NOT EXISTS {s}.keyring (shard bigint NOT NULL, slot bigint NOT NULL, \
             bytes bytea NOT NULL, PRIMARY KEY (shard, slot))",
            "INSERT INTO {s}.cluster (one, version) VALUES (1, 1) ON CONFLICT (one) DO NOTHING",
        ]
        .iter()
        .map(|statement| statement.replace("{s}", &quoted(&self.schema)))
        .collect()
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn create_shard(&self) -> &str {
        &self.create_shard
    }

    pub(super) fn lead(&self) -> &str {
        &self.lead
    }

    pub(super) fn renew(&self) -> &str {
        &self.renew
    }

    /// Changes nothing, and is a commit that waits as any other does.
    pub(super) fn touch(&self) -> &str {
        &self.touch
    }

    pub(super) fn release(&self) -> &str {
        &self.release
    }

    pub(super) fn append(&self) -> &str {
        &self.append
    }

    pub(super) fn advance(&self) -> &str {
        &self.advance
    }

    /// Counts the lease from now, and not from when the transaction began.
    pub(super) fn prolong(&self) -> &str {
        &self.prolong
    }

    pub(super) fn insert(&self) -> &str {
        &self.insert
    }

    pub(super) fn sizes(&self) -> &str {
        &self.sizes
    }

    pub(super) fn read(&self) -> &str {
        &self.read
    }

    /// Writes slots of a keyring: their numbers and their bytes, in two arrays.
    pub(super) fn put_slots(&self) -> &str {
        &self.put_slots
    }

    /// Slots of a keyring from one up to another: [`MAX_SLOTS_AT_ONCE`] at most.
    pub(super) fn keyring(&self) -> &str {
        &self.keyring
    }

    pub(super) fn status(&self) -> &str {
        &self.status
    }

    pub(super) fn shards(&self) -> &str {
        &self.shards
    }
}

/// The name as it may be in a statement, a word of the language as well.
fn quoted(schema: &str) -> String {
    format!("\"{schema}\"")
}

/// `ERR_STORE_VERSION` of the tables of a schema.
pub(super) fn other_version(schema: &str, version: Option<i32>) -> Error {
    match version {
        Some(version) => incompatible(
            format!(
                "the tables of schema {schema} have version {version}, and this program uses {VERSION}"
            ),
            "run the version that made them",
        ),
        None => incompatible(
            format!("schema {schema} lacks tables of a journal"),
            "make them with `grain cluster init`, or name another schema or database",
        ),
    }
}
