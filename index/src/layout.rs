//! Byte layouts of the rows that are not postings: terms, id counters and the watermark. Big-endian
//! throughout.
//!
//! Knows no tables. A change of any layout raises [`LAYOUT`](crate::keys::LAYOUT).

use sha2::{Digest, Sha256};

use crate::posting::Sequence;
use crate::posting::Watermark;
use crate::term::{NextIds, Term, TermId, TermKind, TermValue};

/// Longer plaintext is keyed by its digest, which keeps keys short.
pub(crate) const MAX_KEY_TEXT_BYTES: usize = 256;

/// The encoding of a term's text in its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermForm {
    /// The text itself, at most [`MAX_KEY_TEXT_BYTES`].
    Plain = 0,
    /// A blind token of 32 bytes.
    Token = 1,
    /// The SHA-256 of a longer text.
    Digest = 2,
    /// Not a term: an id, in the rows that lead from relation ids to term keys.
    Id = 3,
}

/// The byte of a kind. It is never 0xFF, so a key exists after each kind.
const fn kind_byte(kind: TermKind) -> u8 {
    match kind {
        TermKind::Namespace => 1,
        TermKind::Subject => 2,
        TermKind::Relation => 3,
    }
}

/// The key of a term: `kind:1 form:1 bytes`.
pub(crate) fn term_key(term: &Term<'_>) -> Vec<u8> {
    let text = match term.value {
        TermValue::Token(token) => return term_key_bytes(term.kind, TermForm::Token, &token),
        TermValue::Plain(text) => text.as_bytes(),
    };
    if text.len() > MAX_KEY_TEXT_BYTES {
        return term_key_bytes(term.kind, TermForm::Digest, &Sha256::digest(text));
    }
    term_key_bytes(term.kind, TermForm::Plain, text)
}

/// The value of a term row: `id:5`, and the full text if the key is a digest.
pub(crate) fn term_row(id: TermId, term: &Term<'_>) -> Vec<u8> {
    let text = match term.value {
        TermValue::Plain(text) if text.len() > MAX_KEY_TEXT_BYTES => text,
        _ => "",
    };
    [&id_bytes(id), text.as_bytes()].concat()
}

/// Splits a term row into its id and its text.
pub(crate) fn split_term_row(row: &[u8]) -> Option<(TermId, &[u8])> {
    let ([a, b, c, d, e], text) = row.split_first_chunk()?;
    Some((TermId::new(u64::from_be_bytes([0, 0, 0, *a, *b, *c, *d, *e])), text))
}

/// The key of the row that leads from a relation's id to its term key.
pub(crate) fn relation_id_key(id: TermId) -> Vec<u8> {
    term_key_bytes(TermKind::Relation, TermForm::Id, &id_bytes(id))
}

/// Builds `kind:1 form:1 bytes`, which is also the common prefix of all keys whose bytes start so.
pub(crate) fn term_key_bytes(kind: TermKind, form: TermForm, bytes: &[u8]) -> Vec<u8> {
    [&[kind_byte(kind), form as u8], bytes].concat()
}

/// The first key after all keys with this prefix: the last byte below 0xFF is incremented, what follows is
/// cut.
pub(crate) fn prefix_end(start: &[u8]) -> Vec<u8> {
    let mut after = start.to_vec();
    while let Some(last) = after.pop() {
        if let Some(next) = last.checked_add(1) {
            after.push(next);
            break;
        }
    }
    after
}

/// Splits a term key into its form and its bytes.
pub(crate) fn split_term_key(key: &[u8]) -> Option<(TermForm, &[u8])> {
    let (form, bytes) = key.split_first()?.1.split_first()?;
    let forms = [TermForm::Plain, TermForm::Token, TermForm::Digest, TermForm::Id];
    let form = forms.into_iter().find(|known| *known as u8 == *form)?;
    Some((form, bytes))
}

/// The counters row: the next id of each kind, 8 bytes each.
pub(crate) fn next_ids_row(ids: &NextIds) -> [u8; 24] {
    let numbers = [ids.namespace, ids.subject, ids.relation].map(|id| id.get().to_be_bytes());
    join(&[numbers.as_flattened()])
}

/// Decodes the counters row; `None` for a row of another length.
pub(crate) fn decode_next_ids(row: &[u8]) -> Option<NextIds> {
    let (numbers, []) = row.as_chunks::<8>() else {
        return None;
    };
    let [namespace, subject, relation] = *numbers else {
        return None;
    };
    let id = |bytes| TermId::new(u64::from_be_bytes(bytes));
    Some(NextIds { namespace: id(namespace), subject: id(subject), relation: id(relation) })
}

/// The watermark row: `sequence:8 address:32`.
pub(crate) fn watermark_row(mark: &Watermark) -> [u8; 40] {
    join(&[&mark.sequence.get().to_be_bytes(), &mark.address])
}

/// Decodes the watermark row; `None` for a row of another length.
pub(crate) fn decode_watermark(row: &[u8]) -> Option<Watermark> {
    let (sequence, address) = row.split_first_chunk()?;
    let sequence = Sequence::new(u64::from_be_bytes(*sequence));
    Some(Watermark { sequence, address: address.try_into().ok()? })
}

fn id_bytes(id: TermId) -> [u8; 5] {
    let [_, _, _, bytes @ ..] = id.get().to_be_bytes();
    bytes
}

/// Concatenates parts; callers pass parts that fill exactly `N` bytes.
fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut joined = [0; N];
    for (slot, byte) in joined.iter_mut().zip(parts.iter().copied().flatten()) {
        *slot = *byte;
    }
    joined
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
