//! Stored CAL templates: those of a session while it lasts, and those of a namespace in the store.
//!
//! A session can name its own templates and those of its namespace, but not of namespaces below or above. A
//! template never changes and is never removed, so a query that names one keeps its meaning. Templates of a
//! namespace are visible to all of its users and belong to none: a session with a user cannot store one.

use std::ops::RangeInclusive;
use std::sync::Arc;

use grainstore_cal::{NamedTemplate, TemplateOwner, TemplateSaveOutcome};
use grainstore_format::ContentAddress;
use redb::{ReadTransaction, ReadableTable, TableError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::layout::{self, RowKey};
use crate::disk::truth_tables::TruthTable;
use crate::disk::vault::Vault;
use crate::handle::session::Session;
use crate::handle::session_templates::namespace_of;
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::write::writer::Writer;

/// A stored row.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateRow {
    /// `None` for sessions of the whole store.
    namespace: Option<String>,
    name: String,
    /// The definition as CAL prints it.
    definition: String,
}

impl TemplateRow {
    fn template(&self) -> NamedTemplate {
        NamedTemplate {
            name: self.name.clone(),
            keeper: TemplateOwner::Namespace,
            definition: self.definition.clone(),
        }
    }
}

impl Session {
    /// The templates this session can name, sorted by name.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn templates_in(
        &self,
        txn: &ReadTransaction,
        vault: &Vault,
    ) -> Result<Vec<NamedTemplate>> {
        let namespace = namespace_of(self.options());
        let mut named = self.own_templates().named_by(self.options());
        named.extend(templates_of_namespace(txn, vault, namespace.as_deref())?);
        named.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(named)
    }

    /// Stores a template, in the session or in the store; in the store with an audit entry.
    ///
    /// # Errors
    /// `ERR_ACCESS` for a session with a user that would store it for its namespace; `ERR_INTEGRITY`,
    /// `ERR_IO`.
    pub(crate) fn store_template(&self, template: &NamedTemplate) -> Result<TemplateSaveOutcome> {
        let namespace = namespace_of(self.options());
        if template.keeper == TemplateOwner::Session {
            let view = self.view()?;
            let known =
                templates_of_namespace(view.transaction(), view.vault(), namespace.as_deref())?;
            return Ok(self.own_templates().keep(template, known, self.options()));
        }
        if self.viewer().has_user() {
            let message = "a template of a namespace is shown to all of its users, and this session is for one";
            return Err(Error::new(ErrorKind::Access, message).with_hint(
                "define it in Tier 0, for the session, or in a session without a user",
            ));
        }
        let mine = self.own_templates().named_by(self.options());
        if template.check_against(&mine) == TemplateSaveOutcome::Taken {
            return Ok(TemplateSaveOutcome::Taken);
        }
        let record = self.principal().record(AuditOperation::DefineTemplate, Vec::new());
        let NamedTemplate { name, definition, .. } = template.clone();
        let row = TemplateRow { namespace, name, definition };
        let kept = self.store().run_exclusive(move |writer| writer.store_template(&row, record))?;
        if kept == TemplateSaveOutcome::Kept {
            self.own_templates().give_up(&template.name, self.options());
        }
        Ok(kept)
    }
}

impl Writer {
    fn store_template(
        &mut self,
        row: &TemplateRow,
        record: AuditRecord,
    ) -> Result<TemplateSaveOutcome> {
        let view = Arc::clone(&self.view);
        let known =
            templates_of_namespace(view.transaction(), view.vault(), row.namespace.as_deref())?;
        let among = row.template().check_against(&known);
        if among != TemplateSaveOutcome::Kept {
            return Ok(among);
        }
        let numbers = key_range(view.vault(), row.namespace.as_deref());
        let body = serde_json::to_vec(row).map_err(|_| damaged_template())?;
        let vault = view.vault().clone();
        // A view keeps the databases it reads from open.
        drop(view);
        self.write_audit_record(record, |rows| {
            let last = match rows.numbered(TruthTable::Templates)? {
                Some(table) => table.range(numbers.clone())?.next_back().transpose()?,
                None => None,
            };
            let key = last.map_or(*numbers.start(), |(key, _)| key.value().saturating_add(1));
            if key > *numbers.end() {
                return Err(damaged_template());
            }
            let sealed = vault.seal(RowKey::template(key), &body, &vault.store_key())?;
            rows.put(TruthTable::Templates, key, &sealed).map(drop)
        })?;
        Ok(TemplateSaveOutcome::Kept)
    }
}

/// The templates of one namespace.
fn templates_of_namespace(
    txn: &ReadTransaction,
    vault: &Vault,
    namespace: Option<&str>,
) -> Result<Vec<NamedTemplate>> {
    let table = match txn.open_table(layout::TEMPLATES) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut named = Vec::new();
    for row in table.range(key_range(vault, namespace))? {
        let (key, row) = row?;
        let kept = decode_row(vault, key.value(), row.value())?;
        if kept.namespace.as_deref() == namespace {
            named.push(kept.template());
        }
    }
    Ok(named)
}

/// Row keys of a namespace: seven bytes of its hash, and one byte that counts its rows. Namespaces whose
/// hashes share those bytes share the range, and are told apart by the namespace in their rows.
fn key_range(vault: &Vault, namespace: Option<&str>) -> RangeInclusive<u64> {
    let mut hash = Sha256::new_with_prefix(b"grainstore templates");
    if let Some(namespace) = namespace {
        hash.update([0]);
        hash.update(namespace);
    }
    let stands_for = vault.address_key(&ContentAddress::from_bytes(hash.finalize().into()));
    let mut start = [0; 8];
    for (to, from) in start.iter_mut().zip(stands_for.as_bytes().iter().take(7)) {
        *to = *from;
    }
    let start = u64::from_be_bytes(start);
    start..=start | 0xff
}

fn decode_row(vault: &Vault, key: u64, row: &[u8]) -> Result<TemplateRow> {
    let body = vault.open(RowKey::template(key), row)?;
    serde_json::from_slice(&body).map_err(|_| damaged_template())
}

/// Checks that a row is a sound template under a key of its namespace.
///
/// # Errors
/// `ERR_INTEGRITY`.
pub(crate) fn check_row(vault: &Vault, key: u64, row: &[u8]) -> Result<()> {
    let kept = decode_row(vault, key, row)?;
    let stands_there = key_range(vault, kept.namespace.as_deref()).contains(&key);
    if stands_there && kept.template().is_valid() { Ok(()) } else { Err(damaged_template()) }
}

fn damaged_template() -> Error {
    Error::truth_damaged("a template is not as it was written")
}
