//! Classification: how each item of a document is classified, by default, by what it says, and by an organization.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::kinds::named;
use crate::error::{Error, Result};

named! {
    /// How an item is classified, which decides what a redaction does with it.
    ///
    /// ```
    /// use grainstore_interop::saga::Classification;
    ///
    /// assert_eq!("org-internal".parse::<Classification>()?, Classification::OrgInternal);
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    Classification, "classification" {
        /// Not sensitive. Stays.
        Public => "public",
        /// Of the organization, and no secret. Its texts are replaced.
        OrgInternal => "org-internal",
        /// A secret of the organization. Is taken out.
        OrgConfidential => "org-confidential",
        /// The agent's own. Stays.
        AgentPortable => "agent-portable",
    }
}

named! {
    /// What can be classified.
    ///
    /// ```
    /// use grainstore_interop::saga::ItemType;
    ///
    /// assert_eq!(ItemType::Workflow.name(), "procedural-workflow");
    /// ```
    ItemType, "type of an item" {
        /// A task of `taskHistory.recentTasks`.
        Task => "task",
        /// An event of `memory.episodic`.
        EpisodicEvent => "episodic-event",
        /// A workflow of `memory.procedural`.
        Workflow => "procedural-workflow",
        /// An artifact of `taskHistory`.
        Artifact => "artifact",
        /// `memory.shortTerm` or `memory.longTerm`.
        MemoryLayer => "memory-layer",
        /// `cognitive.systemPrompt`.
        SystemPrompt => "system-prompt",
        /// `relationships`.
        Relationship => "relationship",
    }
}

/// What an organization decided of single items: by type and id. Of a workflow the id is its name, of a part of a layer
/// its path.
///
/// ```
/// use grainstore_interop::saga::{Classification, Classifications, ItemType};
///
/// let mut decided = Classifications::default();
/// decided.set(ItemType::Task, "task_1", Classification::AgentPortable);
/// assert_eq!(decided.of(ItemType::Task, "task_1"), Some(Classification::AgentPortable));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classifications {
    decided: BTreeMap<(ItemType, String), Classification>,
    /// What became of disputes, which stands in the manifest.
    disputes: BTreeMap<(ItemType, String), String>,
}

impl Classifications {
    /// Decides of an item.
    pub fn set(
        &mut self,
        item_type: ItemType,
        id: impl Into<String>,
        classification: Classification,
    ) {
        self.decided.insert((item_type, id.into()), classification);
    }

    /// What was decided of an item.
    #[must_use]
    pub fn of(&self, item_type: ItemType, id: &str) -> Option<Classification> {
        self.decided.get(&(item_type, id.to_owned())).copied()
    }

    /// Adds what others decided, where nothing was decided here.
    pub(super) fn add_missing(&mut self, others: Self) {
        for (item, class) in others.decided {
            self.decided.entry(item).or_insert(class);
        }
    }

    /// All that was decided.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ItemType, &str, Classification)> {
        self.decided.iter().map(|((item_type, id), class)| (*item_type, id.as_str(), *class))
    }

    /// Notes what became of a dispute about an item.
    pub(super) fn set_dispute(&mut self, item_type: ItemType, id: &str, status: &str) {
        self.disputes.insert((item_type, id.to_owned()), status.to_owned());
    }

    /// What became of a dispute about an item.
    pub(super) fn dispute_of(&self, item_type: ItemType, id: &str) -> Option<String> {
        self.disputes.get(&(item_type, id.to_owned())).cloned()
    }
}

/// The tasks of a document and how each is classified: events and workflows of a task are as it is.
pub(super) struct TaskClasses(BTreeMap<String, Classification>);

impl TaskClasses {
    pub(super) fn of(document_tasks: Option<&Value>, decided: &Classifications) -> Self {
        let tasks = document_tasks.and_then(Value::as_array).into_iter().flatten();
        let classes = tasks.filter_map(|task| {
            let id = task.get("taskId")?.as_str()?;
            let own = decided.of(ItemType::Task, id).or_else(|| said(task));
            Some((id.to_owned(), own?))
        });
        Self(classes.collect())
    }

    /// How an item is classified: as decided, as it says, as its task is; else `org-internal`, so that what nobody
    /// looked at does not leave.
    pub(super) fn classify(
        &self,
        item: &Value,
        item_type: ItemType,
        id: &str,
        decided: &Classifications,
    ) -> Classification {
        let link = match item_type {
            ItemType::EpisodicEvent => Some("linkedTaskId"),
            ItemType::Workflow => Some("learnedFrom"),
            _ => None,
        };
        let task = || self.0.get(item.get(link?)?.as_str()?).copied();
        decided
            .of(item_type, id)
            .or_else(|| said(item))
            .or_else(task)
            .unwrap_or(Classification::OrgInternal)
    }
}

/// What an item says of itself. A word that is not known is the strictest.
pub(super) fn said(item: &Value) -> Option<Classification> {
    let said = item.get("classification")?;
    let known = said.as_str().and_then(|said| said.parse().ok());
    Some(known.unwrap_or(Classification::OrgConfidential))
}
