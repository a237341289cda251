//! Cases of CAL as data: what is asked of which store, and what has to come of it. Knows no store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use crate::cal_corpus::labels::Labels;

/// One case: a statement, what it is asked of, and what may follow it.
#[derive(Debug)]
pub(crate) struct Case {
    /// The file it stands in.
    pub(crate) file: String,
    pub(crate) about: About,
    /// The first statement, and those after it on the same store.
    pub(crate) steps: Vec<Step>,
}

/// What a case is about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub(crate) name: String,
    /// The section of the language, or of CAL.md, that it holds.
    #[serde(rename = "rule")]
    pub(crate) _section: String,
    /// Names of the universe in `coverage` that it is a case of.
    #[serde(default)]
    pub(crate) covers: Vec<String>,
    /// A name in `stores.json`.
    #[serde(default = "empty")]
    pub(crate) store: String,
    /// The present, in ISO 8601; that of the store without it.
    pub(crate) now: Option<String>,
    #[serde(default)]
    pub(crate) then: Vec<Step>,
}

fn empty() -> String {
    "empty".to_owned()
}

/// One statement and what has to come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// The statement in text: as it is, or in parts that are repeated.
    pub(crate) query: Option<Spelled>,
    /// Bytes instead of a text.
    pub(crate) query_hex: Option<String>,
    /// The statement in JSON, where it is not made of the text.
    pub(crate) json: Option<Json>,
    /// The JSON as it is sent, where it is no JSON that could stand in the case.
    pub(crate) json_text: Option<Spelled>,
    /// Parameters by name.
    #[serde(default)]
    pub(crate) params: Vec<(String, Json)>,
    /// How far it may go: 1 unless it says 0.
    pub(crate) tier: Option<u8>,
    #[serde(default)]
    pub(crate) session: As,
    #[serde(default)]
    pub(crate) host: HostSays,
    /// The present of this statement and those after it.
    pub(crate) now: Option<String>,
    /// How often it is asked, with the same outcome.
    pub(crate) times: Option<usize>,
    /// The label of the grain it writes.
    #[serde(rename = "as")]
    pub(crate) writes: Option<String>,
    /// The statement in its normal form.
    pub(crate) printed: Option<String>,
    /// The results by their labels, in order.
    pub(crate) grains: Option<Vec<String>>,
    /// The results stand in the order of their addresses, whatever that is.
    #[serde(default)]
    pub(crate) by_address: bool,
    /// The text for a model.
    pub(crate) text: Option<Lines>,
    /// What has to stand in the answer; more may stand in its objects.
    pub(crate) answer: Option<Json>,
    /// JSON Pointers of what must not be in the answer.
    #[serde(default)]
    pub(crate) without: Vec<String>,
    /// Codes of the warnings, in order.
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
    pub(crate) error: Option<Refusal>,
}

/// As whom a statement is asked.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct As {
    pub(crate) namespace: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) actor: Option<String>,
    pub(crate) agent: Option<String>,
    #[serde(default)]
    pub(crate) purposes: Vec<String>,
}

/// What the host says about a request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostSays {
    /// Auto-TOON is on.
    #[serde(default)]
    pub(crate) auto_toon: bool,
    /// It was cancelled before it began.
    #[serde(default)]
    pub(crate) cancelled: bool,
    /// Its time was up before it began.
    #[serde(default)]
    pub(crate) time_up: bool,
    /// A token is a word between spaces and newlines.
    #[serde(default)]
    pub(crate) counts_words: bool,
}

impl HostSays {
    /// Whether it leaves everything as it is.
    pub(crate) fn is_silent(&self) -> bool {
        !(self.auto_toon || self.cancelled || self.time_up || self.counts_words)
    }
}

/// An error, as a caller sees it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    /// The piece of the query it is at.
    pub(crate) at: Option<String>,
    /// Which of several such pieces, from 1.
    pub(crate) nth: Option<usize>,
    /// The whole position, where the piece does not tell.
    pub(crate) position: Option<Json>,
    /// It has no place in the query.
    #[serde(default)]
    pub(crate) nowhere: bool,
    /// The JSON Pointer of its place in the form in JSON.
    pub(crate) pointer: Option<String>,
    pub(crate) suggestion: Option<String>,
    /// The same in the form in JSON, where it has a spelling of its own.
    pub(crate) json_suggestion: Option<String>,
    pub(crate) example: Option<String>,
    pub(crate) valid_values: Option<Vec<String>>,
}

/// A text, or parts of one.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Spelled {
    Text(String),
    Lines(Vec<Part>),
}

/// A line, or a piece that is repeated.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Part {
    Line(String),
    Piece { text: String, times: usize },
}

/// A text as it is, or its lines.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Lines {
    Text(String),
    Lines(Vec<String>),
}

impl Spelled {
    /// The text: lines joined by newlines, pieces as they are.
    pub(crate) fn text(&self) -> String {
        let parts = match self {
            Self::Text(text) => return text.clone(),
            Self::Lines(parts) => parts,
        };
        let mut text = String::new();
        for (at, part) in parts.iter().enumerate() {
            match part {
                Part::Line(line) => {
                    text += line;
                    let last = at + 1 == parts.len();
                    if !last && matches!(parts[at + 1], Part::Line(_)) {
                        text.push('\n');
                    }
                }
                Part::Piece { text: piece, times } => text += &piece.repeat(*times),
            }
        }
        text
    }
}

impl Lines {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Lines(lines) => lines.join("\n"),
        }
    }
}

impl Step {
    /// The bytes of the query in text, if it has one.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match (&self.query, &self.query_hex) {
            (Some(query), None) => Some(query.text().into_bytes()),
            (None, Some(hex)) => Some(HEXLOWER.decode(hex.as_bytes()).unwrap()),
            (None, None) => None,
            (Some(_), Some(_)) => panic!("a statement in text and in bytes"),
        }
    }

    /// The query, in whichever form it has, with digits for labels.
    pub(crate) fn readable(&self) -> Option<String> {
        let json = || self.json.as_ref().map(Json::to_string);
        let text = self.query.as_ref().map(Spelled::text).or_else(json);
        text.map(|text| Labels::spell_any(&text))
    }

    /// Whether it says what the answer has to be.
    pub(crate) fn expects_an_answer(&self) -> bool {
        self.grains.is_some() || self.text.is_some() || self.answer.is_some()
    }
}

/// The folder of the cases.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/cal")
}

/// A store by its name in `stores.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreSpec {
    /// What it is for.
    #[serde(rename = "about")]
    _about: String,
    /// The present of the cases that do not say otherwise.
    pub(crate) now: String,
    /// Fields of each grain that does not have them.
    #[serde(default)]
    pub(crate) common: Map<String, Json>,
    pub(crate) steps: Vec<Json>,
}

/// The stores by name.
pub(crate) fn stores() -> BTreeMap<String, StoreSpec> {
    read(&folder().join("stores.json"))
}

/// Statements that are nearly CAL, of one of the files of [`NEAR_MISSES`].
pub(crate) fn near_misses<T: DeserializeOwned>(file: &str) -> Vec<T> {
    read(&folder().join(file).with_extension("json"))
}

/// The files of statements that are nearly CAL: those that mending was made with, and others.
pub(crate) const NEAR_MISSES: [&str; 2] = ["near-misses", "near-misses-2"];

/// All cases, in the order of their files.
pub(crate) fn all() -> Vec<Case> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        stem.is_some_and(|stem| stem != "stores" && !NEAR_MISSES.contains(&stem))
    });
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let rows: Vec<Map<String, Json>> = read(&path);
        cases.extend(rows.into_iter().map(|row| Case::of(&file, row)));
    }
    cases
}

/// The keys of a case that are not of its first statement.
const ABOUT: [&str; 6] = ["name", "rule", "covers", "store", "now", "then"];

impl Case {
    fn of(file: &str, row: Map<String, Json>) -> Self {
        let name = row.get("name").map(ToString::to_string).unwrap_or_default();
        let (about, step): (Map<_, _>, Map<_, _>) =
            row.into_iter().partition(|(key, _)| ABOUT.contains(&key.as_str()));
        let about: About = read_as(about.into(), &name);
        let mut steps = vec![read_as::<Step>(step.into(), &name)];
        steps.extend(about.then.iter().cloned());
        Self { file: file.to_owned(), about, steps }
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> T {
    let bytes = std::fs::read(path).unwrap();
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_as<T: DeserializeOwned>(json: Json, name: &str) -> T {
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{name}: {error}"))
}
