//! The LoCoMo conversations: five long talks of two people, with questions about them and the turns
//! that answer them.
//!
//! They lie beside the project and are no part of it. Knows files and grains, and no store.

use std::fs;
use std::path::{Path, PathBuf};

use grainstore::embed::{Embedding, Metric};
use grainstore_format::{Encoding, EpochMs, EventBuilder, Grain};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// The conversations of the folder.
pub const NAMES: [&str; 5] = ["conv-26", "conv-30", "conv-41", "conv-42", "conv-43"];
/// What made the vectors of the folder.
pub const MODEL: &str = "all-MiniLM-L6-v2";
/// Numbers of each vector.
const DIMENSION: usize = 384;

/// The folder of the conversations: `data/locomo` in `GRAINSTORE_SHARED`, or in `../shared` beside
/// the workspace. None where it is not there.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let shared = std::env::var_os("GRAINSTORE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let folder = shared.join("data/locomo");
    folder.is_dir().then_some(folder)
}

/// A conversation, with the questions about it that some turn of it answers.
#[derive(Debug)]
pub struct Conversation {
    /// As the folder names it.
    pub name: &'static str,
    /// What was said, in order.
    pub turns: Vec<Turn>,
    /// What is asked about it.
    pub questions: Vec<Question>,
}

/// Something that was said.
#[derive(Debug, Deserialize)]
pub struct Turn {
    /// What the questions call it.
    dia_id: String,
    session: String,
    time_ms: i64,
    speaker: String,
    text: String,
    /// Of a picture that was shared with it.
    caption: Option<String>,
    #[serde(skip)]
    vector: Vec<f32>,
}

/// A question about a conversation.
#[derive(Debug, Deserialize)]
pub struct Question {
    /// The question itself.
    #[serde(rename = "question")]
    pub text: String,
    /// Which kind it is of, from 1 to 5.
    pub category: u8,
    #[serde(default)]
    evidence: Vec<String>,
    /// The turns that answer it, by their place in the conversation, ascending; at least one.
    #[serde(skip)]
    pub answers: Vec<usize>,
    /// What the model makes of it.
    #[serde(skip)]
    pub vector: Vec<f32>,
}

impl Conversation {
    /// Reads a conversation. Questions that no turn of it answers are left out.
    ///
    /// # Errors
    /// For files that cannot be read, or are not what they should be.
    pub fn read(folder: &Path, name: &'static str) -> Result<Self, Error> {
        let mut turns: Vec<Turn> = rows(&folder.join(format!("{name}.turns.jsonl")))?;
        let of_turns = vectors(&folder.join(format!("{name}.turns.f32")), turns.len())?;
        for (turn, vector) in turns.iter_mut().zip(of_turns) {
            turn.vector = vector;
        }
        let mut questions: Vec<Question> = rows(&folder.join(format!("{name}.qa.jsonl")))?;
        let of_questions = vectors(&folder.join(format!("{name}.qa.f32")), questions.len())?;
        for (question, vector) in questions.iter_mut().zip(of_questions) {
            question.vector = vector;
            let is_answer = |turn: &Turn| question.evidence.contains(&turn.dia_id);
            let answers = turns.iter().enumerate().filter(|(_, turn)| is_answer(turn));
            question.answers = answers.map(|(at, _)| at).collect();
        }
        questions.retain(|question| !question.answers.is_empty());
        Ok(Self { name, turns, questions })
    }

    /// The namespace its turns are kept in.
    #[must_use]
    pub fn namespace(&self) -> String {
        format!("locomo:{}", self.name)
    }
}

impl Turn {
    /// The turn as an event whose content is `speaker: text [shares caption]`, which is what the
    /// vectors were made of. With `in_session` it is part of the session it was said in.
    ///
    /// # Errors
    /// Never for the turns of the folder; the builder's own otherwise.
    pub fn grain(&self, namespace: &str, in_session: bool) -> Result<Grain, Error> {
        let at = EpochMs::new(self.time_ms);
        let mut content = format!("{}: {}", self.speaker, self.text);
        if let Some(caption) = &self.caption {
            content.push_str(&format!(" [shares {caption}]"));
        }
        let mut event =
            EventBuilder::new(at, content).role("user").timestamp_ms(at).namespace(namespace);
        if in_session {
            event = event.session_id(self.session.as_str());
        }
        Ok(event.build()?)
    }

    /// What the model makes of the turn.
    ///
    /// # Errors
    /// Never for the vectors of the folder; the store's own otherwise.
    pub fn embedding(&self) -> Result<Embedding, Error> {
        Ok(Embedding::new(MODEL, Metric::Cosine, self.vector.clone())?)
    }
}

/// Every turn of the five conversations as an event of its bare text, linked to the turn before it in its
/// session.
///
/// # Errors
/// As [`Conversation::read`].
pub fn linked_turns(folder: &Path) -> Result<Vec<Grain>, Error> {
    let mut grains = Vec::new();
    for name in NAMES {
        let turns: Vec<Turn> = rows(&folder.join(format!("{name}.turns.jsonl")))?;
        let mut before: Option<(String, String)> = None;
        for turn in turns {
            let at = EpochMs::new(turn.time_ms);
            let mut event = EventBuilder::new(at, turn.text)
                .subject(turn.speaker)
                .relation("mg:said")
                .role("user")
                .timestamp_ms(at)
                .session_id(turn.session.as_str())
                .namespace(format!("locomo:{name}"));
            if let Some((session, address)) = &before
                && *session == turn.session
            {
                event = event.parent_message_id(address.as_str());
            }
            let grain = event.build()?;
            let address = grain.encode(Encoding::MessagePack)?.address();
            before = Some((turn.session, address.to_string()));
            grains.push(grain);
        }
    }
    Ok(grains)
}

/// The lines of a file, each a JSON object.
fn rows<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Error> {
    let text = fs::read_to_string(path)?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// The vectors of a file, row by row, little-endian.
fn vectors(path: &Path, count: usize) -> Result<Vec<Vec<f32>>, Error> {
    let bytes = fs::read(path)?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || numbers.len() != count * DIMENSION {
        let message = format!("{}: not {count} vectors of {DIMENSION} numbers", path.display());
        return Err(message.into());
    }
    let row = |row: &[[u8; 4]]| row.iter().map(|number| f32::from_le_bytes(*number)).collect();
    Ok(numbers.chunks(DIMENSION).map(row).collect())
}
