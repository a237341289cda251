//! Random questions. Most are aimed: their conditions are what one stored grain says, so that they
//! have results; the rest name whatever words there are.

use std::sync::Arc;

use grainstore::cal::{Comparator, Order, Reach, Visibility};
use grainstore::format::{EpochMs, Grain, GrainType, Value};
use grainstore::{ContentAddress, VerificationStatus};

use crate::query::grains::{DOMAINS, LINKS, NAMESPACES, OBJECTS, RELATIONS, SUBJECTS, TAGS, TIMES};
use crate::query::naive::{self, Item};
use crate::query::question::{Condition, Question};
use crate::query::random::Random;

/// The six comparators.
const COMPARATORS: [Comparator; 6] = [
    Comparator::Equal,
    Comparator::NotEqual,
    Comparator::GreaterEqual,
    Comparator::LessEqual,
    Comparator::Greater,
    Comparator::Less,
];
/// Payload fields of text, the ones with postings first.
const TEXTS: [&str; 10] = [
    "subject",
    "relation",
    "object",
    "user_id",
    "session_id",
    "run_id",
    "processing_basis",
    "parent_message_id",
    "role",
    "tool_name",
];
/// Fields by their names in CAL with the payload field, and whether they take `!=`.
const FIELDS: [(&str, &str, bool); 19] = [
    ("subject", "subject", true),
    ("relation", "relation", true),
    ("object", "object", true),
    ("user_id", "user_id", true),
    ("source_type", "source_type", false),
    ("recall_priority", "recall_priority", false),
    ("epistemic_status", "epistemic_status", false),
    ("role", "role", true),
    ("session_id", "session_id", false),
    ("model_id", "model_id", true),
    ("trigger", "trigger", true),
    ("tool_name", "tool_name", true),
    ("tool_call_id", "tool_call_id", false),
    ("observer_id", "observer_id", true),
    ("observer_type", "observer_type", true),
    ("assigned_agent", "assigned_agent", true),
    ("reasoning_type", "inference_method", false),
    ("conclusion", "conclusion", true),
    ("grantor_did", "subject_did", false),
];
/// Fields that hold addresses.
const ADDRESSES: [&str; 6] = [
    "parent_message_id",
    "derived_from",
    "depends_on",
    "premises",
    "processing_basis",
    "related_to",
];
/// Kinds of links asked for together.
const KINDS: [&[&str]; 4] = [&["contradicts"], &["supports", "similar"], &LINKS, &[]];

/// Somebody who asks.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) random: Random,
}

impl Asker {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    /// A session's namespace and a question it may ask.
    pub(crate) fn next(&mut self, items: &[Item]) -> (Option<&'static str>, Question) {
        let item = &items[self.random.below(items.len())];
        let session = self.session(item);
        let mut question = Question::default();
        for _ in 0..self.random.pick(&[0, 1, 1, 1, 2, 2, 3]) {
            question.conditions.extend(self.aimed(item));
        }
        self.bound(item, session, &mut question);
        self.time(item, &mut question);
        self.name(item, items, &mut question);
        question.order = self.random.pick(&[Order::Newest, Order::Oldest]);
        if self.random.percent(30) || !item.state.is_current() && self.random.percent(70) {
            let superseded = self.random.percent(70);
            question.seeing = match superseded {
                true => Visibility { superseded, ..Visibility::default() },
                false => Visibility::EVERYTHING,
            };
        }
        (session, question)
    }

    /// A condition that mostly holds for the item; nothing where none was found in a few tries.
    fn aimed(&mut self, item: &Item) -> Option<Condition> {
        let anything = self.random.percent(5);
        let mut tries = (0..6).map(|_| self.condition(item));
        tries.find(|condition| anything || condition.holds(item))
    }

    fn session(&mut self, item: &Item) -> Option<&'static str> {
        let own = item.grain.text("namespace").unwrap_or_default();
        let known = NAMESPACES.iter().find(|name| name.unwrap_or_default() == own);
        match self.random.below(10) {
            0..6 => None,
            6..9 => *known.unwrap(),
            _ => self.random.pick(&NAMESPACES),
        }
    }

    /// Namespaces within the session's.
    fn bound(&mut self, item: &Item, session: Option<&str>, question: &mut Question) {
        if self.random.percent(25) {
            question.of_type = Some(match self.random.percent(90) {
                true => item.grain.grain_type(),
                false => self.random.pick(&GrainType::STANDARD),
            });
        }
        let own = item.grain.partition();
        let root = own.split(':').next().unwrap();
        let within = |name: &str| {
            let session = session.map(|name| if name.is_empty() { "shared" } else { name });
            session.is_none_or(|root| name == root || name.starts_with(&format!("{root}:")))
        };
        question.reach = match self.random.below(10) {
            0 if within(own) => Reach::Exact(own.to_owned()),
            1 if within(own) => Reach::Subtree(own.to_owned()),
            2 if within(root) => Reach::Subtree(root.to_owned()),
            _ => Reach::Session,
        };
    }

    fn time(&mut self, item: &Item, question: &mut Question) {
        let time = item.grain.time().get();
        if self.random.percent(30) {
            question.during = Some(match self.random.below(6) {
                0 => (time, time),
                1 => (i64::MIN, time),
                2 => (time, i64::MAX),
                3 => (time.saturating_sub(2000), time.saturating_add(2000)),
                4 => (time.saturating_add(1), i64::MAX),
                _ => (self.random.pick(&TIMES), self.random.pick(&TIMES)),
            });
        }
        if self.random.percent(12) {
            let from = item.grain.int("valid_from");
            let at = from.or_else(|| item.grain.int("valid_to"));
            question.valid_at = Some(self.near(at));
        }
        if self.random.percent(12) {
            let from = item.grain.int("system_valid_from").or_else(|| item.grain.int("created_at"));
            let to = item.state.system_valid_to.map(EpochMs::get);
            let at = if self.random.percent(60) { to } else { from };
            question.known_at = Some(self.near(at.or(from)));
        }
    }

    /// That time or the millisecond beside it, or any time.
    fn near(&mut self, at: Option<i64>) -> i64 {
        match at {
            Some(at) if self.random.percent(85) => at.saturating_add(self.random.pick(&[-1, 0, 1])),
            _ => self.random.pick(&TIMES),
        }
    }

    /// Grains by their addresses.
    fn name(&mut self, item: &Item, items: &[Item], question: &mut Question) {
        match self.random.below(40) {
            0 => question.address = Some(item.address),
            1 => {
                let mut among: Vec<_> =
                    (0..20).map(|_| items[self.random.below(items.len())].address).collect();
                among.extend([item.address, item.address, ContentAddress::from_bytes([1; 32])]);
                question.among = Some(among);
            }
            2 if self.random.percent(20) => question.among = Some(Vec::new()),
            _ => {}
        }
    }

    fn condition(&mut self, item: &Item) -> Condition {
        let grain = &item.grain;
        match self.random.below(20) {
            0..3 => Condition::TextIs(self.random.pick(&TEXTS), String::new()).aimed(grain),
            3..5 => self.one_of(grain),
            5..7 => Condition::Object(match grain.get("object") {
                Some(object) => object.clone(),
                None => self.random.pick(&OBJECTS).into(),
            }),
            7..10 => self.field(item),
            10 => self.odd_field(item),
            11..14 => self.domain(grain),
            14..16 => self.names(grain),
            16..18 => self.tags(grain),
            18 => self.special(grain),
            _ => match self.random.below(4) {
                0 => Condition::Contradicted(self.random.percent(30)),
                _ => Condition::Status(self.random.pick(&VerificationStatus::ALL)),
            },
        }
    }

    fn word(&mut self) -> String {
        let all = [&SUBJECTS[..], &RELATIONS, &OBJECTS, &["u1", "s1", "r1", "search"]].concat();
        self.random.pick(&all).to_owned()
    }

    fn one_of(&mut self, grain: &Arc<Grain>) -> Condition {
        let payload = self.random.pick(&TEXTS);
        let mut texts: Vec<String> = (0..self.random.below(5)).map(|_| self.word()).collect();
        texts.extend(grain.text(payload).map(str::to_owned));
        match payload {
            "subject" | "relation" | "object" | "tool_name" if self.random.percent(50) => {
                Condition::FieldIn(payload, texts)
            }
            _ => Condition::TextIn(payload, texts),
        }
    }

    fn field(&mut self, item: &Item) -> Condition {
        let (name, payload, differs) = self.random.pick(&FIELDS);
        let said = item.grain.text(payload).map(str::to_owned);
        let closed: &[&str] = match name {
            "recall_priority" => &["hot", "warm", "cold"],
            "epistemic_status" => &["certain", "derived"],
            _ => &[],
        };
        let said = said.filter(|said| closed.is_empty() || closed.contains(&said.as_str()));
        if differs && self.random.percent(30) {
            return Condition::Field(name, Comparator::NotEqual, self.word().into());
        }
        let any = if closed.is_empty() { self.word() } else { self.random.pick(closed).to_owned() };
        Condition::Field(name, Comparator::Equal, said.unwrap_or(any).into())
    }

    /// Fields with a meaning of their own.
    fn odd_field(&mut self, item: &Item) -> Condition {
        let grain = &item.grain;
        let equal = Comparator::Equal;
        let address = |name| grain.get(name).and_then(first_text);
        let random = &mut self.random;
        match random.below(14) {
            0 => Condition::Field(
                "confidence",
                random.pick(&COMPARATORS),
                random.pick(&[0.0, 0.25, 0.3, 1.0]).into(),
            ),
            1 => {
                let share = grain.number("importance").unwrap_or(0.5);
                Condition::Field("importance", random.pick(&COMPARATORS), share.into())
            }
            2 => {
                let comparators = COMPARATORS.map(|c| match c {
                    Comparator::NotEqual => Comparator::Equal,
                    other => other,
                });
                let name = random.pick(&["threshold", "agreement_count"]);
                Condition::Field(name, random.pick(&comparators), 2_i64.into())
            }
            3 => Condition::Field("namespace", equal, grain.partition().into()),
            4 => Condition::Field("is_error", equal, random.percent(50).into()),
            5 => {
                let phases = ["definition", "call", "result", "complete"];
                Condition::Field("action_phase", equal, random.pick(&phases).into())
            }
            6 => Condition::Field(
                "goal_state",
                random.pick(&[equal, Comparator::NotEqual]),
                random.pick(&["active", "completed", "failed", "blocked", "satisfied"]).into(),
            ),
            7 => {
                let actions = ["grant", "withdraw"];
                Condition::Field("consent_action", equal, random.pick(&actions).into())
            }
            8 => {
                let purposes = ["recall, share", "share", "care"];
                let comparator = random.pick(&[equal, Comparator::NotEqual]);
                Condition::Field("purpose", comparator, random.pick(&purposes).into())
            }
            9 => Condition::Field("scope", equal, random.pick(&["share", "recall"]).into()),
            10 => {
                let comparator = random.pick(&[equal, Comparator::NotEqual]);
                Condition::Field("context", comparator, random.pick(&["desk", "lab"]).into())
            }
            11 => {
                let name = random.pick(&["deadline", "expires_at"]);
                let payload = if name == "deadline" { name } else { "valid_to" };
                let at = grain.int(payload).unwrap_or(TIMES[4]);
                Condition::Field(name, equal, at.into())
            }
            12 => {
                let name = random.pick(&["parent_message_id", "depends_on"]);
                let digits = address(name).unwrap_or_else(|| item.address.to_string());
                Condition::Field(name, equal, digits.into())
            }
            _ => {
                let digits = address("depends_on").unwrap_or_else(|| item.address.to_string());
                let other = format!("sha256:{}", item.address);
                Condition::FieldIn("depends_on", vec![other, digits])
            }
        }
    }

    fn domain(&mut self, grain: &Grain) -> Condition {
        let held: Vec<_> =
            DOMAINS.iter().filter(|name| !naive::places(grain, name).is_empty()).collect();
        let name = match held.first() {
            Some(name) if self.random.percent(85) => **name,
            _ => self.random.pick(&DOMAINS),
        };
        let found = naive::places(grain, name).first().map(|value| (*value).clone());
        let value = found.unwrap_or_else(|| "p1".into());
        let random = &mut self.random;
        if random.percent(30) {
            let mut values = vec![value];
            for _ in 0..random.below(3) {
                values.push(match random.below(4) {
                    0 => 1_i64.into(),
                    1 => true.into(),
                    _ => random.pick(&["p1", "p2", "true"]).into(),
                });
            }
            return Condition::DomainIn(name.to_owned(), values);
        }
        let comparator = match value.as_f64() {
            Some(_) => random.pick(&COMPARATORS),
            None if random.percent(20) => Comparator::NotEqual,
            None => Comparator::Equal,
        };
        Condition::Domain(name.to_owned(), comparator, value)
    }

    fn names(&mut self, grain: &Grain) -> Condition {
        let held: Vec<_> = ADDRESSES.iter().filter(|name| grain.get(name).is_some()).collect();
        let payload = match held.len() {
            0 => self.random.pick(&ADDRESSES),
            some => *held[self.random.below(some)],
        };
        let found = grain.get(payload).and_then(first_text);
        let found = found.and_then(|text| text.trim_start_matches("sha256:").parse().ok());
        let mut addresses: Vec<ContentAddress> = found.into_iter().collect();
        if self.random.percent(30) {
            addresses.push(ContentAddress::from_bytes([1; 32]));
        }
        match payload {
            "related_to" => Condition::Related(self.random.pick(&KINDS), addresses),
            _ => Condition::Names(payload, addresses),
        }
    }

    fn tags(&mut self, grain: &Grain) -> Condition {
        let mut tags: Vec<String> = grain.texts("structural_tags").map(str::to_owned).collect();
        if self.random.percent(70) {
            tags.truncate(1 + self.random.below(2));
        }
        if tags.is_empty() || self.random.percent(25) {
            tags.push(self.random.pick(&TAGS).to_owned());
        }
        match self.random.percent(75) {
            true => Condition::TagsInclude(tags),
            false => Condition::TagsExclude(vec![self.random.pick(&TAGS).to_owned()]),
        }
    }

    /// What is found by one thing and must be told from another.
    fn special(&mut self, grain: &Grain) -> Condition {
        match self.random.below(3) {
            // A string inside of a map is no object.
            0 => Condition::TextIs("object", "Oslo".to_owned()),
            1 => Condition::TextIs("run_id", self.word()),
            _ => Condition::TextIs("parent_message_id", String::new()).aimed(grain),
        }
    }
}

impl Condition {
    /// The same condition asking for what the grain says.
    fn aimed(self, grain: &Grain) -> Self {
        match self {
            Self::TextIs(payload, _) => {
                let said = grain.text(payload).unwrap_or("alice");
                Self::TextIs(payload, said.to_owned())
            }
            other => other,
        }
    }
}

fn first_text(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => items.first().and_then(first_text),
        Value::Map(map) => map.get("hash").and_then(first_text),
        other => other.as_str().map(str::to_owned),
    }
}
