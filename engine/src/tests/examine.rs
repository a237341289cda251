//! What must be so on a disk after a crash: everything acknowledged, nothing by halves, a whole
//! audit chain, and a store that goes on working.
//!
//! Beside the store's own answers, the tables are read as they are.

use grainstore_format::{BeliefBuilder, ContentAddress, Encoding, EpochMs, Value, decode_value};
use grainstore_index::{IndexLookup, Scope, TimeOrder, TimeRange};
use redb::{Database, ReadableDatabase, ReadableTable};
use sha2::{Digest, Sha256};

use super::disk::{Disk, Image};
use super::kit::agree::{agree_on, entries, same};
use super::kit::calls::session;
use super::kit::model::Model;
use super::questions::answers_agree;
use super::{START_MS, clock_at, open};
use crate::Store;
use crate::disk::layout::{self, AuditHead, LogRowParts, PlainEnvelope};
use crate::state::audit_rows::{AuditRow, AuditRows};

/// Whether the disk holds one of these states whole, found by index and log, and takes new writes.
/// Says which state it was.
pub(crate) fn examine(image: Image, states: &[Model]) -> Result<usize, String> {
    let disk = Disk::new(image);
    let store = open(&disk, &clock_at(2 * START_MS)).map_err(|error| format!("open: {error}"))?;
    let stats = store.stats().map_err(|error| format!("stats: {error}"))?;
    let place = place_of(&store, stats.grains, states)?;
    let state = &states[place];
    answers_agree(&store, state)?;
    every_grain_is_indexed_once(&store)?;
    takes_new_writes(&store)?;
    let verified = store.verify(false).map_err(|error| format!("verify: {error}"))?;
    same("problems", &verified.problems, &Vec::new())?;
    store.close().unwrap();
    // The new writes have two entries.
    tables_are_whole(disk.live(), stats.audit_entries + 2)?;
    Ok(place)
}

/// The first of these states that is the store's.
fn place_of(store: &Store, grains: u64, states: &[Model]) -> Result<usize, String> {
    let is_done = |decision: &str| decision == "done";
    let told = entries(&session(store, None))?;
    // The genesis is no call's.
    let done = told.iter().skip(1).filter(|entry| is_done(&entry.decision)).count();
    let counts = |state: &Model| {
        let done = state.audit.iter().filter(|entry| is_done(entry.decision)).count();
        (state.grains.len() as u64, done)
    };
    let expected: Vec<_> = states.iter().map(counts).collect();
    let found = (grains, done);
    let mut why = format!("grains and what was done: found {found:?}, not one of {expected:?}");
    for (place, state) in states.iter().enumerate().filter(|(place, _)| expected[*place] == found) {
        match agree_on(store, state, false) {
            Ok(()) => return Ok(place),
            Err(differs) => why = differs,
        }
    }
    Err(why)
}

fn every_grain_is_indexed_once(store: &Store) -> Result<(), String> {
    let view = store.inner().view().map_err(|error| error.to_string())?;
    let index = view.index();
    let all = index.scan(&Scope::All, &IndexLookup::All, TimeRange::default(), TimeOrder::Oldest);
    let all: Result<Vec<_>, _> = all.map_err(|error| error.to_string())?.collect();
    let all = all.map_err(|error| error.to_string())?;
    let mut found: Vec<_> = all.into_iter().map(|posting| posting.sequence.get()).collect();
    found.sort_unstable();
    let last = view.last_sequence().map_err(|error| error.to_string())?;
    same("indexed grains", &found, &(1..=last.get()).collect())
}

fn takes_new_writes(store: &Store) -> Result<(), String> {
    let operator = session(store, None);
    let belief = |object: &str| {
        BeliefBuilder::new(EpochMs::new(0), "power", "comes", object, 1.0).build().unwrap()
    };
    let write = || {
        let old = operator.put(belief("back"))?.address();
        let new = operator.supersede(&old, belief("and stays"), None)?;
        let history = operator.history_of("power", "comes", None, None)?;
        Ok((vec![new, old], history.iter().map(|version| version.address).collect()))
    };
    let written: crate::Result<(Vec<ContentAddress>, Vec<ContentAddress>)> = write();
    let (expected, found) = written.map_err(|error| format!("a new write: {error}"))?;
    same("history of a new write", &found, &expected)
}

/// The tables as they lie on the disk: the log has no gap, states belong to grains, and the audit
/// chain links from genesis to its head.
fn tables_are_whole(image: Image, entries: u64) -> Result<(), String> {
    let read = || -> crate::Result<Result<(), String>> {
        let db = Database::builder().create_with_backend(Disk::new(image).truth())?;
        let txn = db.begin_read()?;
        let log = txn.open_table(layout::LOG)?;
        let mut next = 1;
        for row in log.iter()? {
            let (sequence, envelope) = row?;
            let envelope = LogRowParts::split(envelope.value()).envelope;
            PlainEnvelope::open(sequence.value(), envelope)?;
            let place = same("a place in the log", &sequence.value(), &next);
            if place.is_err() {
                return Ok(place);
            }
            next += 1;
        }
        let states = txn.open_table(layout::STATE)?;
        let last_state = states.last()?.map_or(0, |(sequence, _)| sequence.value());
        let known = if last_state < next { Ok(()) } else { Err("a state of no grain".to_owned()) };
        Ok(known.and(chain_is_whole(&txn, entries)?))
    };
    read().map_err(|error| format!("tables: {error}"))?
}

fn chain_is_whole(txn: &redb::ReadTransaction, entries: u64) -> crate::Result<Result<(), String>> {
    let meta = txn.open_table(layout::META)?;
    let row = |name| -> crate::Result<Vec<u8>> {
        Ok(meta.get(name)?.map(|row| row.value().to_vec()).unwrap_or_default())
    };
    let audit = txn.open_table(layout::AUDIT)?;
    let log = txn.open_table(layout::LOG)?;
    let rows = AuditRows::new(&audit, Some(&log));
    let genesis = Sha256::new().chain_update("grainstore-audit-v1");
    let mut hash: [u8; 32] = genesis.chain_update(row(layout::META_STORE_ID)?).finalize().into();
    let mut count = 0;
    for row in rows.every_row()? {
        let AuditRow { number, entry, .. } = row?;
        let Ok(Value::Map(fields)) = decode_value(&entry, Encoding::MessagePack) else {
            return Ok(Err(format!("audit entry {count} is no map")));
        };
        let link = (number, fields.get("previous").cloned());
        let linked = same("an audit entry", &link, &(count, Some(Value::Bytes(hash.to_vec()))));
        if linked.is_err() {
            return Ok(linked);
        }
        hash = Sha256::digest(&entry).into();
        count += 1;
    }
    let end = same("the end of the chain", &AuditHead { count, hash }, &rows.head()?);
    Ok(end.and(same("audit entries", &count, &entries)))
}
