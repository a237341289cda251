//! The operator's switch that stops CAL, or its writes, while the store is open (CAL 20.3). It is stored in
//! the store and every change is audited.

use crate::base::error::Result;
use crate::disk::layout;
use crate::disk::truth_tables::TruthTable;
use crate::handle::cal_switch::CalSwitch;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::state::audit::AuditOperation;
use crate::state::powers::Power;

impl Store {
    /// The extent to which CAL runs in this store, as [`Session::switch_cal`] set it.
    #[must_use]
    pub fn cal_switch(&self) -> CalSwitch {
        self.inner().switch().at()
    }
}

impl Session {
    /// Sets how much of CAL runs in this store, now and after it is reopened. Statements already running run
    /// to their end. Prepared ones are refused like any other, and their tokens used up. The change has an
    /// audit entry with the reason. Returns `false`, without an entry, if the switch was set so already.
    ///
    /// ```
    /// use grainstore::CalSwitch;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// assert!(session.switch_cal(CalSwitch::Off, "an agent runs wild")?);
    /// assert!(session.ask("RECALL beliefs").is_err_and(|error| error.code() == "ERR_DISABLED"));
    /// session.switch_cal(CalSwitch::On, "it was stopped")?;
    /// assert_eq!(store.cal_switch(), CalSwitch::On);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS` unless this is an operator session over the whole store; `ERR_EMPTY`, `ERR_TOO_LARGE` for
    /// the reason; `ERR_IO`.
    pub fn switch_cal(&self, to: CalSwitch, reason: &str) -> Result<bool> {
        let author = self.author_with(reason)?;
        self.check_power(Power::SwitchCal)?;
        let switch = self.store().inner().switch().clone();
        self.store().run_exclusive(move |writer| {
            if switch.at() == to {
                return Ok(false);
            }
            let mut record = author.record(AuditOperation::CalSwitch, Vec::new());
            record.rules = vec![to.name()];
            writer.write_audit_record(record, |rows| {
                match to.row() {
                    Some(row) => rows.put(TruthTable::Meta, layout::META_CAL, &row)?,
                    None => rows.remove(TruthTable::Meta, layout::META_CAL)?,
                };
                Ok(())
            })?;
            switch.set(to);
            Ok(true)
        })
    }
}
