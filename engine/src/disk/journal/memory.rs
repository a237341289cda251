//! A journal in memory: for tests, and to see what a journal must do.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Head, Journal, KeyringSlot, Lead, Record, ShardId, ShardStatus, fenced, led_by};
use crate::base::error::Result;

/// A journal in memory, shared by the nodes of one process. It is gone with the process.
///
/// ```
/// use grainstore::journal::{Journal, MemoryJournal, ShardId};
/// use std::time::Duration;
///
/// let journal = MemoryJournal::default();
/// let lead = journal.lead(ShardId(1), "a", Duration::from_secs(10))?;
/// assert_eq!(lead.epoch, 1);
/// let second = journal.lead(ShardId(1), "b", Duration::from_secs(10));
/// assert!(second.is_err_and(|error| error.code() == "ERR_BUSY"));
/// # Ok::<(), grainstore::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryJournal(Mutex<BTreeMap<ShardId, Shard>>);

/// The records of a shard, and who leads it.
#[derive(Debug, Default)]
struct Shard {
    records: Vec<Record>,
    keyring: BTreeMap<u32, KeyringSlot>,
    epoch: u64,
    leader: Option<String>,
    until: Option<Instant>,
}

impl Shard {
    fn head(&self) -> Head {
        self.records.last().map_or(Head::EMPTY, Record::head)
    }

    fn lease(&self) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    fn status(&self) -> ShardStatus {
        ShardStatus::new(self.head(), self.epoch, self.leader.clone(), self.lease())
    }

    fn keep(&mut self, lead: &Lead) -> Result<()> {
        if self.epoch != lead.epoch {
            return Err(fenced(format!("lead {} ended: {} began", lead.epoch, self.epoch)));
        }
        self.until = Instant::now().checked_add(lead.ttl);
        Ok(())
    }
}

impl MemoryJournal {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ShardId, Shard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for MemoryJournal {
    fn lead(&self, shard: ShardId, node: &str, ttl: Duration) -> Result<Lead> {
        let mut shards = self.lock();
        let of = shards.entry(shard).or_default();
        if let Some(leader) = of.leader.as_deref().filter(|leader| *leader != node)
            && !of.status().may_be_taken(ttl)
        {
            return Err(led_by(leader));
        }
        of.epoch = of.epoch.saturating_add(1);
        of.leader = Some(node.to_owned());
        of.until = Instant::now().checked_add(ttl);
        Ok(Lead::new((shard, of.epoch), node, ttl, of.head()))
    }

    fn renew(&self, lead: &Lead) -> Result<Head> {
        let mut shards = self.lock();
        let of = shards.entry(lead.shard).or_default();
        of.keep(lead)?;
        Ok(of.head())
    }

    fn release(&self, lead: &Lead) -> Result<()> {
        let mut shards = self.lock();
        let of = shards.entry(lead.shard).or_default();
        if of.epoch == lead.epoch {
            (of.leader, of.until) = (None, None);
        }
        Ok(())
    }

    fn append(&self, lead: &Lead, after: &Head, record: &Record) -> Result<Head> {
        let mut shards = self.lock();
        let of = shards.entry(lead.shard).or_default();
        let head = of.head();
        if head != *after || !record.follows(after) {
            return Err(fenced(format!("the journal ends with commit {}", head.commit)));
        }
        of.keep(lead)?;
        of.records.push(record.clone().with_slots(Vec::new()));
        of.keyring.extend(record.slots().iter().map(|slot| (slot.number, slot.clone())));
        Ok(of.head())
    }

    fn read(&self, shard: ShardId, after: u64, bytes: usize) -> Result<Vec<Record>> {
        let mut shards = self.lock();
        let of = shards.entry(shard).or_default();
        let first = usize::try_from(after).unwrap_or(usize::MAX);
        let mut left = bytes;
        let within = of.records.iter().skip(first).enumerate().take_while(|(place, record)| {
            let length = record.as_bytes().len();
            let fits = *place == 0 || length <= left;
            left = left.saturating_sub(length);
            fits
        });
        Ok(within.map(|(_, record)| record.clone()).collect())
    }

    fn keyring(&self, shard: ShardId, slots: Range<u32>) -> Result<(Head, Vec<KeyringSlot>)> {
        let mut shards = self.lock();
        let of = shards.entry(shard).or_default();
        let there = of.keyring.range(slots.start..slots.end.max(slots.start));
        Ok((of.head(), there.map(|(_, slot)| slot.clone()).collect()))
    }

    fn status(&self, shard: ShardId) -> Result<ShardStatus> {
        Ok(self.lock().entry(shard).or_default().status())
    }
}
