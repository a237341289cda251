//! The grains of a user, for that user: those that an erasure would erase, in every namespace, state and
//! version (OMS 17.3; ruling 26).

use std::collections::BTreeMap;
use std::path::Path;

use grainstore_format::ContentAddress;
use serde::Serialize;

use super::{Session, normalise_user};
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::blob::with_fields;
use crate::handle::session::StoredGrain;
use crate::operate::portable::{ExportOptions, ExportReport, Recipient};
use crate::state::powers::Power;
use crate::state::view::GrainRow;
use crate::write::erasure::{belongs_to_user, user_sequences};

/// Most grains that one [`Session::subject_report`] holds in memory; `ERR_LIMIT` beyond.
pub const MAX_REPORTED_GRAINS: usize = 100_000;

/// The list of a user's grains: [`Session::subject_report`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SubjectReport {
    /// The user.
    pub user_id: String,
    /// Their grains, the last written first.
    pub addresses: Vec<ContentAddress>,
    /// Numbers of grains: all, current, held, and of each type; and those of rows and blobs of applications that
    /// belong to the user or to a grain of theirs, if there are any.
    pub counts: BTreeMap<String, u64>,
}

impl Session {
    /// Lists the grains of a user: every grain with this `user_id`, in every namespace, state and version. No
    /// access is counted.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9).user_id("ann");
    /// let tea = session.put(grain.build()?)?.address();
    /// let report = session.subject_report("ann")?;
    /// assert_eq!(report.addresses, [tea]);
    /// assert_eq!(report.counts["belief"], 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS` unless the session is the operator's or the user's, without a namespace; `ERR_EMPTY`
    /// without a user; `ERR_LIMIT` beyond [`MAX_REPORTED_GRAINS`] grains, for which
    /// [`Session::export_subject`] has no limit; `ERR_INTEGRITY`, `ERR_IO`.
    pub fn subject_report(&self, user_id: &str) -> Result<SubjectReport> {
        let user = self.check_subject(user_id)?;
        let (mut addresses, mut counts) = (Vec::new(), BTreeMap::new());
        for name in ["grains", "current", "held"] {
            counts.insert(name.to_owned(), 0);
        }
        let now = self.now();
        self.for_each_subject_grain(&user, |stored, grain_type| {
            addresses.push(stored.address);
            let state = stored.state;
            let names =
                [("grains", true), ("current", state.is_current_at(now)), ("held", state.held)];
            let names = names.into_iter().filter(|(_, counts)| *counts).map(|(name, _)| name);
            for name in names.chain([grain_type]) {
                *counts.entry(name.to_owned()).or_default() += 1;
            }
            Ok(())
        })?;
        let view = self.view()?;
        let owned = catch_storage_panic(|| {
            view.count_owned(&view.chain_before_genesis()?.user_token(&user).0)
        })?;
        for (name, count) in [("application_rows", owned.rows), ("blobs", owned.blobs)] {
            if count > 0 {
                counts.insert(name.to_owned(), count);
            }
        }
        self.audit_read(addresses.iter().copied())?;
        Ok(SubjectReport { user_id: user, addresses, counts })
    }

    /// Returns the grains of [`Session::subject_report`], with their state.
    ///
    /// # Errors
    /// As [`Session::subject_report`].
    pub fn subject_grains(&self, user_id: &str) -> Result<Vec<StoredGrain>> {
        let user = self.check_subject(user_id)?;
        let mut all = Vec::new();
        self.for_each_subject_grain(&user, |stored, _| {
            all.push(stored);
            Ok(())
        })?;
        self.audited(all)
    }

    /// Exports those of them that may leave the store into a container, as [`Session::export`] does: grains
    /// that a rule keeps, or that rest on a consent that does not apply, are left out, counted, and recorded
    /// in the audit log.
    ///
    /// # Errors
    /// As [`Session::subject_report`] and [`Session::export`].
    pub fn export_subject(
        &self,
        to: impl AsRef<Path>,
        user_id: &str,
        how: &ExportOptions<'_>,
    ) -> Result<ExportReport> {
        self.export_to(Recipient::Others, to.as_ref(), user_id, how)
    }

    /// Exports all of them into a container, for the user, who asked for access to them: the one exception to
    /// the rules on export. Its audit entry, `access_request`, names the rules that would have kept grains
    /// back.
    ///
    /// ```
    /// use grainstore::ExportOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path().join("memory"), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9).user_id("ann");
    /// session.put(grain.build()?)?;
    /// let file = dir.path().join("ann.mg");
    /// assert_eq!(session.access_request(&file, "ann", &ExportOptions::default())?.exported, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::subject_report`] and [`Session::export`]; `ERR_POLICY` in a session with purposes: an
    /// access request has no other purpose.
    pub fn access_request(
        &self,
        to: impl AsRef<Path>,
        user_id: &str,
        how: &ExportOptions<'_>,
    ) -> Result<ExportReport> {
        if let Some(purpose) = self.options().purposes.first() {
            let message = format!(
                "an access request is for the person alone, and the session names a purpose, {purpose:?}"
            );
            return Err(Error::new(ErrorKind::Policy, message)
                .with_hint("ask in a session without a purpose, or export under the rules"));
        }
        self.export_to(Recipient::DataSubject, to.as_ref(), user_id, how)
    }

    fn export_to(
        &self,
        recipient: Recipient,
        to: &Path,
        user_id: &str,
        how: &ExportOptions<'_>,
    ) -> Result<ExportReport> {
        let user = self.check_subject(user_id)?;
        let view = self.view()?;
        let mut places = catch_storage_panic(|| user_sequences(&view, &user))?;
        catch_storage_panic(|| {
            let mut failed = None;
            places.retain(|at| {
                let own = view.with_blob(*at, |blob| {
                    with_fields(blob, |grain| Ok(belongs_to_user(grain, &user)))
                });
                own.map_err(|error| failed = Some(error)).unwrap_or_default()
            });
            failed.map_or(Ok(()), Err)
        })?;
        self.export_sequences(to, &view, (&places, recipient), how)
    }

    /// Calls `show` for every grain of a user with the name of its type, the last written first.
    fn for_each_subject_grain(
        &self,
        user: &str,
        mut show: impl FnMut(StoredGrain, &str) -> Result<()>,
    ) -> Result<()> {
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut places = user_sequences(&view, user)?;
            if places.len() > MAX_REPORTED_GRAINS {
                let message = format!("{user} has more than {MAX_REPORTED_GRAINS} grains");
                let error = Error::new(ErrorKind::Limit, message);
                return Err(error.with_hint("have the report written into a file"));
            }
            places.sort_unstable_by(|a, b| b.cmp(a));
            for sequence in places {
                let read = view.with_blob(sequence, |blob| {
                    with_fields(blob, |grain| {
                        let name = grain.grain_type().to_string();
                        Ok(belongs_to_user(grain, user).then(|| (name, blob.to_vec())))
                    })
                })?;
                // The index only gives candidates.
                let Some((name, blob)) = read else { continue };
                let (address, state) = (ContentAddress::of(&blob), view.state_at(sequence)?);
                show(
                    self.to_stored_grain(&view, address, GrainRow { sequence, blob, state })?,
                    &name,
                )?;
            }
            Ok(())
        })
    }

    /// Returns the normalised user of a report, if the session may have one.
    fn check_subject(&self, user_id: &str) -> Result<String> {
        let user = normalise_user(user_id)?;
        let own = self.options().user_id.as_deref();
        let is_own = self.options().namespace.is_none() && own == Some(user.as_str());
        if is_own || self.has_powers() {
            return Ok(user);
        }
        Err(self
            .record_power_refusal(Power::ReportOthers)
            .with_hint("open a session without a namespace, as the operator or as the user"))
    }
}
