//! Translation of values to blind tokens. The index of an encrypted store holds nothing that can be read, or
//! tested for a guess, without a key. This module holds no keys; the engine does.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::field::{BLIND_MAP, BLIND_OBJECT, BLIND_RELATION, BLIND_SUBJECT, Field};
use crate::lookup::{IndexLookup, Object};
use crate::term::TermValue;

/// Computes the blind tokens of one key holder. A token reveals nothing without the key, and differs between
/// keys and between kinds.
///
/// ```
/// use grainstore_index::Blinder;
///
/// // Tokens without a key, which a store would not use.
/// #[derive(Debug)]
/// struct Open;
///
/// impl Blinder for Open {
///     fn own_token(&self, kind: u8, text: &[u8]) -> [u8; 32] { [kind ^ text.len() as u8; 32] }
///     fn shared_token(&self, kind: u8, text: &[u8]) -> [u8; 32] { self.own_token(kind, text) }
///     fn term_token(&self, term: &str) -> [u8; 32] { self.own_token(0, term.as_bytes()) }
/// }
/// assert_eq!(Open.term_token("tea"), Open.own_token(0, b"tea"));
/// ```
pub trait Blinder: fmt::Debug + Send + Sync {
    /// The token of a text under this holder's own key.
    fn own_token(&self, kind: u8, text: &[u8]) -> [u8; 32];
    /// The token of a value that is found for any owner (addresses and user ids), under the shared key.
    fn shared_token(&self, kind: u8, text: &[u8]) -> [u8; 32];
    /// The token of a term of the full text.
    fn term_token(&self, term: &str) -> [u8; 32];
}

/// The key holders whose tokens a reader looks up, each a [`Blinder`].
#[derive(Debug, Clone, Copy, Default)]
pub enum TokenScope<'v> {
    /// No tokens: the index is plaintext.
    #[default]
    Plain,
    /// The tokens of these key holders, who are all there are.
    Complete(&'v [Arc<dyn Blinder>]),
    /// The tokens of these key holders, while others exist whose users were not named. A lookup that needs
    /// the others' own tokens is refused.
    Partial(&'v [Arc<dyn Blinder>]),
}

impl<'v> TokenScope<'v> {
    /// Translates a lookup to one lookup for each key holder; returns it unchanged for a plaintext index.
    ///
    /// # Errors
    /// `ERR_KEY` if other key holders exist and the lookup needs their own tokens.
    pub(crate) fn lookups<'a>(&self, shape: &IndexLookup<'a>) -> Result<Vec<IndexLookup<'a>>> {
        let blinds = match self {
            Self::Plain => return Ok(vec![*shape]),
            Self::Complete(blinds) => *blinds,
            Self::Partial(blinds) => {
                if needs_own_tokens(shape) {
                    return Err(Error::key());
                }
                *blinds
            }
        };
        let mut shapes: Vec<IndexLookup<'a>> = Vec::with_capacity(blinds.len());
        for blind in blinds {
            let blinded = blind_lookup(blind.as_ref(), shape);
            if !shapes.contains(&blinded) {
                shapes.push(blinded);
            }
        }
        Ok(shapes)
    }

    /// Translates a subject to its tokens, one for each key holder.
    ///
    /// # Errors
    /// Those of [`TokenScope::lookups`].
    pub(crate) fn subjects<'a>(&self, subject: TermValue<'a>) -> Result<Vec<TermValue<'a>>> {
        let shapes = self.lookups(&IndexLookup::subject(subject))?;
        let subjects = shapes.into_iter().filter_map(|shape| match shape {
            IndexLookup::Triple { subject, .. } => subject,
            _ => None,
        });
        Ok(subjects.collect())
    }
}

/// Returns `true` if a lookup uses tokens that differ between key holders.
fn needs_own_tokens(shape: &IndexLookup<'_>) -> bool {
    match shape {
        IndexLookup::All | IndexLookup::Type(_) => false,
        IndexLookup::Value(field, _) => !field.is_shared(),
        IndexLookup::Triple { subject, relation, object } => {
            subject.is_some() || relation.is_some() || object.is_some()
        }
    }
}

fn blind_lookup<'a>(blind: &dyn Blinder, shape: &IndexLookup<'a>) -> IndexLookup<'a> {
    match *shape {
        IndexLookup::All | IndexLookup::Type(_) => *shape,
        IndexLookup::Value(field, word) => {
            IndexLookup::Value(field, value_token(blind, field, word))
        }
        IndexLookup::Triple { subject, relation, object } => IndexLookup::Triple {
            subject: subject.map(|word| own_token(blind, BLIND_SUBJECT, word)),
            relation: relation.map(|word| own_token(blind, BLIND_RELATION, word)),
            object: object.map(|object| object_token(blind, object)),
        },
    }
}

/// The token of a subject.
pub(crate) fn subject_token<'a>(blind: &dyn Blinder, word: TermValue<'_>) -> TermValue<'a> {
    own_token(blind, BLIND_SUBJECT, word)
}

/// The token of a relation.
pub(crate) fn relation_token<'a>(blind: &dyn Blinder, word: TermValue<'_>) -> TermValue<'a> {
    own_token(blind, BLIND_RELATION, word)
}

/// The token of a value of a field.
pub(crate) fn value_token<'a>(
    blind: &dyn Blinder,
    field: Field<'_>,
    word: TermValue<'_>,
) -> TermValue<'a> {
    match word {
        TermValue::Token(token) => TermValue::Token(token),
        TermValue::Plain(text) => {
            let text = field.normalize(text).as_bytes();
            TermValue::Token(match field.is_shared() {
                true => blind.shared_token(field.byte(), text),
                false => blind.own_token(field.byte(), text),
            })
        }
    }
}

/// The token of an object.
pub(crate) fn object_token<'a>(blind: &dyn Blinder, object: Object<'_>) -> Object<'a> {
    Object::Text(match object {
        Object::Text(word) => own_token(blind, BLIND_OBJECT, word),
        Object::Map(hash) => TermValue::Token(blind.own_token(BLIND_MAP, &hash)),
    })
}

fn own_token<'a>(blind: &dyn Blinder, kind: u8, word: TermValue<'_>) -> TermValue<'a> {
    match word {
        TermValue::Token(token) => TermValue::Token(token),
        TermValue::Plain(text) => TermValue::Token(blind.own_token(kind, text.as_bytes())),
    }
}
