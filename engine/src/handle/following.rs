//! A copy that follows: its writer thread writes the rows of journal records as they are, and decides nothing.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use grainstore_index::Sequence;
use redb::ReadableDatabase;

use crate::base::error::{Error, Result};
use crate::disk::change_record::ChangeRecord;
use crate::disk::journal::{KeyringSlot, Record};
use crate::disk::journaling::{Applying, apply_batch, end_scrub};
use crate::disk::layout::{self, ErasureRecord, PendingScrub};
use crate::disk::position::Position;
use crate::disk::truth_tables::TruthTable;
use crate::handle::cal_switch::{CalSwitch, SharedCalSwitch};
use crate::handle::meta::stored_rules;
use crate::search::texts::ConversationWindow;
use crate::write::writer::Writer;

/// Maximum time that the scrub of a follower waits for readers of the old files. They are overwritten later then.
const MAX_READER_WAIT: Duration = Duration::from_secs(2);
/// Interval of checks for remaining readers.
const READER_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// What a record changes that is not only read from the truth.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Effects {
    /// Grains that became stubs.
    stubbed: BTreeSet<Sequence>,
    /// The row of the erasures, if it is written.
    erasures: Option<Vec<u8>>,
    /// True if rules or the switch of CAL change.
    settings: bool,
    /// True if the analysis of texts changes, which is read when a copy is opened.
    wording: bool,
    /// Slots of the keyring that are destroyed, with their marks.
    destroyed: Vec<(u32, Vec<u8>)>,
}

/// Slots of the keyring that a batch of records is the first to use.
#[derive(Debug, Default)]
pub(super) struct NewSlots {
    /// Those after the ones that the copy has.
    pub(super) slots: Vec<KeyringSlot>,
    /// True if some are destroyed, by later records of the batch: all are published together then.
    pub(super) at_once: bool,
}

/// How far a copy followed what it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Followed {
    All,
    /// All, and its files were scrubbed. Somebody may read from those of before.
    Scrubbed,
    /// Up to a record for which its files are to be scrubbed, once nobody reads from those of an earlier scrub.
    UpToScrub,
}

impl Effects {
    /// The effects of a record on a copy whose log has `last`, which is set to what it has after it.
    fn of(changes: &ChangeRecord, last: &mut Sequence) -> Result<Self> {
        let (mut effects, before) = (Self::default(), *last);
        for row in changes.rows() {
            let (table, key, value) = row?;
            match table {
                TruthTable::Log => {
                    let at = Sequence::new(key.try_into().map_or(0, u64::from_be_bytes));
                    effects.stubbed.extend(Some(at).filter(|at| *at <= before));
                    *last = at.max(*last);
                }
                TruthTable::Meta if key == layout::META_ERASURES.as_bytes() => {
                    effects.erasures = value.map(<[u8]>::to_vec);
                }
                TruthTable::Destroyed => {
                    let number = key.try_into().map_or(0, u64::from_be_bytes);
                    let number = u32::try_from(number).unwrap_or_default();
                    effects.destroyed.extend(value.map(|mark| (number, mark.to_vec())));
                }
                TruthTable::Meta => {
                    let settings = [layout::META_PRESET, layout::META_CAL];
                    effects.settings |= settings.iter().any(|name| key == name.as_bytes());
                    effects.wording |= key == layout::META_WORDING.as_bytes();
                }
                _ => {}
            }
        }
        Ok(effects)
    }

    /// Adds those of the records after these.
    fn add(&mut self, later: Self) {
        let Self { stubbed, erasures, settings, wording, destroyed } = later;
        self.stubbed.extend(stubbed);
        self.erasures = erasures.or(self.erasures.take());
        self.settings |= settings;
        self.wording |= wording;
        self.destroyed.extend(destroyed);
    }
}

impl Writer {
    /// Writes the records after a place, which the copy is at, and publishes them: all, or those before one for which the
    /// files are to be scrubbed while somebody still reads from those of an earlier scrub.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`, after which the copy is to be opened again.
    pub(super) fn follow(
        &mut self,
        from: &Position,
        (batch, new, applying): (&[Record], NewSlots, Applying),
        switch: &SharedCalSwitch,
    ) -> Result<Followed> {
        self.check_running()?;
        self.stop_on_error(|writer| {
            let (mut from, mut rest, mut scrubbed) = (*from, batch, false);
            if new.at_once {
                if writer.is_kept_from_scrub()? {
                    return Ok(Followed::UpToScrub);
                }
                return writer.follow_at_once(&from, (batch, &new.slots), switch);
            }
            writer.adopt_slots(&new.slots)?;
            while !rest.is_empty() {
                // Records are written together up to one that is more than rows.
                let mut last = writer.view.last_sequence()?;
                let (mut plain, mut special) = (0_usize, None);
                for record in rest {
                    let effects = Effects::of(&record.changes()?, &mut last)?;
                    if effects != Effects::default() {
                        special = Some(effects);
                        break;
                    }
                    plain = plain.saturating_add(1);
                }
                let (now, later) = rest.split_at_checked(plain).unwrap_or((rest, &[]));
                if !now.is_empty() {
                    from = apply_batch(&writer.db, &from, now, applying)?;
                    writer.publish_log()?;
                }
                rest = later;
                if let (Some(effects), Some((one, later))) = (special, rest.split_first()) {
                    let scrubs = writer.ends_erasure(&effects)?;
                    if scrubs && writer.is_kept_from_scrub()? {
                        return Ok(Followed::UpToScrub);
                    }
                    scrubbed |= scrubs;
                    from = writer.follow_effects(&from, one, (effects, switch), scrubs)?;
                    rest = later;
                }
            }
            Ok(if scrubbed { Followed::Scrubbed } else { Followed::All })
        })
    }

    /// Returns `true` if somebody still reads from files that an earlier scrub replaced.
    fn is_kept_from_scrub(&mut self) -> Result<bool> {
        if !self.has_old_readers() {
            return Ok(false);
        }
        // It may be the folding that reads them.
        self.fold_all()?;
        Ok(self.has_old_readers())
    }

    /// Returns `true` if a record says that the leader has scrubbed its files: it forgets that they are to be.
    fn ends_erasure(&self, effects: &Effects) -> Result<bool> {
        let Some(row) = &effects.erasures else { return Ok(false) };
        let pending = ErasureRecord::open(row)?.pending;
        let is_scrubbed = |of: &PendingScrub| pending.iter().all(|still| still.user != of.user);
        Ok(self.view.erasures()?.pending.iter().any(is_scrubbed))
    }

    fn follow_effects(
        &mut self,
        from: &Position,
        record: &Record,
        (effects, switch): (Effects, &SharedCalSwitch),
        scrubs: bool,
    ) -> Result<Position> {
        self.fold_before(&effects)?;
        if scrubs {
            // Before the record: once all erasures are scrubbed, lists are believed.
            self.scrub_copy()?;
        }
        let touched = self.dependents(&effects)?;
        let to = apply_batch(&self.db, from, std::slice::from_ref(record), Applying::Synced)?;
        self.publish_effects(effects, touched, switch)?;
        Ok(to)
    }

    /// Writes records and publishes them together: grains are encrypted under keys that later ones of them destroyed.
    fn follow_at_once(
        &mut self,
        from: &Position,
        (batch, slots): (&[Record], &[KeyringSlot]),
        switch: &SharedCalSwitch,
    ) -> Result<Followed> {
        let (mut all, mut last) = (Effects::default(), self.view.last_sequence()?);
        for record in batch {
            all.add(Effects::of(&record.changes()?, &mut last)?);
        }
        self.adopt_slots(slots)?;
        self.fold_before(&all)?;
        apply_batch(&self.db, from, batch, Applying::WhenOpened)?;
        // What came and went in between was never shown.
        let shown = self.view.last_sequence()?;
        all.stubbed.retain(|at| *at <= shown);
        let touched = self.dependents(&all)?;
        self.publish_effects(all, touched, switch)?;
        self.scrub_what_was_read()?;
        Ok(Followed::Scrubbed)
    }

    /// Has the index hold all grains before keys are destroyed: the addresses of those that are encrypted under them
    /// cannot be computed then.
    fn fold_before(&mut self, effects: &Effects) -> Result<()> {
        if effects.destroyed.is_empty() { Ok(()) } else { self.fold_all() }
    }

    /// Returns the grains whose texts have words of those that become stubs.
    fn dependents(&self, effects: &Effects) -> Result<BTreeSet<Sequence>> {
        let (mut touched, mut window) = (BTreeSet::new(), ConversationWindow::of(&self.view));
        for at in &effects.stubbed {
            touched.extend(window.dependents(*at)?);
        }
        Ok(touched)
    }

    /// Publishes rows that were written, with what else they change.
    fn publish_effects(
        &mut self,
        Effects { stubbed, settings, wording, destroyed, .. }: Effects,
        touched: BTreeSet<Sequence>,
        switch: &SharedCalSwitch,
    ) -> Result<()> {
        self.publish_log()?;
        self.destroy_slots(&destroyed)?;
        if !stubbed.is_empty() {
            self.retrieval.text_index.reindex(touched);
            self.scrub.note_stubbed(stubbed);
        }
        if settings {
            let txn = self.db.begin_read()?;
            let meta = txn.open_table(layout::META)?;
            let row = meta.get(layout::META_CAL)?.map(|row| row.value().to_vec());
            switch.set(CalSwitch::of_row(row.as_deref()));
            self.rules.replace(stored_rules(&meta)?.rules()?);
        }
        if wording {
            return Err(Error::timeout("the leader analyzes texts in another way now")
                .with_hint("open this copy again: it does so then, too"));
        }
        Ok(())
    }

    /// Has the keyring of an encrypted copy hold new slots, before rows that are encrypted under them.
    fn adopt_slots(&self, slots: &[KeyringSlot]) -> Result<()> {
        match (self.db.vault().keyring(), slots.last()) {
            (Some(keyring), Some(last)) => {
                keyring.adopt(slots)?;
                keyring.record_slot(last.number)
            }
            _ => Ok(()),
        }
    }

    /// Destroys the keys that a record destroyed.
    fn destroy_slots(&self, destroyed: &[(u32, Vec<u8>)]) -> Result<()> {
        let Some(keyring) = self.db.vault().keyring() else { return Ok(()) };
        for (slot, mark) in destroyed {
            if *mark != keyring.destruction_mark(*slot) {
                let message = format!(
                    "a record destroys slot {slot} of the keyring, and is not the leader's"
                );
                return Err(Error::truth_damaged(message));
            }
            keyring.destroy_slot(*slot)?;
        }
        Ok(())
    }

    /// Scrubs the files if records erased something when the copy was opened: their pages of before are there still.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(super) fn scrub_what_was_read(&mut self) -> Result<()> {
        if Position::is_scrub_due(&self.db)? {
            self.scrub_copy()?;
            end_scrub(&self.db)?;
        }
        Ok(())
    }

    /// Replaces the files of this copy by ones that never contained what was erased.
    fn scrub_copy(&mut self) -> Result<()> {
        self.scrub.shreds_always(true);
        let scrubbed = self.replace_copy();
        self.scrub.shreds_always(false);
        scrubbed
    }

    fn replace_copy(&mut self) -> Result<()> {
        self.fold_all()?;
        self.view.check_log()?;
        if !self.db.is_in_memory() {
            self.replace_truth()?;
        }
        self.rebuild_index(self.view.with_index(self.view.indexed().clone()))?;
        let began = Instant::now();
        while self.has_old_readers() && began.elapsed() < MAX_READER_WAIT {
            thread::sleep(READER_CHECK_INTERVAL);
        }
        self.retrieval.text_index.forget()?;
        self.forget_stubbed()?;
        self.retrieval.vectors.shred()
    }
}
