//! Change records: what happened to a record after its partition was sealed, as a record of its own (ALF 3.1.8, 4.1.1).

use sha2::{Digest, Sha256};

use super::names::{CHANGE_OF, DELETED_CONTENT};
use crate::json::Value;
use crate::kept::{date_text, milliseconds};
use crate::uuid::version_7;

/// Returns the record that says that another has this content and status now. `now` is the time of the change where
/// the record does not say when it was updated.
pub(super) fn change_record(record: &Value, status: &str, now: grainstore::EpochMs) -> Value {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let old = text(record, "id").unwrap_or_default().to_ascii_lowercase();
    let updated = record.get("temporal").and_then(|times| text(times, "updated_at"));
    let at = updated.as_deref().and_then(milliseconds).unwrap_or(now);
    let mut change = record.clone();
    let id = change_id(&old, status, at.get());
    let Some(members) = change.as_object_mut() else { return change };
    members.insert("id".to_owned(), Value::from(id));
    members.insert("supersedes".to_owned(), Value::from(old.as_str()));
    members.insert(CHANGE_OF.to_owned(), Value::from(old.as_str()));
    members.insert("status".to_owned(), Value::from(status));
    if status == "deleted" {
        members.insert("content".to_owned(), Value::from(DELETED_CONTENT));
        members.remove("embeddings");
    }
    if let Some(Value::Object(times)) = members.get_mut("temporal")
        && let Some(at) = date_text(at)
    {
        times.insert("created_at".to_owned(), Value::from(at));
    }
    change
}

/// The id of a change: a UUID of version 7 that is the same wherever the change is made.
fn change_id(old: &str, status: &str, ms: i64) -> String {
    let hash = Sha256::digest(format!("alf-change|{old}|{status}|{ms}"));
    version_7(ms, &hash.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_what_it_changes_and_is_the_same_each_time() {
        let record = serde_json::json!({
            "id": "019470A0-0000-7000-8000-000000000001", "content": "a secret", "tags": ["x"],
            "temporal": {"created_at": "2025-01-01T00:00:00Z", "updated_at": "2026-01-15T10:00:00Z"},
        });
        let change = change_record(&record, "deleted", grainstore::EpochMs::new(7));
        assert_eq!(change, change_record(&record, "deleted", grainstore::EpochMs::new(8)));
        let old = "019470a0-0000-7000-8000-000000000001";
        assert_eq!(
            (change["supersedes"].as_str(), change["x_change_of"].as_str()),
            (Some(old), Some(old))
        );
        assert_eq!(
            (change["status"].as_str(), change["content"].as_str()),
            (Some("deleted"), Some("[deleted]"))
        );
        assert_eq!(change["temporal"]["created_at"], "2026-01-15T10:00:00Z");
        assert!(super::super::schema::is_uuid(change["id"].as_str().unwrap()));
    }
}
