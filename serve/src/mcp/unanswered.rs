//! The requests of a connection that are not answered yet: so many at once, each with an id of its own.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

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
    /// Requests that are neither answered nor cancelled.
    open: HashMap<RequestId, Place>,
    /// Requests of which something is under way, and answers that are not written.
    places: usize,
    closed: bool,
}

/// The place of a request: until its answer is written, and its work, also where it is cancelled, was done or dropped.
#[derive(Clone)]
pub(super) struct Place(Arc<Taken>);

struct Taken(Weak<Shared>);

impl Drop for Taken {
    fn drop(&mut self) {
        let Some(shared) = self.0.upgrade() else { return };
        let mut state = shared.state();
        state.places = state.places.saturating_sub(1);
        shared.fewer.notify_all();
    }
}

impl Place {
    /// The same place, for what need not know what it is.
    pub(super) fn held(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::<Taken>::clone(&self.0)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The guarded value is whole at every step, whatever panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unanswered {
    /// Notes a request, once there is a place for it. `None` if one with this id is under way.
    pub(super) fn begin(&self, id: &RequestId) -> Option<Place> {
        let mut state = self.0.state();
        while state.places >= MAX_UNANSWERED && !state.closed {
            state = self.0.fewer.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.open.contains_key(id) {
            return None;
        }
        state.places = state.places.saturating_add(1);
        let place = Place(Arc::new(Taken(Arc::downgrade(&self.0))));
        state.open.insert(id.clone(), place.clone());
        Some(place)
    }

    /// Ends a request, which was answered or cancelled: another one may have its id. Returns its place.
    pub(super) fn end(&self, id: &RequestId) -> Option<Place> {
        self.0.state().open.remove(id)
    }

    /// Lets nobody wait any more.
    pub(super) fn close(&self) {
        self.0.state().closed = true;
        self.0.fewer.notify_all();
    }
}
