//! Templates defined in a session: shared by its clones, gone with the last of them (CAL 10.6).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore_cal::{NamedTemplate, TemplateSaveOutcome};
use grainstore_format::SHARED_PARTITION;

use crate::state::session_options::SessionOptions;

/// Templates of a session, shared by its clones and the sessions within it. A session of another namespace or
/// user sees none of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionTemplates(Arc<Mutex<Vec<(TemplateOwner, NamedTemplate)>>>);

/// Namespace and user of a session.
type TemplateOwner = (Option<String>, Option<String>);

/// Most templates of a session and its clones, over all namespaces and users.
const OF_ALL: usize = 20 * NamedTemplate::MAX_PER_OWNER;

impl SessionTemplates {
    fn lock(&self) -> MutexGuard<'_, Vec<(TemplateOwner, NamedTemplate)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Templates that a session with these options can name.
    pub(crate) fn named_by(&self, options: &SessionOptions) -> Vec<NamedTemplate> {
        let own = whose(options);
        let kept = self.lock();
        let named = kept.iter().filter(|(of, _)| *of == own);
        named.map(|(_, template)| template.clone()).collect()
    }

    /// Adds a template, unless one of the session or of its namespace has the name.
    pub(crate) fn keep(
        &self,
        template: &NamedTemplate,
        mut known: Vec<NamedTemplate>,
        options: &SessionOptions,
    ) -> TemplateSaveOutcome {
        let own = whose(options);
        let mut kept = self.lock();
        let named = kept.iter().filter(|(of, _)| *of == own);
        known.extend(named.map(|(_, template)| template.clone()));
        let among = template.check_against(&known);
        if among == TemplateSaveOutcome::Kept && kept.len() >= OF_ALL {
            return TemplateSaveOutcome::Full;
        }
        if among == TemplateSaveOutcome::Kept {
            kept.push((own, template.clone()));
        }
        among
    }

    /// Removes a template that is stored for its namespace from now on.
    pub(crate) fn give_up(&self, name: &str, options: &SessionOptions) {
        let own = whose(options);
        self.lock().retain(|(of, one)| *of != own || one.name != name);
    }
}

fn whose(options: &SessionOptions) -> TemplateOwner {
    (namespace_of(options), options.user_id.clone())
}

/// The partition a session works in; `None` for the whole store.
pub(crate) fn namespace_of(options: &SessionOptions) -> Option<String> {
    let named =
        |name: &String| if name.is_empty() { SHARED_PARTITION.to_owned() } else { name.clone() };
    options.namespace.as_ref().map(named)
}
