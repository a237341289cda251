//! Telling a supersession from a put (OMS 17.2, ruling 18): what a put may not carry, and which
//! parents make a grain a successor.

use std::collections::BTreeSet;

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainType, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::view::{Row, with_fields};

use super::Plan;

/// Fields that say a grain supersedes another.
const SUPERSESSION_FIELDS: [&str; 5] = [
    "supersession_justification",
    "supersession_auth",
    "invalidation_type",
    "invalidation_reason",
    "invalidation_initiator",
];

/// Refuses a put of what only supersession may carry.
///
/// # Errors
/// `ERR_SUPERSEDE_REQUIRED`.
pub(super) fn check_fields(grain: &Grain) -> Result<()> {
    match SUPERSESSION_FIELDS.iter().find(|name| grain.get(name).is_some()) {
        None => Ok(()),
        Some(name) => {
            let message = format!("{name} says that this grain replaces another");
            Err(Error::new(ErrorKind::SupersedeRequired, message))
        }
    }
}

/// Whether a grain says of itself that it takes the place of `stored`: as its next version, or by a
/// field that no put may carry.
pub(super) fn is_meant(new: &Grain, stored: &GrainRef<'_>) -> bool {
    // What has no triple cannot be told from its next version by one.
    let has_triple = stored.get("subject").is_some() && stored.get("relation").is_some();
    let says_so = SUPERSESSION_FIELDS.iter().any(|name| new.get(name).is_some());
    says_so || !has_triple || succeeds(new, stored)
}

/// Checks that a grain can succeed `old`: it names it as a parent and has its type.
///
/// # Errors
/// `ERR_SCHEMA`.
pub(super) fn check_successor(old: &ContentAddress, row: &Row, new: &Grain) -> Result<()> {
    let schema = |message: String| {
        Error::new(ErrorKind::Format(grainstore_format::ErrorKind::Schema), message)
    };
    let old_type = with_fields(&row.blob, |view| Ok(view.grain_type()))?;
    if old_type != new.grain_type() {
        let message =
            format!("a {old_type} is superseded by its own type, not {}", new.grain_type());
        return Err(schema(message));
    }
    if !parents(new).contains(old) {
        return Err(schema(format!("derived_from of the new grain must contain {old}")));
    }
    Ok(())
}

/// Checks that a withdrawal fits the grant it names: a consent between the same two.
///
/// # Errors
/// `ERR_SCHEMA` for another type, `ERR_INVALIDATION_DENIED` for other parties.
pub(super) fn check_withdrawal(grant: &Row, withdrawal: &Grain) -> Result<()> {
    with_fields(&grant.blob, |stored| {
        if stored.grain_type() != GrainType::Consent {
            let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
            return Err(Error::new(schema, "prior_consent names a grain that is no consent"));
        }
        let same = |name: &str| stored.text(name) == withdrawal.text(name);
        if same("subject_did") && same("grantee_did") {
            return Ok(());
        }
        let message = "a consent is withdrawn between the parties that made it";
        Err(Error::new(ErrorKind::InvalidationDenied, message))
    })
}

/// The addresses a grain derives from, each once; citations are no parents.
pub(crate) fn parents(grain: &Grain) -> BTreeSet<ContentAddress> {
    grain.texts("derived_from").filter_map(|text| text.parse().ok()).collect()
}

impl Plan<'_> {
    /// Refuses a grain that would replace one of its parents, other than `old`, in disguise.
    ///
    /// # Errors
    /// `ERR_SUPERSEDE_REQUIRED`.
    pub(super) fn check_parents(&self, new: &Grain, old: Option<&ContentAddress>) -> Result<()> {
        if new.int("consolidation_level").is_some_and(|level| level >= 1) {
            return Ok(());
        }
        for parent in parents(new).into_iter().filter(|parent| old != Some(parent)) {
            let Some(row) = self.find(&parent)? else {
                continue;
            };
            if with_fields(&row.blob, |stored| Ok(succeeds(new, stored)))? {
                let message = format!(
                    "it derives from {parent} and has the same type, namespace, subject and \
                     relation: that is a supersession"
                );
                return Err(Error::new(ErrorKind::SupersedeRequired, message));
            }
        }
        Ok(())
    }
}

/// Whether `new` reads as the next version of `stored`.
fn succeeds(new: &Grain, stored: &GrainRef<'_>) -> bool {
    let never =
        matches!(new.grain_type(), GrainType::Event | GrainType::Action | GrainType::Observation);
    if never || new.grain_type() != stored.grain_type() || new.partition() != stored.partition() {
        return false;
    }
    let same = |name: &str| {
        let value = stored.get(name).map(|value| value.to_value());
        value.as_ref().is_some_and(|value: &Value| new.get(name) == Some(value))
    };
    let same_triple = same("subject") && same("relation");
    same_triple || (new.grain_type() == GrainType::Goal && same("description"))
}
