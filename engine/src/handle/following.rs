//! A copy that follows: its writer thread writes the rows of journal records as they are, and decides nothing.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use grainstore_index::Sequence;
use redb::ReadableDatabase;

use crate::base::error::Result;
use crate::disk::change_record::ChangeRecord;
use crate::disk::journal::Record;
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
}

impl Effects {
    /// The effects of a record after the log had `last`, and its last sequence then.
    fn of(changes: &ChangeRecord, mut last: Sequence) -> Result<(Self, Sequence)> {
        let (mut effects, before) = (Self::default(), last);
        for row in changes.rows() {
            let (table, key, value) = row?;
            match table {
                TruthTable::Log => {
                    let at = Sequence::new(key.try_into().map_or(0, u64::from_be_bytes));
                    effects.stubbed.extend(Some(at).filter(|at| *at <= before));
                    last = last.max(at);
                }
                TruthTable::Meta if key == layout::META_ERASURES.as_bytes() => {
                    effects.erasures = value.map(<[u8]>::to_vec);
                }
                TruthTable::Meta => {
                    let settings = [layout::META_PRESET, layout::META_CAL];
                    effects.settings |= settings.iter().any(|name| key == name.as_bytes());
                }
                _ => {}
            }
        }
        Ok((effects, last))
    }
}

impl Writer {
    /// Writes the records after a place, which the copy is at, and publishes them.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`, after which the copy is to be opened again.
    pub(super) fn follow(
        &mut self,
        from: &Position,
        (batch, applying): (&[Record], Applying),
        switch: &SharedCalSwitch,
    ) -> Result<()> {
        self.check_running()?;
        self.stop_on_error(|writer| {
            let (mut from, mut rest) = (*from, batch);
            while !rest.is_empty() {
                // Records are written together up to one that is more than rows.
                let mut last = writer.view.last_sequence()?;
                let (mut plain, mut special) = (0_usize, None);
                for record in rest {
                    let (effects, after) = Effects::of(&record.changes()?, last)?;
                    last = after;
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
                    from = writer.follow_effects(&from, one, (effects, switch))?;
                    rest = later;
                }
            }
            Ok(())
        })
    }

    fn follow_effects(
        &mut self,
        from: &Position,
        record: &Record,
        (effects, switch): (Effects, &SharedCalSwitch),
    ) -> Result<Position> {
        let Effects { stubbed, erasures, settings } = effects;
        if let Some(row) = erasures {
            let pending = ErasureRecord::open(&row)?.pending;
            let is_scrubbed = |of: &PendingScrub| pending.iter().all(|still| still.user != of.user);
            if self.view.erasures()?.pending.iter().any(is_scrubbed) {
                // The leader has scrubbed its files, and forgets that they are to be.
                self.scrub_copy()?;
            }
        }
        let mut touched = BTreeSet::new();
        let mut window = ConversationWindow::of(&self.view);
        for at in &stubbed {
            touched.extend(window.dependents(*at)?);
        }
        drop(window);
        let to = apply_batch(&self.db, from, std::slice::from_ref(record), Applying::Synced)?;
        self.publish_log()?;
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
        Ok(to)
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
