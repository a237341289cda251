//! Terms of a whole view, tables and tail: ids, the namespaces of a scope, words by their start.
//!
//! Knows the dictionary only; whether anything is posted under a term is the reader's question.

use std::ops::Bound;

use crate::dictionary::DictionaryRead;
use crate::error::{Error, Result};
use crate::keys::{self, Form};
use crate::merge::{Merge, Source};
use crate::shape::Scope;
use crate::tables::Tables;
use crate::tail::Tail;
use crate::term::{Term, TermId, TermKind, Word, partition};

/// The terms of one view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'v> {
    pub(crate) tables: &'v Tables,
    pub(crate) tail: &'v Tail,
}

/// A term key with its id.
pub(crate) type Named = (Vec<u8>, TermId);

impl<'v> Names<'v> {
    /// The id of a term.
    pub(crate) fn id(&self, kind: TermKind, word: Word<'_>) -> Result<Option<TermId>> {
        let term = Term::new(kind, word);
        match self.tail.terms().get(keys::term_key(&term).as_slice()) {
            Some(new) => Ok(Some(new.id)),
            None => self.tables.id(&term),
        }
    }

    /// The ids of all namespaces in a scope, each once.
    pub(crate) fn namespaces(&self, scope: &Scope<'_>) -> Result<Vec<TermId>> {
        match *scope {
            Scope::Exact(Word::Plain(name)) => self.namespace(Word::Plain(partition(name))),
            Scope::Exact(token) => self.namespace(token),
            Scope::Subtree(root) => self.subtree(partition(root)),
            Scope::All => {
                let mut ids = Vec::new();
                for form in [Form::Plain, Form::Token, Form::Digest] {
                    for named in self.with_form(TermKind::Namespace, form)? {
                        ids.push(named?.1);
                    }
                }
                Ok(ids)
            }
        }
    }

    /// Terms in plaintext of a kind whose text starts so, in the order of their bytes. Terms that
    /// are keyed by a digest are not among them.
    pub(crate) fn starting_with(&self, kind: TermKind, start: &str) -> Result<Merge<'v, Named>> {
        let lower = keys::form_key(kind, Form::Plain, start.as_bytes());
        let upper = keys::key_after(&lower);
        self.between(&lower, &upper)
    }

    fn namespace(&self, name: Word<'_>) -> Result<Vec<TermId>> {
        Ok(self.id(TermKind::Namespace, name)?.into_iter().collect())
    }

    /// A namespace and all below it. Names beyond the key length are compared by their rows.
    fn subtree(&self, root: &str) -> Result<Vec<TermId>> {
        let mut ids = self.namespace(Word::Plain(root))?;
        let below = format!("{root}:");
        for named in self.starting_with(TermKind::Namespace, &below)? {
            ids.push(named?.1);
        }
        for named in self.with_form(TermKind::Namespace, Form::Digest)? {
            let (key, id) = named?;
            if self.row_starts_with(&key, id, &below)? {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    fn row_starts_with(&self, key: &[u8], id: TermId, start: &str) -> Result<bool> {
        let starts = |row: &[u8]| keys::plain_text(row).map(|text| text.starts_with(start));
        let answer = match self.tail.terms().get(key) {
            Some(new) => starts(&new.row),
            None => self.tables.ids.get(&keys::id_bytes(id))?.and_then(|row| starts(row.value())),
        };
        answer.ok_or_else(|| Error::integrity("a term has no readable row"))
    }

    fn with_form(&self, kind: TermKind, form: Form) -> Result<Merge<'v, Named>> {
        let lower = keys::form_key(kind, form, &[]);
        let upper = keys::key_after(&lower);
        self.between(&lower, &upper)
    }

    /// Terms with keys from `lower` to before `upper`, of tables and tail as one.
    fn between(&self, lower: &[u8], upper: &[u8]) -> Result<Merge<'v, Named>> {
        let folded = self.tables.terms.range::<&[u8]>(lower..upper)?.map(|entry| {
            let (key, id) = entry?;
            Ok((key.value().to_vec(), keys::id_of(*id.value())))
        });
        let within = (Bound::Included(lower), Bound::Excluded(upper));
        let tail =
            self.tail.terms().range::<_, [u8]>(within).map(|(key, new)| Ok((key.to_vec(), new.id)));
        Merge::of([Box::new(folded) as Source<'v, Named>, Box::new(tail)])
    }
}
