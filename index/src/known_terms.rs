//! Ids of terms that were looked up, kept with a snapshot: of relations and namespaces there are few, and they are asked
//! for again and again.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use crate::error::Result;
use crate::term::TermId;

/// Terms that are kept; further ones are looked up each time.
const MAX_KEPT: usize = 256;
/// Bytes of the longest key that is kept.
const MAX_KEY_BYTES: usize = 64;

/// Some terms of a snapshot, by their keys.
#[derive(Debug, Default)]
pub(crate) struct KnownTerms {
    ids: RwLock<BTreeMap<Box<[u8]>, TermId>>,
}

impl KnownTerms {
    /// The id of the term with this key; `look_up` is asked if it is not known.
    ///
    /// # Errors
    /// Those of `look_up`.
    pub(crate) fn id(
        &self,
        key: &[u8],
        look_up: impl FnOnce() -> Result<Option<TermId>>,
    ) -> Result<Option<TermId>> {
        let known = self.ids.read().unwrap_or_else(PoisonError::into_inner).get(key).copied();
        if known.is_some() {
            return Ok(known);
        }
        let found = look_up()?;
        if let Some(id) = found.filter(|_| key.len() <= MAX_KEY_BYTES) {
            let mut ids = self.ids.write().unwrap_or_else(PoisonError::into_inner);
            if ids.len() < MAX_KEPT {
                ids.insert(key.into(), id);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_term_is_looked_up_until_it_is_found_and_as_many_are_kept_as_have_room() {
        let (known, id) = (KnownTerms::default(), TermId::new);
        let fails = || Err(Error::integrity("looked up again"));
        assert_eq!(known.id(b"a", || Ok(None)).unwrap(), None);
        assert_eq!(known.id(b"a", || Ok(Some(id(1)))).unwrap(), Some(id(1)));
        assert_eq!(known.id(b"a", fails).unwrap(), Some(id(1)));
        let long = [7; MAX_KEY_BYTES + 1];
        assert_eq!(known.id(&long, || Ok(Some(id(2)))).unwrap(), Some(id(2)));
        assert!(known.id(&long, fails).is_err());
        for number in 2..=300_u64 {
            known.id(&number.to_be_bytes(), || Ok(Some(id(number)))).unwrap();
        }
        assert_eq!(known.id(&256_u64.to_be_bytes(), fails).unwrap(), Some(id(256)));
        assert!(known.id(&257_u64.to_be_bytes(), fails).is_err());
    }
}
