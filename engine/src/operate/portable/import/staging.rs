//! The tables that an import writes in its transaction, and the reads of uncommitted rows that a plan needs.
//!
//! Two of them are deleted before the commit: sequences of the new grains by address, and derivations.
//! Decides nothing.

use std::cell::RefCell;
use std::collections::HashMap;

use grainstore_format::{ContentAddress, Envelope, GrainState};
use grainstore_index::Sequence;
use redb::{ReadableTable, Table, TableDefinition};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::disk::layout::{self, LogRowHead, RowKey, SignatureWrapper};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::disk::vault::Vault;
use crate::rules::preset::ActiveRules;
use crate::state::audit::{AuditRecord, RefusalLog};
use crate::state::view::View;
use crate::write::plan::{UncommittedLog, WritePlan};

/// Address -> sequence, for new grains.
const NEW_SEQUENCES: TableDefinition<'static, [u8; 32], u64> =
    TableDefinition::new("import.places");
/// Address of a parent, sequence of a new grain derived from it.
const NEW_CHILDREN: TableDefinition<'static, ([u8; 32], u64), ()> =
    TableDefinition::new("import.children");

/// The rows of an import.
pub(super) struct StagingTables<'s, 't> {
    view: &'s View,
    active_rules: &'s ActiveRules,
    rows: &'s mut RowWriter<'t>,
    places: Table<'t, [u8; 32], u64>,
    children: Table<'t, ([u8; 32], u64), ()>,
    /// Last sequence of the log before the import.
    before: Sequence,
    last: Sequence,
    /// Number of the first audit entry of the import.
    next_entry: u64,
}

/// The decisions of a plan, detached from it so that they can be written while no plan borrows the tables.
pub(super) struct PlanOutcome {
    grains: Vec<(Sequence, Vec<u8>, ContentAddress, Vec<ContentAddress>)>,
    wrappings: Vec<(Sequence, std::sync::Arc<SignatureWrapper>)>,
    states: HashMap<Sequence, GrainState>,
    roots: HashMap<Sequence, Vec<Sequence>>,
    /// Indexes of the audit entries by which grains stopped being current.
    ends: HashMap<Sequence, u64>,
}

impl PlanOutcome {
    /// Returns the decisions of a plan whose first audit entry has the sequence `first`, and its entries,
    /// with equal refusals merged.
    pub(super) fn from_plan(
        mut plan: WritePlan<'_>,
        first: u64,
        refusals: &RefCell<RefusalLog>,
    ) -> Result<(Self, Vec<AuditRecord>)> {
        let audit = std::mem::take(&mut plan.audit);
        let (audit, places) = refusals.borrow_mut().aggregate_with_positions(audit, plan.now());
        let entry_of = |at: usize| {
            let at = places.get(at).copied().unwrap_or(audit.len());
            first.saturating_add(u64::try_from(at).unwrap_or(u64::MAX))
        };
        let ends = plan.ended.iter().map(|(sequence, at)| (*sequence, entry_of(*at))).collect();
        let staged = std::mem::take(&mut plan.grains);
        let mut wrappings: Vec<_> =
            std::mem::take(&mut plan.wrappings).into_rows().into_iter().collect();
        let mut grains = Vec::with_capacity(staged.len());
        for new in staged {
            let address = new.prepared.blob.address();
            let parents = new.parents();
            wrappings.extend(new.prepared.wrapping.map(|wrapping| (new.sequence, wrapping)));
            grains.push((new.sequence, new.prepared.blob.into_bytes(), address, parents));
        }
        let states = std::mem::take(&mut plan.states).into_rows();
        let roots = std::mem::take(&mut plan.roots).into_rows();
        Ok((Self { grains, wrappings, states, roots, ends }, audit))
    }
}

impl<'s, 't> StagingTables<'s, 't> {
    pub(super) fn open(
        view: &'s View,
        active_rules: &'s ActiveRules,
        rows: &'s mut RowWriter<'t>,
    ) -> Result<Self> {
        let before = view.last_sequence()?;
        Ok(Self {
            view,
            active_rules,
            places: rows.temporary(NEW_SEQUENCES)?,
            children: rows.temporary(NEW_CHILDREN)?,
            rows,
            before,
            last: before,
            next_entry: view.audit_len()?,
        })
    }

    /// The last sequence of the log before the import.
    pub(super) fn sequence_before(&self) -> Sequence {
        self.before
    }

    /// Appends a grain to the log.
    ///
    /// # Errors
    /// `ERR_LIMIT` if the log is full; `ERR_IO`.
    pub(super) fn append(
        &mut self,
        address: &ContentAddress,
        blob: &[u8],
        wrapping: Option<&SignatureWrapper>,
        parents: &[ContentAddress],
    ) -> Result<Sequence> {
        let sequence = Sequence::new(self.last.get().saturating_add(1));
        if sequence > Sequence::MAX {
            let message = format!("a store holds {} grains at most", Sequence::MAX.get());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let vault = self.view.vault();
        vault.enroll([blob])?;
        let encryption_key =
            with_fields(blob, |grain| vault.key_for_grain(grain, self.active_rules))?;
        let envelope = vault.seal(RowKey::log(sequence), blob, &encryption_key)?;
        // Entries of an import tell of many grains, and lie beside none.
        let head = LogRowHead { number: self.next_entry, entry: None };
        let row = vault.log_row(sequence, head, envelope)?;
        self.rows.put(TruthTable::Log, sequence, &row)?;
        self.places.insert(address.as_bytes(), sequence.get())?;
        for parent in parents {
            self.children.insert((*parent.as_bytes(), sequence.get()), ())?;
        }
        if let Some(wrapping) = wrapping {
            self.put_wrapping(sequence, wrapping)?;
        }
        self.last = sequence;
        Ok(sequence)
    }

    /// Returns `true` if `child` is new and derives from `parent`.
    pub(super) fn derives(&self, child: &ContentAddress, parent: &ContentAddress) -> Result<bool> {
        let Some(place) = self.places.get(child.as_bytes())? else { return Ok(false) };
        Ok(self.children.get((*parent.as_bytes(), place.value()))?.is_some())
    }

    /// Writes a state; a grain that stops being current does so by this audit entry.
    pub(super) fn put_state(
        &mut self,
        sequence: Sequence,
        state: GrainState,
        entry: u64,
    ) -> Result<()> {
        let record = self.rows.state_record(sequence)?.with_state(state, entry);
        self.rows.put_state(sequence, &record)
    }

    /// Writes the decisions of a plan over these tables. A grain that ends by no audit entry of the plan ends
    /// by `otherwise`.
    pub(super) fn write(&mut self, outcome: PlanOutcome, otherwise: u64) -> Result<()> {
        for (sequence, blob, address, parents) in outcome.grains {
            if self.append(&address, &blob, None, &parents)? != sequence {
                return Err(Error::integrity("an import lost count of its grains"));
            }
        }
        for (sequence, wrapping) in outcome.wrappings {
            self.put_wrapping(sequence, &wrapping)?;
        }
        for (sequence, state) in outcome.states {
            let entry = outcome.ends.get(&sequence).copied().unwrap_or(otherwise);
            self.put_state(sequence, state, entry)?;
        }
        for (sequence, roots) in outcome.roots {
            let row = layout::encode_roots(sequence, &roots);
            self.rows.put(TruthTable::Roots, sequence, &row)?;
        }
        Ok(())
    }

    /// Deletes the temporary tables.
    pub(super) fn finish(self) -> Result<()> {
        let Self { rows, places, children, .. } = self;
        drop((places, children));
        rows.delete_temporary(NEW_SEQUENCES)?;
        rows.delete_temporary(NEW_CHILDREN)
    }

    /// Iterates over the blobs of the new grains.
    pub(super) fn new_blobs(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Sequence, Vec<u8>)>> + '_> {
        let log = self.rows.numbered(TruthTable::Log)?;
        let first = self.before.get().saturating_add(1);
        let rows = log.map(|log| log.range(first..)).transpose()?;
        Ok(rows.into_iter().flatten().map(|row| {
            let (sequence, envelope) = row?;
            let sequence = Sequence::new(sequence.value());
            Ok((sequence, open_blob(self.view.vault(), sequence, envelope.value())?))
        }))
    }

    /// Returns the bytes around the blob of a new signed grain.
    pub(super) fn wrapping_at(&self, sequence: Sequence) -> Result<Option<SignatureWrapper>> {
        let row = self.rows.get(TruthTable::Signatures, sequence)?;
        row.map(|row| SignatureWrapper::open(sequence, &row, self.view.vault())).transpose()
    }

    /// Replaces the envelope of a new grain by one with a valid signature.
    pub(super) fn improve_signature(
        &mut self,
        sequence: Sequence,
        better: &SignatureWrapper,
    ) -> Result<()> {
        match self.wrapping_at(sequence)? {
            Some(kept) if !kept.valid => self.put_wrapping(sequence, better),
            _ => Ok(()),
        }
    }

    fn put_wrapping(&mut self, sequence: Sequence, wrapping: &SignatureWrapper) -> Result<()> {
        let vault = self.view.vault();
        let encryption_key = match self.rows.get(TruthTable::Log, sequence)? {
            Some(row) => vault.key_of_row(vault.log_envelope(&row))?,
            None => vault.store_key(),
        };
        let row = wrapping.seal(sequence, vault, &encryption_key)?;
        self.rows.put(TruthTable::Signatures, sequence, &row).map(drop)
    }
}

/// Opens a row of the log, which has no stub: it is new.
fn open_blob(vault: &Vault, at: Sequence, row: &[u8]) -> Result<Vec<u8>> {
    Ok(vault.open(RowKey::log(at), vault.log_envelope(row))?.into_owned())
}

impl UncommittedLog for StagingTables<'_, '_> {
    fn last_sequence(&self) -> Sequence {
        self.last
    }

    fn sequence_of(&self, address: &ContentAddress) -> Result<Option<Sequence>> {
        Ok(self.places.get(address.as_bytes())?.map(|place| Sequence::new(place.value())))
    }

    fn blob_at(&self, sequence: Sequence) -> Result<Vec<u8>> {
        if sequence <= self.before {
            return self.view.with_blob(sequence, |blob| Ok(blob.to_vec()));
        }
        let row = self.rows.get(TruthTable::Log, sequence)?;
        let missing = || Error::integrity(format!("the log has no entry {}", sequence.get()));
        let row = row.ok_or_else(missing)?;
        open_blob(self.view.vault(), sequence, &row)
    }

    fn state_at(&self, sequence: Sequence) -> Result<GrainState> {
        Ok(self.rows.state_record(sequence)?.state)
    }

    fn roots_at(&self, sequence: Sequence) -> Result<Vec<Sequence>> {
        let row = self.rows.get(TruthTable::Roots, sequence)?;
        row.map_or(Ok(Vec::new()), |row| layout::decode_roots(sequence, &row))
    }

    fn signer_at(&self, sequence: Sequence) -> Result<Option<String>> {
        let Some(kept) = self.wrapping_at(sequence)?.filter(|kept| kept.valid) else {
            return Ok(None);
        };
        let blob = self.blob_at(sequence)?;
        Ok(Envelope::from_parts(&kept.prefix, &blob, &kept.suffix)?.kid())
    }

    fn children_of(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Sequence>> {
        let parent = *address.as_bytes();
        let rows = self.children.range((parent, 0)..=(parent, u64::MAX))?;
        let places = rows.take(limit).map(|row| Ok(Sequence::new(row?.0.value().1)));
        places.collect()
    }
}
