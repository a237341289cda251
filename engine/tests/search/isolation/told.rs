//! What a session was told: every byte of an answer, searched for words and addresses.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::ControlFlow;

use data_encoding::BASE64URL_NOPAD;
use grainstore::cal::{Event, EventListener};
use grainstore::{ContentAddress, Cursor, Error, QueryPage, StoredGrain};
use serde::Serialize;

/// Answers and errors of one way to read.
#[derive(Default)]
pub(crate) struct Told {
    bytes: Vec<u8>,
    /// Where addresses stand as bytes, if they do.
    packed: Vec<u8>,
    /// The grains it was shown, where that is what it asked for.
    pub(crate) shown: Option<BTreeSet<ContentAddress>>,
    /// The codes of what was refused.
    pub(crate) refused: Vec<&'static str>,
}

impl EventListener for Told {
    fn on_event(&mut self, event: Event) -> ControlFlow<()> {
        self.json(&event);
        ControlFlow::Continue(())
    }
}

impl Told {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.push(b'\n');
    }

    pub(crate) fn packed(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
        self.packed.extend(bytes);
    }

    pub(crate) fn debug(&mut self, told: &impl Debug) {
        self.bytes(format!("{told:?}").as_bytes());
    }

    pub(crate) fn json(&mut self, told: &impl Serialize) {
        self.bytes(&serde_json::to_vec(told).unwrap());
    }

    /// A grain that is shown.
    pub(crate) fn grain(&mut self, address: ContentAddress) {
        self.shown.get_or_insert_default().insert(address);
        self.debug(&address);
    }

    pub(crate) fn stored(&mut self, stored: &StoredGrain) {
        self.grain(stored.address);
        self.bytes(&stored.blob);
        self.debug(&(&stored.state, &stored.access));
    }

    pub(crate) fn answer(&mut self, answer: &QueryPage) {
        for row in &answer.results {
            self.grain(row.content_address);
            self.json(row);
            self.debug(&row.state);
        }
        self.shown.get_or_insert_default();
        self.debug(&answer.total);
        if let Some(plan) = &answer.plan {
            self.json(plan);
        }
        if let Some(cursor) = &answer.next_cursor {
            self.cursor(cursor);
        }
    }

    fn cursor(&mut self, cursor: &Cursor) {
        let text = cursor.to_string();
        self.bytes(text.as_bytes());
        self.packed(&BASE64URL_NOPAD.decode(text.as_bytes()).unwrap());
    }

    pub(crate) fn error(&mut self, error: &Error) {
        self.refused.push(error.code());
        self.bytes(format!("{error} {error:?} {}", error.hint()).as_bytes());
    }

    /// What came of something; what is shown of it, if it was done.
    pub(crate) fn outcome<T>(
        &mut self,
        outcome: Result<T, Error>,
        tell: impl FnOnce(&mut Self, T),
    ) {
        match outcome {
            Ok(value) => tell(self, value),
            Err(error) => self.error(&error),
        }
    }

    /// The secrets in it: `zq` with three letters behind it.
    pub(crate) fn secrets(&self) -> BTreeSet<String> {
        let starts = self.bytes.windows(2).enumerate().filter(|(_, pair)| *pair == b"zq");
        let words = starts.map(|(at, _)| {
            let word = self.bytes[at..].iter().take(5).copied().take_while(u8::is_ascii_lowercase);
            word.map(char::from).collect::<String>()
        });
        words.filter(|word| word.len() == 5).collect()
    }

    /// The addresses in it: 64 hex digits, or the beginning of one in bytes.
    pub(crate) fn addresses<'a>(
        &self,
        known: impl Iterator<Item = &'a ContentAddress>,
    ) -> BTreeSet<ContentAddress> {
        let runs = self.bytes.split(|byte| !byte.is_ascii_hexdigit());
        let texts =
            runs.filter(|run| run.len() == 64).filter_map(|run| std::str::from_utf8(run).ok());
        let mut found: BTreeSet<ContentAddress> =
            texts.filter_map(|text| text.parse().ok()).collect();
        for address in known {
            let start = &address.as_bytes()[..8];
            if self.packed.windows(8).any(|bytes| bytes == start) {
                found.insert(*address);
            }
        }
        found
    }
}
