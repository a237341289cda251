//! A fixed set of questions, each shape and kind of condition among them, asked of what a disk holds:
//! the answers are those of looking at every grain of the model.

use std::sync::Arc;

use grainstore_cal::{Comparator, Order, Reach, Visibility};
use grainstore_format::{GrainState, GrainType, Map, Value, VerificationStatus};

use super::START_MS;
use super::kit::agree::same;
use super::kit::calls::{CREATED_MS, session};
use super::kit::model::{Known, Model};
use super::kit::rules;
use super::naive::{self, Item};
use super::question::{Condition, Question};
use crate::limits::MAX_PAGE;
use crate::{ContentAddress, PageOptions, Store};

/// Says which answer differs first.
pub(crate) fn answers_agree(store: &Store, model: &Model) -> Result<(), String> {
    let items: Vec<_> = model.grains.iter().map(item).collect();
    for (number, (namespace, question)) in asked(model).into_iter().enumerate() {
        let expected = naive::answer(&items, namespace, &question);
        let expected: Vec<_> = expected.iter().map(|item| item.address).collect();
        let found = rows(store, namespace, &question)?;
        same(&format!("question {number} as {namespace:?}, {question:?}"), &found, &expected)?;
    }
    Ok(())
}

fn rows(
    store: &Store,
    namespace: Option<&str>,
    question: &Question,
) -> Result<Vec<ContentAddress>, String> {
    let answer = session(store, namespace).query(&question.query(), &PageOptions::first(MAX_PAGE));
    let answer = answer.map_err(|error| error.code().to_owned())?;
    Ok(answer.results.iter().map(|row| row.content_address).collect())
}

/// The questions, each with the namespace of the session that asks it.
fn asked(model: &Model) -> Vec<(Option<&'static str>, Question)> {
    let all = shapes(model).into_iter().chain(conditions(model)).chain(bounds(model));
    let sessions = [None, None, Some("acme"), Some("shared")];
    sessions.into_iter().cycle().zip(all).collect()
}

fn item(known: &Known) -> Item {
    let state = GrainState {
        superseded_by: known.superseded_by,
        system_valid_to: known.ended,
        needs_review: known.needs_review,
        held: known.held,
        contradicted: known.contradicted,
        verification_status: known.status,
    };
    Item { address: known.address, grain: Arc::clone(&known.grain), state }
}

/// The eight shapes of a triple, of objects that are texts and maps.
fn shapes(model: &Model) -> Vec<Question> {
    let newest = model.grains.iter().rev().find(|known| known.grain.text("subject").is_some());
    let subject = newest.and_then(|known| known.grain.text("subject")).unwrap_or("subject 1");
    let subject = || Condition::TextIs("subject", subject.to_owned());
    let relation = || Condition::TextIs("relation", "prefers".to_owned());
    let city = Value::Map(Map::from([("city".to_owned(), "Oslo".into())]));
    let object = || Condition::Object("object 1".into());
    let map = || Condition::Object(city.clone());
    let bound = [
        vec![],
        vec![subject()],
        vec![relation()],
        vec![object()],
        vec![map()],
        vec![subject(), relation()],
        vec![relation(), object()],
        vec![relation(), map()],
        vec![subject(), object()],
        vec![subject(), relation(), map()],
        vec![subject(), relation(), object()],
    ];
    let with = |conditions| Question { conditions, ..Question::default() };
    bound.into_iter().map(with).collect()
}

/// Each kind of condition.
fn conditions(model: &Model) -> Vec<Question> {
    let text = |text: &str| text.to_owned();
    let derived = model.grains.iter().rev().find_map(|known| rules::parents(&known.grain).pop());
    let parent = derived.unwrap_or_else(|| ContentAddress::from_bytes([1; 32]));
    let conditions = [
        Condition::TextIn("relation", vec![text("prefers"), text("works_at")]),
        Condition::Field("object", Comparator::NotEqual, "object 1".into()),
        Condition::FieldIn("object", vec![text("object 2"), text("object 3")]),
        Condition::Domain(text("hc:patient_id"), Comparator::Equal, "p1".into()),
        Condition::DomainIn(text("fin:amount"), vec![1_i64.into()]),
        Condition::Names("derived_from", vec![parent]),
        Condition::Related(&["supports"], vec![parent]),
        Condition::TagsInclude(vec![text("red")]),
        Condition::TagsExclude(vec![text("red")]),
        Condition::TextIs("session_id", text("s1")),
        Condition::Contradicted(false),
        Condition::Status(VerificationStatus::Unverified),
    ];
    conditions.map(Question::when).into()
}

/// Bounds of every kind.
fn bounds(model: &Model) -> Vec<Question> {
    let seeing = Visibility::EVERYTHING;
    let some: Vec<_> = model.grains.iter().step_by(7).map(|known| known.address).collect();
    let ended = model.grains.iter().rev().find_map(|known| known.ended);
    let known_at = Some(ended.map_or(START_MS, |ended| ended.get() - 1));
    vec![
        Question { seeing, order: Order::Oldest, ..Question::default() },
        Question { reach: Reach::Exact("acme".to_owned()), ..Question::default() },
        Question { reach: Reach::Subtree("acme".to_owned()), seeing, ..Question::default() },
        Question { of_type: Some(GrainType::Event), ..Question::default() },
        Question { during: Some((CREATED_MS, CREATED_MS + 9000)), ..Question::default() },
        Question { known_at, ..Question::default() },
        Question { valid_at: Some(0), order: Order::Oldest, ..Question::default() },
        Question { address: some.last().copied(), seeing, ..Question::default() },
        Question { among: Some(some), ..Question::default() },
    ]
}
