//! Translation of values to blind tokens. The index of an encrypted store holds nothing that can be read, or
//! tested for a guess, without a key. This module holds no keys; the engine does.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::field::{BLIND_MAP, BLIND_OBJECT, BLIND_RELATION, BLIND_SUBJECT, Field};
use crate::shape::{Object, Shape};
use crate::term::Word;

/// Computes the blind tokens of one key holder. A token reveals nothing without the key, and differs between
/// keys and between kinds.
pub trait Blind: fmt::Debug + Send + Sync {
    /// The token of a text under this holder's own key.
    fn own(&self, kind: u8, text: &[u8]) -> [u8; 32];
    /// The token of a value that is found for any owner (addresses and user ids), under the shared key.
    fn shared(&self, kind: u8, text: &[u8]) -> [u8; 32];
    /// The token of a term of the full text.
    fn word(&self, term: &str) -> [u8; 32];
}

/// The key holders whose tokens a reader looks up.
#[derive(Debug, Clone, Copy, Default)]
pub enum Eyes<'v> {
    /// No tokens: the index is plaintext.
    #[default]
    Plain,
    /// The tokens of these key holders, who are all there are.
    Of(&'v [Arc<dyn Blind>]),
    /// The tokens of these key holders, while others exist whose users were not named. A lookup that needs
    /// the others' own tokens is refused.
    Some(&'v [Arc<dyn Blind>]),
}

impl<'v> Eyes<'v> {
    /// Translates a lookup to one lookup for each key holder; returns it unchanged for a plaintext index.
    ///
    /// # Errors
    /// `ERR_KEY` if other key holders exist and the lookup needs their own tokens.
    pub(crate) fn shapes<'a>(&self, shape: &Shape<'a>) -> Result<Vec<Shape<'a>>> {
        let blinds = match self {
            Self::Plain => return Ok(vec![*shape]),
            Self::Of(blinds) => *blinds,
            Self::Some(blinds) => {
                if is_own(shape) {
                    return Err(Error::key());
                }
                *blinds
            }
        };
        let mut shapes: Vec<Shape<'a>> = Vec::with_capacity(blinds.len());
        for blind in blinds {
            let blinded = blind_shape(blind.as_ref(), shape);
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
    pub(crate) fn subjects<'a>(&self, subject: Word<'a>) -> Result<Vec<Word<'a>>> {
        let shapes = self.shapes(&Shape::subject(subject))?;
        let subjects = shapes.into_iter().filter_map(|shape| match shape {
            Shape::Triple { subject, .. } => subject,
            _ => None,
        });
        Ok(subjects.collect())
    }
}

/// Returns `true` if a lookup uses tokens that differ between key holders.
fn is_own(shape: &Shape<'_>) -> bool {
    match shape {
        Shape::All | Shape::Type(_) => false,
        Shape::Value(field, _) => !field.is_shared(),
        Shape::Triple { subject, relation, object } => {
            subject.is_some() || relation.is_some() || object.is_some()
        }
    }
}

fn blind_shape<'a>(blind: &dyn Blind, shape: &Shape<'a>) -> Shape<'a> {
    match *shape {
        Shape::All | Shape::Type(_) => *shape,
        Shape::Value(field, word) => Shape::Value(field, value(blind, field, word)),
        Shape::Triple { subject, relation, object } => Shape::Triple {
            subject: subject.map(|word| token(blind, BLIND_SUBJECT, word)),
            relation: relation.map(|word| token(blind, BLIND_RELATION, word)),
            object: object.map(|object| object_token(blind, object)),
        },
    }
}

/// The token of a subject.
pub(crate) fn subject<'a>(blind: &dyn Blind, word: Word<'_>) -> Word<'a> {
    token(blind, BLIND_SUBJECT, word)
}

/// The token of a relation.
pub(crate) fn relation<'a>(blind: &dyn Blind, word: Word<'_>) -> Word<'a> {
    token(blind, BLIND_RELATION, word)
}

/// The token of a value of a field.
pub(crate) fn value<'a>(blind: &dyn Blind, field: Field<'_>, word: Word<'_>) -> Word<'a> {
    match word {
        Word::Token(token) => Word::Token(token),
        Word::Plain(text) => {
            let text = field.normal(text).as_bytes();
            Word::Token(match field.is_shared() {
                true => blind.shared(field.byte(), text),
                false => blind.own(field.byte(), text),
            })
        }
    }
}

/// The token of an object.
pub(crate) fn object_token<'a>(blind: &dyn Blind, object: Object<'_>) -> Object<'a> {
    Object::Text(match object {
        Object::Text(word) => token(blind, BLIND_OBJECT, word),
        Object::Map(hash) => Word::Token(blind.own(BLIND_MAP, &hash)),
    })
}

fn token<'a>(blind: &dyn Blind, kind: u8, word: Word<'_>) -> Word<'a> {
    match word {
        Word::Token(token) => Word::Token(token),
        Word::Plain(text) => Word::Token(blind.own(kind, text.as_bytes())),
    }
}
