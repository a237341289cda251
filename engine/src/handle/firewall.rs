//! The host's query firewall: statements it does not allow (CAL 20.2).

use grainstore_cal::AdmissionRequest;

use crate::base::error::{Error, ErrorKind, Result};

/// Default limit of complexity: beyond any statement a person writes, and below the worst that fits into 8
/// KiB.
const MAX_COMPLEXITY: u64 = 5_000;

/// Limits on CAL statements beyond the rules of the language.
///
/// ```
/// # use grainstore::prelude::*;
/// use grainstore::Firewall;
///
/// # let dir = tempfile::tempdir()?;
/// let firewall = Firewall::default().deny("DESCRIBE *").max_complexity(500);
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true).firewall(firewall))?;
/// let refused = store.session(SessionOptions::default()).ask("DESCRIBE server");
/// assert!(refused.is_err_and(|error| error.code() == "ERR_POLICY"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firewall {
    pub(crate) max_complexity: u64,
    pub(crate) denied: Vec<String>,
    pub(crate) max_evolving: Option<u64>,
    pub(crate) needs_namespace: bool,
}

impl Default for Firewall {
    fn default() -> Self {
        Self {
            max_complexity: MAX_COMPLEXITY,
            denied: Vec::new(),
            max_evolving: None,
            needs_namespace: false,
        }
    }
}

impl Firewall {
    /// Refuses statements of more points than this (docs/cal.md has the table). The default is 5,000.
    #[must_use]
    pub fn max_complexity(mut self, points: u64) -> Self {
        self.max_complexity = points;
        self
    }

    /// Refuses statements that match this pattern as a whole: `*` is any text, and case is ignored. It is
    /// matched against the statement in normal form and against each of its recalls without shortcuts, so
    /// that spaces, comments, escapes and shortcuts hide nothing. Parameters are unbound: patterns see
    /// `$name` and not its value.
    #[must_use]
    pub fn deny(mut self, pattern: impl Into<String>) -> Self {
        self.denied.push(pattern.into());
        self
    }

    /// Limits one session, with its clones and the sessions within it, to this many statements of Tier 1.
    #[must_use]
    pub fn max_evolving(mut self, statements: u64) -> Self {
        self.max_evolving = Some(statements);
        self
    }

    /// Refuses every statement of a session without a namespace (CAL 20.2: a mandatory namespace filter), so
    /// that each caller of CAL sees one namespace and those below it.
    #[must_use]
    pub fn require_namespace(mut self) -> Self {
        self.needs_namespace = true;
        self
    }

    /// # Errors
    /// `ERR_LIMIT` for too much complexity, `ERR_POLICY` for a denied pattern.
    pub(crate) fn check(&self, admission: &AdmissionRequest) -> Result<()> {
        let (points, most) = (admission.complexity, self.max_complexity);
        if points > most {
            let message =
                format!("the statement has {points} points of complexity, {most} may run");
            return Err(Error::new(ErrorKind::Limit, message)
                .with_hint("ask for fewer grains, or in several statements"));
        }
        let fits = |pattern: &&String| admission.texts.iter().any(|text| fits(pattern, text));
        match self.denied.iter().find(fits) {
            None => Ok(()),
            Some(pattern) => {
                let message = format!("the host denies statements like {pattern:?}");
                Err(Error::new(ErrorKind::Policy, message).with_hint("ask for something else"))
            }
        }
    }
}

/// Returns `true` if a text matches a pattern as a whole. Taking the first occurrence of each part between
/// stars finds a match whenever there is one.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_texts_with_stars_for_anything() {
        for (pattern, text, fit) in [
            ("*consents*", "RECALL consents | LIMIT 20", true),
            ("recall CONSENTS*", "RECALL consents", true),
            ("RECALL consents", "RECALL consents | LIMIT 20", false),
            ("*WITH superseded", "RECALL beliefs WITH superseded", true),
            ("*WITH superseded", "RECALL beliefs WITH superseded | COUNT", false),
            ("a*b*c", "abc", true),
            ("a*bc*c", "abc", false),
            ("*a*a*", "a", false),
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("x*x", "x", false),
        ] {
            assert_eq!(fits(pattern, text), fit, "{pattern} on {text}");
        }
    }
}
