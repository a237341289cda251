//! Verifies that the derived index agrees with the log.
//!
//! A full verification builds a second index from the log and compares them row by row, which finds missing
//! rows and extra ones. Otherwise every grain must be once in the list of all grains and once among the
//! addresses, and a sample of them in the lists of their values.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use grainstore_format::{ContentAddress, GrainRef, ValueRef};
use grainstore_index::{
    self as index, Field, IndexLookup, IndexedFields, Object, Posting, Scope, Sequence, TableRow,
    Tables, TermValue, TimeOrder, TimeRange, object_hash,
};

use super::problems::{ProblemCollector, ProblemKind, ProblemLocation, increment};
use super::sequence_set::SequenceSet;
use super::{VERIFY_CACHE_BYTES, VerifyContext};
use crate::base::error::Result;
use crate::disk::blob::with_fields;
use crate::disk::database::{DatabaseHandle, DatabaseOptions};
use crate::disk::vault::{Vault, user_of};
use crate::operate::maintain::reindex::{rebuild, rebuild_readable};
use crate::operate::maintain::scratch::ScratchFile;
use crate::state::fold_worker::FoldWorker;
use crate::state::truth::Truth;
use crate::state::view::View;

const INDEX: &str = "index";
const ADDRESSES: &str = "index addresses";
/// Most values of a list that are looked up for a grain of the sample.
const MAX_SAMPLED_VALUES: usize = 16;

/// A second index of the same truth. The fields are dropped in this order: readers, thread, file.
pub(super) struct RebuiltIndex {
    pub(super) view: View,
    _folder: FoldWorker,
    _scratch: ScratchFile,
}

impl RebuiltIndex {
    /// Builds it, beside the store's files or in memory.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the log is damaged; `ERR_IO`.
    pub(super) fn build(view: &View, directory: Option<&Path>) -> Result<Self> {
        let (mut folder, scratch) = empty_index(directory, view.vault())?;
        let indexed = rebuild(view.truth(), &mut folder)?;
        Ok(Self { view: view.with_index(indexed), _folder: folder, _scratch: scratch })
    }

    /// Builds one from what can be read of the truth.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there is no log; `ERR_IO`.
    pub(super) fn build_from_readable(truth: Truth, directory: Option<&Path>) -> Result<Self> {
        let (mut folder, scratch) = empty_index(directory, truth.vault())?;
        let indexed = rebuild_readable(&truth, &mut folder)?;
        Ok(Self { view: View::new(Arc::new(truth), indexed), _folder: folder, _scratch: scratch })
    }

    /// Compares the index of the store, with everything folded, with this one.
    pub(super) fn compare(&self, view: &View, findings: &mut ProblemCollector) -> Result<()> {
        let (has, wanted) = (&view.indexed().tables, &self.view.indexed().tables);
        findings.run_part(ProblemKind::IndexWrong, ProblemLocation::All(INDEX), |findings| {
            if has.counters()? != wanted.counters()? || has.watermark()? != wanted.watermark()? {
                let detail = "its counters differ from those the log gives";
                findings.add(ProblemKind::IndexWrong, ProblemLocation::All(INDEX), detail);
            }
            for name in Tables::names() {
                let place = ProblemLocation::All(name);
                findings.run_part(ProblemKind::IndexWrong, place, |findings| {
                    compare_lists(name, has.rows(name)?, wanted.rows(name)?, findings)
                })?;
            }
            Ok(())
        })
    }
}

/// Starts a fold worker on an empty database, beside the store's files or in memory.
fn empty_index(directory: Option<&Path>, vault: &Vault) -> Result<(FoldWorker, ScratchFile)> {
    let scratch = ScratchFile::within(directory);
    let db = scratch.database(&DatabaseOptions::new(VERIFY_CACHE_BYTES))?;
    let db = DatabaseHandle::in_memory(db).with_vault(vault.clone());
    Ok((FoldWorker::start(db, false)?, scratch))
}

/// Compares the rows of a list, in order.
fn compare_lists(
    name: &str,
    mut has: impl Iterator<Item = index::Result<TableRow>>,
    mut wanted: impl Iterator<Item = index::Result<TableRow>>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let mut next = (has.next().transpose()?, wanted.next().transpose()?);
    loop {
        let order = match &next {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(has), Some(wanted)) => has.0.cmp(&wanted.0),
        };
        let mut add = |kind, row: &Option<TableRow>, detail| {
            let key = row.as_ref().map_or(&[][..], |row| &row.0);
            findings.add(kind, ProblemLocation::Key(name, key), detail);
        };
        match order {
            Ordering::Less => {
                add(ProblemKind::IndexExtra, &next.0, "the log gives no such row");
            }
            Ordering::Greater => {
                let detail = "the log gives this row, and it is not there";
                add(ProblemKind::IndexMissing, &next.1, detail);
            }
            Ordering::Equal if next.0 != next.1 => {
                add(ProblemKind::IndexWrong, &next.0, "the log gives this row another value");
            }
            Ordering::Equal => {}
        }
        if order.is_le() {
            increment(&mut findings.checked.index_rows);
            next.0 = has.next().transpose()?;
        }
        if order.is_ge() {
            next.1 = wanted.next().transpose()?;
        }
    }
}

/// Reads every block of the index, each with its tag in an encrypted store.
pub(super) fn check_blocks(view: &View, findings: &mut ProblemCollector) -> Result<()> {
    findings.run_part(ProblemKind::IndexWrong, ProblemLocation::All(INDEX), |_| {
        Ok(view.indexed().tables.check_blocks()?)
    })
}

/// Checks the index without building another, for a log of `places` entries.
pub(super) fn check_sample(
    check: &VerifyContext<'_>,
    places: u64,
    findings: &mut ProblemCollector,
) -> Result<()> {
    findings.run_part(ProblemKind::IndexWrong, ProblemLocation::All(INDEX), |findings| {
        let folded = check.view.tail().watermark().map_or(0, |mark| mark.sequence.get());
        if folded != check.view.last_sequence()?.get() {
            let detail = format!("it goes to place {folded} of the log");
            findings.add(ProblemKind::IndexWrong, ProblemLocation::All(INDEX), detail);
        }
        let (scope, times) = (Scope::All, TimeRange::default());
        let all = check.view.index().scan(&scope, &IndexLookup::All, times, TimeOrder::Oldest)?;
        let all = all.map(|posting| Ok(posting?.sequence));
        check_each_once(check, "index.all", all, places, findings)
    })?;
    findings.run_part(ProblemKind::IndexWrong, ProblemLocation::All(ADDRESSES), |findings| {
        let addresses = check.view.index().addresses_from([0; 32])?;
        check_each_once(check, ADDRESSES, addresses.map(|entry| Ok(entry?.1)), places, findings)
    })?;
    findings.run_part(ProblemKind::IndexMissing, ProblemLocation::All(INDEX), |findings| {
        for place in (1..=places).filter(|place| check.takes(*place)) {
            let place = Sequence::new(place);
            // An unreadable entry was reported by the check of the log.
            let Some(blob) = check.readable(place)? else { continue };
            check_lookups(check, place, &blob, findings)?;
        }
        Ok(())
    })
}

/// Checks that the sequences are those of all log entries, each once.
fn check_each_once(
    check: &VerifyContext<'_>,
    name: &str,
    found: impl Iterator<Item = Result<Sequence>>,
    places: u64,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let mut seen = SequenceSet::with_length(places);
    for place in found {
        let place = place?;
        if seen.add(place) {
            increment(&mut findings.checked.index_rows);
        } else {
            let detail = "it is there a second time, or the log has no such place";
            findings.add(ProblemKind::IndexExtra, ProblemLocation::Row(name, place.get()), detail);
        }
    }
    for place in seen.missing() {
        // An erased grain stays only among the addresses, once it is scrubbed.
        if name != ADDRESSES && check.is_erased(place)? {
            continue;
        }
        let detail = "this place of the log is not there";
        findings.add(ProblemKind::IndexMissing, ProblemLocation::Row(name, place.get()), detail);
    }
    Ok(())
}

/// Checks that a grain is found by its address and by its fields.
fn check_lookups(
    check: &VerifyContext<'_>,
    place: Sequence,
    blob: &[u8],
    findings: &mut ProblemCollector,
) -> Result<()> {
    let address = ContentAddress::of(blob);
    if check.view.logged_sequence_of(&address)? != Some(place) {
        let detail = format!("its address {address} does not lead to it");
        findings.add(ProblemKind::IndexWrong, ProblemLocation::Row("log", place.get()), detail);
    }
    with_fields(blob, |grain| {
        let facts = IndexedFields::from_grain(grain);
        let scope = Scope::Exact(facts.namespace);
        for shape in sample_lookups(grain) {
            let is_found = check.view.with_user_index(user_of(grain), |index| {
                let mut scan =
                    index.scan(&scope, &shape, TimeRange::default(), TimeOrder::Newest)?;
                let (time, tie) = (facts.time, check.view.vault().tie_breaker(&address));
                scan.seek(Posting { time, tie, sequence: place })?;
                Ok(scan.next().transpose()?.is_some_and(|found| found.sequence == place))
            })?;
            if is_found {
                increment(&mut findings.checked.index_rows);
            } else {
                let detail = format!("it is not found by {}", shape.index_name());
                findings.add(
                    ProblemKind::IndexMissing,
                    ProblemLocation::Row("log", place.get()),
                    detail,
                );
            }
        }
        Ok(())
    })
}

/// Returns lookups that must find a grain: by its type, by every part of its triple, and by values.
fn sample_lookups<'a>(grain: &GrainRef<'a>) -> Vec<IndexLookup<'a>> {
    let mut shapes = vec![IndexLookup::Type(grain.grain_type())];
    let subject = grain.text("subject").map(TermValue::Plain);
    let relation = grain.text("relation").map(TermValue::Plain);
    let object = match grain.get("object") {
        Some(ValueRef::Str(text)) => Some(Object::Text(TermValue::Plain(text))),
        Some(map @ ValueRef::Map(_)) => Some(Object::Map(object_hash(&map.to_value()))),
        _ => None,
    };
    for subject in with_and_without(subject) {
        for relation in with_and_without(relation) {
            for object in with_and_without(object) {
                shapes.push(IndexLookup::Triple { subject, relation, object });
            }
        }
    }
    let texts = [("user_id", Field::User), ("session_id", Field::Session)];
    for (name, field) in texts {
        shapes
            .extend(grain.text(name).map(|text| IndexLookup::Value(field, TermValue::Plain(text))));
    }
    let tags = grain.get("structural_tags").and_then(|tags| tags.as_array());
    let tags = tags.into_iter().flat_map(|tags| tags.iter()).filter_map(|tag| tag.as_str());
    let tags = tags.map(|tag| IndexLookup::Value(Field::Tag, TermValue::Plain(tag)));
    shapes.extend(tags.take(MAX_SAMPLED_VALUES));
    shapes
}

/// Iterates over `None`, and the part of a triple if there is one.
fn with_and_without<T>(part: Option<T>) -> impl Iterator<Item = Option<T>> {
    std::iter::once(None).chain(part.map(Some))
}
