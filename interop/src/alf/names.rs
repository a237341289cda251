//! The names of ALF and of what is kept of it in a store: entries of an archive, layers, namespaces, tables of rows.

use crate::kept::Profile;

/// The names in grains and rows begin with `alf`.
pub(super) const PROFILE: Profile = Profile::new("alf");
/// The version that is written.
pub(super) const VERSION: &str = "1.0.0";
/// The newest major version that is read.
pub(super) const MAJOR: u64 = 1;
/// What the checksum of an archive is made of, where this crate made it.
pub(super) const CHECKSUM_SCHEME: &str = "alf-entries-v1";
/// The name that this runtime has in `source.runtime`.
pub(super) const RUNTIME: &str = "grainstore";
/// The member of a record that says which record it is a change of.
pub(super) const CHANGE_OF: &str = "x_change_of";
/// The entry of `context` with the grain that one of the same content comes after, and does not derive from.
pub(super) const AFTER: &str = "after";
/// The content of a record that says that another is deleted.
pub(super) const DELETED_CONTENT: &str = "[deleted]";

pub(super) const MANIFEST_ENTRY: &str = "manifest.json";
/// The other name that manifests of deltas have in use.
pub(super) const DELTA_MANIFEST_ENTRY: &str = "delta-manifest.json";
pub(super) const INDEX_ENTRY: &str = "memory/index.json";
pub(super) const DELTA_ENTRY: &str = "memory/delta.jsonl";
pub(super) const MEMORY_FOLDER: &str = "memory/";
pub(super) const PARTITIONS_FOLDER: &str = "memory/partitions/";
pub(super) const EMBEDDINGS_FOLDER: &str = "memory/embeddings/";
pub(super) const VECTORS_ENTRY: &str = "memory/embeddings/vectors.bin";

/// A layer of an archive that is a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) name: &'static str,
    /// Its entry, as it is written.
    pub(super) entry: &'static str,
    /// The layer of its items, and the list in which they are.
    pub(super) items: Option<(&'static str, &'static str)>,
}

pub(super) const IDENTITY: Layer = Layer { name: "identity", entry: "identity.json", items: None };
pub(super) const PRINCIPALS: Layer = Layer {
    name: "principals",
    entry: "principals.json",
    items: Some(("principal", "principals")),
};
pub(super) const CREDENTIALS: Layer = Layer {
    name: "credentials",
    entry: "credentials.json",
    items: Some(("credential", "credentials")),
};
pub(super) const ATTACHMENTS: Layer = Layer {
    name: "attachments",
    entry: "attachments.json",
    items: Some(("attachment", "attachments")),
};
/// The layers that are documents, in the order in which they are written.
pub(super) static LAYERS: [Layer; 4] = [IDENTITY, PRINCIPALS, CREDENTIALS, ATTACHMENTS];

/// The layer of the manifest.
pub(super) const MANIFEST_LAYER: &str = "manifest";
/// The member of a delta with what the manifest of the agent says now.
pub(super) const MANIFEST_MEMBER: &str = "x_manifest";
/// The member of a manifest that says of which person alone the archive is.
pub(super) const OF_USER_MEMBER: &str = "x_of_user";
/// The member of the changes of a delta with the layers that went as a whole.
pub(super) const LAYERS_REMOVED: &str = "layers_removed";
/// The layer that lists files: raw sources, artifacts, entries that are not known.
pub(super) const FILES_LAYER: &str = "files";
/// The layer that lists partitions whose bytes must not change any more.
pub(super) const SEALED_LAYER: &str = "sealed";

/// Returns the namespace of the documents of an agent in a layer.
pub(super) fn namespace_of(agent_id: &str, layer: &str) -> String {
    let part = match layer {
        MANIFEST_LAYER | FILES_LAYER | SEALED_LAYER => "archive",
        layer => layer,
    };
    format!("alf:{agent_id}:{part}")
}

/// Tables of rows about one agent.
pub(super) mod tables {
    /// Records by id.
    pub(in super::super) const RECORDS: u8 = 1;
    /// Changes by sequence number.
    pub(in super::super) const LOG: u8 = 2;
    /// Numbers by name.
    pub(in super::super) const NUMBERS: u8 = 3;
    /// Records that were purged, by id.
    pub(in super::super) const PURGED: u8 = 4;
    /// Hashes of sealed partitions that were written, by label.
    pub(in super::super) const SEALED: u8 = 5;
    /// Last sequence numbers that were applied, by peer.
    pub(in super::super) const PEERS: u8 = 6;
    /// Files that were purged, by their SHA-256.
    pub(in super::super) const PURGED_FILES: u8 = 8;
    /// Records that were here, by id, with versions that they had. These rows belong to nobody.
    pub(in super::super) const PAST: u8 = 9;
    /// Deltas of which a record was refused, by peer: the last sequence number, if it is that of such a one.
    pub(in super::super) const PARTIAL: u8 = 10;
    /// Changes whose grains are about to be stored, by their ids: what completes them.
    pub(in super::super) const BEGUN: u8 = 11;
    /// Changes that were not taken, since what they change was purged or erased: by their ids, with the id of that.
    pub(in super::super) const REFUSED_CHANGES: u8 = 12;
    /// Agents that were purged as a whole, in the application of all agents.
    pub(in super::super) const PURGED_AGENTS: u8 = 2;
    /// Purges that have begun, in the application of all agents.
    pub(in super::super) const PURGES: u8 = 3;
    /// Agents, in the application of all agents.
    pub(in super::super) const AGENTS: u8 = 1;
}
