//! The requests of a connection that are not answered yet: so many at once, each with an id of its own.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;

/// Most requests whose answers are not written yet; then nothing more is read.
pub(super) const MAX_UNANSWERED: usize = 256;

/// The requests that are under way, and the answers that wait to be written.
#[derive(Clone, Default)]
pub(super) struct Unanswered(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    fewer: Condvar,
}

#[derive(Default)]
struct State {
    ids: HashSet<RequestId>,
    /// Requests under way and answers that are not written.
    places: usize,
    closed: bool,
}

/// The place of a request, until its answer is written.
pub(super) struct Place(Unanswered);

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.places = state.places.saturating_sub(1);
        self.0.0.fewer.notify_all();
    }
}

impl Unanswered {
    fn state(&self) -> MutexGuard<'_, State> {
        // The guarded value is whole at every step, whatever panicked.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request, once there is a place for it. Returns `false` if one with this id is under way.
    pub(super) fn begin(&self, id: &RequestId) -> bool {
        let mut state = self.state();
        while state.places >= MAX_UNANSWERED && !state.closed {
            state = self.0.fewer.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_new = state.ids.insert(id.clone());
        if is_new {
            state.places = state.places.saturating_add(1);
        }
        is_new
    }

    /// Ends a request, which was answered or cancelled; its place is free when what this returns is dropped.
    pub(super) fn end(&self, id: &RequestId) -> Option<Place> {
        self.state().ids.remove(id).then(|| Place(self.clone()))
    }

    /// Lets nobody wait any more.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.0.fewer.notify_all();
    }
}
