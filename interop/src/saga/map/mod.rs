//! Items of documents and grains: what becomes what, and back.
//!
//! What a grain has no place for is in its residue, so that each item comes back as it was. Knows no store.
//!
//! - `kinds`: the kinds of items, where they are in a layer, and which grain each becomes, as a table.
//! - `layer`: a layer split into items, and joined again.
//! - `grain`: the fields of an item's grain, and the item of a grain's fields.

mod grain;
mod kinds;
mod layer;

use crate::kept::Profile;

pub(super) use grain::{Origin, fields_of, item_of};
pub(super) use kinds::{
    ENVELOPE, EVENT_KIND, Form, Kind, LAYER, MANIFEST_KIND, MEMBERS, TASK_KIND, VAULT_ITEM,
    WORKFLOW_KIND, consent_kind,
};
pub(super) use layer::{joined, split};

/// The names under which SAGA keeps things.
pub(super) const PROFILE: Profile = Profile::new("saga");
