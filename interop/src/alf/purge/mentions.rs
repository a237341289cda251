//! Copies of texts in files and elsewhere: as they are, with other spaces between their words, or written in JSON, with
//! any of its escapes, also as JSON within JSON.
//!
//! Bytes go through one automaton for many texts, piece by piece: the work grows with the bytes, and the memory with
//! neither. So many texts that one automaton would be too large are looked for in several turns.

use std::collections::BTreeSet;
use std::io::{self, Read};

use aho_corasick::AhoCorasick;

use super::unescape::Unescaper;
use crate::error::{Error, Result};

/// Characters that a text needs to be looked for: less would be found by chance.
const MIN_CHARS: usize = 16;
/// Bytes of a text that are looked for: where so many are, there is a copy.
const MAX_NEEDLE_BYTES: usize = 1 << 10;
/// Bytes of the texts of one automaton, which takes some 50 times as many.
const MAX_TURN_BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 64 << 10;
/// How often a text may be written in JSON within JSON.
const DEPTH: usize = 3;

/// Texts to look for.
#[derive(Debug, Default)]
pub(in super::super) struct Mentions {
    needles: BTreeSet<Vec<u8>>,
    ignores_case: bool,
}

/// Finds some of the texts.
#[derive(Debug)]
pub(in super::super) struct Finder {
    automaton: AhoCorasick,
    longest: usize,
}

impl Mentions {
    /// Adds a text to look for.
    pub(super) fn add(&mut self, text: &str) {
        let plain = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        if plain.chars().count() >= MIN_CHARS {
            let mut needle = plain.into_bytes();
            needle.truncate(MAX_NEEDLE_BYTES);
            self.needles.insert(needle);
        }
    }

    /// Adds an id to look for, with and without its hyphens, in either case.
    pub(super) fn add_id(&mut self, id: &str) {
        self.ignores_case = true;
        for needle in [id.to_owned(), id.replace('-', "")] {
            self.needles.insert(needle.into_bytes());
        }
    }

    /// Calls `each` with finders that find all texts together, one after the other.
    ///
    /// # Errors
    /// `ERR_LIMIT` for texts that no automaton can be built of; those of `each`.
    pub(in super::super) fn each_finder(
        &self,
        mut each: impl FnMut(&Finder) -> Result<()>,
    ) -> Result<()> {
        let (mut turn, mut bytes) = (Vec::new(), 0_usize);
        let mut needles = self.needles.iter().peekable();
        while let Some(needle) = needles.next() {
            turn.push(needle);
            bytes = bytes.saturating_add(needle.len());
            if bytes >= MAX_TURN_BYTES || needles.peek().is_none() {
                each(&Finder::of(&turn, self.ignores_case)?)?;
                turn.clear();
                bytes = 0;
            }
        }
        Ok(())
    }
}

impl Finder {
    fn of(needles: &[&Vec<u8>], ignores_case: bool) -> Result<Self> {
        let longest = needles.iter().map(|needle| needle.len()).max().unwrap_or_default();
        let automaton = AhoCorasick::builder().ascii_case_insensitive(ignores_case).build(needles);
        let automaton = automaton.map_err(|error| Error::limit(error.to_string()))?;
        Ok(Self { automaton, longest })
    }

    /// Returns `true` if a text has one of those that are looked for.
    pub(in super::super) fn is_in_text(&self, text: &str) -> bool {
        // Memory does not fail.
        self.search(text.as_bytes(), text.len()).unwrap_or_default()
    }

    /// Returns `true` if a file has one of them.
    ///
    /// # Errors
    /// Those of the source.
    pub(in super::super) fn is_in(&self, source: impl Read) -> io::Result<bool> {
        self.search(source, PIECE_BYTES)
    }

    fn search(&self, mut source: impl Read, piece_bytes: usize) -> io::Result<bool> {
        let mut layers: Vec<Layer> = (0..=DEPTH).map(Layer::of).collect();
        let mut piece = vec![0; piece_bytes.clamp(1, PIECE_BYTES)];
        loop {
            let read = source.read(&mut piece)?;
            let mut bytes = piece.get(..read).unwrap_or_default().to_vec();
            for layer in &mut layers {
                if let Some(unescaper) = &mut layer.unescaper {
                    bytes = match read {
                        0 => unescaper.finish(&bytes),
                        _ => unescaper.take(&bytes),
                    };
                }
                layer.add(&bytes);
                if layer.differs() && self.automaton.is_match(&layer.window) {
                    return Ok(true);
                }
                layer.pass(self.longest);
            }
            if read == 0 {
                return Ok(false);
            }
        }
    }
}

/// The bytes of a file as they are, or with escapes taken back once or several times.
struct Layer {
    unescaper: Option<Unescaper>,
    /// The last bytes, with one space for several.
    window: Vec<u8>,
}

impl Layer {
    fn of(depth: usize) -> Self {
        let unescaper = (depth > 0).then(Unescaper::default);
        Self { unescaper, window: Vec::new() }
    }

    /// Returns `false` if the layer before has the same bytes.
    fn differs(&self) -> bool {
        self.unescaper.as_ref().is_none_or(Unescaper::has_changed)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte.is_ascii_whitespace() {
                true if self.window.last() == Some(&b' ') => {}
                true => self.window.push(b' '),
                false => self.window.push(*byte),
            }
        }
    }

    /// Forgets what no text can begin in any more.
    fn pass(&mut self, longest: usize) {
        let passed = self.window.len().saturating_sub(longest);
        self.window.drain(..passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(mentions: &Mentions, text: &[u8]) -> bool {
        let mut found = false;
        let each = |finder: &Finder| {
            found |= finder.is_in(text)?;
            Ok(())
        };
        mentions.each_finder(each).unwrap();
        found
    }

    #[test]
    fn a_copy_is_found_with_other_spaces_and_in_json_and_across_pieces() {
        let mut mentions = Mentions::default();
        mentions.add("too short");
        mentions.add("the key is\n \"tea and milk\" \u{e9}\u{1f511} C:\\users");
        let across = |fill: usize, text: &str| format!("{}{text}", "x".repeat(PIECE_BYTES - fill));
        let plain = "the key is \"tea   and milk\" \u{e9}\u{1f511} C:\\users";
        let written = r#"the key is\n \"tea and m\u0069lk\" \u00E9\ud83d\uDD11 C:\\users"#;
        let twice = serde_json::to_string(&format!("{{\"a\": \"{written}\"}}")).unwrap();
        let thrice = serde_json::to_string(&twice).unwrap();
        for (text, found) in [
            (plain, true),
            (written, true),
            (&format!("{{\"a\": \"{written}\"}}"), true),
            (&twice, true),
            (&thrice, true),
            ("the key is \"tea and milk\" \u{e9}", false),
            ("too short", false),
            ("", false),
        ] {
            assert_eq!(is_in(&mentions, text.as_bytes()), found, "{text}");
            for fill in 0..80 {
                assert_eq!(is_in(&mentions, across(fill, text).as_bytes()), found, "{text}");
            }
        }
    }

    #[test]
    fn many_texts_are_found_in_several_turns() {
        let mut mentions = Mentions::default();
        let text = |number: usize| format!("{number:09}{}", "y".repeat(5_000));
        (0..3_000).for_each(|number| mentions.add(&text(number)));
        let mut turns = 0;
        mentions
            .each_finder(|_| {
                turns += 1;
                Ok(())
            })
            .unwrap();
        assert!(turns >= 2, "{turns}");
        for number in [0, 1_500, 2_999] {
            assert!(is_in(&mentions, text(number).as_bytes()), "{number}");
        }
        assert!(!is_in(&mentions, text(3_000).as_bytes()));
    }
}
