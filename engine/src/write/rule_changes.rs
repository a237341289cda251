//! The rules of a store, and changing them: only further rules go without saying, anything looser has to
//! be meant, and both are in the audit log.

use std::sync::Arc;

use redb::{ReadableDatabase, WriteTransaction};
use serde::Serialize;

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::keys;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::rules::preset::{Change, Kept, RuleSet};
use crate::state::audit::{AuditRecord, Operation};
use crate::state::meta::kept_rules;
use crate::state::powers::Power;
use crate::write::plan::Author;
use crate::write::writer::{Writer, append_audit};

/// What a change of rules came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RulesChanged {
    /// Whether anything is different now.
    pub changed: bool,
    /// Rules that were added.
    pub added: Vec<String>,
    /// What was loosened.
    pub loosened: Vec<String>,
}

impl Store {
    /// The rules and settings that hold here now: those of its preset, with what changed them since.
    #[must_use]
    pub fn rules(&self) -> Arc<RuleSet> {
        self.inner().regime().rules()
    }

    /// Writes an entry of the audit log about what writes nothing else.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn note(&self, record: AuditRecord) -> Result<()> {
        self.alone(move |writer| writer.note(record, |_| Ok(())))
    }
}

impl Session {
    /// Changes the rules of the store as a file says, TOML or JSON (docs/presets.md): it adds rules,
    /// those of a further preset, and stricter settings. A file that would loosen anything is refused
    /// unless `allow_weaker` says that it is meant. Either way there is an entry in the audit log, with
    /// the reason, and with what was loosened.
    ///
    /// The rules hold from then on, for what is written, read, exported and erased; what is stored
    /// already stays.
    ///
    /// # Errors
    /// `ERR_ACCESS` where the session's actor is not the operator; `ERR_SCHEMA` for what is no file of
    /// rules; `ERR_POLICY` where it would loosen something; `ERR_EMPTY`, `ERR_TOO_LARGE` for the reason;
    /// `ERR_LIMIT`, `ERR_IO`.
    pub fn change_rules(
        &self,
        file: &str,
        allow_weaker: bool,
        reason: &str,
    ) -> Result<RulesChanged> {
        if reason.trim().is_empty() {
            let empty = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
            return Err(Error::new(empty, "the reason is empty")
                .with_hint("say why: the reason goes into the audit log"));
        }
        let author = self.author_because(Some(reason))?;
        self.check_power(Power::ChangeRules)?;
        let file = file.to_owned();
        self.store().alone(move |writer| writer.change_rules(&file, allow_weaker, &author))
    }
}

impl Writer {
    fn change_rules(
        &mut self,
        file: &str,
        allow_weaker: bool,
        author: &Author,
    ) -> Result<RulesChanged> {
        let Some(change) = self.kept_rules()?.extended(file)? else {
            return Ok(RulesChanged::default());
        };
        let refused = !change.loosened.is_empty() && !allow_weaker;
        let names = change.loosened_names();
        let record = AuditRecord {
            refused,
            rules: names,
            ..author.record(Operation::PresetChanged, Vec::new())
        };
        let Change { kept, rules, loosened, added } = change;
        let row = if refused { None } else { Some(kept.seal()?) };
        self.note(record, |txn| {
            if let Some(row) = &row {
                txn.open_table(keys::META)?.insert(keys::META_PRESET, row.as_slice())?;
            }
            Ok(())
        })?;
        if refused {
            let message =
                format!("this would loosen the rules of the store: {}", loosened.join("; "));
            return Err(Error::new(ErrorKind::Policy, message).with_hint(
                "leave that out, or say that it is meant (allow_weaker, --allow-weaker)",
            ));
        }
        self.regime.change(rules);
        let added = added.into_iter().map(str::to_owned).collect();
        Ok(RulesChanged { changed: true, added, loosened })
    }

    /// Writes an entry of the audit log with what it tells of.
    pub(crate) fn note(
        &mut self,
        record: AuditRecord,
        effect: impl FnOnce(&WriteTransaction) -> Result<()>,
    ) -> Result<()> {
        let (mut chain, now) = (self.chain.clone(), self.clock.now());
        let refused = record.refused;
        let records = self.refusals.fold(vec![record], now);
        if refused && records.is_empty() {
            return Ok(());
        }
        let keeper = self.db.vault().keeper();
        self.changing(|txn| {
            effect(txn)?;
            append_audit(txn, &mut chain, &records, now, &|_| Ok(keeper.clone()))
        })?;
        self.chain = chain;
        Ok(())
    }

    /// What is kept of the rules.
    fn kept_rules(&self) -> Result<Kept> {
        let txn = self.db.begin_read()?;
        kept_rules(&txn.open_table(keys::META)?)
    }
}
