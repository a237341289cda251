//! The check of powers: whether a session is the operator's, over the whole store (ruling 55).

use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::session::Session;
use crate::rules::policy::PolicyRule;
use crate::state::audit::AuditOperation;
use crate::state::powers::Power;

impl Session {
    /// Returns `true` if this session is the operator's, over the whole store: one without a namespace and a
    /// user, whose actor is that of [`OpenOptions::operator`](crate::OpenOptions::operator) if it has any.
    #[must_use]
    pub fn has_powers(&self) -> bool {
        self.principal().is_store_operator()
    }

    /// Refuses an operation that is reserved to the operator of the whole store to any other session. The
    /// refusal is written to the audit log.
    ///
    /// ```
    /// use grainstore::Power;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// session.check_power(Power::Backup)?;
    /// let team = SessionOptions { namespace: Some("team".into()), ..Default::default() };
    /// let refused = session.part(team).check_power(Power::Backup);
    /// assert!(refused.is_err_and(|error| error.code() == "ERR_ACCESS"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS`; `ERR_IO` if the refusal cannot be written.
    pub fn check_power(&self, power: Power) -> Result<()> {
        match self.has_powers() {
            true => Ok(()),
            false => Err(self.record_power_refusal(power)),
        }
    }

    /// The error of a refused power, after writing its audit entry.
    pub(crate) fn record_power_refusal(&self, power: Power) -> Error {
        let message = format!("{} is for the operator of the whole store", power.description());
        let error = Error::new(ErrorKind::Access, message)
            .with_hint("open a session of the operator, without a namespace and a user");
        self.refused(AuditOperation::Power(power), Vec::new(), PolicyRule::NotOperator, None, error)
    }
}
