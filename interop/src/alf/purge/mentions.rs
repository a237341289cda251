//! Copies of a content in files and other texts: as it is, with other spaces between its words, or written in JSON.

use std::io::{self, Read};

/// Characters that a content needs to be looked for: less would be found by chance.
const MIN_CHARS: usize = 16;
const PIECE_BYTES: usize = 64 << 10;

/// Finds copies of contents.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    needles: Vec<Vec<u8>>,
}

impl Mentions {
    /// Adds a content to look for.
    pub(super) fn add(&mut self, content: &str) {
        let plain = collapsed(content);
        if plain.chars().count() < MIN_CHARS {
            return;
        }
        let written = serde_json::to_string(content).unwrap_or_default();
        let written = collapsed(written.trim_matches('"'));
        for needle in [plain, written] {
            if !self.needles.contains(&needle.clone().into_bytes()) {
                self.needles.push(needle.into_bytes());
            }
        }
    }

    /// Returns `true` if a text has one of the contents.
    pub(super) fn are_in_text(&self, text: &str) -> bool {
        let text = collapsed(text).into_bytes();
        self.needles.iter().any(|needle| has(&text, needle))
    }

    /// Returns `true` if a file has one of the contents.
    ///
    /// # Errors
    /// Those of the source.
    pub(super) fn are_in(&self, mut source: impl Read) -> io::Result<bool> {
        let longest = self.needles.iter().map(Vec::len).max().unwrap_or_default();
        if longest == 0 {
            return Ok(false);
        }
        let (mut window, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
        loop {
            let read = source.read(&mut piece)?;
            if read == 0 {
                return Ok(false);
            }
            for byte in piece.get(..read).unwrap_or_default() {
                match byte.is_ascii_whitespace() {
                    true if window.last() == Some(&b' ') => {}
                    true => window.push(b' '),
                    false => window.push(*byte),
                }
            }
            if self.needles.iter().any(|needle| has(&window, needle)) {
                return Ok(true);
            }
            let passed = window.len().saturating_sub(longest);
            window.drain(..passed);
        }
    }
}

/// The words of a text with one space between them.
fn collapsed(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn has(text: &[u8], needle: &[u8]) -> bool {
    let Some((first, _)) = needle.split_first() else { return false };
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(needle) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_found_with_other_spaces_and_in_json_and_across_pieces() {
        let mut mentions = Mentions::default();
        mentions.add("too short");
        mentions.add("the key is\n \"tea and milk\"");
        let long = format!("{}the key is \"tea   and milk\"", "x".repeat(PIECE_BYTES - 9));
        for (text, found) in [
            ("so: the  key is \"tea\nand milk\".", true),
            (r#"{"a": "the key is\n \"tea and milk\""}"#, true),
            (long.as_str(), true),
            ("the key is tea and milk", false),
            ("too short", false),
            ("", false),
        ] {
            assert_eq!(mentions.are_in(text.as_bytes()).unwrap(), found, "{text}");
            assert_eq!(mentions.are_in_text(text), found, "{text}");
        }
    }
}
