//! Templates of CAL that are kept: those of a session while it lasts, those of a namespace in the store.
//!
//! A session names its own and those of its namespace, of no other: neither below nor above. A template
//! never changes and never goes, so whoever wrote a query with its name gets what they had.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore_cal::{NamedTemplate, TemplateKeeper, TemplateKept};
use redb::{ReadTransaction, ReadableTable, TableError};
use serde::{Deserialize, Serialize};

use crate::audit::{AuditRecord, Operation};
use crate::error::{Error, Result};
use crate::keys::{self, RowKey};
use crate::options::SessionOptions;
use crate::session::Session;
use crate::vault::Vault;
use crate::writer::Writer;

/// What a row keeps.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// None for sessions of the whole store.
    namespace: Option<String>,
    name: String,
    /// As CAL prints it.
    definition: String,
}

/// The templates of a session, its clones and the sessions within it. One for another namespace or user
/// names none of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfSession(Arc<Mutex<Vec<(Whose, NamedTemplate)>>>);

/// The namespace and the user of a session.
type Whose = (Option<String>, Option<String>);

fn whose(options: &SessionOptions) -> Whose {
    (options.namespace.clone(), options.user_id.clone())
}

impl OfSession {
    fn lock(&self) -> MutexGuard<'_, Vec<(Whose, NamedTemplate)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that a session with these options names.
    fn named_by(&self, options: &SessionOptions) -> Vec<NamedTemplate> {
        let own = whose(options);
        let kept = self.lock();
        let named = kept.iter().filter(|(of, _)| *of == own);
        named.map(|(_, template)| template.clone()).collect()
    }

    fn keep(&self, template: &NamedTemplate, options: &SessionOptions) -> TemplateKept {
        let own = whose(options);
        let mut kept = self.lock();
        if kept.iter().any(|(of, one)| *of == own && one.name == template.name) {
            return TemplateKept::Taken;
        }
        if kept.len() >= NamedTemplate::MOST {
            return TemplateKept::Full;
        }
        kept.push((own, template.clone()));
        TemplateKept::Kept
    }

    /// Lets one go that its namespace keeps from now on.
    fn give_up(&self, name: &str, options: &SessionOptions) {
        let own = whose(options);
        self.lock().retain(|(of, one)| *of != own || one.name != name);
    }
}

impl Session {
    /// The templates it can name, by name.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn templates_in(
        &self,
        txn: &ReadTransaction,
        vault: &Vault,
    ) -> Result<Vec<NamedTemplate>> {
        let namespace = self.options().namespace.as_deref();
        let mut named = self.own_templates().named_by(self.options());
        named.extend(of_namespace(txn, vault, namespace)?);
        named.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(named)
    }

    /// Keeps a template, in the session or in the store; there with an entry in the audit log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn keep(&self, template: &NamedTemplate) -> Result<TemplateKept> {
        let namespace = self.options().namespace.clone();
        if template.keeper == TemplateKeeper::Session {
            let view = self.view()?;
            let known = of_namespace(view.transaction(), view.vault(), namespace.as_deref())?;
            if known.iter().any(|of| of.name == template.name) {
                return Ok(TemplateKept::Taken);
            }
            return Ok(self.own_templates().keep(template, self.options()));
        }
        let record = self.author().record(Operation::DefineTemplate, Vec::new());
        let NamedTemplate { name, definition, .. } = template.clone();
        let row = Kept { namespace, name, definition };
        let kept = self.store().alone(move |writer| writer.keep_template(&row, record))?;
        if kept == TemplateKept::Kept {
            self.own_templates().give_up(&template.name, self.options());
        }
        Ok(kept)
    }
}

impl Writer {
    fn keep_template(&mut self, row: &Kept, record: AuditRecord) -> Result<TemplateKept> {
        let view = Arc::clone(&self.view);
        let known = of_namespace(view.transaction(), view.vault(), row.namespace.as_deref())?;
        if known.iter().any(|of| of.name == row.name) {
            return Ok(TemplateKept::Taken);
        }
        if known.len() >= NamedTemplate::MOST {
            return Ok(TemplateKept::Full);
        }
        let body = serde_json::to_vec(row).map_err(|_| damaged())?;
        let vault = view.vault().clone();
        // A view keeps the databases open that it reads from.
        drop(view);
        self.note(record, |txn| {
            let mut table = txn.open_table(keys::TEMPLATES)?;
            let last = table.last()?.map_or(0, |(key, _)| key.value());
            let key = last.saturating_add(1);
            let sealed = vault.seal(RowKey::template(key), &body, &vault.keeper())?;
            table.insert(key, sealed.as_slice())?;
            Ok(())
        })?;
        Ok(TemplateKept::Kept)
    }
}

/// The templates of one namespace.
fn of_namespace(
    txn: &ReadTransaction,
    vault: &Vault,
    namespace: Option<&str>,
) -> Result<Vec<NamedTemplate>> {
    let table = match txn.open_table(keys::TEMPLATES) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut named = Vec::new();
    for row in table.range::<u64>(..)? {
        let (key, row) = row?;
        let kept = open(vault, key.value(), row.value())?;
        if kept.namespace.as_deref() == namespace {
            let (name, definition) = (kept.name, kept.definition);
            named.push(NamedTemplate { name, keeper: TemplateKeeper::Namespace, definition });
        }
    }
    Ok(named)
}

fn open(vault: &Vault, key: u64, row: &[u8]) -> Result<Kept> {
    let body = vault.open(RowKey::template(key), row)?;
    serde_json::from_slice(&body).map_err(|_| damaged())
}

/// Holds a row to what it must be: a definition of its name.
///
/// # Errors
/// `ERR_INTEGRITY`.
pub(crate) fn check_row(vault: &Vault, key: u64, row: &[u8]) -> Result<()> {
    let kept = open(vault, key, row)?;
    match grainstore_cal::parse(&kept.definition) {
        Ok(_) => Ok(()),
        Err(_) => Err(damaged()),
    }
}

fn damaged() -> Error {
    Error::truth_damaged("a template is not as it was written")
}
