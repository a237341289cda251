//! What the calls of one connection share.

use std::sync::Arc;

use super::Profile;
use super::confirm::Confirmations;
use crate::memory::Memory;

/// What this server was started with.
pub(super) struct Setting {
    pub(super) profile: Profile,
    pub(super) allow_erase: bool,
    pub(super) namespace: Option<String>,
    pub(super) user_id: Option<String>,
}

/// The store, and the state of the connection.
pub(super) struct Connection {
    pub(super) memory: Memory,
    pub(super) setting: Arc<Setting>,
    pub(super) confirmations: Confirmations,
}

impl Connection {
    pub(super) fn new(memory: Memory, setting: Setting) -> Self {
        Self { memory, setting: Arc::new(setting), confirmations: Confirmations::default() }
    }
}
