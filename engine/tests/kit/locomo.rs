//! The LoCoMo conversations as grains: read from the data beside the project, never copied into it.
//!
//! One turn is one event: what a speaker said, in a session, after the turn before.

use std::path::{Path, PathBuf};

use grainstore::format::{ContentAddress, EpochMs, EventBuilder, Grain};
use grainstore::{PutOutcome, Result, Session};
use serde_json::Value;

/// The conversations the tests know.
pub(crate) const NAMES: [&str; 5] = ["conv-26", "conv-30", "conv-41", "conv-42", "conv-43"];
/// The relation of a turn to its speaker.
pub(crate) const SAID: &str = "mg:said";

/// One conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) namespace: String,
    pub(crate) turns: Vec<Turn>,
}

/// One turn of it, with the grain that holds it.
#[derive(Debug)]
pub(crate) struct Turn {
    /// What the questions of the data set name it by.
    pub(crate) dia_id: String,
    pub(crate) session: String,
    pub(crate) speaker: String,
    pub(crate) grain: Grain,
    pub(crate) address: ContentAddress,
}

/// The folder of shared data: the one the environment names, or the one beside the workspace.
pub(crate) fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let shared = std::env::var_os("GRAINSTORE_SHARED").map_or(beside, PathBuf::from);
    let folder = shared.join("data/locomo");
    folder.is_dir().then_some(folder)
}

impl Conversation {
    /// Reads a conversation and makes its grains, each linked to the turn before in its session.
    pub(crate) fn read(folder: &Path, name: &str) -> Self {
        let text = std::fs::read_to_string(folder.join(format!("{name}.turns.jsonl"))).unwrap();
        let namespace = format!("locomo:{name}");
        let mut turns: Vec<Turn> = Vec::new();
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let word = |name: &str| row[name].as_str().unwrap().to_owned();
            let (session, speaker) = (word("session"), word("speaker"));
            let said = EpochMs::new(row["time_ms"].as_i64().unwrap());
            let mut event = EventBuilder::new(said, word("text"))
                .subject(speaker.as_str())
                .relation(SAID)
                .role("user")
                .session_id(session.as_str())
                .timestamp_ms(said)
                .namespace(namespace.as_str());
            if let Some(before) = turns.last().filter(|before| before.session == session) {
                event = event.parent_message_id(before.address.to_string());
            }
            let grain = event.build().unwrap();
            let address = grain.encode(Default::default()).unwrap().address();
            turns.push(Turn { dia_id: word("dia_id"), session, speaker, grain, address });
        }
        Self { namespace, turns }
    }

    /// Stores it, one session of the conversation a batch.
    pub(crate) fn ingest(&self, session: &Session) -> Result<Vec<PutOutcome>> {
        let mut puts = Vec::new();
        for turns in self.turns.chunk_by(|turn, next| turn.session == next.session) {
            puts.extend(session.put_batch(turns.iter().map(|turn| turn.grain.clone()))?);
        }
        Ok(puts)
    }
}
