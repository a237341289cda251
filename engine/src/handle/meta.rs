//! The metadata of a store: format stamp, identity, keys, rules and wording, written when it is created and
//! checked when it is opened. Knows no sessions, and nothing of what runs while a store is open.

use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable};
use sha2::{Digest, Sha256};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::directory;
use crate::disk::journaled_keyring::last_slot;
use crate::disk::keyring::{Keyring, Secret, fill_random};
use crate::disk::layout::{self, PlainEnvelope, RowKey};
use crate::disk::row_sums;
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::TruthTransaction;
use crate::disk::vault::Vault;
use crate::handle::cal_switch::CalSwitch;
use crate::handle::options::OpenOptions;
use crate::handle::upgrade::format_of;
use crate::rules::preset::{Preset, RuleSet, StoredRules};
use crate::search::texts::TextSettings;
use crate::state::audit::append_audit;
use crate::state::audit::{
    AuditEntry, AuditHashChain, AuditOperation, AuditRecord, MAX_SEGMENT_ENTRIES, OpenSegment,
};
use crate::state::audit_rows::AuditRows;

/// Writes the tables, the format stamp and the genesis entry of a new store.
pub(crate) fn initialize(
    db: &Database,
    StoreIdentity { store_id, audit_key }: &StoreIdentity,
    vault: &Vault,
    options: &OpenOptions,
) -> Result<()> {
    let txn = TruthTransaction::begin(db, vault, &options.observer)?;
    txn.write(|rows| {
        for table in [TruthTable::Log, TruthTable::State, TruthTable::Roots, TruthTable::Reasons] {
            rows.create(table)?;
        }
        let mut meta = |name: &str, row: &[u8]| rows.put(TruthTable::Meta, name, row);
        meta(layout::META_FORMAT, &layout::FORMAT_VERSION.to_be_bytes())?;
        meta(layout::META_STORE_ID, store_id)?;
        meta(layout::META_AUDIT_KEY, &vault.seal_audit_key(audit_key)?)?;
        if vault.keyring().is_some() {
            meta(layout::META_ENCRYPTED, &layout::ENCRYPTION_SCHEME)?;
        }
        if options.compress == Some(true) {
            meta(layout::META_COMPRESSION, &layout::COMPRESSION_SCHEME)?;
        }
        if let Some(preset) = options.preset.filter(|preset| *preset != Preset::default()) {
            meta(layout::META_PRESET, &seal_rules(&StoredRules::of(preset))?)?;
        }
        rows.put_store_slot();
        let genesis = AuditRecord::new(AuditOperation::Create, Vec::new());
        let policy_set =
            StoredRules::of(options.preset.unwrap_or_default()).rules()?.policy_set()?;
        let mut chain = AuditHashChain::genesis(store_id, *audit_key)
            .with_vault(vault.clone())
            .in_segment(None, policy_set);
        let now = options.clock.now();
        append_audit(rows, &mut chain, &[genesis], now, &|_| Ok(vault.store_key()))
    })?;
    txn.commit()
}

/// Writes or removes a row of the meta table, in a transaction of its own.
fn set_meta(
    db: &Database,
    vault: &Vault,
    options: &OpenOptions,
    (name, row): (&str, Option<&[u8]>),
) -> Result<()> {
    let txn = TruthTransaction::begin(db, vault, &options.observer)?;
    txn.write(|rows| match row {
        Some(row) => rows.put(TruthTable::Meta, name, row),
        None => rows.remove(TruthTable::Meta, name),
    })?;
    txn.commit()
}

/// Returns the text analysis settings of the store. Settings in the options replace the stored ones and are
/// stored.
pub(crate) fn resolve_text_settings(
    db: &Database,
    vault: &Vault,
    options: &OpenOptions,
) -> Result<TextSettings> {
    let kept = match db.begin_read()?.open_table(layout::META)?.get(layout::META_WORDING)? {
        Some(row) => Some(TextSettings::decode_row(row.value())?),
        None => None,
    };
    let Some(said) = &options.wording else { return Ok(kept.unwrap_or_default()) };
    if kept.as_ref() != Some(said) {
        set_meta(db, vault, options, (layout::META_WORDING, Some(&said.encode_row()?)))?;
    }
    Ok(said.clone())
}

/// Returns `true` if newly written blobs are compressed. A choice in the options replaces the stored one and
/// is stored.
pub(crate) fn resolve_compression(
    db: &Database,
    vault: &Vault,
    options: &OpenOptions,
) -> Result<bool> {
    let kept = match db.begin_read()?.open_table(layout::META)?.get(layout::META_COMPRESSION)? {
        Some(row) if *row.value() == layout::COMPRESSION_SCHEME => true,
        Some(_) => {
            let message = "blobs are compressed in a way that is not known";
            return Err(Error::new(ErrorKind::StoreVersion, message));
        }
        None => false,
    };
    let Some(said) = options.compress.filter(|said| *said != kept) else { return Ok(kept) };
    let row = said.then_some(layout::COMPRESSION_SCHEME.as_slice());
    set_meta(db, vault, options, (layout::META_COMPRESSION, row))?;
    Ok(said)
}

/// Checks where the log of a plain store goes on.
///
/// # Errors
/// `ERR_INTEGRITY` if its last row is damaged; `ERR_IO`.
pub(crate) fn check_log_end(db: &Database, vault: &Vault) -> Result<()> {
    let txn = db.begin_read()?;
    let (audit, log) = (txn.open_table(layout::AUDIT)?, txn.open_table(layout::LOG)?);
    AuditRows::new(&audit, vault.keyring().is_none().then_some(&log)).check_end()
}

/// Returns where the open segment of the audit log began: by its row, or where that is damaged by the entries. `None`
/// if no segment was begun.
///
/// # Errors
/// `ERR_INTEGRITY` if neither tells; `ERR_IO`.
pub(crate) fn open_segment(db: &Database, vault: &Vault) -> Result<Option<OpenSegment>> {
    let txn = db.begin_read()?;
    let row = txn.open_table(layout::META)?.get(layout::META_SEGMENT)?;
    let damaged = match row.map(|row| OpenSegment::open(row.value())) {
        None => return Ok(None),
        Some(Ok(open)) => return Ok(Some(open)),
        Some(Err(damaged)) => damaged,
    };
    let (audit, log) = (txn.open_table(layout::AUDIT)?, txn.open_table(layout::LOG)?);
    let rows = AuditRows::new(&audit, vault.keyring().is_none().then_some(&log));
    let most = usize::try_from(MAX_SEGMENT_ENTRIES).unwrap_or(usize::MAX);
    for entry in rows.backward()?.take(most) {
        let entry = AuditEntry::decode(&entry?)?;
        if let Some(start) = entry.segment {
            return Ok(Some(OpenSegment { start, first: entry.sequence, since: entry.time }));
        }
    }
    Err(damaged)
}

/// Returns the rules of the store, and refuses options that name another preset.
pub(crate) fn load_rules(db: &Database, options: &OpenOptions) -> Result<RuleSet> {
    let kept = stored_rules(&db.begin_read()?.open_table(layout::META)?)?;
    let asked = options.preset.map(Preset::name);
    if let Some(asked) = asked.filter(|asked| *asked != kept.name()) {
        let message =
            format!("this store holds to {}, and was to be opened with {asked}", kept.name());
        return Err(Error::new(ErrorKind::Policy, message).with_hint(
            "open it without naming a preset; grain policy set FILE adds the rules of another",
        ));
    }
    kept.rules()
}

/// Reads the stored rules; those of the default preset if none are stored.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn stored_rules(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<StoredRules> {
    match meta.get(layout::META_PRESET)? {
        Some(row) => StoredRules::from_json(PlainEnvelope::open(0, row.value())?),
        None => Ok(StoredRules::of(Preset::default())),
    }
}

/// The metadata that an open store needs.
pub(crate) struct StoreMeta {
    /// Key that seals cursors.
    pub(crate) cursor_key: Secret,
    /// Key that signs capability tokens.
    pub(crate) token_key: Secret,
    /// The enabled level of CAL.
    pub(crate) switch: CalSwitch,
    /// The end of the audit log.
    pub(crate) chain: AuditHashChain,
}

/// Checks the format stamp and the keyring, and reads the metadata.
pub(crate) fn read_meta(db: &Database, vault: &Vault, options: &OpenOptions) -> Result<StoreMeta> {
    let txn = db.begin_read()?;
    let format = format_of(&txn)?;
    let meta = txn.open_table(layout::META)?;
    let row = |name: &str| -> Result<Option<Vec<u8>>> {
        Ok(meta.get(name)?.map(|row| row.value().to_vec()))
    };
    let missing = || Error::integrity("the store lacks its audit key");
    check_keyring(&row, vault, options)?;
    // Format 1 did not mark destroyed keys; the upgrade does.
    if format >= layout::FIRST_FORMAT_WITH_SEAL {
        vault.check_destruction_marks(&txn)?;
    }
    let at = match format < layout::FIRST_FORMAT_WITH_SEAL {
        true => RowKey::AUDIT_KEY_1,
        false => RowKey::AUDIT_KEY,
    };
    let key = vault.open_audit_key(at, &row(layout::META_AUDIT_KEY)?.ok_or_else(missing)?)?;
    let (audit, log) = (txn.open_table(layout::AUDIT)?, txn.open_table(layout::LOG)?);
    let head = AuditRows::new(&audit, vault.keyring().is_none().then_some(&log)).head()?;
    let epoch = row(layout::META_INDEX_EPOCH)?.map(|row| row.as_slice().try_into());
    let epoch = epoch.transpose().map_err(|_| Error::integrity("the index epoch is malformed"))?;
    vault.set_index_epoch(epoch.map_or(0, u64::from_be_bytes));
    let derived = |purpose: &str| Sha256::new().chain_update(purpose).chain_update(key).finalize();
    let cursor_key = Secret::new(derived("grainstore-cursor-v1").into());
    let token_key = Secret::new(derived("grainstore-cal-token-v1").into());
    let switch = CalSwitch::of_row(row(layout::META_CAL)?.as_deref());
    let chain = AuditHashChain::from_head(head, key).with_vault(vault.clone());
    Ok(StoreMeta { cursor_key, token_key, switch, chain })
}

/// Checks the seal of an encrypted store of a format that has one, before anything of it is used.
///
/// # Errors
/// `ERR_INTEGRITY` if somebody without the key changed what is sealed; `ERR_IO`.
pub(crate) fn check_seal(db: &Database, vault: &Vault) -> Result<()> {
    let txn = db.begin_read()?;
    match format_of(&txn)? < layout::FIRST_FORMAT_WITH_SEAL {
        true => Ok(()),
        false => row_sums::check_seal(&txn, vault),
    }
}

/// Checks that the keyring belongs to this store, and that there is one if there must be.
fn check_keyring(
    row: &impl Fn(&str) -> Result<Option<Vec<u8>>>,
    vault: &Vault,
    options: &OpenOptions,
) -> Result<()> {
    match (row(layout::META_ENCRYPTED)?.as_deref(), vault.keyring()) {
        (None, None) if options.key.is_some() => Err(not_encrypted()),
        (None, None) => Ok(()),
        (Some(kind), _) if kind != layout::ENCRYPTION_SCHEME => {
            let message = "the store is encrypted in a way that is not known";
            Err(Error::new(ErrorKind::StoreVersion, message))
        }
        // That of a copy comes from its journal, with the key.
        (Some(_), None) if options.journaling.is_some() && options.key.is_none() => {
            Err(no_key_given())
        }
        (Some(_), None) => Err(Error::integrity("the store is encrypted, and its keyring is gone")
            .with_hint("put back the file named keyring; without it nothing can be read")),
        (None, Some(_)) => Err(Error::integrity("a keyring lies beside a store without keys")),
        (Some(_), Some(keyring))
            if row(layout::META_STORE_ID)?.as_deref() != Some(keyring.store_id()) =>
        {
            Err(Error::integrity("the keyring belongs to another store"))
        }
        (Some(_), Some(keyring)) => {
            let slot = row(layout::META_SLOTS)?.map(|row| last_slot(&row)).transpose()?;
            slot.map_or(Ok(()), |slot| keyring.record_slot(slot))
        }
    }
}

/// The id of a store and the key of its audit log.
pub(crate) struct StoreIdentity {
    store_id: [u8; 16],
    audit_key: [u8; 32],
}

impl StoreIdentity {
    /// Creates the identity and the keys of a new store in a directory. An existing keyring is never
    /// overwritten: it may be all that is left of a store, or of an attempt to create this one.
    pub(crate) fn new(path: &Path, options: &OpenOptions) -> Result<(Self, Vault)> {
        let mut identity = Self::random()?;
        let Some(key) = &options.key else {
            if directory::keyring_path(path).exists() {
                return Err(key_error(
                    "a keyring lies in this directory, and no store",
                    "put back the store it belongs to; or give its key to make an encrypted one",
                ));
            }
            return Ok((identity, Vault::default()));
        };
        let keyring = match Keyring::open(path, key.0.as_ref())? {
            Some(keyring) => {
                identity.store_id = *keyring.store_id();
                if options.journaling.is_some() { keyring.copied()? } else { keyring }
            }
            None if options.journaling.is_some() => {
                Keyring::create_copied(path, key.0.as_ref(), identity.store_id)?
            }
            None => Keyring::create(path, key.0.as_ref(), identity.store_id)?,
        };
        Ok((identity, Vault::with_keyring(Arc::new(keyring))))
    }

    /// The same, of the store that these keys are of.
    #[cfg(test)]
    pub(crate) fn with_keys(self, vault: &Vault) -> Self {
        let store_id = vault.keyring().map_or(self.store_id, |keyring| *keyring.store_id());
        Self { store_id, ..self }
    }

    pub(crate) fn random() -> Result<Self> {
        let mut identity = Self { store_id: [0; 16], audit_key: [0; 32] };
        fill_random(&mut identity.store_id)?;
        fill_random(&mut identity.audit_key)?;
        Ok(identity)
    }
}

/// Opens the keys of the store in a directory, before anything else of it.
///
/// # Errors
/// `ERR_KEY` if the key is wrong or missing, or there is nothing to open with it.
pub(crate) fn open_vault(path: &Path, options: &OpenOptions) -> Result<Vault> {
    let is_encrypted = directory::keyring_path(path).exists();
    match &options.key {
        None if is_encrypted => Err(no_key_given()),
        None => Ok(Vault::default()),
        // The metadata tells later if the keyring was lost or never existed (see `check_keyring`).
        Some(key) => {
            let keyring = match options.read_only {
                true => Keyring::open_read_only(path, key.0.as_ref())?,
                false => Keyring::open(path, key.0.as_ref())?,
            };
            Ok(keyring
                .map_or_else(Vault::default, |keyring| Vault::with_keyring(Arc::new(keyring))))
        }
    }
}

pub(super) fn not_encrypted() -> Error {
    key_error(
        "a key was given, and this store is not encrypted",
        "open it without a key; to encrypt what it holds, import it into a new encrypted store",
    )
}

pub(super) fn no_key_given() -> Error {
    key_error(
        "this store is encrypted, and no key was given",
        "give the key or the passphrase it opens with",
    )
}

fn key_error(message: &str, hint: &'static str) -> Error {
    Error::new(ErrorKind::Format(grainstore_format::ErrorKind::Key), message).with_hint(hint)
}

/// The row of the meta table that keeps the rules: an envelope of JSON.
pub(crate) fn seal_rules(kept: &StoredRules) -> Result<Vec<u8>> {
    Ok(PlainEnvelope::seal(0, &kept.to_json()?))
}
