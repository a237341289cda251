//! What a JSON document looks like from its beginning: the names in it, and where they are.
//!
//! Reads no further than it is given, and takes a document that breaks off as it is.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Names that are noted at most.
const MAX_NAMES: usize = 1000;
/// Levels that are looked at.
const MAX_DEPTH: usize = 4;

/// Returns the places of the names in the beginning of a document: `results[].memory` for a member of the elements of a
/// list. A document that is a text with JSON in it is `"`, one that is a list has `[]`.
pub(crate) fn outline(beginning: &[u8]) -> BTreeSet<String> {
    let found = RefCell::new(BTreeSet::new());
    let mut reader = serde_json::Deserializer::from_slice(beginning);
    // The beginning of a document is rarely a whole one.
    let _ = Part { found: &found, place: String::new(), depth: 0 }.deserialize(&mut reader);
    found.into_inner()
}

struct Part<'f> {
    found: &'f RefCell<BTreeSet<String>>,
    place: String,
    depth: usize,
}

impl Part<'_> {
    fn note(&self, place: &str) {
        let mut found = self.found.borrow_mut();
        if found.len() < MAX_NAMES {
            found.insert(place.to_owned());
        }
    }

    fn below(&self, place: String) -> Self {
        Self { found: self.found, place, depth: self.depth.saturating_add(1) }
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        match self.depth {
            0..MAX_DEPTH => source.deserialize_any(self),
            _ => IgnoredAny::deserialize(source).map(|_| ()),
        }
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(name) = object.next_key::<String>()? {
            let place = match self.place.as_str() {
                "" => name,
                above => format!("{above}.{name}"),
            };
            self.note(&place);
            object.next_value_seed(self.below(place))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let place = format!("{}[]", self.place);
        self.note(&place);
        while list.next_element_seed(self.below(place.clone()))?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.place.is_empty() && text.trim_start().starts_with(['{', '"']) {
            self.note("\"");
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_document_tells_the_places_of_its_names() {
        let cases: [(&str, &[&str]); 7] = [
            (r#"{"a": {"b": [{"c": 1}]}"#, &["a", "a.b", "a.b[]", "a.b[].c"]),
            (r#"[{"a": 1, "b"#, &["[]", "[].a"]),
            (r#""text""#, &[]),
            (r#""{\"a\": 1}""#, &["\""]),
            ("7", &[]),
            ("", &[]),
            ("no JSON", &[]),
        ];
        for (text, expected) in cases {
            let found = outline(text.as_bytes());
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{text}");
        }
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(outline(deep.as_bytes()).len() <= MAX_DEPTH);
    }
}
