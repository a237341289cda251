//! The term dictionary of a view, tables and tail: term ids, the namespaces of a scope, terms by prefix.
//!
//! Knows terms only; whether a term has postings is the reader's concern.

use std::ops::Bound;

use crate::error::{Error, Result};
use crate::layout::{self, TermForm};
use crate::lookup::Scope;
use crate::merge::{MergeIter, SortedInput};
use crate::run::lists::RunList;
use crate::tables::Tables;
use crate::tail::Tail;
use crate::term::{OwnedTermValue, Term, TermId, TermKind, TermValue, partition};

/// The term dictionary of one view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TermDictionary<'v> {
    pub(crate) tables: &'v Tables,
    pub(crate) tail: &'v Tail,
}

/// A term key with its row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DictionaryEntry {
    key: Vec<u8>,
    row: Vec<u8>,
}

impl DictionaryEntry {
    /// The id of the term.
    pub(crate) fn id(&self) -> Result<TermId> {
        let id = layout::split_term_row(&self.row).map(|(id, _)| id);
        id.ok_or_else(|| Error::integrity("a term row is too short"))
    }

    /// The text or token of the term.
    pub(crate) fn value(&self) -> Result<OwnedTermValue> {
        let name = match layout::split_term_key(&self.key) {
            Some((TermForm::Plain, text)) => plain(text),
            Some((TermForm::Token, token)) => token.try_into().ok().map(OwnedTermValue::Token),
            Some((TermForm::Digest, _)) => {
                layout::split_term_row(&self.row).and_then(|(_, text)| plain(text))
            }
            Some((TermForm::Id, _)) | None => None,
        };
        name.ok_or_else(|| Error::integrity("a term cannot be read"))
    }
}

fn plain(text: &[u8]) -> Option<OwnedTermValue> {
    std::str::from_utf8(text).ok().map(|text| OwnedTermValue::Plain(text.to_owned()))
}

impl<'v> TermDictionary<'v> {
    /// The tables and the tail.
    pub(crate) fn view(&self) -> (&'v Tables, &'v Tail) {
        (self.tables, self.tail)
    }

    /// The id of a term; `None` if the view does not have it.
    pub(crate) fn id(&self, kind: TermKind, word: TermValue<'_>) -> Result<Option<TermId>> {
        let key = layout::term_key(&Term { kind, value: word });
        match self.tail.parts().find_map(|part| part.terms.get(key.as_slice())) {
            Some(known) => Ok(Some(known.id)),
            None if kind == TermKind::Subject => self.tables.term_id(&key),
            None => self.tables.frequent_term_id(&key),
        }
    }

    /// The text or token of a relation.
    pub(crate) fn relation_value(&self, id: TermId) -> Result<OwnedTermValue> {
        let missing = || Error::integrity("a relation has no term");
        let new = self.tail.parts().find_map(|part| part.relations.get(&id));
        let key = match new {
            Some(key) => key.to_vec(),
            None => self.tables.term_row(&layout::relation_id_key(id))?.ok_or_else(missing)?,
        };
        let new = self.tail.parts().find_map(|part| part.terms.get(key.as_slice())?.row.clone());
        let row = match new {
            Some(row) => row.to_vec(),
            None => self.tables.term_row(&key)?.ok_or_else(missing)?,
        };
        DictionaryEntry { key, row }.value()
    }

    /// The ids of all namespaces in a scope, ascending, without duplicates.
    pub(crate) fn namespaces(&self, scope: &Scope<'_>) -> Result<Vec<TermId>> {
        if let Scope::All = scope {
            let next = self.tables.next_ids()?.namespace.max(self.tail.next_namespace());
            return Ok((TermId::FIRST.get()..next.get()).map(TermId::new).collect());
        }
        let ids = self.namespace_entries(scope)?.map(|named| named?.id());
        let mut ids: Vec<TermId> = ids.collect::<Result<_>>()?;
        ids.sort_unstable();
        Ok(ids)
    }

    /// The dictionary entries of the namespaces in a scope.
    pub(crate) fn namespace_entries(
        &self,
        scope: &Scope<'_>,
    ) -> Result<Box<dyn Iterator<Item = Result<DictionaryEntry>> + 'v>> {
        let root = match *scope {
            Scope::Exact(word) => return self.exact_namespace(word),
            Scope::Subtree(root) => partition(root),
            Scope::All => {
                let all = layout::term_key_bytes(TermKind::Namespace, TermForm::Plain, &[]);
                let after = layout::term_key_bytes(TermKind::Namespace, TermForm::Id, &[]);
                return Ok(Box::new(self.entries_between(&all, &after)?));
            }
        };
        let below = format!("{root}:");
        let short = self.terms_with_prefix(TermKind::Namespace, &below)?;
        // Names too long for a plain key are compared in full.
        let long = layout::term_key_bytes(TermKind::Namespace, TermForm::Digest, &[]);
        let long = self.entries_between(&long, &layout::prefix_end(&long))?.filter_map(move |named| {
            let below = named.and_then(|named| {
                let is_below =
                    matches!(named.value()?, OwnedTermValue::Plain(text) if text.starts_with(&below));
                Ok(is_below.then_some(named))
            });
            below.transpose()
        });
        Ok(Box::new(self.exact_namespace(TermValue::Plain(root))?.chain(short).chain(long)))
    }

    /// The plaintext terms of a kind with a prefix, in byte order. Terms keyed by a digest are not included.
    pub(crate) fn terms_with_prefix(
        &self,
        kind: TermKind,
        start: &str,
    ) -> Result<MergeIter<'v, DictionaryEntry>> {
        let lower = layout::term_key_bytes(kind, TermForm::Plain, start.as_bytes());
        self.entries_between(&lower, &layout::prefix_end(&lower))
    }

    /// The namespace of this name, if there is one.
    fn exact_namespace(
        &self,
        word: TermValue<'_>,
    ) -> Result<Box<dyn Iterator<Item = Result<DictionaryEntry>> + 'v>> {
        let word = match word {
            TermValue::Plain(name) => TermValue::Plain(partition(name)),
            token @ TermValue::Token(_) => token,
        };
        let term = Term { kind: TermKind::Namespace, value: word };
        let id = self.id(term.kind, term.value)?;
        let named = id.map(|id| DictionaryEntry {
            key: layout::term_key(&term),
            row: layout::term_row(id, &term),
        });
        Ok(Box::new(named.map(Ok).into_iter()))
    }

    /// The terms with keys from `lower` (included) to `upper` (excluded), tables and tail merged.
    fn entries_between(
        &self,
        lower: &[u8],
        upper: &[u8],
    ) -> Result<MergeIter<'v, DictionaryEntry>> {
        let entry =
            |key: &[u8], row: &[u8]| Ok(DictionaryEntry { key: key.to_vec(), row: row.to_vec() });
        let mut sources: Vec<SortedInput<'v, DictionaryEntry>> = Vec::new();
        for folded in self.tables.inputs(RunList::TERMS, lower, entry)? {
            let upper = upper.to_vec();
            let is_below = move |entry: &Result<DictionaryEntry>| {
                entry.as_ref().map_or(true, |entry| entry.key < upper)
            };
            sources.push(Box::new(folded.take_while(is_below)));
        }
        for part in self.tail.parts() {
            let within = (Bound::Included(lower), Bound::Excluded(upper));
            let new = part.terms.range::<_, [u8]>(within).filter_map(|(key, term)| {
                let row = term.row.as_ref()?.to_vec();
                Some(Ok(DictionaryEntry { key: key.to_vec(), row }))
            });
            sources.push(Box::new(new));
        }
        MergeIter::new(sources)
    }
}
