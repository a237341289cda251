//! The records of an archive, a line at a time.

use std::collections::{BTreeSet, HashSet};

use serde_json::json;

use super::links::Link;
use super::{Survey, is_whole};
use crate::alf::bundle::{Bundle, Kind, Partition};
use crate::alf::issue::{Issues, Place, Severity};
use crate::alf::native::carries_consent;
use crate::alf::record::{key_of, uuid_text};
use crate::alf::schema;
use crate::error::{Error, Result};
use crate::json::{Line, Lines, Value};
use crate::kept::milliseconds;
use crate::monitor::Monitor;

/// Lines between two reports of the progress.
const STEP: u64 = 1_000;

/// Lines of an archive that cannot be read, at most.
const MAX_BAD_LINES: usize = 100_000;

/// The check of one line.
#[derive(Debug)]
pub(in super::super) struct LineCheck<'b> {
    bundle: &'b Bundle,
    lenient: bool,
}

impl<'b> LineCheck<'b> {
    pub(in super::super) fn new(bundle: &'b Bundle, lenient: bool) -> Self {
        Self { bundle, lenient }
    }

    /// Checks a line, and reports what is wrong. Returns the value, if it can be taken.
    pub(in super::super) fn check(
        &self,
        line: Line,
        at: &Place<'_>,
        issues: &mut Issues,
    ) -> Result<Value> {
        let value = line.value.inspect_err(|error| {
            issues.add(Severity::Error, at, error.to_string());
        })?;
        let filled = self.lenient.then(|| filled(&value, self.bundle));
        let checked = filled.as_ref().unwrap_or(&value);
        let before = issues.fatal;
        if self.bundle.kind == Kind::Delta {
            check_operation(&value, at, issues);
        }
        schema::check(&schema::RECORD, checked, at, issues);
        check_embeddings(checked, at, issues);
        if issues.fatal == before {
            return Ok(value);
        }
        let told = issues.errors.listed.last().map(|issue| issue.message.clone());
        Err(Error::schema(told.unwrap_or_else(|| "it is no memory record".to_owned())))
    }
}

/// A line of a delta says what it does. What is not known is passed over.
fn check_operation(line: &Value, at: &Place<'_>, issues: &mut Issues) {
    let (severity, message) = match line.get("operation").and_then(Value::as_str) {
        Some("create" | "update" | "delete") => return,
        Some(_) => (Severity::Warning, "this operation is not known: the line is passed over"),
        None => (Severity::Error, "it is missing"),
    };
    issues.add(severity, &at.member("operation"), message);
}

/// The dimensions of an embedding are those of its vector.
fn check_embeddings(record: &Value, at: &Place<'_>, issues: &mut Issues) {
    let embeddings = record.get("embeddings").and_then(Value::as_array).into_iter().flatten();
    for (number, embedding) in embeddings.enumerate() {
        let said = embedding.get("dimensions").and_then(Value::as_f64);
        let found = embedding.get("vector").and_then(Value::as_array).map(Vec::len);
        #[expect(clippy::cast_precision_loss, reason = "a line has fewer numbers than that")]
        let found = found.map(|found| found as f64);
        if said.is_some() && found.is_some() && said != found {
            let at = at.member("embeddings");
            let message = "the vector has another number of dimensions";
            issues.add(Severity::Error, &at.item(number), message);
        }
    }
}

/// Returns a record with defaults for what it lacks.
pub(in super::super) fn filled(record: &Value, bundle: &Bundle) -> Value {
    let mut record = record.clone();
    let Some(members) = record.as_object_mut() else { return record };
    let runtime = match bundle.agent("source_runtime") {
        "" => "unknown",
        runtime => runtime,
    };
    let created_at = bundle.manifest.get("created_at").and_then(Value::as_str);
    let created_at = created_at.filter(|text| milliseconds(text).is_some());
    let created_at = json!(created_at.unwrap_or("1970-01-01T00:00:00Z"));
    for (name, default) in [
        ("agent_id", json!(bundle.agent_id())),
        ("content", json!("")),
        ("memory_type", json!("semantic")),
        ("source", json!({})),
        ("temporal", json!({})),
        ("status", json!("active")),
        ("namespace", json!("default")),
    ] {
        members.entry(name).or_insert(default);
    }
    for (name, member, default) in
        [("source", "runtime", json!(runtime)), ("temporal", "created_at", created_at)]
    {
        if let Some(Value::Object(inner)) = members.get_mut(name) {
            inner.entry(member).or_insert(default);
        }
    }
    record
}

impl Survey {
    /// Reads the records of all partitions.
    pub(super) fn check_lines(
        &mut self,
        bundle: &Bundle,
        lenient: bool,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        let check = LineCheck::new(bundle, lenient);
        let mut last_end: Option<&str> = None;
        let mut files = HashSet::new();
        for (place, partition) in bundle.partitions.iter().enumerate() {
            let at = Place::entry(&partition.file);
            if !files.insert(partition.file.as_str()) {
                let error = Error::schema("the manifest names it twice");
                return Err(error.in_entry(&partition.file));
            }
            self.check_span(bundle.kind, partition, last_end, &at);
            last_end = partition.to.as_deref().or(partition.from.as_deref());
            let lines = match bundle.archive.entry(&partition.file) {
                Some(_) if !self.hashes.contains_key(&partition.file) => 0,
                Some(entry) => {
                    let lines = bundle.lines(entry)?;
                    self.read_lines(&check, (place, partition), lines, monitor)?
                }
                None => {
                    let error = Error::integrity("the manifest names it, and it is not there");
                    self.refuse(error, &at);
                    0
                }
            };
            self.lines.push(lines);
            if lines != partition.record_count {
                let message = format!(
                    "the manifest counts {} records and there are {lines}",
                    partition.record_count
                );
                self.refuse(Error::integrity(message), &at);
            }
        }
        let counted = bundle.partitions.iter().map(|partition| partition.record_count);
        let counted = counted.fold(0, u64::saturating_add);
        let said = bundle.manifest.get("layers").and_then(|layers| layers.get("memory"));
        let said = said.and_then(|memory| memory.get("record_count")).and_then(Value::as_u64);
        if said.is_some_and(|said| said != counted) {
            let at = Place::entry(bundle.manifest_entry);
            let error = Error::integrity("record_count is not the sum of the partitions");
            self.refuse(error, &at.member("layers"));
        }
        self.sort_ids();
        Ok(())
    }

    /// Checks what the manifest says of the time of a partition.
    fn check_span(
        &mut self,
        kind: Kind,
        partition: &Partition,
        last_end: Option<&str>,
        at: &Place<'_>,
    ) {
        if !is_whole(kind) {
            return;
        }
        if partition.sealed && partition.to.is_none() {
            self.issues.add(Severity::Tolerable, at, "it is sealed and has no last day");
        }
        let from = partition.from.as_deref().unwrap_or_default();
        if last_end.is_some_and(|end| from <= end) {
            self.issues.add(Severity::Tolerable, at, "it is not after the partition before it");
        }
    }

    fn read_lines(
        &mut self,
        check: &LineCheck<'_>,
        (place, partition): (usize, &Partition),
        lines: Lines<impl std::io::Read>,
        monitor: &Monitor<'_>,
    ) -> Result<u64> {
        let entry = Place::entry(&partition.file);
        let mut count = 0;
        for line in lines {
            let line = line?;
            count += 1;
            if count % STEP == 0 {
                monitor.step(count, partition.record_count)?;
            }
            let number = line.number;
            let at = entry.line(number);
            match check.check(line, &at, &mut self.issues) {
                Ok(value) => self.note_record(check.bundle, (place, partition), &value, &at),
                Err(error) => {
                    self.bad_lines.insert((place, number));
                    if self.bad_lines.len() > MAX_BAD_LINES {
                        let message = format!("more than {MAX_BAD_LINES} lines cannot be read");
                        return Err(Error::limit(message).in_entry(&partition.file));
                    }
                    self.first_bad_line.get_or_insert_with(|| error.in_entry(&at.to_string()));
                }
            }
        }
        Ok(count)
    }

    /// Notes the id of a record, and what it points at.
    fn note_record(
        &mut self,
        bundle: &Bundle,
        (place, partition): (usize, &Partition),
        value: &Value,
        at: &Place<'_>,
    ) {
        let agent_id = value.get("agent_id").and_then(Value::as_str).unwrap_or_default();
        if !agent_id.is_empty() && !agent_id.eq_ignore_ascii_case(bundle.agent_id()) {
            self.warn(at, "it is a record of another agent than the manifest names");
        }
        let related = value.get("related_records").and_then(Value::as_array);
        let related = related.into_iter().flatten().filter_map(|link| link.get("id"));
        let links = related.map(|id| (id, "related_records"));
        let links = links.chain(value.get("supersedes").map(|id| (id, "supersedes")));
        let line = (place, at.number());
        self.links.extend(links.filter_map(|(id, name)| Link::of_line(id, line, name)));
        if carries_consent(value) {
            self.consents.insert(line);
        }
        let Some((number, created_ms)) = key_of(value) else { return };
        self.ids.push(number);
        let day = crate::kept::date_text(grainstore::EpochMs::new(created_ms));
        let day = day.as_deref().and_then(|text| text.get(..10)).unwrap_or_default();
        let is_before = partition.from.as_deref().is_some_and(|from| day < from);
        if is_before || partition.to.as_deref().is_some_and(|to| day > to) {
            self.warn(at, "it was created outside the time of its partition");
        }
    }

    fn sort_ids(&mut self) {
        self.ids.sort_unstable();
        let mut twice = BTreeSet::new();
        for pair in self.ids.windows(2) {
            if let [one, other] = pair
                && one == other
            {
                twice.insert(*one);
            }
        }
        for id in &twice {
            let id = uuid_text(*id);
            self.warn(&Place::entry("memory"), format!("two records have the id {id}"));
        }
        self.twice = twice;
    }
}
