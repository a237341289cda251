//! Rate limit of refusals in the audit log: the first of its kind is written at once, equal ones of one actor
//! within a minute become one entry with a count, so that a caller cannot grow the log (ruling 57).
//!
//! Refusals are equal if actor, operation, grains, rules and their results, error codes and claimed key are; the reason is
//! not compared, because the refused caller chooses it. Of an actor with many different refusals in a minute,
//! the further ones are recorded by operation and rules alone: the first of them with the key it claimed, and
//! one count for all keys. The counts are in memory: a crash loses counts, but never a first refusal.
//!
//! A store that is opened knows the refusals of the minute before from its log, or commands that each open it
//! would grow the log. Of one whose count stands there already the store writes no second one when it is
//! closed: it carries the count on (`carried`) and records it when the minute is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grainstore_format::{Encoding, EpochMs, Map, Value, decode_value};

use super::carried::{CarriedCount, CarriedCounts};
use super::{AuditEntry, AuditHashChain, AuditRecord, kind_of};
use crate::base::error::Result;

/// Time within which equal refusals are merged.
const WINDOW_MS: i64 = 60_000;
/// Maximum number of different refusals of one actor in that time; further ones are merged by operation and
/// rules.
const MAX_KINDS_PER_ACTOR: usize = 64;
/// Maximum number of kinds in memory.
const MAX_KINDS: usize = 4096;
/// Entries of the log that are looked back at when a store is opened.
const MAX_LOOKED_BACK: usize = 4096;
/// Number of entries after which the time of one is looked at.
const TIME_CHECK_ENTRIES: usize = 64;
/// The decision of a refusal.
const REFUSED: &str = "refused";

/// Actor, and a text of the other fields that make refusals equal.
type RefusalKey = (Option<String>, String);

/// A refusal that was written, and the number of its repetitions.
#[derive(Debug, Clone)]
struct CountedRefusal {
    first_at: EpochMs,
    /// Number of equal refusals after the first.
    repeats: u64,
    record: AuditRecord,
    /// Whether the log has a count of this minute already, from before the store was opened.
    is_counted: bool,
}

/// Refusals of the last minute, by kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct RefusalLog {
    kinds: BTreeMap<RefusalKey, CountedRefusal>,
    earlier: Option<Arc<Earlier>>,
    /// Counts that earlier openings left.
    pub(crate) carried: CarriedCounts,
}

/// Refusals that were written within the minute before the store was opened.
struct Earlier {
    /// What tells whether a record is equal to one of them.
    chain: AuditHashChain,
    /// When the first of each kind was written, by whom, and whether a count was.
    kinds: BTreeMap<Vec<u8>, Written>,
    /// Those that name a key and no grain, by the kind they have without the key.
    wide: BTreeMap<Vec<u8>, Written>,
}

#[derive(Debug, Clone)]
struct Written {
    since: EpochMs,
    actor: String,
    is_counted: bool,
}

impl std::fmt::Debug for Earlier {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Earlier").field("kinds", &self.kinds.len()).finish_non_exhaustive()
    }
}

impl Earlier {
    /// The entry equal to a record that was written within the last minute.
    fn of(&self, record: &AuditRecord, now: EpochMs) -> Option<&Written> {
        let kind = self.chain.kind_of(record);
        let written = self.kinds.get(&kind).or_else(|| self.wide.get(&kind))?;
        is_recent(written.since, now).then_some(written)
    }

    /// How many of an actor were written within the last minute.
    fn count_of(&self, actor: Option<&str>, now: EpochMs) -> usize {
        let actor = self.chain.pseudonym(actor);
        let own = |one: &&Written| one.actor == actor && is_recent(one.since, now);
        self.kinds.values().filter(own).count()
    }
}

/// Whether a moment lies within the last minute. A clock that was set back ends it.
fn is_recent(since: EpochMs, now: EpochMs) -> bool {
    (0..WINDOW_MS).contains(&now.get().saturating_sub(since.get()))
}

impl RefusalLog {
    /// Nothing but what the log has of the last minute, given from its end, and the row of counts that were
    /// carried on. What cannot be read is for `verify` to tell.
    pub(crate) fn after(
        chain: AuditHashChain,
        entries: impl Iterator<Item = Result<Vec<u8>>>,
        carried: Option<&[u8]>,
        now: EpochMs,
    ) -> Self {
        let mut kinds: BTreeMap<Vec<u8>, Written> = BTreeMap::new();
        let mut wide: BTreeMap<Vec<u8>, Written> = BTreeMap::new();
        let mut counted = BTreeSet::new();
        let mut skipped: Option<Vec<u8>> = None;
        for (at, bytes) in entries.take(MAX_LOOKED_BACK).enumerate() {
            let Ok(bytes) = bytes else { break };
            // Most entries are no refusals: of these only some are decoded, to see where the minute begins.
            if at % TIME_CHECK_ENTRIES != 0 && !may_be_refused(&bytes) {
                skipped = Some(bytes);
                continue;
            }
            // One that was written right after a refusal tells of a clock that was set back since.
            let after = skipped.take().map(|bytes| AuditEntry::decode(&bytes));
            if after.is_some_and(|after| !after.is_ok_and(|entry| is_recent(entry.time, now))) {
                break;
            }
            let Ok(entry) = AuditEntry::decode(&bytes) else { break };
            let AuditEntry { time, actor, decision, count, kid, subjects, .. } = entry;
            if !is_recent(time, now) {
                break;
            }
            if decision != REFUSED {
                continue;
            }
            let Ok(Value::Map(fields)) = decode_value(&bytes, Encoding::MessagePack) else { break };
            let bare = bare_kind_of(fields.clone());
            let kind = kind_of(fields.clone());
            // What lies before the first of a kind is of another minute.
            if kinds.contains_key(&kind) {
                continue;
            }
            if count.is_some() {
                counted.insert(kind);
            } else {
                let is_counted = counted.contains(&bare);
                let written = Written { since: time, actor, is_counted };
                if kid.is_some() && subjects.is_empty() {
                    let kind = kind_without_key(fields);
                    let is_counted = counted.contains(&kind);
                    wide.entry(kind).or_insert(Written { is_counted, ..written.clone() });
                }
                kinds.insert(kind, written);
            }
        }
        let earlier = (!kinds.is_empty()).then(|| Arc::new(Earlier { chain, kinds, wide }));
        Self { kinds: BTreeMap::new(), earlier, carried: CarriedCounts::read(carried) }
    }

    /// Returns the records to write, in order; a refusal that was written within the last minute is counted
    /// instead.
    pub(crate) fn aggregate(
        &mut self,
        records: Vec<AuditRecord>,
        now: EpochMs,
    ) -> Vec<AuditRecord> {
        if !records.iter().any(|record| record.refused) {
            return records;
        }
        let mut written = self.take_expired(now);
        for record in records {
            written.extend(if record.refused { self.admit(record, now) } else { Some(record) });
        }
        written
    }

    /// Like [`RefusalLog::aggregate`], and returns for each input record the position in the output of it or
    /// of the record that follows it.
    pub(crate) fn aggregate_with_positions(
        &mut self,
        records: Vec<AuditRecord>,
        now: EpochMs,
    ) -> (Vec<AuditRecord>, Vec<usize>) {
        let (mut written, mut places) = (Vec::with_capacity(records.len()), Vec::new());
        for record in records {
            let told = self.aggregate(vec![record], now);
            // Expired counts come before the record.
            places.push(written.len() + told.len().saturating_sub(1));
            written.extend(told);
        }
        (written, places)
    }

    /// Removes and returns the counts whose minute is over.
    pub(crate) fn take_expired(&mut self, now: EpochMs) -> Vec<AuditRecord> {
        let over = self.kinds.extract_if(.., |_, folded| !is_recent(folded.first_at, now));
        over.filter_map(|(_, folded)| count_record(folded)).collect()
    }

    /// Removes all counts, and returns those to write. Where the log has one of the minute already, it is
    /// carried on.
    pub(crate) fn take_all(&mut self, chain: &AuditHashChain) -> Vec<AuditRecord> {
        let mut written = Vec::new();
        for folded in std::mem::take(&mut self.kinds).into_values() {
            let (since, more) = (folded.first_at, folded.repeats);
            match folded.is_counted && self.carried.len() < MAX_KINDS {
                true => self.carried.add(chain.kind_of(&folded.record), since, more),
                false => written.extend(count_record(folded)),
            }
        }
        written
    }

    /// Removes and returns the counts that were carried on and whose minute is over.
    pub(crate) fn over(&mut self, now: EpochMs) -> Vec<CarriedCount> {
        self.carried.over(|since| is_recent(since, now))
    }

    /// Returns `true` if no refusal is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.carried.len() == 0
    }

    /// Returns the record if none of its kind was written within the last minute, and counts it otherwise.
    fn admit(&mut self, record: AuditRecord, now: EpochMs) -> Option<AuditRecord> {
        let kind = refusal_key(&record);
        if self.is_folded(&kind, &record, now) {
            return None;
        }
        let own = self.kinds.keys().filter(|(actor, _)| *actor == record.actor).count();
        let earlier = self.earlier.as_deref();
        let before = earlier.map_or(0, |it| it.count_of(record.actor.as_deref(), now));
        if own.max(before) < MAX_KINDS_PER_ACTOR && self.kinds.len() < MAX_KINDS {
            let kept = AuditRecord { reason: None, call: None, ..record.clone() };
            self.start_window(kind, kept, now);
            return Some(record);
        }
        let wide = AuditRecord {
            subjects: Vec::new(),
            refused_by: None,
            reason: None,
            call: None,
            ..record
        };
        // The refused caller chooses the key, so it makes no kind.
        let kept = AuditRecord { claimed_kid: None, ..wide.clone() };
        let kind = (kept.actor.clone(), format!("more of {}", refusal_key(&kept).1));
        if self.is_folded(&kind, &kept, now) {
            return None;
        }
        self.start_window(kind, kept, now);
        Some(wide)
    }

    /// Counts a record where one of its kind was written within the last minute.
    fn is_folded(&mut self, kind: &RefusalKey, record: &AuditRecord, now: EpochMs) -> bool {
        if let Some(folded) = self.kinds.get_mut(kind) {
            folded.repeats = folded.repeats.saturating_add(1);
            return true;
        }
        let written = self.earlier.as_deref().and_then(|earlier| earlier.of(record, now));
        let Some(&Written { since, is_counted, .. }) = written else { return false };
        let record = AuditRecord { reason: None, call: None, ..record.clone() };
        self.kinds.insert(
            kind.clone(),
            CountedRefusal { first_at: since, repeats: 1, record, is_counted },
        );
        true
    }

    /// Begins the minute of a kind, whose count will be told by this record.
    fn start_window(&mut self, kind: RefusalKey, record: AuditRecord, now: EpochMs) {
        let folded = CountedRefusal { first_at: now, repeats: 0, record, is_counted: false };
        self.kinds.insert(kind, folded);
    }
}

/// Returns `false` for the bytes of an entry whose decision is another.
fn may_be_refused(entry: &[u8]) -> bool {
    entry.windows(REFUSED.len()).any(|bytes| bytes == REFUSED.as_bytes())
}

/// The kind that an entry would have if it named no key.
fn kind_without_key(mut entry: Map) -> Vec<u8> {
    entry.remove("kid");
    kind_of(entry)
}

/// The kind that the entry of a count has, which tells of no call.
fn bare_kind_of(mut entry: Map) -> Vec<u8> {
    entry.remove("call");
    kind_of(entry)
}

fn count_record(
    CountedRefusal { repeats: more, record, .. }: CountedRefusal,
) -> Option<AuditRecord> {
    // It tells of many calls, so of no one's latency.
    (more > 0).then_some(AuditRecord { count: Some(more), began: None, ..record })
}

fn refusal_key(record: &AuditRecord) -> RefusalKey {
    let AuditRecord {
        actor,
        operation,
        subjects,
        refused_by,
        rules,
        results,
        code,
        claimed_kid: claimed,
        call,
        ..
    } = record;
    let call = call.as_ref().and_then(|call| call.code());
    let how = format!("{rules:?} {results:?} {code:?} {call:?}");
    let rest = format!("{operation:?} {subjects:?} {refused_by:?} {claimed:?} {how}");
    (actor.clone(), rest)
}

#[cfg(test)]
mod tests {
    use grainstore_format::ContentAddress;

    use super::*;
    use crate::state::audit::AuditOperation;

    fn refusal(actor: &str, subject: u8) -> AuditRecord {
        let subjects = vec![ContentAddress::from_bytes([subject; 32])];
        let actor = Some(actor.to_owned());
        AuditRecord { actor, refused: true, ..AuditRecord::new(AuditOperation::Put, subjects) }
    }

    fn chain() -> AuditHashChain {
        AuditHashChain::genesis(&[1; 16], [2; 32])
    }

    fn counts(records: &[AuditRecord]) -> Vec<Option<u64>> {
        records.iter().map(|record| record.count).collect()
    }

    #[test]
    fn equal_ones_of_a_minute_are_one_entry_and_a_count() {
        let (mut refusals, at) = (RefusalLog::default(), EpochMs::new);
        assert_eq!(counts(&refusals.aggregate(vec![refusal("a", 1)], at(0))), [None]);
        for second in 1..60 {
            assert!(refusals.aggregate(vec![refusal("a", 1)], at(second * 1000)).is_empty());
        }
        assert_eq!(
            counts(&refusals.aggregate(vec![refusal("b", 1)], at(59_000))),
            [None],
            "another"
        );
        assert_eq!(
            counts(&refusals.aggregate(vec![refusal("a", 2)], at(59_000))),
            [None],
            "another"
        );
        // The count of the first minute, and the first refusal of the next.
        let next = refusals.aggregate(vec![refusal("a", 1)], at(60_000));
        assert_eq!(counts(&next), [Some(59), None]);
        assert!(refusals.take_all(&chain()).is_empty(), "nothing was folded since");
        assert!(refusals.is_empty());
    }

    #[test]
    fn what_is_done_is_written_in_its_order_and_never_folded() {
        let mut refusals = RefusalLog::default();
        let done = AuditRecord::new(AuditOperation::Put, Vec::new());
        let all = vec![done.clone(), refusal("a", 1), done.clone(), refusal("a", 1), done];
        let written = refusals.aggregate(all, EpochMs::new(5));
        assert_eq!(
            written.iter().map(|one| one.refused).collect::<Vec<_>>(),
            [false, true, false, false]
        );
        assert_eq!(counts(&refusals.take_all(&chain())), [Some(1)]);
    }

    #[test]
    fn what_is_folded_tells_where_each_record_stands() {
        let mut refusals = RefusalLog::default();
        drop(refusals.aggregate(vec![refusal("a", 1), refusal("a", 1)], EpochMs::new(0)));
        let done = AuditRecord::new(AuditOperation::Put, Vec::new());
        let all = vec![done.clone(), refusal("b", 1), refusal("b", 1), done.clone(), done];
        let (written, places) = refusals.aggregate_with_positions(all, EpochMs::new(5));
        assert_eq!(
            written.iter().map(|one| one.refused).collect::<Vec<_>>(),
            [false, true, false, false]
        );
        assert_eq!([places[0], places[1], places[3], places[4]], [0, 1, 2, 3]);
        // Expired counts come before the refusal that triggers them.
        let all = vec![AuditRecord::new(AuditOperation::Put, Vec::new()), refusal("a", 1)];
        let (written, places) = refusals.aggregate_with_positions(all, EpochMs::new(70_000));
        assert_eq!(counts(&written), [None, Some(1), Some(1), None]);
        assert_eq!(places, [0, 3]);
    }

    #[test]
    fn an_actor_with_many_different_ones_cannot_grow_the_log() {
        let mut refusals = RefusalLog::default();
        let mut written = 0;
        for round in 0..100 {
            for subject in 0..=255 {
                let mut one = refusal("a", subject);
                one.claimed_kid = Some(format!("did:web:{round}"));
                written += refusals.aggregate(vec![one], EpochMs::new(1000)).len();
            }
        }
        assert_eq!(written, MAX_KINDS_PER_ACTOR + 1);
        let more: u64 = refusals.take_all(&chain()).iter().filter_map(|record| record.count).sum();
        assert_eq!(more, 25_600 - 65);
    }

    #[test]
    fn the_first_beyond_the_most_names_its_key_and_the_count_of_the_others_names_none() {
        let claiming = |key: usize| {
            let mut one = refusal("a", 1);
            one.claimed_kid = Some(format!("did:web:{key}"));
            one
        };
        let (mut refusals, mut log, mut written) = (RefusalLog::default(), chain(), Vec::new());
        for key in 0..MAX_KINDS_PER_ACTOR + 10 {
            for one in refusals.aggregate(vec![claiming(key)], EpochMs::new(1000)) {
                written.push((one.claimed_kid.clone(), log.append(&one, EpochMs::new(1000)).1));
            }
        }
        let last = written.last().and_then(|(claimed, _)| claimed.clone());
        assert_eq!(
            (written.len(), last),
            (MAX_KINDS_PER_ACTOR + 1, Some(format!("did:web:{MAX_KINDS_PER_ACTOR}")))
        );
        let counts = refusals.take_all(&chain());
        let told: Vec<_> = counts.iter().map(|one| (one.count, one.claimed_kid.clone())).collect();
        assert_eq!(told, [(Some(9), None)]);
        // A store that is opened again knows it, whatever key is claimed.
        let entries = written.into_iter().rev().map(|(_, bytes)| Ok(bytes));
        let mut again = RefusalLog::after(chain(), entries, None, EpochMs::new(2000));
        assert!(again.aggregate(vec![claiming(1_000_000)], EpochMs::new(2000)).is_empty());
    }

    #[test]
    fn a_clock_that_was_set_back_ends_the_minute() {
        let mut refusals = RefusalLog::default();
        for _ in 0..2 {
            drop(refusals.aggregate(vec![refusal("a", 1)], EpochMs::new(90_000)));
        }
        assert_eq!(counts(&refusals.take_expired(EpochMs::new(10))), [Some(1)]);
    }
}
