//! The seam where words become tokens: in an encrypted store the index holds nothing that can be read,
//! or tested without a key. Knows no keys; the engine has them.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::field::{BLIND_MAP, BLIND_OBJECT, BLIND_RELATION, BLIND_SUBJECT, Field};
use crate::shape::{Object, Shape};
use crate::term::Word;

/// Who makes tokens for one keyholder. A token says nothing without the key, and differs from key to
/// key and from kind to kind.
pub trait Blind: fmt::Debug + Send + Sync {
    /// The token of a text of this keyholder.
    fn own(&self, kind: u8, text: &[u8]) -> [u8; 32];
    /// The token of what is found whoever it belongs to: addresses and user ids.
    fn shared(&self, kind: u8, text: &[u8]) -> [u8; 32];
    /// The token of a term of the full text.
    fn word(&self, term: &str) -> [u8; 32];
}

/// Whose tokens a reader looks for.
#[derive(Debug, Clone, Copy, Default)]
pub enum Eyes<'v> {
    /// Nobody's: the index holds words.
    #[default]
    Plain,
    /// Those of these keyholders.
    Of(&'v [Arc<dyn Blind>]),
    /// Those of these keyholders, and there are others whose keys nobody named: what only tells by
    /// those is refused.
    Some(&'v [Arc<dyn Blind>]),
}

impl<'v> Eyes<'v> {
    /// A shape in the tokens of everyone who is looked for; itself where the index holds words.
    ///
    /// # Errors
    /// `ERR_KEY` where there are others, and the shape has tokens of their own.
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

    /// A subject in the tokens of everyone who is looked for.
    ///
    /// # Errors
    /// As [`Eyes::shapes`].
    pub(crate) fn subjects<'a>(&self, subject: Word<'a>) -> Result<Vec<Word<'a>>> {
        let shapes = self.shapes(&Shape::subject(subject))?;
        let subjects = shapes.into_iter().filter_map(|shape| match shape {
            Shape::Triple { subject, .. } => subject,
            _ => None,
        });
        Ok(subjects.collect())
    }
}

/// Whether a shape tells by tokens that differ from keyholder to keyholder.
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
