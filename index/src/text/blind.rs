//! Terms as blind tokens, for grains whose text cannot be read without a key. Holds no keys.
//!
//! A token is made of a whole term: equal terms of one key holder match; prefixes and similar terms do not.

use data_encoding::BASE64URL_NOPAD;

use super::clause::{Clause, Phrase, TermMatch};
use super::document::{Document, DocumentTerm};
use super::query::FullTextQuery;
use crate::blind::Blinder;
use crate::error::{Error, Result};

/// Bytes of a token that are kept: 20 characters in Base64.
const STORED_TOKEN_BYTES: usize = 15;

/// The indexed form of a blinded term. No analysed term begins with U+0001.
fn token(blind: &dyn Blinder, term: &str) -> Box<str> {
    let token = blind.term_token(term);
    let kept = BASE64URL_NOPAD.encode(token.get(..STORED_TOKEN_BYTES).unwrap_or(&token));
    format!("\u{1}{kept}").into()
}

impl Document {
    /// Replaces the terms of the document by blind tokens.
    #[must_use]
    pub fn blinded(&self, blind: &dyn Blinder) -> Self {
        let word =
            |word: &DocumentTerm| DocumentTerm { term: token(blind, &word.term), ..word.clone() };
        self.terms().iter().map(word).collect()
    }
}

impl FullTextQuery {
    /// Translates the query to the blind tokens of a key holder.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a prefix or a fuzzy term, which tokens cannot match.
    pub fn blinded(&self, blind: &dyn Blinder) -> Result<Self> {
        let clause = |clause: &Clause| {
            Ok(Clause { occur: clause.occur, ask: blind_match(blind, &clause.ask)? })
        };
        self.clauses().iter().map(clause).collect()
    }
}

fn blind_match(blind: &dyn Blinder, ask: &TermMatch) -> Result<TermMatch> {
    Ok(match ask {
        TermMatch::Word(terms) => {
            TermMatch::Word(terms.iter().map(|term| token(blind, term)).collect())
        }
        TermMatch::Phrase(terms) => TermMatch::Phrase(blind_phrase(blind, terms)),
        TermMatch::Identifier(term, phrases) => {
            let phrases = phrases.iter().map(|phrase| blind_phrase(blind, phrase));
            TermMatch::Identifier(token(blind, term), phrases.collect())
        }
        TermMatch::Prefix(_) | TermMatch::Begin(..) | TermMatch::Fuzzy(..) => {
            let message = "encrypted words are found whole: not by their beginning, nor misspelt";
            return Err(Error::limit(message));
        }
    })
}

fn blind_phrase(blind: &dyn Blinder, phrase: &Phrase) -> Phrase {
    phrase.iter().map(|(term, far)| (token(blind, term), *far)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Language;

    #[derive(Debug)]
    struct Key(u8);

    impl Blinder for Key {
        fn own_token(&self, kind: u8, text: &[u8]) -> [u8; 32] {
            let mut token = [self.0; 32];
            token.iter_mut().zip(text).for_each(|(to, from)| *to ^= from ^ kind);
            token
        }

        fn shared_token(&self, kind: u8, text: &[u8]) -> [u8; 32] {
            Self(0).own_token(kind, text)
        }

        fn term_token(&self, term: &str) -> [u8; 32] {
            self.own_token(9, term.as_bytes())
        }
    }

    fn question(text: &str) -> FullTextQuery {
        FullTextQuery::parse(text, Language::from_code("en").unwrap()).unwrap()
    }

    #[test]
    fn a_question_asks_for_the_tokens_documents_have_of_the_same_key() {
        let document: Document = ["cat", "dog"]
            .map(|term| DocumentTerm { term: term.into(), weight: 1, lent: 0, places: [0].into() })
            .into_iter()
            .collect();
        let asked = |key| question("cat").blinded(&Key(key)).unwrap();
        let kept = document.blinded(&Key(1));
        assert!(asked(1).matches(&kept));
        assert!(!asked(2).matches(&kept), "another key");
        assert!(!question("cat").matches(&kept), "the word itself");
        assert!(kept.terms().iter().all(|word| word.term.len() == 21));
        assert!(kept.terms().is_sorted_by(|a, b| a.term < b.term));
    }

    #[test]
    fn beginnings_and_slips_are_refused() {
        for text in ["uni*", "wrod~", "+uni*", "cat -dgo~"] {
            let refused = question(text).blinded(&Key(1));
            assert_eq!(refused.map_err(|e| e.kind().code()).err(), Some("ERR_LIMIT"), "{text}");
        }
        assert!(question("\"cat dog\" -bird").blinded(&Key(1)).is_ok());
    }
}
