//! Bound parameters: values for `$name`, under the same rules as literals (CAL 20.1).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::ast::{Literal, NumberLiteral};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::span::{Span, Spanned};
use crate::text;

/// Values for the parameters of a query.
///
/// ```
/// # use grainstore_cal::{AccessPlan, CancelHandle, Candidate, HashPrefix, Hit, HostInfo, Memory};
/// # use grainstore_cal::{MemoryError, NamedTemplate, PrefixMatch, Query, RecallStats};
/// # use grainstore_cal::{RecallVisitor, Score, SessionScope, TemplateSaveOutcome};
/// # use grainstore_format::{BeliefBuilder, Blob, ContentAddress, Encoding, EpochMs, Grain};
/// # use grainstore_format::{GrainRef, GrainState};
/// # type Outcome<T> = Result<T, MemoryError>;
/// # struct Notes(SessionScope, Vec<Blob>);
/// # fn no<T>() -> Outcome<T> { Err(MemoryError::new("ERR_NONE", "not in these notes", "")) }
/// # const NOW: EpochMs = EpochMs::new(1_768_471_200_000);
/// # fn notes() -> grainstore_format::Result<Notes> {
/// #     let belief = |object: &str| {
/// #         BeliefBuilder::new(NOW, "alice", "mg:prefers", object, 0.9)
/// #             .build()?.encode(Encoding::MessagePack)
/// #     };
/// #     Ok(Notes(SessionScope::default(), vec![belief("tea")?, belief("jazz")?]))
/// # }
/// # impl Memory for Notes {
/// #     fn scope(&self) -> &SessionScope { &self.0 }
/// #     fn recall(&self, query: &Query, cancel: &CancelHandle, visit: &mut RecallVisitor<'_>)
/// #         -> Outcome<RecallStats> {
/// #         let state = GrainState::default();
/// #         for blob in &self.1 {
/// #             cancel.check()?;
/// #             let Ok(grain) = GrainRef::new(blob.bytes()) else { return no() };
/// #             if query.matches(&blob.address(), &grain, &state, NOW) {
/// #                 let address = blob.address();
/// #                 let (grain, state) = (&grain, &state);
/// #                 let found = Candidate { address, grain, state, score: Score::STRUCTURAL };
/// #                 if visit(found).is_break() { break }
/// #             }
/// #         }
/// #         Ok(RecallStats { scanned: self.1.len() as u64, total: None })
/// #     }
/// #     fn matched_fields(&self, _: &Query, _: &[Hit], _: &CancelHandle)
/// #         -> Outcome<Vec<Vec<String>>> { no() }
/// #     fn locate(&self, _: &HashPrefix) -> Outcome<PrefixMatch> { Ok(PrefixMatch::Nothing) }
/// #     fn exists(&self, _: &ContentAddress) -> Outcome<bool> { no() }
/// #     fn get(&self, _: &ContentAddress) -> Outcome<Option<Hit>> { no() }
/// #     fn history(&self, _: &ContentAddress, _: usize) -> Outcome<Vec<Hit>> { no() }
/// #     fn thread(&self, _: &ContentAddress, _: usize, _: &CancelHandle)
/// #         -> Outcome<Vec<ContentAddress>> { no() }
/// #     fn explain(&self, _: &Query, _: &CancelHandle) -> Outcome<AccessPlan> {
/// #         Ok(AccessPlan { index: "none".to_owned(), estimated: 2, ..AccessPlan::default() })
/// #     }
/// #     fn describe(&self) -> Outcome<HostInfo> { no() }
/// #     fn templates(&self) -> Outcome<Vec<NamedTemplate>> { Ok(Vec::new()) }
/// #     fn save_template(&self, _: &NamedTemplate) -> Outcome<TemplateSaveOutcome> { no() }
/// #     fn add(&self, _: Grain, _: &str) -> Outcome<ContentAddress> { no() }
/// #     fn supersede(&self, _: &ContentAddress, _: Grain, _: &str)
/// #         -> Outcome<ContentAddress> { no() }
/// # }
/// use grainstore_cal::{Answer, ExecuteOptions, Params, WriteQuotas, execute};
///
/// // `notes()` is a `Memory` that holds two beliefs about alice.
/// let mut params = Params::new();
/// params.bind("what", &"tea".into())?;
/// let options = ExecuteOptions { params, ..ExecuteOptions::at(EpochMs::new(1_768_471_200_000)) };
/// let source = "RECALL beliefs WHERE object = $what";
/// let response = execute(&notes()?, source, &options, &WriteQuotas::default())?;
/// assert!(matches!(response.answer, Answer::Grains(answer) if answer.results.len() == 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params(BTreeMap<String, Literal<'static>>);

impl Params {
    /// Returns no parameters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a name, with or without its dollar, to a JSON string, number, boolean, array of these, or
    /// `{"hash": "sha256:..."}`.
    ///
    /// # Errors
    /// E009 if the name is bound already, E013 for more than 20 names, E015 for a malformed hash, E020 for
    /// other values, E071 for text with bidi controls.
    pub fn bind(&mut self, name: &str, value: &Value) -> Result<()> {
        let name = name.strip_prefix('$').unwrap_or(name);
        if self.0.contains_key(name) {
            return Err(Error::new(ErrorKind::BoundTwice, format!("${name} is bound twice")));
        }
        if self.0.len() == limits::MAX_PARAMETERS {
            let message = format!("at most {} parameters can be bound", limits::MAX_PARAMETERS);
            return Err(Error::new(ErrorKind::TooMany, message));
        }
        let literal = match value {
            Value::Array(items) => {
                let items: Result<Vec<_>> = items
                    .iter()
                    .map(|item| Ok(Spanned::new(scalar(name, item)?, Span::default())))
                    .collect();
                Literal::Array(items?)
            }
            single => scalar(name, single)?,
        };
        self.0.insert(name.to_owned(), literal);
        Ok(())
    }

    /// Returns names and values as a canonical text: equal bindings give equal text.
    pub(crate) fn canonical_text(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("${name} = {value}\n"));
        pairs.collect()
    }

    /// Returns the approximate memory used by names and values, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len().saturating_add(literal_bytes(value))).sum()
    }

    /// Returns the value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Literal<'static>> {
        self.0.get(name)
    }
}

/// Returns the memory of a value in bytes, with its container.
fn literal_bytes(value: &Literal<'_>) -> usize {
    let own = match value {
        Literal::Text(text) | Literal::Hash(text) => text.len(),
        Literal::Number(number) => number.text.len(),
        Literal::Array(items) => items.iter().map(|item| literal_bytes(&item.node)).sum(),
        _ => 0,
    };
    own.saturating_add(size_of::<Literal<'_>>())
}

fn scalar(name: &str, value: &Value) -> Result<Literal<'static>> {
    match value {
        Value::String(text) => Ok(Literal::Text(text::clean(Cow::Owned(text.clone()))?)),
        Value::Bool(flag) => Ok(Literal::Flag(*flag)),
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or(f64::MAX);
            Ok(Literal::Number(NumberLiteral { text: Cow::Owned(number.to_string()), value }))
        }
        Value::Object(object) if object.len() == 1 && object.contains_key("hash") => {
            hash(name, value.get("hash").and_then(Value::as_str))
        }
        _ => {
            let message = format!("${name} cannot be bound to this value");
            let advice =
                "bind a string, number, boolean, an array of these, or {\"hash\": \"sha256:...\"}";
            Err(Error::new(ErrorKind::WrongType, message).suggest(advice))
        }
    }
}

/// Returns the hash of `{"hash": ..}`, or E015 if it is malformed.
fn hash(name: &str, text: Option<&str>) -> Result<Literal<'static>> {
    let digits = text.and_then(|text| text.strip_prefix("sha256:"));
    match digits.filter(|digits| crate::lex::is_hash_digits(digits)) {
        Some(digits) => Ok(Literal::Hash(Cow::Owned(digits.to_owned()))),
        None => Err(Error::new(ErrorKind::BadHash, format!("${name} is bound to no hash"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bindings_follow_the_rules_of_literals() {
        for (value, code) in [
            (json!("text"), None),
            (json!(["a", 1, true]), None),
            (json!({"hash": "sha256:0123456789abcdef"}), None),
            (json!({"hash": "sha256:XYZ"}), Some("CAL-E015")),
            (json!({"hash": "sha256:0123"}), Some("CAL-E015")),
            (json!({"hash": "sha256:0123456789ABCDEF"}), Some("CAL-E015")),
            (json!({"hash": 5}), Some("CAL-E015")),
            (json!({"hash": "sha256:0123456789abcdef", "more": 1}), Some("CAL-E020")),
            (json!({"other": 5}), Some("CAL-E020")),
            (json!(null), Some("CAL-E020")),
            (json!([["nested"]]), Some("CAL-E020")),
            (json!("a\u{202E}b"), Some("CAL-E071")),
        ] {
            let refused = Params::new().bind("$p", &value).err();
            assert_eq!(refused.as_ref().map(Error::code), code, "{value}");
        }
    }

    #[test]
    fn what_values_take_grows_with_their_text_and_their_number() {
        let taken = |value: &Value| {
            let mut params = Params::new();
            params.bind("p", value).unwrap();
            params.memory_bytes()
        };
        let one = taken(&json!("a"));
        assert_eq!(taken(&json!("a".repeat(1_000))), one + 999);
        assert!(taken(&json!(vec!["a"; 1_000])) > 1_000 * (one - 2));
        assert_eq!(Params::new().memory_bytes(), 0);
    }

    #[test]
    fn a_name_is_bound_once_and_twenty_are_enough() {
        let mut params = Params::new();
        for at in 0..20 {
            params.bind(&format!("p{at}"), &json!(at)).unwrap();
        }
        assert_eq!(params.bind("$p0", &json!(1)).unwrap_err().code(), "CAL-E009");
        assert_eq!(params.bind("more", &json!(1)).unwrap_err().code(), "CAL-E013");
    }
}
