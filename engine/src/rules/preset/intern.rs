//! Interned texts of rules: ids, articles, reasons and remedies.
//!
//! They go into errors and audit records, which outlive the store, so each distinct text is leaked once per
//! process. Only callers that may change the rules of a store can add new ones.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static INTERNED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Returns the interned copy of a text.
pub(super) fn intern(text: &str) -> &'static str {
    let mut words = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(text) {
        return known;
    }
    let new: &'static str = Box::leak(text.into());
    words.insert(new);
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once() {
        let (one, other) = (intern("a text of a rule"), intern(&String::from("a text of a rule")));
        assert!(std::ptr::eq(one, other));
        assert_eq!(intern("another text"), "another text");
    }
}
