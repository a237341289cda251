//! Changes of a store's rules: stricter rules are always accepted, loosened ones only if explicitly allowed;
//! both are recorded in the audit log.

use std::sync::Arc;

use redb::ReadableDatabase;
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::layout;
use crate::disk::truth_tables::TruthTable;
use crate::handle::meta::{seal_rules, stored_rules};
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::rules::preset::{RuleChange, RuleSet, StoredRules};
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::state::powers::Power;
use crate::write::plan::Principal;
use crate::write::writer::Writer;

/// The outcome of [`Session::change_rules`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleChangeReport {
    /// True if the rules differ now.
    pub changed: bool,
    /// Ids of the added rules.
    pub added: Vec<String>,
    /// Settings and rules that were loosened.
    pub loosened: Vec<String>,
}

impl Store {
    /// Returns the rules and settings in force: those of the preset, with later changes
    /// ([`Session::change_rules`]).
    #[must_use]
    pub fn rules(&self) -> Arc<RuleSet> {
        self.inner().active_rules().rules()
    }
}

impl Session {
    /// Changes the rules of the store by a file, TOML or JSON (docs/presets.md): it adds rules, those of a
    /// further preset, and stricter settings. A file that would loosen anything is refused unless
    /// `allow_weaker` is true. In both cases an audit entry records the reason and what would be loosened.
    ///
    /// The rules apply from then on to writes, reads, exports and erasures; stored grains stay.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let rule = r#"
    ///     [[rule]]
    ///     id = "own.author"
    ///     on = ["put"]
    ///     require = { has = ["author_did"] }
    ///     article = "house rule 1"
    ///     because = "somebody made it"
    ///     fix = "set author_did"
    /// "#;
    /// assert_eq!(session.change_rules(rule, false, "who says so?")?.added, ["own.author"]);
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// assert!(session.put(grain).is_err_and(|error| error.hint() == "set author_did"));
    /// assert_eq!(store.rules().rules.last().map(|rule| rule.id), Some("own.author"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS` if the session's actor is not the operator; `ERR_SCHEMA` for an invalid rule file;
    /// `ERR_POLICY` if it would loosen something; `ERR_EMPTY`, `ERR_TOO_LARGE` for the reason; `ERR_LIMIT`,
    /// `ERR_IO`.
    pub fn change_rules(
        &self,
        file: &str,
        allow_weaker: bool,
        reason: &str,
    ) -> Result<RuleChangeReport> {
        let author = self.author_with(reason)?;
        self.check_power(Power::ChangeRules)?;
        let file = file.to_owned();
        self.store().run_exclusive(move |writer| writer.change_rules(&file, allow_weaker, &author))
    }
}

impl Writer {
    fn change_rules(
        &mut self,
        file: &str,
        allow_weaker: bool,
        author: &Principal,
    ) -> Result<RuleChangeReport> {
        let Some(change) = self.stored_rules()?.extended(file)? else {
            return Ok(RuleChangeReport::default());
        };
        let refused = !change.loosened.is_empty() && !allow_weaker;
        let names = change.loosened_names();
        let record = AuditRecord {
            refused,
            rules: names,
            code: refused.then_some(ErrorKind::Policy.code()),
            ..author.record(AuditOperation::PresetChanged, Vec::new())
        };
        let RuleChange { kept, rules, loosened, added } = change;
        let row = if refused { None } else { Some(seal_rules(&kept)?) };
        let policy_set = rules.policy_set()?;
        self.write_audit_record(record, |rows| {
            if let Some(row) = &row {
                rows.put(TruthTable::Meta, layout::META_PRESET, row)?;
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
        self.rules.replace(rules);
        self.chain.set_policy_set(policy_set);
        let added = added.into_iter().map(str::to_owned).collect();
        Ok(RuleChangeReport { changed: true, added, loosened })
    }

    /// Reads the stored rules.
    fn stored_rules(&self) -> Result<StoredRules> {
        let txn = self.db.begin_read()?;
        stored_rules(&txn.open_table(layout::META)?)
    }
}
