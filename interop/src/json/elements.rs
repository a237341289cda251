//! A large JSON document, an element at a time: no more than one is held, whatever the document weighs.
//!
//! Knows where the elements are, not what they mean.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufReader, Read};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::budget::{Budget, MAX_TOKEN_BYTES, Metered};
use super::parse::Strict;
use crate::archive::unread;
use crate::error::{Error, Result};

/// Bytes of memory that one element takes at most, and so does all beside the elements.
pub(crate) const MAX_ELEMENT_BYTES: u64 = 64 << 20;

/// One element of a list of a document.
#[derive(Debug)]
pub(crate) struct Element<'l> {
    /// The name of the list; empty if the document itself is the list.
    pub(crate) list: &'l str,
    /// Its place in the list, from 1.
    pub(crate) number: u64,
    /// `None` if it takes more than is held of one.
    pub(crate) value: Option<Value>,
}

/// What takes the elements.
pub(crate) type OnElement<'o> = &'o mut dyn FnMut(Element<'_>) -> Result<()>;

/// What a document is beside its elements.
#[derive(Debug)]
pub(crate) enum Document {
    /// A list, all of whose elements were told.
    List,
    /// An object: its members, but for the lists that were told.
    Object(Map<String, Value>),
    /// Another value.
    Other(Value),
}

/// Tells the elements of a document that is a list, or of those members of an object that have these names and are lists.
///
/// # Errors
/// `ERR_CORRUPT` if it is no JSON, or has bytes after it; `ERR_LIMIT` for a text that is too long; `ERR_IO`; the error that
/// `on` returns.
pub(crate) fn elements<R: Read>(source: R, lists: &[&str], on: OnElement<'_>) -> Result<Document> {
    let budget = Budget::of(MAX_ELEMENT_BYTES);
    let walk = Walk { budget: &budget, lists, on: RefCell::new(on), failure: RefCell::new(None) };
    let metered = BufReader::with_capacity(1 << 16, Metered { source, budget: &budget });
    let mut reader = serde_json::Deserializer::from_reader(metered);
    let part = Part { walk: &walk, member: None };
    let read = part.deserialize(&mut reader).and_then(|document| {
        budget.begin_token();
        reader.end().map(|()| document)
    });
    read.map_err(|error| match walk.failure.take() {
        Some(failure) => failure,
        None if budget.has_long_token() => {
            Error::limit(format!("a text has {MAX_TOKEN_BYTES} bytes at most"))
        }
        None if error.is_io() => unread(io::Error::from(error)),
        None => Error::corrupt(format!("not JSON: {error}")),
    })
}

/// Walks through the top of a document.
struct Walk<'w> {
    budget: &'w Budget,
    lists: &'w [&'w str],
    on: RefCell<OnElement<'w>>,
    /// What `on` failed with, which the reader of the JSON cannot carry.
    failure: RefCell<Option<Error>>,
}

impl Walk<'_> {
    /// Reads the members of the document, and tells the lists among them.
    fn members<'de, A: MapAccess<'de>>(
        &self,
        mut object: A,
    ) -> Result<Map<String, Value>, A::Error> {
        let (mut rest, mut names) = (Map::new(), BTreeSet::new());
        let mut left = MAX_ELEMENT_BYTES;
        while let Some(name) = object.next_key::<String>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format_args!(
                    "the name {name:?} is twice in an object"
                )));
            }
            self.budget.refill(left);
            let value = if self.lists.contains(&name.as_str()) {
                let part = Part { walk: self, member: Some(&name) };
                match object.next_value_seed(part)? {
                    Document::Other(value) => value,
                    _ => continue,
                }
            } else {
                object.next_value_seed(Strict(self.budget))?
            };
            left = self.budget.left();
            if self.budget.is_over() {
                return Err(A::Error::custom("there is too much beside its lists"));
            }
            rest.insert(name, value);
        }
        Ok(rest)
    }

    /// Tells the elements of one list.
    fn list<'de, A: SeqAccess<'de>>(&self, name: &str, mut list: A) -> Result<(), A::Error> {
        let mut number = 0_u64;
        loop {
            self.budget.refill(MAX_ELEMENT_BYTES);
            let Some(value) = list.next_element_seed(Strict(self.budget))? else { return Ok(()) };
            number = number.saturating_add(1);
            let value = (!self.budget.is_over()).then_some(value);
            let told = (self.on.borrow_mut())(Element { list: name, number, value });
            if let Err(error) = told {
                self.failure.replace(Some(error));
                return Err(A::Error::custom("ended"));
            }
        }
    }
}

/// The document, or a member of it that is told as a list if it is one.
struct Part<'p, 'w> {
    walk: &'p Walk<'w>,
    /// The name of the member.
    member: Option<&'p str>,
}

impl<'de> DeserializeSeed<'de> for Part<'_, '_> {
    type Value = Document;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Document, D::Error> {
        self.walk.budget.begin_token();
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_, '_> {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Document, A::Error> {
        self.walk.list(self.member.unwrap_or_default(), list).map(|()| Document::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Document, A::Error> {
        match self.member {
            None => self.walk.members(object).map(Document::Object),
            Some(_) => Strict(self.walk.budget).visit_map(object).map(Document::Other),
        }
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Other(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Other(Value::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Other(Value::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(Document::Other(Value::from(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document::Other(Value::from(value)))
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Other(Value::Null))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements that are told, each with its list, and the document.
    fn told(text: &str) -> Result<(Vec<String>, Document)> {
        let mut found = Vec::new();
        let document = elements(text.as_bytes(), &["rows"], &mut |element| {
            let Element { list, number, value } = element;
            found.push(format!("{list} {number} {}", value.unwrap_or_default()));
            Ok(())
        })?;
        Ok((found, document))
    }

    #[test]
    fn elements_are_told_one_by_one_and_the_rest_is_held() {
        let (found, document) = told(r#"[1, {"a": [2]}]"#).unwrap();
        assert_eq!(found, [" 1 1", r#" 2 {"a":[2]}"#]);
        assert!(matches!(document, Document::List));
        let (found, document) =
            told(r#"{"a": {"rows": [1]}, "rows": [true, null], "b": [3]}"#).unwrap();
        assert_eq!(found, ["rows 1 true", "rows 2 null"]);
        let Document::Object(rest) = document else { panic!("{document:?}") };
        assert_eq!(Value::Object(rest), serde_json::json!({"a": {"rows": [1]}, "b": [3]}));
        let (found, document) = told(r#"{"rows": {"a": 1}}"#).unwrap();
        assert!(found.is_empty());
        let Document::Object(rest) = document else { panic!("{document:?}") };
        assert_eq!(Value::Object(rest), serde_json::json!({"rows": {"a": 1}}));
        let (_, document) = told(r#""text""#).unwrap();
        assert!(matches!(document, Document::Other(Value::String(text)) if text == "text"));
    }

    #[test]
    fn what_is_no_whole_document_is_refused() {
        for text in
            ["", "[", "[1] 2", r#"{"a": 1, "a": 2}"#, r#"{"rows": [], "rows": []}"#, "[1e999]"]
        {
            assert_eq!(told(text).unwrap_err().code(), "ERR_CORRUPT", "{text}");
        }
    }

    #[test]
    fn the_error_of_whoever_takes_the_elements_comes_back() {
        let taken = elements(&b"[1, 2"[..], &[], &mut |_| Err(Error::limit("full")));
        assert_eq!(taken.unwrap_err().code(), "ERR_LIMIT");
    }
}
