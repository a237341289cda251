//! A store with one harmless grain, and all that is asked of it beside what was put to hurt.

use std::cell::RefCell;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use grainstore::cal::{self, ExecuteOptions, Params, Predicate, Query};
use grainstore::graph::EdgeQuery;
use grainstore::{ContentAddress, Grain, OpenOptions, PageOptions, Session, SessionOptions, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What may refuse a question, or a put, that is too large. CAL has codes of its own for budgets and times.
const REFUSALS: [&str; 6] =
    ["ERR_LIMIT", "ERR_TOO_LARGE", "ERR_SCHEMA", "ERR_TIMEOUT", "CAL-E030", "CAL-E031"];

/// From when a call is told of.
const LONG: Duration = Duration::from_millis(250);

/// Whether the larger stores are wanted.
pub(crate) fn is_full() -> bool {
    std::env::var("GRAINSTORE_HOSTILE").is_ok_and(|wanted| wanted == "full")
}

/// A small number of grains or versions, or the large one.
pub(crate) fn number(small: usize, large: usize) -> usize {
    if is_full() { large } else { small }
}

/// A grain of JSON.
pub(crate) fn grain(fields: &Value) -> Grain {
    Grain::from_json(&fields.to_string()).unwrap()
}

/// The fields of a belief.
pub(crate) fn belief(subject: &str, relation: &str, object: &str, second: usize) -> Value {
    json!({
        "type": "belief", "subject": subject, "relation": relation, "object": object,
        "confidence": 0.5, "created_at": 1_700_000_000_000_u64 + 1000 * second as u64,
    })
}

/// A grain that was put to hurt, and how it is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: ContentAddress,
    pub(crate) subject: String,
    pub(crate) relation: String,
    /// A text that finds it.
    pub(crate) words: String,
    /// Whether it is current, and thus in answers.
    pub(crate) is_current: bool,
}

pub(crate) struct World {
    name: &'static str,
    dir: TempDir,
    session: RefCell<Session>,
    innocent: ContentAddress,
}

fn open(dir: &TempDir) -> Session {
    crate::former::put_former_store(dir.path());
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    store.session(SessionOptions::default())
}

impl World {
    pub(crate) fn new(name: &'static str) -> Self {
        let dir = TempDir::new().unwrap();
        let session = open(&dir);
        let harmless = grain(&belief("innocent", "drinks", "oolong", 0));
        let innocent = session.put(harmless).unwrap().address();
        Self { name, dir, session: RefCell::new(session), innocent }
    }

    pub(crate) fn session(&self) -> Session {
        self.session.borrow().clone()
    }

    /// Closes the store and opens it again.
    pub(crate) fn reopen(&self) {
        self.timed("close", || self.session().store().close().unwrap());
        let session = self.timed("open", || open(&self.dir));
        self.session.replace(session);
    }

    /// Does something, and tells if it took long.
    pub(crate) fn timed<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let done = work();
        let taken = started.elapsed();
        if taken > LONG {
            println!("{}: {what} took {} ms", self.name, taken.as_millis());
        }
        done
    }

    /// What a call gives; `None` if it was refused as it may be.
    pub(crate) fn answered<T>(
        &self,
        what: &str,
        call: impl FnOnce() -> Result<T, (String, String)>,
    ) -> Option<T> {
        match self.timed(what, call) {
            Ok(given) => Some(given),
            Err((code, message)) => {
                assert!(
                    REFUSALS.contains(&&*code),
                    "{}: {what}: {code}: {message:.300}",
                    self.name
                );
                println!("{}: {what} is refused: {code}: {message:.120}", self.name);
                None
            }
        }
    }

    /// Asks for a target in every way, verifies the store in full, opens it again and asks once more.
    pub(crate) fn examine(&self, targets: &[Target]) {
        for opened in ["as written", "reopened"] {
            for target in targets {
                self.ask_for(target);
            }
            self.ask_for_the_innocent();
            let report = self.timed("verify", || self.session().store().verify(true)).unwrap();
            assert!(report.ok, "{} {opened}: {:?}", self.name, report.problems);
            self.reopen();
        }
    }

    fn ask_for(&self, target: &Target) {
        let session = self.session();
        let Target { address, subject, relation, words, is_current } = target;
        let stored = self.timed("get", || session.get(address)).unwrap();
        assert_eq!(stored.address, *address);
        let about = Query::default().when(Predicate::text_is("subject", subject.as_str()).unwrap());
        let found = self.all(&session, "query by subject", &about);
        assert!(found.is_none_or(|found| found.contains(address) == *is_current), "{}", self.name);
        let asked = Query::default().searching(words.as_str());
        let found = self.all(&session, "search", &asked);
        assert!(found.is_none_or(|found| found.contains(address) == *is_current), "{}", self.name);
        let versions = self.answered("history", || session.history(address).map_err(told));
        let has = |versions: Vec<grainstore::StoredGrain>| {
            versions.iter().any(|version| version.address == *address)
        };
        assert!(versions.is_none_or(has), "{}: its history has it", self.name);
        let fact = || session.history_of(subject, relation, None, None).map_err(told);
        assert!(self.answered("history of a fact", fact).is_none_or(has), "{}", self.name);
        let latest = self.answered("latest", || session.latest(subject, relation).map_err(told));
        assert!(latest.is_none_or(|latest| latest.is_some()), "{}", self.name);
        let near = EdgeQuery { limit: 100, ..EdgeQuery::default() };
        self.answered("neighbours", || session.neighbours(subject, &near).map_err(told));
        for statement in [
            "RECALL beliefs ABOUT $who",
            "RECALL beliefs ABOUT $who | COUNT",
            "RECALL beliefs ABOUT $who | OBJECTS",
            "RECALL beliefs ABOUT $who WITH explanation",
            "RECALL beliefs LIKE $words LIMIT 10",
            "ASSEMBLE FROM (RECALL beliefs ABOUT $who), (RECALL events LIKE $words) BUDGET 400 tokens",
            "ASSEMBLE FROM (RECALL ABOUT $who LIMIT 5) BUDGET 16000 tokens FORMAT json",
        ] {
            let texts = [("who", subject.as_str()), ("words", words.as_str())];
            self.answered(statement, || statement_of(&session, statement, &texts));
        }
    }

    /// Every page of an answer.
    pub(crate) fn all(
        &self,
        session: &Session,
        what: &str,
        query: &Query,
    ) -> Option<Vec<ContentAddress>> {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = PageOptions::first(1000).after(cursor);
            let page = self.answered(what, || session.query(query, &page).map_err(told))?;
            found.extend(page.results.iter().map(|row| row.content_address));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Some(found);
            }
        }
    }

    /// The harmless grain is found as if it were alone.
    fn ask_for_the_innocent(&self) {
        let session = self.session();
        let about = Query::default().when(Predicate::text_is("subject", "innocent").unwrap());
        for query in
            [about, Query::default().searching("oolong"), Query::default().searching("innoc*")]
        {
            let found = self.all(&session, "query of the innocent", &query);
            assert_eq!(found, Some(vec![self.innocent]), "{}", self.name);
        }
        assert_eq!(session.history(&self.innocent).unwrap().len(), 1);
        let asked = r#"ASSEMBLE FROM (RECALL beliefs ABOUT "innocent") BUDGET 100 tokens"#;
        let context = self.timed("ASSEMBLE of the innocent", || session.ask(asked)).unwrap();
        assert!(context.text().is_some_and(|text| text.contains("drinks oolong")), "{context:?}");
    }
}

/// The code and the text of an error.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
pub(crate) fn told(error: grainstore::Error) -> (String, String) {
    (error.code().to_owned(), error.to_string())
}

fn statement_of(
    session: &Session,
    statement: &str,
    texts: &[(&str, &str)],
) -> Result<cal::Response, (String, String)> {
    let refused = |error: cal::Error| (error.code().to_owned(), error.to_string());
    let mut params = Params::new();
    for (name, text) in texts.iter().filter(|(name, _)| statement.contains(&format!("${name}"))) {
        params.bind(name, &(*text).into()).map_err(refused)?;
    }
    let options = ExecuteOptions { params, ..ExecuteOptions::at(session.now()) };
    session.ask_with(statement.as_bytes(), &options).map_err(refused)
}

/// Whether a put was taken; else it was refused as it may be.
pub(crate) fn taken<T: Debug>(world: &World, what: &str, put: grainstore::Result<T>) -> Option<T> {
    world.answered(what, || put.map_err(told))
}
