//! A store of an earlier format, made one of this: in one transaction, so that a crash leaves the one or
//! the other. Knows versions and what changed between them, nothing of what runs on a store.

use redb::{Database, Durability, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::keys;
use crate::disk::vault::Vault;
use crate::handle::options::OpenOptions;
use crate::state::audit::{AuditRecord, Operation};
use crate::state::meta::Meta;
use crate::write::writer::append_audit;

/// What makes a store of one format one of the next.
struct Step {
    /// The format it makes.
    to: u32,
    /// How the audit log calls it.
    rule: &'static str,
    /// What it changes beside the stamp.
    change: fn(&WriteTransaction, &Vault) -> Result<()>,
}

/// From each format to the next, the first from format 1.
const STEPS: [Step; 1] = [
    // All else that is new in format 2 comes with its first row.
    Step { to: 2, rule: "format_2", change: |txn, vault| vault.mark_all_destroyed(txn) },
];

/// The format a store says it has, which is this one or an earlier one.
///
/// # Errors
/// `ERR_STORE_VERSION` for no store, and for a later format, by its number; `ERR_IO`.
pub(crate) fn format_of(txn: &ReadTransaction) -> Result<u32> {
    let refused = |message: String| Error::new(ErrorKind::StoreVersion, message);
    let meta = match txn.open_table(keys::META) {
        Err(redb::TableError::TableDoesNotExist(_)) => {
            return Err(refused("this database has no meta table: it is no store".to_owned()));
        }
        opened => opened?,
    };
    let row = meta.get(keys::META_FORMAT)?;
    let stamp = row.and_then(|row| <[u8; 4]>::try_from(row.value()).ok()).map(u32::from_be_bytes);
    match stamp {
        None => Err(refused("the store lacks its format stamp".to_owned())),
        Some(format @ 1..=keys::FORMAT) => Ok(format),
        Some(format) => {
            let message =
                format!("store format {format} is none of 1 to {}, which are known", keys::FORMAT);
            Err(refused(message))
        }
    }
}

/// Makes it a store of this format, where it is of an earlier one; the audit log tells of it.
///
/// # Errors
/// `ERR_IO`, `ERR_INTEGRITY`; nothing has changed then.
pub(crate) fn upgrade(db: &Database, meta: &mut Meta, options: &OpenOptions) -> Result<()> {
    let format = format_of(&db.begin_read()?)?;
    if format == keys::FORMAT {
        return Ok(());
    }
    let mut txn = db.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    let mut record = AuditRecord::of(Operation::Upgrade, Vec::new());
    for step in STEPS.iter().filter(|step| step.to > format) {
        (step.change)(&txn, meta.chain.vault())?;
        record.rules.push(step.rule);
    }
    let stamp = keys::FORMAT.to_be_bytes();
    txn.open_table(keys::META)?.insert(keys::META_FORMAT, stamp.as_slice())?;
    let mut chain = meta.chain.clone();
    let keeper = chain.vault().keeper();
    append_audit(&txn, &mut chain, &[record], options.clock.now(), &|_| Ok(keeper.clone()))?;
    txn.commit()?;
    meta.chain = chain;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lead_from_the_first_format_to_this_one() {
        let formats: Vec<_> = STEPS.iter().map(|step| step.to).collect();
        assert_eq!(formats, (2..=keys::FORMAT).collect::<Vec<_>>());
        for step in STEPS {
            assert_eq!(step.rule, format!("format_{}", step.to));
        }
    }
}
