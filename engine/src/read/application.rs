//! Blobs and rows that applications keep beside grains, through a session of the operator.
//!
//! For files, for what changes about a grain without making another one of it, for logs of changes by number. They are
//! in no index and no export of grains; they are erased with whom they belong to. `rows` has the rows.

mod rows;

use grainstore_format::ContentAddress;

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::layout::RowOwner;
use crate::handle::session::Session;
use crate::state::application::{MAX_SIDE_BLOB_BYTES, Owner, too_large};
use crate::state::audit::{MAX_TRANSFER_FORMAT_BYTES, TransferKind, TransferSummary};
use crate::state::powers::Power;
use crate::state::view::View;
use crate::state::visibility::VisibilityOutcome;

impl Session {
    /// Stores bytes as a side blob, and returns their SHA-256, by which [`Session::side_blob`] finds them. Bytes
    /// that are stored for this owner are not written again; those of another owner are a side blob of their own.
    ///
    /// ```
    /// use grainstore::{EraseOptions, Owner};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let (ann, bob) = (Owner::User("ann".into()), Owner::User("bob".into()));
    /// let address = session.put_side_blob(b"a picture of tea", ann.clone())?;
    /// assert_eq!(session.put_side_blob(b"a picture of tea", bob.clone())?, address);
    /// session.erase_user("ann", "she asked", &EraseOptions::new())?;
    /// assert!(session.side_blob(&address, &ann).is_err_and(|error| error.code() == "ERR_NOT_FOUND"));
    /// assert_eq!(session.side_blob(&address, &bob)?, b"a picture of tea");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_TOO_LARGE` beyond [`MAX_SIDE_BLOB_BYTES`](crate::limits::MAX_SIDE_BLOB_BYTES); `ERR_ACCESS` unless the session
    /// is the operator's, without a namespace and a user; `ERR_NOT_FOUND`, `ERR_ERASED` for an owner that is no
    /// stored grain; `ERR_EMPTY` for a user without a name; `ERR_READ_ONLY`, `ERR_IO`.
    pub fn put_side_blob(&self, bytes: impl Into<Vec<u8>>, owner: Owner) -> Result<ContentAddress> {
        self.check_power(Power::Application)?;
        let (bytes, owner) = (bytes.into(), owner.normalised()?);
        if bytes.len() > MAX_SIDE_BLOB_BYTES {
            return Err(too_large("a side blob", MAX_SIDE_BLOB_BYTES));
        }
        let (address, author) = (ContentAddress::of(&bytes), self.principal());
        self.store().run_exclusive(move |writer| {
            writer.put_side_blob((&address, &bytes), &owner, &author).map(|()| address)
        })
    }

    /// Returns the bytes of a side blob, checked against their hash. If a read of a grain is refused, or noted in the
    /// audit log, so is that of a side blob that belongs to it.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if this owner has no such side blob; `ERR_ACCESS` as for [`Session::put_side_blob`], and the errors
    /// of [`Session::get`] for the grain it belongs to; `ERR_INTEGRITY`, `ERR_IO`.
    pub fn side_blob(&self, address: &ContentAddress, owner: &Owner) -> Result<Vec<u8>> {
        self.check_power(Power::Application)?;
        let (view, owner) = (self.view()?, owner.clone().normalised()?);
        let (owner, bytes) = catch_storage_panic(|| {
            view.check_application_rows()?;
            let owner = view.known_owner(&owner)?.row;
            Ok((owner, view.blob_bytes(address, &owner)?))
        })?;
        let grain = self.shown_owner(&view, &owner)?;
        let bytes = bytes.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no side blob {address} of this owner"))
                .with_hint("name the owner it was stored for")
        })?;
        self.audit_read(grain)?;
        Ok(bytes)
    }

    /// Removes a side blob of this owner. Returns `true` if there was one. Its bytes may stay in free pages of the
    /// file until the next [`Store::compact`](crate::Store::compact); those of one that is erased do not.
    ///
    /// # Errors
    /// As [`Session::put_side_blob`].
    pub fn remove_side_blob(&self, address: &ContentAddress, owner: Owner) -> Result<bool> {
        self.check_power(Power::Application)?;
        let (address, owner, author) = (*address, owner.normalised()?, self.principal());
        self.store().run_exclusive(move |writer| writer.remove_side_blob(&address, &owner, &author))
    }

    /// Tells the audit log of something that went into the store or out of it in a format that another crate knows.
    /// Returns the number of the entry.
    ///
    /// ```
    /// use grainstore::{TransferKind, TransferSummary};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let at = session.record_transfer(TransferKind::ArchiveImport, TransferSummary::new("alf", 12))?;
    /// let told = session.audit(at.checked_sub(1), 1)?;
    /// assert_eq!((told[0].sequence, told[0].operation.as_str()), (at, "import_archive"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS` unless the session is the operator's, without a namespace and a user; `ERR_TOO_LARGE` for a name of a
    /// format beyond [`MAX_TRANSFER_FORMAT_BYTES`](crate::limits::MAX_TRANSFER_FORMAT_BYTES); `ERR_READ_ONLY`, `ERR_IO`.
    pub fn record_transfer(&self, kind: TransferKind, summary: TransferSummary) -> Result<u64> {
        self.check_power(match kind {
            TransferKind::EvidenceExport => Power::Evidence,
            _ => Power::Application,
        })?;
        if summary.format.len() > MAX_TRANSFER_FORMAT_BYTES {
            return Err(too_large("the name of a format", MAX_TRANSFER_FORMAT_BYTES));
        }
        let author = self.principal();
        self.store().run_exclusive(move |writer| writer.record_transfer(kind, summary, &author))
    }

    /// Returns the grain that a row belongs to, `None` for a row of a user or of nobody.
    ///
    /// # Errors
    /// The errors of [`Session::get`] for a grain that this session is not shown.
    fn shown_owner(&self, view: &View, owner: &RowOwner) -> Result<Option<ContentAddress>> {
        match self.owner_seen(view, owner)? {
            None => Ok(None),
            Some((address, VisibilityOutcome::Seen)) => Ok(Some(address)),
            Some((address, _)) => Err(self.not_visible(view, &address)),
        }
    }

    /// The same, `None` for a grain that this session is not shown.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    fn owner_if_shown(
        &self,
        view: &View,
        owner: &RowOwner,
    ) -> Result<Option<Option<ContentAddress>>> {
        match self.owner_seen(view, owner) {
            Ok(None) => Ok(Some(None)),
            Ok(Some((address, VisibilityOutcome::Seen))) => Ok(Some(Some(address))),
            Ok(Some(_)) => Ok(None),
            Err(error) if error.is_erased() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn owner_seen(
        &self,
        view: &View,
        owner: &RowOwner,
    ) -> Result<Option<(ContentAddress, VisibilityOutcome)>> {
        let Some(at) = owner.grain else { return Ok(None) };
        catch_storage_panic(|| {
            view.with_blob(at, |blob| {
                let outcome = self.visibility(view).check_blob(at, blob)?;
                Ok(Some((ContentAddress::of(blob), outcome)))
            })
        })
    }
}
