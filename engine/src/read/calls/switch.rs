//! The switches with which an operator stops CAL while the store is open: all of it, or what writes (CAL
//! 20.3). They are kept with the store and stand in its audit log.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::keys;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::state::audit::Operation;
use crate::state::powers::Power;

/// How far CAL runs in a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CalSwitch {
    /// It runs.
    #[default]
    On,
    /// It reads; what would write is `CAL-E044`.
    Reads,
    /// It does not run: `ERR_DISABLED`.
    Off,
}

impl CalSwitch {
    const ALL: [Self; 3] = [Self::On, Self::Reads, Self::Off];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Reads => "reads",
            Self::Off => "off",
        }
    }

    /// The switch of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|switch| switch.name() == name)
    }

    /// What is kept of it; nothing where CAL runs.
    fn row(self) -> Option<[u8; 1]> {
        match self {
            Self::On => None,
            Self::Reads => Some([1]),
            Self::Off => Some([2]),
        }
    }

    /// The switch of a row. One that is not known stops everything.
    pub(crate) fn of_row(row: Option<&[u8]>) -> Self {
        match row {
            None => Self::On,
            Some([1]) => Self::Reads,
            Some(_) => Self::Off,
        }
    }
}

impl fmt::Display for CalSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The switch of an open store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switch(Arc<AtomicU8>);

impl Switch {
    pub(crate) fn new(at: CalSwitch) -> Self {
        let switch = Self::default();
        switch.set(at);
        switch
    }

    pub(crate) fn at(&self) -> CalSwitch {
        match self.0.load(Ordering::Acquire) {
            0 => CalSwitch::On,
            1 => CalSwitch::Reads,
            _ => CalSwitch::Off,
        }
    }

    fn set(&self, at: CalSwitch) {
        let row = at.row().map_or(0, |[byte]| byte);
        self.0.store(row, Ordering::Release);
    }
}

impl Store {
    /// How far CAL runs here.
    #[must_use]
    pub fn cal_switch(&self) -> CalSwitch {
        self.inner().switch().at()
    }
}

impl Session {
    /// Says how far CAL runs in this store from now on, after it is opened again too. Statements that run
    /// already run to their end. Prepared ones are refused as any other, and their tokens used up. There is
    /// an entry in the audit log, with the reason; nothing happens where it is so already. Whether it was not.
    ///
    /// # Errors
    /// `ERR_ACCESS` where this is no session of the operator over the whole store; `ERR_EMPTY`,
    /// `ERR_TOO_LARGE` for the reason; `ERR_IO`.
    pub fn switch_cal(&self, to: CalSwitch, reason: &str) -> Result<bool> {
        if reason.trim().is_empty() {
            let empty = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
            return Err(Error::new(empty, "the reason is empty")
                .with_hint("say why: the reason goes into the audit log"));
        }
        let author = self.author_because(Some(reason))?;
        self.check_power(Power::SwitchCal)?;
        let switch = self.store().inner().switch().clone();
        self.store().alone(move |writer| {
            if switch.at() == to {
                return Ok(false);
            }
            let mut record = author.record(Operation::CalSwitch, Vec::new());
            record.rules = vec![to.name()];
            writer.note(record, |txn| {
                let mut meta = txn.open_table(keys::META)?;
                match to.row() {
                    Some(row) => meta.insert(keys::META_CAL, row.as_slice())?,
                    None => meta.remove(keys::META_CAL)?,
                };
                Ok(())
            })?;
            switch.set(to);
            Ok(true)
        })
    }
}
