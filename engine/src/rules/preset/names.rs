//! Names in a file of rules, and what they stand for: `@name` for a list of texts, `is` for conditions.

use std::collections::BTreeMap;

use super::condition::{Condition, Scalar};

/// How deep lists name each other.
const MAX_DEPTH: usize = 8;
/// Texts of the lists that one part names.
const MAX_LISTED: usize = 4096;

/// Named lists of texts and named conditions that conditions of a file refer to.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) lists: BTreeMap<String, Vec<String>>,
    pub(super) conditions: BTreeMap<String, Condition>,
}

/// Texts with the entries of a list in the place of its `@name`; those may be names themselves.
pub(super) fn listed(of: &[String], scope: &Scope) -> Result<Vec<String>, String> {
    let mut texts = of.to_vec();
    for _ in 0..MAX_DEPTH {
        if !texts.iter().any(|text| text.starts_with('@')) {
            return Ok(texts);
        }
        let mut next = Vec::with_capacity(texts.len());
        for text in texts {
            match text.strip_prefix('@') {
                None => next.push(text),
                Some(name) => {
                    let list = scope.lists.get(name);
                    let list = list.ok_or_else(|| format!("there is no list {name:?}"))?;
                    next.extend_from_slice(list);
                }
            }
        }
        if next.len() > MAX_LISTED {
            return Err(format!("its lists have more than {MAX_LISTED} entries"));
        }
        texts = next;
    }
    Err("its lists name each other in a circle".to_owned())
}

/// As [`listed`], for the values of fields.
pub(super) fn values(
    of: &BTreeMap<String, Vec<Scalar>>,
    scope: &Scope,
) -> Result<BTreeMap<String, Vec<Scalar>>, String> {
    let mut fields = BTreeMap::new();
    for (name, scalars) in of {
        let mut values = Vec::with_capacity(scalars.len());
        for scalar in scalars {
            match scalar {
                Scalar::Text(text) => {
                    let texts = listed(std::slice::from_ref(text), scope)?;
                    values.extend(texts.into_iter().map(Scalar::Text));
                }
                other => values.push(other.clone()),
            }
        }
        fields.insert(name.clone(), values);
    }
    Ok(fields)
}
