//! Upgrade of a store of an earlier format, in one transaction, so that a crash leaves the one format or the
//! other. Knows the versions and their differences, not the operations of a store.

use redb::{Database, ReadTransaction, ReadableDatabase};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::layout::{self, RowKey};
use crate::disk::row_sums;
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::{RowWriter, TruthTransaction};
use crate::handle::meta::StoreMeta;
use crate::handle::options::OpenOptions;
use crate::state::audit::append_audit;
use crate::state::audit::{AuditOperation, AuditRecord};

/// An upgrade from one format to the next.
struct UpgradeStep {
    /// Resulting format version.
    to: u32,
    /// Name in the audit log.
    rule: &'static str,
    /// Changes to the data, apart from the format stamp.
    change: fn(&mut RowWriter<'_>, &ReadTransaction) -> Result<()>,
}

/// One step for each format, the first from format 1.
const UPGRADE_STEPS: [UpgradeStep; 2] = [
    // Everything else that is new in format 2 is created with its first row.
    UpgradeStep { to: 2, rule: "format_2", change: to_format_2 },
    // The tables that are new in format 3 come with their first rows.
    UpgradeStep { to: 3, rule: "format_3", change: row_sums::extend },
];

/// Marks destroyed keys, sums up the rows of an encrypted store, and binds its audit key to having sums.
fn to_format_2(rows: &mut RowWriter<'_>, before: &ReadTransaction) -> Result<()> {
    row_sums::write_all(rows, before)?;
    rows.mark_all_destroyed()?;
    row_sums::bind_rows(rows, before)?;
    let missing = || Error::integrity("the store lacks its audit key");
    let row = rows.get(TruthTable::Meta, layout::META_AUDIT_KEY)?.ok_or_else(missing)?;
    let key = rows.vault().open_audit_key(RowKey::AUDIT_KEY_1, &row)?;
    let sealed = rows.vault().seal_audit_key(&key)?;
    rows.put(TruthTable::Meta, layout::META_AUDIT_KEY, &sealed).map(drop)
}

/// Returns the format version of a store, which is the current one or earlier.
///
/// # Errors
/// `ERR_STORE_VERSION` for a database that is no store, and for a later format, with its number; `ERR_IO`.
pub(crate) fn format_of(txn: &ReadTransaction) -> Result<u32> {
    let refused = |message: String| Error::new(ErrorKind::StoreVersion, message);
    let meta = match txn.open_table(layout::META) {
        Err(redb::TableError::TableDoesNotExist(_)) => {
            return Err(refused("this database has no meta table: it is no store".to_owned()));
        }
        opened => opened?,
    };
    let row = meta.get(layout::META_FORMAT)?;
    let stamp = row.and_then(|row| <[u8; 4]>::try_from(row.value()).ok()).map(u32::from_be_bytes);
    match stamp {
        None => Err(refused("the store lacks its format stamp".to_owned())),
        Some(format @ 1..=layout::FORMAT_VERSION) => Ok(format),
        Some(format) => {
            let message = format!(
                "store format {format} is none of 1 to {}, which are known",
                layout::FORMAT_VERSION
            );
            Err(refused(message))
        }
    }
}

/// Upgrades a store of an earlier format, with an audit entry.
///
/// # Errors
/// `ERR_IO`, `ERR_INTEGRITY`; the store is unchanged then.
pub(crate) fn upgrade(db: &Database, meta: &mut StoreMeta, options: &OpenOptions) -> Result<()> {
    let before = db.begin_read()?;
    let format = format_of(&before)?;
    if format == layout::FORMAT_VERSION {
        return Ok(());
    }
    let mut chain = meta.chain.clone();
    let encryption_key = chain.vault().store_key();
    let txn = TruthTransaction::begin(db, chain.vault(), &options.observer)?;
    txn.write(|rows| {
        let mut record = AuditRecord::new(AuditOperation::Upgrade, Vec::new());
        for step in UPGRADE_STEPS.iter().filter(|step| step.to > format) {
            (step.change)(rows, &before)?;
            record.rules.push(step.rule);
        }
        let stamp = layout::FORMAT_VERSION.to_be_bytes();
        rows.put(TruthTable::Meta, layout::META_FORMAT, &stamp)?;
        let now = options.clock.now();
        append_audit(rows, &mut chain, &[record], now, &|_| Ok(encryption_key.clone()))
    })?;
    txn.commit()?;
    meta.chain = chain;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lead_from_the_first_format_to_this_one() {
        let formats: Vec<_> = UPGRADE_STEPS.iter().map(|step| step.to).collect();
        assert_eq!(formats, (2..=layout::FORMAT_VERSION).collect::<Vec<_>>());
        for step in UPGRADE_STEPS {
            assert_eq!(step.rule, format!("format_{}", step.to));
        }
    }
}
