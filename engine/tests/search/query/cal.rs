//! The same questions in CAL, where CAL can ask them: WHERE, the namespaces, order, LIMIT and OFFSET.

use grainstore::cal::{Answer, Comparator, Order, Reach, Visibility};
use grainstore::format::{GrainType, Value};

use crate::query::asker::Asker;
use crate::query::naive;
use crate::query::planned::{addresses, from_env, same};
use crate::query::question::{Condition, Question};
use crate::query::world::World;

/// Statements of a normal run.
const STATEMENTS: usize = 600;
/// Fields every statement may name.
const COMMON: [&str; 10] = [
    "subject",
    "relation",
    "object",
    "user_id",
    "confidence",
    "importance",
    "source_type",
    "recall_priority",
    "epistemic_status",
    "verification_status",
];
/// Fields of one type, which it unlocks when it is named.
const OWN: [(&str, &[&str]); 9] = [
    ("event", &["role", "session_id", "model_id", "parent_message_id"]),
    ("state", &["context"]),
    ("workflow", &["trigger"]),
    ("action", &["tool_name", "tool_call_id", "action_phase", "is_error"]),
    ("observation", &["observer_id", "observer_type"]),
    ("goal", &["goal_state", "assigned_agent", "depends_on"]),
    ("reasoning", &["reasoning_type", "conclusion"]),
    ("consensus", &["threshold", "agreement_count"]),
    ("consent", &["consent_action", "purpose", "scope", "grantor_did"]),
];
/// The profiles CAL knows.
const PROFILES: [&str; 4] = ["hc:", "fin:", "int:", "sci:"];

#[test]
fn a_statement_answers_as_the_naive_reading_of_its_question() {
    let statements = from_env("GRAINSTORE_QUERIES", STATEMENTS);
    let seed = from_env("GRAINSTORE_QUERIES_SEED", 1) as u64;
    let mut asker = Asker::new(seed);
    let mut world = World::new(seed);
    world.put(300);
    world.supersede(60);
    world.mark(40);
    world.flush();
    world.put(60);
    // CAL knows the ten types alone.
    let mut known = world.items.clone();
    known.retain(|item| item.grain.grain_type().is_standard());
    let (mut found, mut conditions) = (0, 0);
    for _ in 0..statements {
        let (namespace, asked) = asker.next(&world.items);
        let mut question = expressible(asked);
        if namespace == Some("") {
            // CAL names the shared partition's own namespaces only where the session does.
            question.reach = Reach::Session;
        }
        let (offset, limit) = (asker.random.pick(&[0, 0, 1, 7]), 1 + asker.random.below(60));
        let text = statement(&question, offset, limit);
        let expected = addresses(&naive::answer(&known, namespace, &question));
        let expected: Vec<_> = expected.into_iter().skip(offset).take(limit).collect();
        let rows = match world.session(namespace).ask(&text).map(|response| response.answer) {
            Ok(Answer::Grains(grains)) => grains.results,
            other => panic!("seed {seed}, as {namespace:?}, {text}: {other:?}"),
        };
        let rows: Vec<_> = rows.iter().map(|row| row.content_address).collect();
        let checked = same("rows", &rows, &expected);
        checked.unwrap_or_else(|why| panic!("seed {seed}, as {namespace:?}, {text}\n{why}"));
        found += usize::from(!expected.is_empty());
        conditions += question.conditions.len();
    }
    println!("CAL: {statements} statements, {conditions} conditions, {found} with results");
    assert!(found * 2 > statements, "{found} of {statements} statements have results");
}

/// What of a question CAL can ask.
pub(crate) fn expressible(asked: Question) -> Question {
    let in_ms = |at: i64| (200_000_000_000..=1 << 47).contains(&at);
    let during = asked.during.filter(|(from, to)| in_ms(*from) && in_ms(*to) && from <= to);
    let superseded = asked.seeing.superseded;
    let of_type = asked.of_type.filter(|of_type| of_type.is_standard());
    let has_words = |condition: &Condition| written(condition, of_type).is_some();
    let conditions = asked.conditions.into_iter().map(as_cal_reads).filter(has_words);
    Question {
        reach: asked.reach,
        of_type,
        conditions: conditions.collect(),
        during,
        seeing: Visibility { superseded, ..Visibility::default() },
        order: asked.order,
        ..Question::default()
    }
}

/// What CAL makes of a condition: an address counts with `sha256:` and without, where a predicate on the
/// text takes it as it stands.
fn as_cal_reads(condition: Condition) -> Condition {
    match condition {
        Condition::TextIs(name @ "parent_message_id", text) => {
            Condition::Field(name, Comparator::Equal, text.into())
        }
        other => other,
    }
}

fn statement(question: &Question, offset: usize, limit: usize) -> String {
    let mut text = recall(question, &[]);
    let direction = if question.order == Order::Newest { "DESC" } else { "ASC" };
    text += &format!(" | ORDER BY time {direction}");
    if offset > 0 {
        text += &format!(" | OFFSET {offset}");
    }
    text + &format!(" | LIMIT {limit}")
}

/// A RECALL up to its pipeline, with these conditions beside the question's own.
pub(crate) fn recall(question: &Question, beside: &[String]) -> String {
    let mut text = "RECALL".to_owned();
    if let Some(of_type) = question.of_type {
        let plural = match of_type.name() {
            "consensus" => "consensuses".to_owned(),
            name => format!("{name}s"),
        };
        text += &format!(" {plural}");
    }
    match &question.reach {
        Reach::Session => {}
        Reach::Exact(namespace) => text += &format!(" IN {namespace:?}"),
        Reach::Subtree(namespace) => text += &format!(" IN SCOPE {namespace:?}"),
    }
    let during = question.during.map(|(from, to)| format!("time BETWEEN {from} AND {to}"));
    let own = question.conditions.iter().filter_map(|one| written(one, question.of_type));
    let conditions: Vec<_> = own.chain(during).chain(beside.iter().cloned()).collect();
    if !conditions.is_empty() {
        text += &format!(" WHERE {}", conditions.join(" AND "));
    }
    if question.seeing.superseded {
        text += " WITH superseded";
    }
    text
}

/// A condition as WHERE has it; nothing where CAL has no such condition on grains of the type.
fn written(condition: &Condition, of_type: Option<GrainType>) -> Option<String> {
    let of_type = of_type.map_or("", |of_type| of_type.name());
    let own = OWN.iter().find(|(name, _)| *name == of_type).map_or(&[][..], |(_, own)| own);
    let common = |name: &str| COMMON.contains(&name) || own.contains(&name);
    let known = |name: &str| PROFILES.iter().any(|profile| name.starts_with(profile));
    let texts = |texts: &[String]| -> String {
        let texts: Vec<_> = texts.iter().map(|text| format!("{text:?}")).collect();
        texts.join(", ")
    };
    Some(match condition {
        Condition::TextIs(name, text) if common(name) => format!("{name} = {text:?}"),
        Condition::TextIn(name, list) | Condition::FieldIn(name, list)
            if matches!(*name, "subject" | "relation" | "object") && !list.is_empty() =>
        {
            format!("{name} IN ({})", texts(list))
        }
        Condition::FieldIn(name @ ("tool_name" | "depends_on"), list) if own.contains(name) => {
            format!("{name} IN ({})", texts(list))
        }
        Condition::Object(Value::Str(text)) => format!("object = {text:?}"),
        Condition::Field(name, comparator, value) if common(name) => {
            format!("{name} {} {}", sign(*comparator), literal(value)?)
        }
        Condition::Domain(name, comparator, value) if known(name) => {
            format!("{name} {} {}", sign(*comparator), literal(value)?)
        }
        Condition::DomainIn(name, values) if known(name) => {
            let values: Option<Vec<_>> = values.iter().map(literal).collect();
            format!("{name} IN ({})", values?.join(", "))
        }
        Condition::TagsInclude(tags) => format!("tags INCLUDE [{}]", texts(tags)),
        Condition::TagsExclude(tags) => format!("tags EXCLUDE [{}]", texts(tags)),
        Condition::Contradicted(value) => format!("contradicted = {value}"),
        Condition::Status(status) => format!("verification_status = {:?}", status.name()),
        _ => return None,
    })
}

fn sign(comparator: Comparator) -> &'static str {
    match comparator {
        Comparator::Equal => "=",
        Comparator::NotEqual => "!=",
        Comparator::GreaterEqual => ">=",
        Comparator::LessEqual => "<=",
        Comparator::Greater => ">",
        Comparator::Less => "<",
    }
}

fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Str(text) => Some(format!("{text:?}")),
        Value::Bool(flag) => Some(flag.to_string()),
        number => number.as_f64().map(|number| number.to_string()),
    }
}
