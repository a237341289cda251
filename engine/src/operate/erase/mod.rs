//! Erasure: of one grain, of a user, and of what ends with its consent (OMS 8.10, 17.3, 23.2; rulings 25, 26,
//! 40 to 42 and 51).
//!
//! `write::erasure` decides whether it may be done, the writer commits it. `certificate`: its proof. `sweep`:
//! grains that end with their consent. `report`: the grains of a user. `returned`: erased grains that a backup
//! from before has brought back.

mod certificate;
mod report;
mod returned;
mod sweep;

use grainstore_format::{ContentAddress, normalise_text};
use serde::Serialize;

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::base::pending::Pending;
use crate::disk::blob::with_fields;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::read::history::version_addresses;
use crate::state::application::ApplicationCounts;
use crate::state::audit::Checkpoint;
use crate::state::powers::Power;
use crate::state::visibility::VisibilityOutcome;
use crate::write::erasure::{
    ErasureRequest, ErasureVerdict, check_grain_erasure, check_user_erasure, user_sequences,
};
use crate::write::plan::Principal;
use crate::write::writer::{CommittedErasure, ErasureOrder, ErasureTarget, Request};

pub use certificate::ErasureCertificate;
pub use report::{MAX_REPORTED_GRAINS, SubjectReport};
pub use returned::Returned;
pub use sweep::{DueErasure, SweepReport};

/// Options of [`Session::erase`] and [`Session::erase_user`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EraseOptions {
    dry_run: bool,
    now: bool,
    overrides: bool,
}

/// The result of an erasure ([`Session::erase_user`]), or of a dry run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct EraseOutcome {
    /// Grains that were erased, or would be.
    pub erased: u64,
    /// Rows and blobs of applications that were erased with them, or would be.
    pub application: ApplicationCounts,
    /// Grains that are left, because the erasure would be refused.
    pub skipped: u64,
    /// Grains under hold, for which it would be refused.
    pub holds: Vec<ContentAddress>,
    /// The error it would be refused with, `None` if it was done.
    #[serde(skip)]
    pub refusal: Option<Error>,
    /// True if no erased data is left on disk.
    pub scrubbed: bool,
    /// The error that prevented an immediate scrub that was asked for. The grains are erased all the same.
    #[serde(skip)]
    pub scrub_failure: Option<Error>,
    /// Proof that it is in the audit chain, `None` if no grain was erased.
    pub certificate: Option<ErasureCertificate>,
}

impl EraseOptions {
    /// The defaults: erase, and scrub later, when no writes are waiting.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether to return only what the erasure would do. Nothing is written, except the audit entry of a
    /// session that is refused because it may not erase.
    #[must_use]
    pub fn dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// Sets whether to return only once no erased data is left on disk.
    #[must_use]
    pub fn now(self, now: bool) -> Self {
        Self { now, ..self }
    }

    /// Sets whether to erase grains with a malformed `retention_policy`, whose retention time is unknown.
    /// Recorded in the audit log.
    #[must_use]
    pub fn override_malformed_retention(self, overrides: bool) -> Self {
        Self { overrides, ..self }
    }
}

impl Session {
    /// Erases all data of a user: every grain with this `user_id`, in every namespace, state and version,
    /// consent included. From this call on no session sees any of it, and grains created before it cannot be
    /// stored again; later ones can.
    ///
    /// ```
    /// use grainstore::EraseOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9).user_id("ann");
    /// let tea = session.put(grain.build()?)?.address();
    /// let tried = session.erase_user("ann", "she asked", &EraseOptions::new().dry_run(true))?;
    /// assert_eq!(tried.erased, 1);
    /// let done = session.erase_user("ann", "she asked", &EraseOptions::new().now(true))?;
    /// assert!(done.scrubbed, "{:?}", done.scrub_failure);
    /// assert!(session.get(&tea).is_err_and(|error| error.code() == "ERR_ERASED"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS` unless the session is the operator's, without a namespace, or the user's own and the
    /// store allows it ([`OpenOptions::users_erase_themselves`](crate::OpenOptions::users_erase_themselves));
    /// `ERR_INVALIDATION_DENIED` if a grain of the user is under hold; `ERR_POLICY` if one has to be
    /// retained; `ERR_EMPTY` without a user or a reason, `ERR_TOO_LARGE` for a reason beyond
    /// [`MAX_REASON_BYTES`](crate::limits::MAX_REASON_BYTES); `ERR_IO`, `ERR_INTEGRITY`. A failed scrub is no error:
    /// it is reported beside what was erased.
    pub fn erase_user(
        &self,
        user_id: &str,
        reason: &str,
        how: &EraseOptions,
    ) -> Result<EraseOutcome> {
        let user = normalise_user(user_id)?;
        let author = self.author_to_erase(Some(&user), reason)?;
        let view = self.view()?;
        let count = catch_storage_panic(|| Ok(user_sequences(&view, &user)?.len() as u64))?;
        if how.dry_run {
            let owned = catch_storage_panic(|| {
                view.count_owned(&view.chain_before_genesis()?.user_token(&user).0)
            })?;
            let verdict = catch_storage_panic(|| {
                check_user_erasure(&view, &user, &self.erasure_request(reason, how))
            })?;
            return Ok(EraseOutcome::from_dry_run(verdict, count, owned));
        }
        drop(view);
        let done = self.commit_erasure(ErasureTarget::User(user), author, how)?;
        self.erase_outcome(done.as_ref(), how, |_| count)
    }

    /// Erases one grain. Other versions of it, and links to it, stay.
    ///
    /// ```
    /// use grainstore::EraseOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// assert_eq!(session.erase(&tea, "a mistake", &EraseOptions::new())?.erased, 1);
    /// assert!(session.get(&tea).is_err_and(|error| error.code() == "ERR_ERASED"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::erase_user`]; `ERR_NOT_FOUND`, `ERR_ERASED`.
    pub fn erase(
        &self,
        address: &ContentAddress,
        reason: &str,
        how: &EraseOptions,
    ) -> Result<EraseOutcome> {
        self.check_may_erase()?;
        let view = self.view()?;
        // The operator may erase a grain that rules keep from being read.
        let Some(at) = catch_storage_panic(|| view.sequence_of(address))? else {
            return Err(self.not_visible(&view, address));
        };
        let user = catch_storage_panic(|| {
            view.with_blob(at, |blob| {
                with_fields(blob, |grain| Ok(grain.text("user_id").map(str::to_owned)))
            })
        })?;
        // The existence of another user's grain is not revealed.
        if catch_storage_panic(|| self.visibility_of(&view, address))?
            == Some(VisibilityOutcome::Outside)
        {
            return Err(self.not_visible(&view, address));
        }
        let author = self.author_to_erase(user.as_deref(), reason)?;
        if how.dry_run {
            let asked = self.erasure_request(reason, how);
            let verdict = catch_storage_panic(|| check_grain_erasure(&view, at, &asked))?;
            let owned = view.owner_at(at)?.row.prefix();
            let owned = catch_storage_panic(|| view.count_owned(&owned))?;
            return Ok(EraseOutcome::from_dry_run(verdict, 1, owned));
        }
        drop(view);
        let done = self.commit_erasure(ErasureTarget::Grain(*address), author, how)?;
        self.erase_outcome(done.as_ref(), how, |done| done.grains)
    }

    /// The addresses of all versions of a grain, newest first, for erasing each of them: also of those that a consent
    /// which has ended hides from [`Session::history`].
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let prefers = |drink: &str| {
    ///     BeliefBuilder::new(session.now(), "alice", "prefers", drink, 0.9).build()
    /// };
    /// let tea = session.put(prefers("tea")?)?.address();
    /// let coffee = session.supersede(&tea, prefers("coffee")?, None)?;
    /// assert_eq!(session.versions_to_erase(&tea)?, [coffee, tea]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS` unless the session is the operator's, without a namespace; `ERR_NOT_FOUND`, `ERR_ERASED`;
    /// `ERR_LIMIT` beyond [`MAX_VERSIONS`](crate::limits::MAX_VERSIONS); `ERR_TIMEOUT`; `ERR_INTEGRITY`, `ERR_IO`.
    pub fn versions_to_erase(&self, address: &ContentAddress) -> Result<Vec<ContentAddress>> {
        self.check_may_erase()?;
        if !self.has_powers() {
            return Err(self.refused_erasure());
        }
        let view = self.view()?;
        let found = catch_storage_panic(|| version_addresses(&view, address))?;
        match found.is_empty() {
            true => Err(self.not_visible(&view, address)),
            false => Ok(found),
        }
    }

    fn erasure_request<'a>(&'a self, reason: &'a str, how: &EraseOptions) -> ErasureRequest<'a> {
        let active_rules = self.store().inner().active_rules();
        ErasureRequest { now: self.now(), reason, overrides: how.overrides, active_rules }
    }

    /// Returns the author of an erasure if the session may erase: the operator of the whole store, or the
    /// user themselves if the store allows it.
    fn author_to_erase(&self, user: Option<&str>, reason: &str) -> Result<Principal> {
        let author = self.author_with(reason)?;
        self.check_may_erase()?;
        let own = self.user_who_asks();
        let is_own = own.is_some() && own == user;
        match self.has_powers() || (is_own && self.store().inner().users_erase_themselves()) {
            true => Ok(author),
            false => Err(self.refused_erasure()),
        }
    }

    /// Refuses sessions that may not even learn whether an erasable grain exists.
    fn check_may_erase(&self) -> Result<()> {
        let could = self.has_powers()
            || (self.user_who_asks().is_some() && self.store().inner().users_erase_themselves());
        match could && self.options().namespace.is_none() {
            true => Ok(()),
            false => Err(self.refused_erasure()),
        }
    }

    /// The user of the session. A grain with an empty `user_id` is nobody's own.
    fn user_who_asks(&self) -> Option<&str> {
        self.options().user_id.as_deref().filter(|user| !user.is_empty())
    }

    /// Audits the refusal of a session that may not erase, and returns the error.
    fn refused_erasure(&self) -> Error {
        self.record_power_refusal(Power::EraseOthers).with_hint(
            "open a session of the operator, without a namespace and a user; users erase themselves \
             where the store lets them",
        )
    }

    fn commit_erasure(
        &self,
        target: ErasureTarget,
        author: Principal,
        how: &EraseOptions,
    ) -> Result<Option<CommittedErasure>> {
        let order = ErasureOrder { target, author, overrides: how.overrides, rule: None };
        self.store().run_exclusive(move |writer| writer.erase(&order))
    }

    /// Builds the result of a committed erasure.
    fn erase_outcome(
        &self,
        done: Option<&CommittedErasure>,
        how: &EraseOptions,
        count: impl FnOnce(&CommittedErasure) -> u64,
    ) -> Result<EraseOutcome> {
        let certificate = done.map(|done| self.certificate(done)).transpose()?;
        let scrub_failure = if how.now { self.store().scrub().err() } else { None };
        let scrubbed = !self.view()?.is_unscrubbed()?;
        let erased = done.map_or(0, count);
        Ok(EraseOutcome {
            erased,
            application: done.map_or_else(ApplicationCounts::default, |done| done.application),
            skipped: 0,
            holds: Vec::new(),
            refusal: None,
            scrubbed,
            scrub_failure,
            certificate,
        })
    }

    fn certificate(&self, done: &CommittedErasure) -> Result<ErasureCertificate> {
        let checkpoint = Checkpoint::sign(&*self.view()?, done.head, self.now(), None)?;
        Ok(ErasureCertificate::new(done.sequence, &done.entry, checkpoint))
    }
}

impl EraseOutcome {
    /// Builds the result of a dry run.
    fn from_dry_run(
        ErasureVerdict { holds, refusal, .. }: ErasureVerdict,
        grains: u64,
        owned: ApplicationCounts,
    ) -> Self {
        let (erased, skipped, application) = match refusal {
            Some(_) => (0, grains, ApplicationCounts::default()),
            None => (grains, 0, owned),
        };
        let (scrubbed, scrub_failure, certificate) = (false, None, None);
        Self { erased, application, skipped, holds, refusal, scrubbed, scrub_failure, certificate }
    }
}

impl Store {
    /// Removes erased data from the disk, and returns when none is left. Without this call it is done once no
    /// writes are waiting for a moment, and when the store is closed. Needs disk space for a second copy of
    /// the larger file; writes wait meanwhile.
    ///
    /// ```
    /// use grainstore::EraseOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// session.erase(&tea, "a mistake", &EraseOptions::new())?;
    /// store.scrub()?;
    /// assert_eq!(store.stats()?.unscrubbed, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_BUSY` if readers hold views of former files for 30 seconds: repeat the call once they are done.
    /// `ERR_INTEGRITY` if the log is damaged, since the owner of a damaged grain is unknown; `ERR_IO`.
    pub fn scrub(&self) -> Result<()> {
        let (reply, pending) = Pending::new();
        self.inner().send(Request::Exclusive(Box::new(move |writer| match writer {
            Ok(writer) => writer.scrub_for(reply),
            // The caller may have stopped waiting.
            Err(error) => drop(reply.send(Err(error))),
        })))?;
        pending.wait()
    }
}

/// Normalises a user id to NFC, as it is in grains (OMS 4.4).
fn normalise_user(user_id: &str) -> Result<String> {
    let user = normalise_text(user_id)?.into_owned();
    match user.is_empty() {
        true => Err(empty_error("the user is empty", "name a user_id")),
        false => Ok(user),
    }
}

fn empty_error(message: &str, hint: &'static str) -> Error {
    let kind = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
    Error::new(kind, message).with_hint(hint)
}
