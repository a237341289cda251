//! What a statement means, written from CAL section 5 over decoded grains: stages one after the other over
//! everything that matches, joins over whole answers. Knows no plan.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use grainstore::ContentAddress;
use grainstore::cal::Order;
use grainstore::format::Value;

use crate::query::naive::{self, Item};
use crate::query::question::{Condition, Question};
use crate::query::statements::{End, Recall, SetOperator, Stage, Statement, Within};

/// LIMIT where a statement names none, and in a thread.
const DEFAULT_LIMIT: usize = 20;
const THREAD_LIMIT: usize = 1000;
/// Values and groups that are shown.
const SHOWN: usize = 1000;

/// What a statement comes to.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Grains in order; how many match, where that is told.
    Grains(Vec<ContentAddress>, Option<u64>),
    Count(u64),
    /// As JSON.
    Values(Vec<String>),
    Groups(Vec<(String, u64)>),
    Exists(bool),
    Batch(Vec<Outcome>),
    /// How many grains each source of an assembly has for itself.
    Sources(Vec<u64>),
}

/// Grains of a store as a session in a namespace is answered from.
pub(crate) struct Asked<'i> {
    pub(crate) items: &'i [Item],
    pub(crate) namespace: Option<&'i str>,
}

impl<'i> Asked<'i> {
    /// What a statement comes to; nothing where the rules leave it open.
    pub(crate) fn outcome(&self, statement: &Statement) -> Option<Outcome> {
        Some(match statement {
            Statement::Recall(recall) | Statement::Let(_, recall) => self.recalled(recall)?,
            Statement::Set(..) => {
                let joined = self.joined(statement)?;
                let total = joined.len() as u64;
                Outcome::Grains(addresses(&joined), Some(total))
            }
            Statement::Coalesce(branches) => {
                let mut last = None;
                for branch in branches {
                    let found = !self.kept(branch)?.is_empty();
                    last = Some(self.recalled(branch)?);
                    if found {
                        break;
                    }
                }
                last?
            }
            Statement::Exists(address) => {
                Outcome::Exists(self.all().iter().any(|item| item.address == *address))
            }
            Statement::Batch(entries) => Outcome::Batch(
                entries.iter().map(|entry| self.outcome(entry)).collect::<Option<_>>()?,
            ),
            Statement::Assemble(sources) => {
                let mut seen = BTreeSet::new();
                let mut counts = Vec::new();
                for source in sources {
                    let mut own = self.kept(source)?;
                    own.retain(|item| seen.insert(item.address));
                    counts.push(own.len() as u64);
                }
                Outcome::Sources(counts)
            }
        })
    }

    /// Everything of the ten types that a session sees, whatever its state.
    fn all(&self) -> Vec<&'i Item> {
        let everything =
            Question { seeing: grainstore::cal::Visibility::EVERYTHING, ..Question::default() };
        naive::answer(self.known(), self.namespace, &everything)
    }

    /// What CAL knows of: the ten types.
    fn known(&self) -> impl Iterator<Item = &'i Item> + use<'i> {
        self.items.iter().filter(|item| item.grain.grain_type().is_standard())
    }

    /// What matches, in the order of the memory.
    fn matches(&self, recall: &Recall) -> Option<Vec<&'i Item>> {
        let mut question = Question { order: Order::Newest, ..recall.question.clone() };
        if recall.thread.is_some() {
            question.order = Order::Oldest;
        }
        let mut found = naive::answer(self.known(), self.namespace, &question);
        if let Some(session) = recall.thread {
            found.retain(|item| {
                item.grain.grain_type().name() == "event"
                    && item.grain.text("session_id") == Some(session)
            });
        }
        if let Some(Within { field, recall: inner, .. }) = &recall.within {
            let Outcome::Values(values) = self.recalled(inner)? else { return None };
            let is_meant = |item: &&Item| {
                let text = item.grain.text(field);
                text.is_some_and(|text| values.contains(&json(&text.into())))
            };
            found.retain(is_meant);
        }
        if let Some(subject) = &recall.about {
            let condition = Condition::TextIs("subject", subject.clone());
            found.retain(|item| condition.holds(item));
            // Else its words are searched for, which is another matter.
            let offsets = recall.stages.iter().any(|stage| matches!(stage, Stage::Offset(_)));
            if found.is_empty() || offsets {
                return None;
            }
        }
        Some(found)
    }

    /// What the stages keep of it.
    fn kept(&self, recall: &Recall) -> Option<Vec<&'i Item>> {
        let mut found = self.matches(recall)?;
        let mut stages = recall.stages.clone();
        if let Some(recent) = recall.recent {
            let newest = Stage::Order { field: "time", descending: true };
            stages.splice(0..0, [newest, Stage::Limit(recent)]);
        }
        let limited = stages.iter().any(|stage| matches!(stage, Stage::Limit(_)));
        if recall.end == End::Grains && !limited {
            let threaded = recall.thread.is_some();
            stages.push(Stage::Limit(if threaded { THREAD_LIMIT } else { DEFAULT_LIMIT }));
        }
        let mut dedup = recall.dedup;
        for stage in stages {
            if !matches!(stage, Stage::Order { .. })
                && let Some(field) = dedup.take()
            {
                keep_first(&mut found, field);
            }
            match stage {
                Stage::Order { field, descending } => found.sort_by(|a, b| {
                    by_value(a, b, field, descending).then_with(|| a.address.cmp(&b.address))
                }),
                Stage::Limit(count) => found.truncate(count),
                Stage::Offset(count) => {
                    found.drain(..count.min(found.len()));
                }
            }
        }
        if let Some(field) = dedup {
            keep_first(&mut found, field);
        }
        if recall.end == End::First {
            found.truncate(1);
        }
        Some(found)
    }

    fn recalled(&self, recall: &Recall) -> Option<Outcome> {
        let found = self.kept(recall)?;
        let values = |of: fn(&Item) -> Option<Value>| {
            let mut seen = BTreeSet::new();
            let texts = found.iter().filter_map(|item| of(item)).map(|value| json(&value));
            Outcome::Values(texts.filter(|text| seen.insert(text.clone())).take(SHOWN).collect())
        };
        Some(match recall.end {
            End::Grains | End::First => {
                let total = self.matches(recall)?.len() as u64;
                Outcome::Grains(addresses(&found), recall.dedup.is_none().then_some(total))
            }
            End::Count => Outcome::Count(found.len() as u64),
            End::Subjects => values(|item| item.grain.get("subject").cloned()),
            End::Objects => values(|item| item.grain.get("object").cloned()),
            End::Hashes => values(|item| Some(item.address.to_string().into())),
            End::Groups(field) => {
                let mut groups: BTreeMap<(bool, String), (String, u64)> = BTreeMap::new();
                for value in found.iter().filter_map(|item| value_of(item, field)) {
                    // Texts before other values, and among equally large ones by what they say.
                    let key = match &value {
                        Value::Str(text) => (false, text.clone()),
                        other => (true, json(other)),
                    };
                    groups.entry(key).or_insert_with(|| (json(&value), 0)).1 += 1;
                }
                let mut groups: Vec<_> = groups.into_values().collect();
                groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
                groups.truncate(SHOWN);
                Outcome::Groups(groups)
            }
        })
    }

    fn joined(&self, statement: &Statement) -> Option<Vec<&'i Item>> {
        let mut found = match statement {
            Statement::Recall(recall) => return self.kept(recall),
            Statement::Coalesce(branches) => {
                let mut found = Vec::new();
                for branch in branches {
                    found = self.kept(branch)?;
                    if !found.is_empty() {
                        break;
                    }
                }
                return Some(found);
            }
            Statement::Set(left, operator, right) => {
                let (left, right) = (self.joined(left)?, self.joined(right)?);
                let of_right: BTreeSet<_> = right.iter().map(|item| item.address).collect();
                let of_left: BTreeSet<_> = left.iter().map(|item| item.address).collect();
                let both = |item: &&Item| of_right.contains(&item.address);
                match operator {
                    SetOperator::Union => {
                        let new = right.into_iter().filter(|item| !of_left.contains(&item.address));
                        left.into_iter().chain(new).collect()
                    }
                    SetOperator::Intersect => left.into_iter().filter(both).collect::<Vec<_>>(),
                    SetOperator::Except => left.into_iter().filter(|item| !both(item)).collect(),
                }
            }
            _ => return None,
        };
        found.sort_by_key(|item| (-i128::from(item.grain.time().get()), item.address));
        Some(found)
    }
}

fn addresses(items: &[&Item]) -> Vec<ContentAddress> {
    items.iter().map(|item| item.address).collect()
}

pub(crate) fn json(value: &Value) -> String {
    serde_json::to_string(value).unwrap()
}

/// The first grain of each value stays; those without one stay all.
fn keep_first(found: &mut Vec<&Item>, field: &str) {
    let mut seen = BTreeSet::new();
    found.retain(|item| value_of(item, field).is_none_or(|value| seen.insert(json(&value))));
}

/// A field as CAL calls it.
fn value_of(item: &Item, field: &str) -> Option<Value> {
    match field {
        "type" => Some(item.grain.grain_type().name().into()),
        "verification_status" => Some(item.state.verification_status.name().into()),
        _ => item.grain.get(field).cloned(),
    }
}

/// What ORDER BY compares: ascending, grains without a value last either way.
fn by_value(a: &Item, b: &Item, field: &str, descending: bool) -> Ordering {
    let turned = |order: Ordering| if descending { order.reverse() } else { order };
    match field {
        "time" => turned(a.grain.time().cmp(&b.grain.time())),
        "score" => Ordering::Equal,
        "confidence" | "importance" => {
            let (a, b) = (a.grain.number(field), b.grain.number(field));
            missing_last(a, b, |a, b| turned(a.total_cmp(&b)))
        }
        _ => {
            let text = |item: &Item| Some(value_of(item, field)?.as_str()?.to_owned());
            missing_last(text(a), text(b), |a, b| turned(a.cmp(&b)))
        }
    }
}

fn missing_last<T>(a: Option<T>, b: Option<T>, order: impl FnOnce(T, T) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => order(a, b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}
