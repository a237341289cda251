//! A copy of a store that has a journal: made from it, brought to its end, and where it is.

use std::path::Path;
use std::sync::{Arc, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use redb::{Builder, Database};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::directory;
use crate::disk::journal::{Head, KeyringSlot, Lead, Record, ShardStatus, fenced};
use crate::disk::journaled_keyring::{
    Marks, check_is_of, check_slots, hashes_of, is_encrypted, lacks_mark, marks_in, marks_of,
    needed_slots, slots_in,
};
use crate::disk::journaling::{
    Applying, CommitPosition, Following, JournalWriter, Source, Wait, catch_up, check_end,
    next_batch, place_after, position_in,
};
use crate::disk::keyring::{self, KeyProvider, Keyring};
use crate::disk::position::Position;
use crate::disk::vault::Vault;
use crate::handle::following::{Followed, NewSlots};
use crate::handle::meta::{no_key_given, not_encrypted};
use crate::handle::options::{JournalRole, Journaling, OpenOptions};
use crate::handle::store::Store;
use crate::write::writer::Writer;

/// Bytes of records that a follower reads to publish them together.
const MAX_READ_AT_ONCE: usize = 64 << 20;
/// Time between two looks at the journal of who waits for a place in it.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

impl Store {
    /// Returns the position in its journal that reads of this copy are at, also of a copy that was opened read-only; `None`
    /// for a store without a journal. What was acknowledged by a leader before this call is at this position or before it,
    /// so that a copy that [waited](Self::wait_for) for it shows that.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn position(&self) -> Result<Option<CommitPosition>> {
        let position = match &self.inner().journaling {
            Some(journaling) => Some(self.place(journaling)?),
            None if self.inner().read_only => {
                Position::read_in(self.inner().view()?.transaction())?
            }
            None => None,
        };
        Ok(position.map(|at| CommitPosition::new(at.shard, at.head.commit)))
    }

    /// Has a copy that [follows](OpenOptions::following) read and apply what its journal has by now, and returns the
    /// place it is at then. A leader is where it is: [`Store::wait_for_latest`] asks whether it still leads.
    ///
    /// # Errors
    /// `ERR_DIVERGED` if this copy has what the journal has not, and serves no more: close it. `ERR_BUSY` if readers of
    /// its files keep it from an erasure for longer than 30 seconds, in which it stands still; `ERR_TIMEOUT` if it is
    /// to be opened again in order to follow. `ERR_IO` if the journal is not reached, `ERR_INTEGRITY`,
    /// `ERR_STORE_VERSION`.
    pub fn follow(&self) -> Result<Option<CommitPosition>> {
        match self.follow_status()? {
            Some((at, _)) => Ok(Some(at)),
            None => self.position(),
        }
    }

    /// As [`Store::follow`], with where the journal stood then and who leads; `None` for a copy that does not follow.
    ///
    /// # Errors
    /// As [`Store::follow`].
    pub fn follow_status(&self) -> Result<Option<(CommitPosition, ShardStatus)>> {
        let Some(journaling) = self.inner().follows() else { return Ok(None) };
        // One at a time: another that waited finds less to do.
        let mut state = self.inner().following.lock().unwrap_or_else(PoisonError::into_inner);
        self.follow_to_head(journaling, &mut state).map(Some)
    }

    /// Applies what the journal has when this is called, or what comes before a scrub that waits for readers. What is
    /// appended meanwhile is for the next call: under a steady load there would be no end.
    fn follow_to_head(
        &self,
        journaling: &Journaling,
        state: &mut Following,
    ) -> Result<(CommitPosition, ShardStatus)> {
        let mut from = self.place(journaling)?;
        let status = journaling.journal.status(from.shard)?;
        journaling.note_leader(&status);
        check_end(&from.head, &status.head)?;
        while from.head.commit < status.head.commit && state.wait.is_none_or(Wait::is_to_be_tried) {
            // The view is not kept: a scrub waits for whoever reads the files of before.
            let vault = self.inner().view()?.vault().clone();
            let source = journaling.source(&vault);
            let mut batch = next_batch(source, &from, &status.head)?;
            let slots = Self::new_slots(source, &mut batch)?;
            let (switch, syncs) = (self.inner().switch.clone(), state.unsynced.add(batch.len()));
            let applying = if syncs { Applying::Synced } else { Applying::Unsynced };
            let followed = self.run_exclusive_on_index(move |writer| {
                writer.follow(&from, (&batch, slots, applying), &switch)
            })?;
            state.is_read |= followed != Followed::All;
            state.wait = match followed {
                Followed::UpToScrub => Some(Wait::go_on(state.wait)?),
                _ => None,
            };
            from = self.place(journaling)?;
        }
        if state.is_read {
            // What nobody reads any more is overwritten.
            state.is_read = self.run_exclusive_on_index(|writer| Ok(writer.has_old_readers()))?;
        }
        Ok((CommitPosition::new(from.shard, from.head.commit), status))
    }

    /// Waits until reads of this copy see a commit.
    ///
    /// # Errors
    /// `ERR_TIMEOUT`; `ERR_CONFLICT` for a place of another shard, or a store without a journal; those of
    /// [`Store::follow`].
    pub fn wait_for(&self, position: CommitPosition, patience: Duration) -> Result<()> {
        let began = Instant::now();
        loop {
            match self.position()? {
                Some(at) if at.shard != position.shard => {
                    let message =
                        format!("this is a copy of shard {}, not of {}", at.shard, position.shard);
                    return Err(Error::new(ErrorKind::Conflict, message)
                        .with_hint("name a position of this shard, as one of its nodes tells it"));
                }
                Some(at) if at.commit >= position.commit => return Ok(()),
                Some(_) => {}
                None => {
                    let message = "this store has no journal, and so no positions";
                    return Err(Error::new(ErrorKind::Conflict, message)
                        .with_hint("name the copy of a node"));
                }
            }
            self.follow_if_nobody_does()?;
            if self.position()?.is_some_and(|at| at.commit >= position.commit) {
                return Ok(());
            }
            if began.elapsed() >= patience {
                let message = format!("this copy is not at {position} yet");
                return Err(Error::new(ErrorKind::Timeout, message)
                    .with_hint("wait longer, or read from the node that leads the shard"));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Reads what is new in the journal, unless another thread is at it, or the journal is not reached.
    fn follow_if_nobody_does(&self) -> Result<()> {
        let Some(journaling) = self.inner().follows() else { return Ok(()) };
        let mut state = match self.inner().following.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        match self.follow_to_head(journaling, &mut state) {
            Err(failed) if failed.kind() != ErrorKind::Io => Err(failed),
            _ => Ok(()),
        }
    }

    /// Waits until reads of this copy see everything that was acknowledged before this call, and returns its place
    /// then: for a read that must be fresh. It asks the journal, so that it takes a round trip. `None` for a store
    /// without a journal, which always shows that.
    ///
    /// # Errors
    /// `ERR_FENCED` for a leader that another node has taken the lead from; `ERR_IO` if the journal is not reached;
    /// those of [`Store::wait_for`].
    pub fn wait_for_latest(&self, patience: Duration) -> Result<Option<CommitPosition>> {
        let Some(journaling) = &self.inner().journaling else { return Ok(None) };
        let shard = journaling.shard();
        let before = self.place(journaling)?;
        let status = journaling.journal.status(shard)?;
        check_end(&before.head, &status.head)?;
        if let JournalRole::Leader(lead, _) = &journaling.role {
            check_leads(lead, &status)?;
        }
        self.wait_for(CommitPosition::new(shard, status.head.commit), patience)?;
        self.position()
    }

    /// Keeps the lead of a copy that [leads](OpenOptions::leading) for as long as it was taken for, and looks whether
    /// the journal still has what the copy has. To be called several times in that time; nothing for other copies.
    ///
    /// # Errors
    /// `ERR_FENCED` if another node took the lead. `ERR_DIVERGED` if the journal lost commits of this copy, which
    /// serves no more then: close it. `ERR_IO` if the journal is not reached.
    pub fn renew_lead(&self) -> Result<()> {
        let Some(journaling) = &self.inner().journaling else { return Ok(()) };
        let JournalRole::Leader(lead, _) = &journaling.role else { return Ok(()) };
        // What is written meanwhile is in the journal first.
        let before = self.place(journaling)?;
        check_end(&before.head, &journaling.journal.renew(lead)?)
    }

    /// Removes from the files of this copy what the records erased that it read when it was opened.
    pub(super) fn scrub_what_was_read(&self) -> Result<()> {
        self.run_exclusive_on_index(Writer::scrub_what_was_read)
    }

    /// Returns `true` for a copy that [follows](OpenOptions::following) a journal.
    #[must_use]
    pub fn follows_journal(&self) -> bool {
        self.inner().follows().is_some()
    }

    /// Reads the slots of the keyring that these records are the first to use; and if some are destroyed by now, the
    /// records up to those that destroyed them.
    fn new_slots(source: Source<'_>, batch: &mut Vec<Record>) -> Result<NewSlots> {
        let Some(keyring) = source.vault.keyring() else { return Ok(NewSlots::default()) };
        loop {
            let needed = needed_slots(keyring, batch)?;
            let Some(last) = batch.last().filter(|_| !needed.is_empty()) else {
                return Ok(NewSlots::default());
            };
            let (end, slots) = source.journal.keyring(source.shard, needed.clone())?;
            check_end(&last.head(), &end)?;
            let at_once = slots.iter().any(KeyringSlot::is_destroyed);
            let marks = if at_once { marks_of(batch)? } else { Marks::new() };
            let is_short = slots.iter().any(|slot| lacks_mark(keyring, slot, &marks));
            if !is_short || last.head() == end {
                check_slots(keyring, (needed, &slots), (&hashes_of(batch), &marks))?;
                return Ok(NewSlots { slots, at_once });
            }
            // The records that destroyed them are read as well, to be published together, with the slots of those.
            let more = next_batch(source, &place_after(last), &end)?;
            batch.extend(more);
            let lengths = batch.iter().map(|record| record.as_bytes().len());
            if lengths.fold(0, usize::saturating_add) > MAX_READ_AT_ONCE {
                return Err(Error::timeout(
                    "this copy is too far behind to follow while it is open",
                )
                .with_hint("open it again: it reads what it lacks then"));
            }
        }
    }

    fn place(&self, journaling: &Journaling) -> Result<Position> {
        let view = self.inner().view()?;
        let position = Position::read_in(view.transaction())?;
        Ok(position.unwrap_or(Position::start(journaling.shard())))
    }
}

/// Makes the truth of a copy from the journal. Returns `false` if a leader is to make it, as the first.
///
/// # Errors
/// `ERR_NOT_FOUND` for a follower of a journal without records; those of [`catch_up`].
pub(super) fn create_copy(path: &Path, builder: &Builder, options: &OpenOptions) -> Result<bool> {
    let Some(journaling) = &options.journaling else { return Ok(false) };
    let shard = journaling.shard();
    if journaling.journal.status(shard)?.head == Head::EMPTY {
        return match journaling.role {
            JournalRole::Leader(..) => Ok(false),
            JournalRole::Follower(_) => {
                let message = format!("the journal of shard {shard} has no records yet");
                Err(Error::new(ErrorKind::NotFound, message)
                    .with_hint("begin with the node that leads it"))
            }
        };
    }
    // The rest is read once it has its name, so that what was read is kept if something comes between.
    let set_up = |new: &Path| {
        follow_to((path, None), &builder.create(new)?, (journaling, options), Upto::FirstBatch)
            .map(drop)
    };
    directory::create_truth(path, set_up)?;
    Ok(true)
}

/// Brings an opened truth to the end of its journal, and returns the options with which a leader writes from there, and
/// the keys: those that were opened before, or those of the journal.
///
/// # Errors
/// `ERR_FENCED` if another node took the lead; `ERR_DIVERGED` for a store that has no journal, or is not to have one;
/// those of [`catch_up`].
pub(super) fn follow_journal(
    (path, vault): (&Path, Option<&Vault>),
    db: &Database,
    options: &OpenOptions,
) -> Result<(OpenOptions, Vault)> {
    let Some(journaling) = &options.journaling else {
        let vault = vault.cloned().unwrap_or_default();
        return match Position::read(db)? {
            None => Ok((options.clone(), vault)),
            Some(_) if options.read_only => Ok((options.clone(), vault)),
            Some(position) => {
                let message =
                    format!("this is a copy of shard {}, and no node has it open", position.shard);
                Err(Error::new(ErrorKind::NotLeader, message).with_hint(
                    "run its node, or see why that waits; or read what the copy had with --read-only",
                ))
            }
        };
    };
    let (at, vault) = follow_to((path, vault), db, (journaling, options), Upto::End)?;
    if options.follows() {
        journaling.note_leader(&journaling.journal.status(at.shard)?);
    }
    Ok((journaled(options, at.head)?, vault))
}

/// How far a copy is brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upto {
    /// What is read of the journal at once, or a little more.
    FirstBatch,
    End,
}

/// Brings a copy on in its journal, with these keys or with those of the journal, which are returned then.
fn follow_to(
    (path, vault): (&Path, Option<&Vault>),
    db: &Database,
    (journaling, options): (&Journaling, &OpenOptions),
    upto: Upto,
) -> Result<(Position, Vault)> {
    // Before anything of another store is touched.
    position_in(db, journaling.shard())?;
    let (vault, cuts) = match (vault, &options.key) {
        (Some(vault), _) => (vault.clone(), false),
        (None, Some(key)) => {
            let keyring = open_keyring((path, db), journaling, key.0.as_ref())?;
            (Vault::with_keyring(Arc::new(keyring)), true)
        }
        // Before the rows: the keyring beside them would lack their keys.
        (None, None) if directory::keyring_path(path).exists() || is_encrypted(db)? => {
            return Err(no_key_given());
        }
        (None, None) => (Vault::default(), false),
    };
    let (source, mut end) =
        (journaling.source(&vault), journaling.journal.status(journaling.shard())?.head);
    if upto == Upto::FirstBatch {
        let first = next_batch(source, &Position::start(source.shard), &end)?;
        end = first.last().map_or(end, Record::head);
    }
    let at = catch_up(db, source, &end)?;
    if let Some(keyring) = vault.keyring().filter(|_| cuts) {
        keyring.cut_rest()?;
    }
    Ok((at, vault))
}

/// Opens the keyring of a copy, with the slots of its file that its rows use, up to the first that is damaged: the others
/// are the journal's.
fn open_keyring(
    (path, db): (&Path, &Database),
    journaling: &Journaling,
    provider: &dyn KeyProvider,
) -> Result<Keyring> {
    let marks = marks_in(db)?;
    let sound = keyring::count_sound_slots(path, |slot| marks.contains_key(&slot))?;
    let kept = sound.min(slots_in(db)?);
    let store = match kept {
        0 => journaling.journal.keyring(journaling.shard(), 0..1)?.1.pop(),
        _ => None,
    };
    if kept == 0 && store.is_none() {
        return Err(not_encrypted());
    }
    let keyring = Keyring::open_copy(path, provider, (kept, store.as_ref()))?;
    check_is_of(db, &keyring)?;
    Ok(keyring)
}

/// Options whose commits go on in the journal after a head, if the copy leads.
///
/// # Errors
/// `ERR_FENCED` if the journal has what came after the lead was taken.
pub(super) fn journaled(options: &OpenOptions, head: Head) -> Result<OpenOptions> {
    let mut options = options.clone();
    if let Some(Journaling { journal, role: JournalRole::Leader(lead, patience), .. }) =
        &options.journaling
    {
        if head.commit > lead.head.commit {
            check_leads(lead, &journal.status(lead.shard)?)?;
        }
        let mut lead = lead.clone();
        lead.head = head;
        let writer = Arc::new(JournalWriter::new(Arc::clone(journal), lead, *patience));
        options.observer = writer.observer();
    }
    if options.follows() {
        // These would be written when it is opened.
        (options.wording, options.compress) = (None, None);
    }
    Ok(options)
}

/// Refuses a lead that another node has taken since.
fn check_leads(lead: &Lead, status: &ShardStatus) -> Result<()> {
    match status.epoch == lead.epoch {
        true => Ok(()),
        false => Err(fenced(format!("lead {} of shard {} ended", lead.epoch, lead.shard))),
    }
}

/// Refuses what a store with a journal cannot be.
pub(super) fn check_options(options: &OpenOptions) -> Result<()> {
    if options.read_only {
        let message = "a copy that is opened read-only does not follow its journal";
        return Err(Error::new(ErrorKind::ReadOnly, message)
            .with_hint("open it read-only without a journal, or follow"));
    }
    Ok(())
}
