//! Markdown with front matter: the YAML between two lines of dashes, and the text behind it.
//!
//! Knows the form of notes, not what tools write into them.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Most bytes of a note.
pub(super) const MAX_NOTE_BYTES: u64 = 4 << 20;
/// Most bytes of front matter.
const MAX_FRONT_BYTES: usize = 64 << 10;

/// A note.
#[derive(Debug)]
pub(super) struct Note {
    /// The front matter; empty if there is none.
    pub(super) front: Map<String, Value>,
    /// The text behind it.
    pub(super) body: String,
}

impl Note {
    /// Reads a note. Dashes without an end are a part of its text.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for front matter that is no YAML, `ERR_SCHEMA` for one without names, `ERR_LIMIT`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let text = text.replace("\r\n", "\n");
        let block = text.strip_prefix("---\n").and_then(|rest| match rest.strip_prefix("---\n") {
            Some(body) => Some(("", body)),
            None => rest.split_once("\n---\n").or_else(|| Some((rest.strip_suffix("\n---")?, ""))),
        });
        let Some((front, body)) = block else {
            return Ok(Self { front: Map::new(), body: text });
        };
        if front.len() > MAX_FRONT_BYTES {
            let message = format!("front matter has {MAX_FRONT_BYTES} bytes at most");
            return Err(Error::limit(message));
        }
        let front = match front.trim() {
            "" => Map::new(),
            front => match serde_saphyr::from_str(front) {
                Ok(Value::Object(members)) => members,
                Ok(Value::Null) => Map::new(),
                Ok(_) => return Err(Error::schema("its front matter has no names")),
                Err(error) => {
                    return Err(Error::corrupt(format!("its front matter is no YAML: {error}")));
                }
            },
        };
        Ok(Self { front, body: body.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_what_stands_between_two_lines_of_dashes() {
        let cases = [
            ("---\ntitle: Tea\n---\nHot.\n", "Tea", "Hot.\n"),
            ("---\r\ntitle: Tea\r\n---\r\nHot.", "Tea", "Hot."),
            ("---\ntitle: Tea\n---", "Tea", ""),
            ("---\n---\nHot.", "", "Hot."),
            ("---\nno end", "", "---\nno end"),
            ("plain", "", "plain"),
            ("", "", ""),
        ];
        for (text, title, body) in cases {
            let note = Note::parse(text).unwrap();
            let found = note.front.get("title").and_then(Value::as_str).unwrap_or_default();
            assert_eq!((found, note.body.as_str()), (title, body), "{text:?}");
        }
    }

    #[test]
    fn front_matter_that_is_no_map_is_refused_with_a_code() {
        let bomb = format!("---\na: &a [1]\n{}---\n", "b: *a\n".repeat(2000));
        for (text, code) in [
            ("---\na: [1\n---\n", "ERR_CORRUPT"),
            ("---\n- a\n---\n", "ERR_SCHEMA"),
            ("---\na: 1\na: 2\n---\n", "ERR_CORRUPT"),
            (&bomb, "ERR_CORRUPT"),
            (&format!("---\na: {}\n---\n", "x".repeat(70_000)), "ERR_LIMIT"),
        ] {
            assert_eq!(Note::parse(text).unwrap_err().code(), code, "{text:.40}");
        }
    }
}
