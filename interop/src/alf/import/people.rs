//! People of an archive who were erased in the store: what it has of them from before stays out, also where what was erased
//! is allowed to come again.

use std::collections::BTreeSet;

use grainstore::{EpochMs, ErrorKind};

use super::documents::{id_of, kept_document};
use super::withheld::drop_principals;
use super::{ImportOptions, ImportReport};
use crate::alf::agent::Agent;
use crate::alf::bundle::Bundle;
use crate::alf::names::PRINCIPALS;
use crate::alf::survey::Survey;
use crate::error::{Error, Result};
use crate::json::Value;
use crate::kept::is_user_erased;

const PERSON: &str = "a person who was erased in this store is in it: they are left out";

/// The error of what is of a user who was erased.
pub(super) fn person_error() -> Error {
    Error::new(ErrorKind::Erased, "it is from before its user was erased in this store")
        .with_hint("what the user has said since is a record of its own, created since")
}

/// Takes people who were erased off the principals of an archive, and tells of them.
///
/// # Errors
/// `ERR_ERASED` of an import of all or nothing; those of the store.
pub(super) fn leave_erased_people(
    agent: &Agent<'_>,
    bundle: &Bundle,
    survey: &mut Survey,
    options: &ImportOptions,
    report: &mut ImportReport,
) -> Result<()> {
    let principals = survey.documents.iter_mut().filter(|(layer, _)| *layer == PRINCIPALS);
    for (layer, document) in principals {
        let erased = erased_people(agent, bundle.created_at(), document)?;
        if erased.is_empty() {
            continue;
        }
        if options.strict {
            return Err(person_error().in_entry(layer.entry));
        }
        drop_principals(document, |id| erased.contains(id));
        report.withhold(layer.entry, PERSON);
    }
    Ok(())
}

/// The ids of people whose items would be refused, as they are written.
fn erased_people(agent: &Agent<'_>, at: EpochMs, document: &Value) -> Result<BTreeSet<String>> {
    let mut erased = BTreeSet::new();
    let Some((kept_as, list)) = PRINCIPALS.items else { return Ok(erased) };
    for item in document.get(list).and_then(Value::as_array).into_iter().flatten() {
        let Some(id) = id_of(item).map(str::to_owned) else { continue };
        let made = (PRINCIPALS, kept_as);
        let made = kept_document((&agent.id, at), made, Some(id.clone()), item.clone());
        let user = made.fields.get("user_id").and_then(grainstore::format::Value::as_str);
        if let Some(user) = user
            && is_user_erased(agent.session, user, made.created_at)?
        {
            erased.insert(id);
        }
    }
    Ok(erased)
}
