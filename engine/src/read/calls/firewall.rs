//! The query firewall: statements that a host does not want to run, refused once they are checked and
//! before anything is looked at (CAL 20.2).

use std::sync::atomic::{AtomicU64, Ordering};

use grainstore_cal::{Admission, Gate, MemoryError, StatementType, Tier};
use grainstore_format::Grain;

use super::prepare::check_covers;
use super::token::CapabilityToken;
use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::session::Session;

/// The complexity beyond which a statement is refused where the host says nothing else: beyond everything a
/// person writes, and below the worst that fits into 8 KiB.
const MAX_COMPLEXITY: u64 = 5_000;

/// What statements of CAL are refused for, beside the rules of the language.
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
    /// Refuses statements of more points than this (docs/cal.md has the table): 5,000 unless told otherwise.
    #[must_use]
    pub fn max_complexity(mut self, points: u64) -> Self {
        self.max_complexity = points;
        self
    }

    /// Refuses statements that fit this pattern as a whole: `*` is any text, upper and lower case are one.
    /// What is held against it is the statement in normal form, and each of its recalls without shortcuts,
    /// so that spaces, comments, escapes and shortcuts hide nothing. Parameters are unbound: patterns see
    /// `$name` and not its value.
    #[must_use]
    pub fn deny(mut self, pattern: impl Into<String>) -> Self {
        self.denied.push(pattern.into());
        self
    }

    /// Lets one session, with its clones and the sessions within it, run this many statements of Tier 1.
    #[must_use]
    pub fn max_evolving(mut self, statements: u64) -> Self {
        self.max_evolving = Some(statements);
        self
    }

    /// Refuses every statement of a session that is limited to no namespace (CAL 20.2: a mandatory namespace
    /// filter): whoever asks through CAL then sees one namespace and what lies below it.
    #[must_use]
    pub fn require_namespace(mut self) -> Self {
        self.needs_namespace = true;
        self
    }

    /// # Errors
    /// `ERR_LIMIT` for too much work, `ERR_POLICY` for a pattern.
    fn check(&self, admission: &Admission) -> Result<()> {
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

/// The gate of one call.
pub(super) struct Guard<'g> {
    pub(super) session: &'g Session,
    pub(super) token: Option<&'g CapabilityToken>,
    /// Whether the statement is only prepared, so that it counts for nothing yet.
    pub(super) prepares: bool,
    /// How far the statement was to go, whatever the switch of the store lets it.
    pub(super) asked: Tier,
}

impl Guard<'_> {
    fn firewall(&self) -> &Firewall {
        self.session.store().inner().firewall()
    }

    /// Counts a statement of Tier 1.
    fn count(&self, evolved: &AtomicU64) -> Result<(), MemoryError> {
        let most = self.firewall().max_evolving.unwrap_or(u64::MAX);
        let next = |count: u64| (count < most).then(|| count.saturating_add(1));
        let counted = match self.prepares {
            true => next(evolved.load(Ordering::Acquire)).ok_or(0),
            false => evolved.fetch_update(Ordering::AcqRel, Ordering::Acquire, next),
        };
        counted.map(drop).map_err(|_| {
            let message = format!("a session runs at most {most} statements that write");
            MemoryError::new("CAL-E043", message, "open another session, if you may")
        })
    }
}

impl Gate for Guard<'_> {
    fn admit(&self, admission: &Admission) -> Result<(), MemoryError> {
        if let Some(token) = self.token {
            check_covers(token, admission)?;
        }
        let firewall = self.firewall();
        if firewall.needs_namespace && self.session.options().namespace.is_none() {
            let message =
                "a session that asks in CAL is limited to a namespace here, and this one is not";
            let error = Error::new(ErrorKind::Policy, message);
            return Err(error.with_hint("open the session with a namespace").into());
        }
        firewall.check(admission)?;
        let defines = admission.statement_type == StatementType::DefineTemplate;
        if defines && self.asked == Tier::Evolve && admission.tier == 0 {
            // What was to stay must not go with the session.
            let message = "this store keeps nothing new: CAL only reads in it";
            return Err(MemoryError::new(
                "CAL-E044",
                message,
                "define it in Tier 0, for the session",
            ));
        }
        match admission.tier {
            0 => Ok(()),
            _ => self.count(self.session.evolved()),
        }
    }

    fn gives_whole(&self, grain: &Grain) -> Result<(), MemoryError> {
        let rules = self.session.store().rules();
        let by_field = &rules.settings.phi_by_field;
        if !by_field.value || !has_phi(grain) {
            return Ok(());
        }
        let message = format!(
            "health data is given out by named fields here ({}), and the statement names none",
            by_field.article
        );
        let error = Error::new(ErrorKind::Policy, message);
        Err(error.with_hint("name the fields that are needed: | SELECT object, time, or PROJECT content(object) in a source of an ASSEMBLE").into())
    }

    fn reads_text(&self) -> bool {
        !self.firewall().denied.is_empty()
    }
}

/// Whether a grain is tagged as health data.
fn has_phi(grain: &Grain) -> bool {
    let tags = grain.get("structural_tags").and_then(|tags| tags.as_array()).unwrap_or_default();
    tags.iter()
        .filter_map(|tag| tag.as_str())
        .any(|tag| tag.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("phi:")))
}

/// Whether a text fits a pattern as a whole. Takes the first place for each part between stars, which finds a
/// fit wherever there is one.
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
