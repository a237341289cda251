//! Erasure: of one grain, of all of a user, and of what ends with its consent (OMS 8.10, 17.3, 23.2;
//! rulings 25, 26, 40 to 42 and 51 of the project's reading).
//!
//! `judge` (with `retention` and `ruled`) says what stands against it, the writer commits it, `refusal` keeps what
//! was erased from coming back, `certificate` is what is handed out about it. `sweep` finds what ends
//! with its consent, `report` what there is of a user.

mod certificate;
mod judge;
mod refusal;
mod report;
mod retention;
mod ruled;
mod sweep;

use grainstore_format::{ContentAddress, normalise_text};
use serde::Serialize;

use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::base::pending::Pending;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::state::audit::Checkpoint;
use crate::state::powers::Power;
use crate::state::reach::Reached;
use crate::state::view::with_fields;
use crate::write::plan::Author;
use crate::write::writer::{Done, Order, Request, Target};

pub use certificate::Certificate;
use judge::places_of;
pub(crate) use judge::{Asked, Verdict, consents_of, judge_grain, judge_user};
pub(crate) use refusal::{check_not_erased, erased};
pub use report::{MAX_REPORTED, SubjectReport};
pub use sweep::{DueErasure, Swept};

/// How something is to be erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erasing {
    dry_run: bool,
    now: bool,
    overrides: bool,
}

/// What came of an erasure, or would come of it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Erasure {
    /// Grains that were erased.
    pub erased: u64,
    /// Grains that were passed over.
    pub skipped: u64,
    /// Grains under hold, for which it would be refused.
    pub holds: Vec<ContentAddress>,
    /// Why it would be refused; nothing where it was done.
    #[serde(skip)]
    pub refusal: Option<Error>,
    /// Whether nothing of it is left on the disk.
    pub scrubbed: bool,
    /// Why it could not be scrubbed now though that was asked for. It is erased all the same.
    #[serde(skip)]
    pub scrub_failure: Option<Error>,
    /// Proof that it is in the audit chain; nothing where nothing was erased.
    pub certificate: Option<Certificate>,
}

impl Erasing {
    /// Erases, and leaves the scrubbing to a moment when nobody writes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to say only what would come of it. Nothing is written, and nothing recorded.
    #[must_use]
    pub fn dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// Whether to answer only once nothing of it is left on the disk.
    #[must_use]
    pub fn now(self, now: bool) -> Self {
        Self { now, ..self }
    }

    /// Whether to erase grains whose `retention_policy` is malformed, so that nobody knows how long they
    /// have to be kept. The audit log tells of it.
    #[must_use]
    pub fn override_malformed_retention(self, overrides: bool) -> Self {
        Self { overrides, ..self }
    }
}

impl Session {
    /// Erases all of a user: every grain with this `user_id`, in every namespace, state and version,
    /// consent included. From this call on nobody is shown any of it, and grains that were created
    /// before it do not come back; later ones are a new beginning.
    ///
    /// # Errors
    /// `ERR_ACCESS` unless it is the operator who asks, without a namespace, or the user where the store
    /// lets them ([`OpenOptions::users_erase_themselves`](crate::OpenOptions::users_erase_themselves));
    /// `ERR_INVALIDATION_DENIED` where a grain of the user is under hold; `ERR_POLICY` where one has to
    /// be kept; `ERR_EMPTY` without a user or a reason, `ERR_TOO_LARGE` for a reason beyond
    /// [`MAX_REASON_BYTES`](crate::MAX_REASON_BYTES); `ERR_IO`, `ERR_INTEGRITY`. That it could not be
    /// scrubbed now is no error: it is told beside what was erased.
    pub fn erase_user(&self, user_id: &str, reason: &str, how: &Erasing) -> Result<Erasure> {
        let user = spelled_user(user_id)?;
        let author = self.author_to_erase(Some(&user), reason)?;
        let view = self.view()?;
        let count = guarded(|| Ok(places_of(&view, &user)?.len() as u64))?;
        if how.dry_run {
            let verdict = guarded(|| judge_user(&view, &user, &self.asked(reason, how)))?;
            return Ok(Erasure::tried(verdict, count));
        }
        drop(view);
        let done = self.erase_as(Target::User(user), author, how)?;
        self.told(done.as_ref(), how, |_| count)
    }

    /// Erases one grain. Other versions of it are grains of their own, and links to it stay.
    ///
    /// # Errors
    /// As [`Session::erase_user`]; `ERR_NOT_FOUND`, `ERR_ERASED`.
    pub fn erase(&self, address: &ContentAddress, reason: &str, how: &Erasing) -> Result<Erasure> {
        self.check_place()?;
        let view = self.view()?;
        // Whatever a session is shown, the operator may erase.
        let Some(at) = guarded(|| view.sequence_of(address))? else {
            return Err(self.unseen(&view, address));
        };
        let user = guarded(|| {
            view.with_blob(at, |blob| {
                with_fields(blob, |grain| Ok(grain.text("user_id").map(str::to_owned)))
            })
        })?;
        // A user is not told that what is another's is here.
        if guarded(|| self.reached(&view, address))? == Some(Reached::Outside) {
            return Err(self.unseen(&view, address));
        }
        let author = self.author_to_erase(user.as_deref(), reason)?;
        if how.dry_run {
            let asked = self.asked(reason, how);
            let verdict = guarded(|| judge_grain(&view, at, &asked))?;
            return Ok(Erasure::tried(verdict, 1));
        }
        drop(view);
        let done = self.erase_as(Target::Grain(*address), author, how)?;
        self.told(done.as_ref(), how, |done| done.grains)
    }

    fn asked<'a>(&'a self, reason: &'a str, how: &Erasing) -> Asked<'a> {
        let regime = self.store().inner().regime();
        Asked { now: self.now(), reason, overrides: how.overrides, regime }
    }

    /// Who asks, if they may: the operator of the whole store, or the user themselves where the store
    /// lets them.
    fn author_to_erase(&self, user: Option<&str>, reason: &str) -> Result<Author> {
        if reason.trim().is_empty() {
            return Err(empty(
                "the reason is empty",
                "say why: the reason goes into the audit log",
            ));
        }
        self.check_place()?;
        let author = self.author_because(Some(reason))?;
        let own = self.options().user_id.as_deref();
        let is_own = own.is_some() && own == user;
        match self.has_powers() || (is_own && self.store().inner().users_erase_themselves()) {
            true => Ok(author),
            false => Err(self.not_yours()),
        }
    }

    /// Refuses who could not even ask whether something is here that may be erased.
    fn check_place(&self) -> Result<()> {
        let could = self.has_powers()
            || (self.options().user_id.is_some() && self.store().inner().users_erase_themselves());
        match could && self.options().namespace.is_none() {
            true => Ok(()),
            false => Err(self.not_yours()),
        }
    }

    /// The refusal of who may not erase, with its entry in the audit log.
    fn not_yours(&self) -> Error {
        self.refused_power(Power::EraseOthers).with_hint(
            "open a session of the operator, without a namespace and a user; users erase themselves \
             where the store lets them",
        )
    }

    fn erase_as(&self, target: Target, author: Author, how: &Erasing) -> Result<Option<Done>> {
        let order = Order { target, author, overrides: how.overrides, rule: None };
        self.store().alone(move |writer| writer.erase(&order))
    }

    /// What is told of an erasure that is committed.
    fn told(
        &self,
        done: Option<&Done>,
        how: &Erasing,
        count: impl FnOnce(&Done) -> u64,
    ) -> Result<Erasure> {
        let certificate = done.map(|done| self.certificate(done)).transpose()?;
        let scrub_failure = if how.now { self.store().scrub().err() } else { None };
        let scrubbed = !self.view()?.is_unscrubbed()?;
        let erased = done.map_or(0, count);
        let (skipped, holds, refusal) = (0, Vec::new(), None);
        Ok(Erasure { erased, skipped, holds, refusal, scrubbed, scrub_failure, certificate })
    }

    fn certificate(&self, done: &Done) -> Result<Certificate> {
        let checkpoint = Checkpoint::of(&*self.view()?, done.head, self.now(), None)?;
        Ok(Certificate::new(done.sequence, &done.entry, checkpoint))
    }
}

impl Erasure {
    /// What would come of it.
    fn tried(Verdict { holds, refusal, .. }: Verdict, grains: u64) -> Self {
        let (erased, skipped) = if refusal.is_some() { (0, grains) } else { (grains, 0) };
        let (scrubbed, scrub_failure, certificate) = (false, None, None);
        Self { erased, skipped, holds, refusal, scrubbed, scrub_failure, certificate }
    }
}

impl Store {
    /// Removes what was erased from the disk, and answers when nothing of it is left: otherwise it is done
    /// when nobody writes for a moment, and when the store is closed. It needs room on the disk for a
    /// second copy of the larger file, and writes wait meanwhile.
    ///
    /// # Errors
    /// `ERR_BUSY` where somebody goes on reading from the files as they were: it ends once they are
    /// done. `ERR_INTEGRITY` where the log is damaged, so that nobody knows whose the damaged grains
    /// are; `ERR_IO`.
    pub fn scrub(&self) -> Result<()> {
        let (reply, pending) = Pending::new();
        self.inner().send(Request::Alone(Box::new(move |writer| match writer {
            Ok(writer) => writer.scrub_for(reply),
            // Nobody may be waiting any more.
            Err(error) => drop(reply.send(Err(error))),
        })))?;
        pending.wait()
    }
}

/// A user as grains name them: text is NFC (OMS 4.4).
fn spelled_user(user_id: &str) -> Result<String> {
    let user = normalise_text(user_id)?.into_owned();
    match user.is_empty() {
        true => Err(empty("the user is empty", "name a user_id")),
        false => Ok(user),
    }
}

fn empty(message: &str, hint: &'static str) -> Error {
    let kind = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
    Error::new(kind, message).with_hint(hint)
}
