//! What is asked under load, and what came of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Error;
use crate::client::Connection;

/// Facts of one subject.
const FACTS_PER_SUBJECT: u64 = 12;
/// Words that objects are made of.
const WORDS: u64 = 20_000;
/// Grains of an answer.
const LIMIT: u64 = 10;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Query,
    Search,
    Recall,
    Latest,
    Put,
    Supersede,
    History,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Get,
        Self::Query,
        Self::Search,
        Self::Recall,
        Self::Latest,
        Self::Put,
        Self::Supersede,
        Self::History,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Query => "query, by subject",
            Self::Search => "query, two words",
            Self::Recall => "cal, RECALL about a subject",
            Self::Latest => "latest",
            Self::Put => "put",
            Self::Supersede => "supersede",
            Self::History => "history",
        }
    }

    /// The kind of a request: of 100, 70 get, 15 ask, 10 put, 5 do something else.
    fn of(random: u64) -> Self {
        match random % 100 {
            0..70 => Self::Get,
            70..75 => Self::Query,
            75..79 => Self::Search,
            79..83 => Self::Recall,
            83..85 => Self::Latest,
            85..95 => Self::Put,
            95..98 => Self::Supersede,
            _ => Self::History,
        }
    }
}

/// A request that was answered, or whose connection broke (status 0).
pub(crate) struct Done {
    pub(crate) kind: Kind,
    pub(crate) status: u16,
    /// From its time to the last byte of its answer.
    pub(crate) latency: Duration,
    /// From its time to when it was sent.
    pub(crate) late: Duration,
}

/// What the server acknowledged.
#[derive(Default)]
pub(crate) struct Told {
    /// Addresses.
    pub(crate) put: Vec<String>,
    /// New versions by what they replaced.
    pub(crate) superseded: BTreeMap<String, String>,
    /// An answer of each kind and status that was none of success.
    pub(crate) refused: BTreeMap<(&'static str, u16), String>,
}

impl Told {
    pub(crate) fn add(&mut self, other: Self) {
        self.put.extend(other.put);
        self.superseded.extend(other.superseded);
        self.refused.extend(other.refused);
    }
}

/// What asks over one connection.
pub(crate) struct Worker {
    number: u64,
    connection: Connection,
    addresses: Arc<Vec<String>>,
    /// Grains of its own that are current.
    own: Vec<String>,
    told: Told,
}

impl Worker {
    pub(crate) fn new(
        number: u64,
        connection: Connection,
        addresses: Arc<Vec<String>>,
    ) -> Result<Self, Error> {
        Ok(Self { number, connection, addresses, own: Vec::new(), told: Told::default() })
    }

    /// Sends every `count`-th request of those that are `every` apart, from `begin` to `end`.
    pub(crate) fn run(
        mut self,
        begin: Instant,
        end: Instant,
        every: Duration,
        count: u64,
        shared: &Mutex<Vec<Done>>,
    ) -> Result<Told, Error> {
        for round in 0_u32.. {
            let request = u64::from(round) * count + self.number;
            let due = begin + every.saturating_mul(u32::try_from(request)?);
            if due >= end {
                break;
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let sent = Instant::now();
            let (kind, status) = self.ask(request)?;
            let latency = due.elapsed();
            let done = Done { kind, status, latency, late: sent.saturating_duration_since(due) };
            shared.lock().unwrap_or_else(PoisonError::into_inner).push(done);
        }
        Ok(self.told)
    }

    /// Asks for something; of which kind, and the status.
    fn ask(&mut self, request: u64) -> Result<(Kind, u16), Error> {
        let random = scattered(request);
        let mut kind = Kind::of(random);
        if kind == Kind::Supersede && self.own.is_empty() {
            kind = Kind::Put;
        }
        let old = if kind == Kind::Supersede { self.own.pop() } else { None };
        let chosen = usize::try_from(scattered(random) % u64::try_from(self.addresses.len())?)?;
        let address = self.addresses.get(chosen).cloned().unwrap_or_default();
        let subject = subject(random >> 8);
        // New facts have numbers of their own.
        let number = (1 << 32) + request;
        let (verb, path, body) = match kind {
            Kind::Get => ("GET", format!("/v1/grains/{address}"), String::new()),
            Kind::History => ("GET", format!("/v1/grains/{address}/history"), String::new()),
            Kind::Latest => {
                let subject = subject.replace(' ', "%20");
                (
                    "GET",
                    format!("/v1/latest?subject={subject}&relation=mg:relation_{}", random % 12),
                    String::new(),
                )
            }
            Kind::Query => {
                let body = json!({ "where": { "subject": subject }, "limit": LIMIT });
                ("POST", "/v1/query".to_owned(), body.to_string())
            }
            Kind::Search => {
                let body = json!({ "text": format!("{} {}", word(random), word(random >> 16)), "limit": LIMIT });
                ("POST", "/v1/query".to_owned(), body.to_string())
            }
            Kind::Recall => {
                let query = format!("RECALL beliefs ABOUT $who LIMIT {LIMIT}");
                let body = json!({ "query": query, "params": { "who": subject } });
                ("POST", "/v1/cal".to_owned(), body.to_string())
            }
            Kind::Put => {
                ("POST", "/v1/grains".to_owned(), json!({ "grain": fact(number) }).to_string())
            }
            Kind::Supersede => {
                let old = old.as_deref().unwrap_or_default();
                let mut grain = fact(number);
                if let Some(grain) = grain.as_object_mut() {
                    grain.insert("derived_from".to_owned(), json!([old]));
                }
                (
                    "POST",
                    format!("/v1/grains/{old}/supersede"),
                    json!({ "grain": grain }).to_string(),
                )
            }
        };
        let Ok(answer) = self.connection.ask(verb, &path, &body) else {
            self.connection.renew()?;
            return Ok((kind, 0));
        };
        if answer.status == 201 {
            let made = answer.json()?;
            let address =
                made.get("address").and_then(Value::as_str).ok_or("no address")?.to_owned();
            self.told.put.push(address.clone());
            if let Some(old) = old {
                self.told.superseded.insert(old, address.clone());
            }
            self.own.push(address);
        } else if answer.status != 200 {
            self.told.refused.entry((kind.name(), answer.status)).or_insert_with(|| answer.text());
        }
        Ok((kind, answer.status))
    }
}

/// The fact of a number.
pub(crate) fn fact(number: u64) -> Value {
    let words = 4 + scattered(number) % 9;
    let object: Vec<String> = (0..words).map(|at| word(scattered(number * 16 + at))).collect();
    json!({
        "type": "belief",
        "subject": subject(number),
        "relation": format!("mg:relation_{}", number % 12),
        "object": format!("{} number{number}", object.join(" ")),
        "confidence": 0.9,
        "created_at": 1_700_000_000_000 + number % (1 << 32),
    })
}

fn subject(number: u64) -> String {
    format!("subject {}", number % (100_000 / FACTS_PER_SUBJECT))
}

/// A word: the n-th most frequent is about 1/n as frequent as the first.
fn word(random: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "any number of that size will do")]
    let share = (random % 1_000_000) as f64 / 1e6;
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let rank = (WORDS as f64).powf(share);
    format!("{rank:.0}").bytes().map(|digit| char::from(digit.wrapping_add(b'k' - b'0'))).collect()
}

/// Numbers without a pattern (the finaliser of splitmix64).
pub(crate) fn scattered(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
