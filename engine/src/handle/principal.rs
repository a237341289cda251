//! The caller of a write and the reason given, as recorded in the audit log. Decides nothing.

use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::session::Session;
use crate::write::plan::Principal;

/// Maximum size of a reason, such as that of [`Session::hold`](crate::Session::hold), or of a justification
/// given with a call, in bytes. Both are copied into the audit log, of which one entry must always fit into
/// an answer. A larger one is `ERR_TOO_LARGE`.
pub const MAX_REASON_BYTES: usize = 16 << 10;

impl Session {
    /// The caller, without a reason.
    pub(crate) fn principal(&self) -> Principal {
        Principal {
            viewer: Arc::clone(self.viewer()),
            actor: self.options().actor.clone(),
            purposes: self.options().purposes.clone(),
            authority: self.options().authority(self.store().inner().operator()),
            is_reviewer: self.store().inner().is_reviewer(self.options().actor.as_deref()),
            reason: None,
            began: self.now(),
            call: self.call_context().cloned(),
        }
    }

    /// The caller, with a reason that must be given.
    ///
    /// # Errors
    /// `ERR_EMPTY` without one, and those of [`Session::principal_with_reason`].
    pub(crate) fn author_with(&self, reason: &str) -> Result<Principal> {
        if reason.trim().is_empty() {
            let empty = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
            return Err(Error::new(empty, "the reason is empty")
                .with_hint("say why: the reason goes into the audit log"));
        }
        self.principal_with_reason(Some(reason))
    }

    /// The caller, with a reason.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE` beyond [`MAX_REASON_BYTES`].
    pub(crate) fn principal_with_reason(&self, reason: Option<&str>) -> Result<Principal> {
        if reason.is_some_and(|reason| reason.len() > MAX_REASON_BYTES) {
            let too_large = ErrorKind::Format(grainstore_format::ErrorKind::TooLarge);
            let message = format!("a reason has {MAX_REASON_BYTES} bytes at most");
            return Err(Error::new(too_large, message)
                .with_hint("say it in short, and put the rest into a grain"));
        }
        Ok(Principal { reason: reason.map(str::to_owned), ..self.principal() })
    }
}
