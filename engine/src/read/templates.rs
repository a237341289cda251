//! Templates of CAL that are kept: those of a session while it lasts, those of a namespace in the store.
//!
//! A session names its own and those of its namespace, of no other: neither below nor above. A template
//! never changes and never goes, so whoever wrote a query with its name gets what they had. Those of a
//! namespace are shown to all of its users and belong to none: a session for one user makes none of them.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore_cal::{NamedTemplate, TemplateKeeper, TemplateKept};
use grainstore_format::{ContentAddress, SHARED};
use redb::{ReadTransaction, ReadableTable, TableError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::keys::{self, RowKey};
use crate::disk::vault::Vault;
use crate::handle::options::SessionOptions;
use crate::handle::session::Session;
use crate::state::audit::{AuditRecord, Operation};
use crate::write::writer::Writer;

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

impl Kept {
    fn template(&self) -> NamedTemplate {
        NamedTemplate {
            name: self.name.clone(),
            keeper: TemplateKeeper::Namespace,
            definition: self.definition.clone(),
        }
    }
}

/// The templates of a session, its clones and the sessions within it. One for another namespace or user
/// names none of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfSession(Arc<Mutex<Vec<(Whose, NamedTemplate)>>>);

/// The namespace and the user of a session.
type Whose = (Option<String>, Option<String>);

/// Templates that a session and its clones keep for all they act for.
const OF_ALL: usize = 20 * NamedTemplate::MOST;

fn whose(options: &SessionOptions) -> Whose {
    (namespace_of(options), options.user_id.clone())
}

/// The partition a session works in; none for one of the whole store.
fn namespace_of(options: &SessionOptions) -> Option<String> {
    let named = |name: &String| if name.is_empty() { SHARED.to_owned() } else { name.clone() };
    options.namespace.as_ref().map(named)
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

    /// Keeps one beside those of the namespace.
    fn keep(
        &self,
        template: &NamedTemplate,
        mut known: Vec<NamedTemplate>,
        options: &SessionOptions,
    ) -> TemplateKept {
        let own = whose(options);
        let mut kept = self.lock();
        let named = kept.iter().filter(|(of, _)| *of == own);
        known.extend(named.map(|(_, template)| template.clone()));
        let among = template.among(&known);
        if among == TemplateKept::Kept && kept.len() >= OF_ALL {
            return TemplateKept::Full;
        }
        if among == TemplateKept::Kept {
            kept.push((own, template.clone()));
        }
        among
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
        let namespace = namespace_of(self.options());
        let mut named = self.own_templates().named_by(self.options());
        named.extend(of_namespace(txn, vault, namespace.as_deref())?);
        named.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(named)
    }

    /// Keeps a template, in the session or in the store; there with an entry in the audit log.
    ///
    /// # Errors
    /// `ERR_ACCESS` for a session of one user that would keep it in the store; `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn keep(&self, template: &NamedTemplate) -> Result<TemplateKept> {
        let namespace = namespace_of(self.options());
        if template.keeper == TemplateKeeper::Session {
            let view = self.view()?;
            let known = of_namespace(view.transaction(), view.vault(), namespace.as_deref())?;
            return Ok(self.own_templates().keep(template, known, self.options()));
        }
        if self.viewer().has_user() {
            let message = "a template of a namespace is shown to all of its users, and this session is for one";
            return Err(Error::new(ErrorKind::Access, message).with_hint(
                "define it in Tier 0, for the session, or in a session without a user",
            ));
        }
        let mine = self.own_templates().named_by(self.options());
        if template.among(&mine) == TemplateKept::Taken {
            return Ok(TemplateKept::Taken);
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
        let among = row.template().among(&known);
        if among != TemplateKept::Kept {
            return Ok(among);
        }
        let numbers = numbers_of(view.vault(), row.namespace.as_deref());
        let body = serde_json::to_vec(row).map_err(|_| damaged())?;
        let vault = view.vault().clone();
        // A view keeps the databases open that it reads from.
        drop(view);
        self.note(record, |txn| {
            let mut table = txn.open_table(keys::TEMPLATES)?;
            let last = table.range(numbers.clone())?.next_back().transpose()?;
            let key = last.map_or(*numbers.start(), |(key, _)| key.value().saturating_add(1));
            if key > *numbers.end() {
                return Err(damaged());
            }
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
    for row in table.range(numbers_of(vault, namespace))? {
        let (key, row) = row?;
        let kept = open(vault, key.value(), row.value())?;
        if kept.namespace.as_deref() == namespace {
            named.push(kept.template());
        }
    }
    Ok(named)
}

/// The numbers that rows of a namespace have: the first seven bytes of what stands for it, and one that
/// counts them. Two that begin alike share them, and are told apart by what their rows say.
fn numbers_of(vault: &Vault, namespace: Option<&str>) -> RangeInclusive<u64> {
    let mut hash = Sha256::new_with_prefix(b"grainstore templates");
    if let Some(namespace) = namespace {
        hash.update([0]);
        hash.update(namespace);
    }
    let stands_for = vault.address(&ContentAddress::from_bytes(hash.finalize().into()));
    let mut start = [0; 8];
    for (to, from) in start.iter_mut().zip(stands_for.as_bytes().iter().take(7)) {
        *to = *from;
    }
    let start = u64::from_be_bytes(start);
    start..=start | 0xff
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
    let stands_there = numbers_of(vault, kept.namespace.as_deref()).contains(&key);
    if stands_there && kept.template().is_sound() { Ok(()) } else { Err(damaged()) }
}

fn damaged() -> Error {
    Error::truth_damaged("a template is not as it was written")
}
