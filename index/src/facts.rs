//! What a grain says that this slice of the indexes answers. Knows fields, not bytes or ids.

use grainstore_format::{EpochMs, GrainRef, GrainType, ValueRef};

use crate::term::Word;

/// The indexed facts of one grain. The engine of an encrypted store replaces words by tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts<'a> {
    /// The partition it belongs to; never empty.
    pub namespace: Word<'a>,
    /// Its type, by header byte.
    pub grain_type: GrainType,
    /// The subject of its triple.
    pub subject: Option<Word<'a>>,
    /// The relation of its triple; indexed together with a subject only.
    pub relation: Option<Word<'a>>,
    /// Its `session_id`.
    pub session: Option<Word<'a>>,
    /// Its `structural_tags`; repeated tags count once.
    pub tags: Vec<Word<'a>>,
    /// Its `timestamp_ms`, else its `created_at`.
    pub time: EpochMs,
}

impl<'a> Facts<'a> {
    /// The facts of a plaintext grain. Allocates for tags only.
    #[must_use]
    pub fn of(grain: &GrainRef<'a>) -> Self {
        let word = |name| grain.text(name).map(Word::Plain);
        let tags = match grain.get("structural_tags") {
            Some(ValueRef::Array(tags)) => {
                tags.iter().filter_map(|tag| tag.as_str().map(Word::Plain)).collect()
            }
            _ => Vec::new(),
        };
        Self {
            namespace: Word::Plain(grain.partition()),
            grain_type: grain.grain_type(),
            subject: word("subject"),
            relation: word("relation"),
            session: word("session_id"),
            tags,
            time: grain.time(),
        }
    }
}

#[cfg(test)]
mod tests {
    use grainstore_format::{Encoding, Grain};

    use super::*;

    #[test]
    fn facts_are_read_from_both_encodings() {
        let full = r#"{"type": "belief", "subject": "alice", "relation": "prefers",
            "object": "dark mode", "confidence": 0.9, "created_at": 1768471200000,
            "timestamp_ms": 5, "namespace": "a:b", "session_id": "s1",
            "structural_tags": ["ui", "taste"]}"#;
        let bare = r#"{"type": "event", "content": "hello", "created_at": 1768471200000}"#;
        let of_full = Facts {
            namespace: Word::Plain("a:b"),
            grain_type: GrainType::Belief,
            subject: Some(Word::Plain("alice")),
            relation: Some(Word::Plain("prefers")),
            session: Some(Word::Plain("s1")),
            tags: vec![Word::Plain("ui"), Word::Plain("taste")],
            time: EpochMs::new(5),
        };
        let of_bare = Facts {
            namespace: Word::Plain("shared"),
            grain_type: GrainType::Event,
            subject: None,
            relation: None,
            session: None,
            tags: Vec::new(),
            time: EpochMs::new(1_768_471_200_000),
        };
        for (json, expected) in [(full, of_full), (bare, of_bare)] {
            for encoding in [Encoding::MessagePack, Encoding::Cbor] {
                let blob = Grain::from_json(json).unwrap().encode(encoding).unwrap();
                let grain = GrainRef::new(blob.bytes()).unwrap();
                assert_eq!(Facts::of(&grain), expected, "{encoding:?}");
            }
        }
    }
}
