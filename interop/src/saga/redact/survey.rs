//! How each item of a document is classified, without changing it.

use serde::Serialize;
use serde_json::Value;

use super::table::{LISTS, PARTS};
use crate::saga::classify::{Classification, Classifications, ItemType, TaskClasses, said};
use crate::saga::document::{Document, at_path};

/// An item of a document and how it is classified: [`Document::classified`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClassifiedItem {
    /// What kind of item.
    pub item_type: ItemType,
    /// Its id; of a workflow its name, of a part of a layer its path.
    pub id: String,
    /// How it is classified.
    pub classification: Classification,
}

impl Document {
    /// How each of its items is classified: as was decided, as it says of itself, as its task is, or by default.
    ///
    /// ```
    /// use grainstore_interop::saga::{Classification, Document};
    ///
    /// let document = Document::parse(
    ///     br#"{"sagaVersion": "1.0", "layers": {"taskHistory": {"recentTasks": [
    ///         {"taskId": "t1", "status": "failed", "classification": "public"}, {"taskId": "t2"}]}}}"#,
    /// )?;
    /// let items = document.classified(&Default::default());
    /// assert_eq!(items[0].classification, Classification::Public);
    /// assert_eq!(items[1].classification, Classification::OrgInternal);
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    #[must_use]
    pub fn classified(&self, decided: &Classifications) -> Vec<ClassifiedItem> {
        let Some(layers) = self.get("layers") else { return Vec::new() };
        let classes = TaskClasses::of(at_path(layers, "taskHistory.recentTasks"), decided);
        let lists = LISTS.iter().flat_map(|list| {
            let items = at_path(layers, list.path).and_then(Value::as_array).into_iter().flatten();
            items.map(|item| {
                let id = item.get(list.id).and_then(Value::as_str).unwrap_or_default().to_owned();
                let classification = classes.classify(item, list.item_type, &id, decided);
                ClassifiedItem { item_type: list.item_type, id, classification }
            })
        });
        let parts = PARTS.iter().filter_map(|part| {
            let value = at_path(layers, part.path)?;
            let own = decided.of(part.item_type, part.path).or_else(|| said(value));
            let classification = own.unwrap_or(part.default);
            Some(ClassifiedItem {
                item_type: part.item_type,
                id: part.path.to_owned(),
                classification,
            })
        });
        lists.chain(parts).collect()
    }
}
