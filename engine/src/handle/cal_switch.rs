//! The switch with which an operator stops CAL while the store is open: all of it, or writes (CAL 20.3).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};

/// Extent to which CAL runs in a store, set by [`Session::switch_cal`](crate::Session::switch_cal).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CalSwitch {
    /// Everything runs.
    #[default]
    On,
    /// Only reads run; a write is `CAL-E044`.
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

    /// The stored row; `None` for `On`.
    pub(crate) fn row(self) -> Option<[u8; 1]> {
        match self {
            Self::On => None,
            Self::Reads => Some([1]),
            Self::Off => Some([2]),
        }
    }

    /// Decodes a stored row. An unknown value switches CAL off.
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

/// The current switch of an open store, shared by its handles.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedCalSwitch(Arc<AtomicU8>);

impl SharedCalSwitch {
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

    pub(crate) fn set(&self, at: CalSwitch) {
        let row = at.row().map_or(0, |[byte]| byte);
        self.0.store(row, Ordering::Release);
    }
}
