//! Resolution of references in a rule file: `@name` to a list of texts, `is` to conditions.

use std::collections::BTreeMap;

use super::condition::{Condition, FieldValue};

/// Maximum depth of references between lists.
const MAX_DEPTH: usize = 8;
/// Maximum number of texts that one reference expands to.
const MAX_EXPANDED_TEXTS: usize = 4096;

/// The named lists and named conditions of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedParts {
    pub(super) lists: BTreeMap<String, Vec<String>>,
    pub(super) conditions: BTreeMap<String, Condition>,
}

/// Replaces each `@name` by the entries of that list, which may be references themselves.
pub(super) fn expand_lists(of: &[String], scope: &NamedParts) -> Result<Vec<String>, String> {
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
        if next.len() > MAX_EXPANDED_TEXTS {
            return Err(format!("its lists have more than {MAX_EXPANDED_TEXTS} entries"));
        }
        texts = next;
    }
    Err("its lists name each other in a circle".to_owned())
}

/// Like [`expand_lists`], for the values of fields.
pub(super) fn expand_values(
    of: &BTreeMap<String, Vec<FieldValue>>,
    scope: &NamedParts,
) -> Result<BTreeMap<String, Vec<FieldValue>>, String> {
    let mut fields = BTreeMap::new();
    for (name, scalars) in of {
        let mut values = Vec::with_capacity(scalars.len());
        for scalar in scalars {
            match scalar {
                FieldValue::Text(text) => {
                    let texts = expand_lists(std::slice::from_ref(text), scope)?;
                    values.extend(texts.into_iter().map(FieldValue::Text));
                }
                other => values.push(other.clone()),
            }
        }
        fields.insert(name.clone(), values);
    }
    Ok(fields)
}
