//! Whom a row or a blob belongs to, as a view knows them: a user by the token, a grain by its place in the log.

use grainstore_format::ContentAddress;
use grainstore_index::Sequence;

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::disk::layout::RowOwner;
use crate::disk::vault::user_of;
use crate::state::application::Owner;
use crate::state::erasure::erased_error;
use crate::state::view::View;

/// An owner who is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KnownOwner {
    pub(crate) row: RowOwner,
    /// The user whose key it lies under in an encrypted store; `None` for the store's.
    pub(crate) user_id: Option<String>,
}

impl View {
    /// Returns an owner. What belongs to a grain belongs to the user of the grain, too.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` or `ERR_ERASED` for a grain that is not stored; `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn known_owner(&self, owner: &Owner) -> Result<KnownOwner> {
        match owner {
            Owner::Store => Ok(KnownOwner::default()),
            Owner::User(user) => self.owner_of(Some(user.clone()), None),
            Owner::Grain(address) => match self.sequence_of(address)? {
                Some(at) => self.owner_at(at),
                None if self.has_erased_grain(address)? => Err(erased_error(address)),
                None => Err(no_grain(address)),
            },
        }
    }

    /// Returns the owner that the grain at a sequence is.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn owner_at(&self, at: Sequence) -> Result<KnownOwner> {
        let user = self.with_blob(at, |blob| {
            with_fields(blob, |grain| Ok(user_of(grain).map(str::to_owned)))
        })?;
        self.owner_of(user, Some(at))
    }

    fn owner_of(&self, user_id: Option<String>, grain: Option<Sequence>) -> Result<KnownOwner> {
        let user = match &user_id {
            Some(user) => Some(self.chain_before_genesis()?.user_token(user)),
            None => None,
        };
        Ok(KnownOwner { row: RowOwner { user, grain }, user_id })
    }
}

fn no_grain(address: &ContentAddress) -> Error {
    Error::new(ErrorKind::NotFound, format!("no grain {address}"))
}
