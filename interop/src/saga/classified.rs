//! What an organization decided of items, kept in rows of the store: exports and exits go by it.
//!
//! A decision changes no grain. The audit log has an entry of each.

use std::fmt;

use grainstore::Session;
use serde::{Deserialize, Serialize};

use super::classify::{Classification, Classifications, ItemType};
use super::store::AgentStore;
use super::time;
use super::wallet::Wallet;
use crate::error::{Error, Result};

/// Who classified an item: [`classify_item`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClassifiedBy {
    /// A rule of the organization, by itself.
    Policy,
    /// A person of the organization, by their handle.
    Admin(String),
}

impl fmt::Display for ClassifiedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy => f.write_str("org-policy:auto"),
            Self::Admin(handle) => write!(f, "org-admin:{handle}"),
        }
    }
}

/// A decision as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    classification: String,
    classified_by: String,
    classified_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_rule: Option<String>,
}

/// Classifies an item of an agent, in the place of what was decided before. Every redaction of an export or an exit goes by
/// it, unless its options say otherwise.
///
/// ```
/// use grainstore::prelude::*;
/// use grainstore_interop::saga::{
///     Classification, ClassifiedBy, ItemType, Wallet, classify_item, stored_classifications,
/// };
///
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let agent = Wallet::new("eip155:8453", "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a")?;
/// let by = ClassifiedBy::Admin("marcus".into());
/// classify_item(&session, &agent, ItemType::Task, "task_1", Classification::OrgConfidential, &by, None)?;
/// let decided = stored_classifications(&session, &agent)?;
/// assert_eq!(decided.of(ItemType::Task, "task_1"), Some(Classification::OrgConfidential));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_SCHEMA` for a person without a handle; those of [`Session::write_rows`].
pub fn classify_item(
    session: &Session,
    agent: &Wallet,
    item_type: ItemType,
    id: &str,
    classification: Classification,
    by: &ClassifiedBy,
    policy_rule: Option<&str>,
) -> Result<()> {
    if matches!(by, ClassifiedBy::Admin(handle) if handle.trim().is_empty()) {
        return Err(Error::schema("a person who classifies has a handle"));
    }
    let decision = Decision {
        classification: classification.name().to_owned(),
        classified_by: by.to_string(),
        classified_at: time::written(session.now()),
        policy_rule: policy_rule.map(str::to_owned),
    };
    AgentStore::new(session, agent).set_decision(item_type.name(), id, &decision)
}

/// What was decided of the items of an agent: [`classify_item`].
///
/// # Errors
/// Those of [`Session::rows`].
pub fn stored_classifications(session: &Session, agent: &Wallet) -> Result<Classifications> {
    let mut decided = Classifications::default();
    AgentStore::new(session, agent).decisions(|item_type, id, decision: Decision| {
        if let (Ok(item_type), Ok(class)) = (item_type.parse(), decision.classification.parse()) {
            decided.set(item_type, id, class);
        }
    })?;
    Ok(decided)
}
