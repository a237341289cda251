//! Redaction: what an organization keeps when an agent leaves is replaced or taken out, and every change is noted.
//!
//! Identity, persona, parameters, semantic memory, skills, environment and vault are the agent's own, and are not touched.

use grainstore::EpochMs;
use serde_json::{Map, Value, json};

use super::classify::{Classification, Classifications, ItemType, TaskClasses, said};
use super::document::{Document, at_path, at_path_mut};
use super::encrypt::is_encrypted;
use super::manifest::{Manifest, ManifestEntry, RedactionAction};
use super::shape::item_path;
use super::sign::Signer;
use crate::error::Result;

/// What stands in the place of a text that was redacted.
pub const REDACTED_TEXT: &str = "[Redacted \u{2014} org-internal]";
/// What stands in the place of the name of an organization.
const REDACTED_NAME: &str = "[redacted]";

/// How a document is redacted: [`Document::redact`].
#[derive(Debug, Clone)]
pub struct RedactOptions {
    /// The id of the organization: of tasks, and in `byOrganization`.
    pub organization: String,
    /// Why: `organizational-exit` or `cross-org-transfer`, or another reason.
    pub reason: String,
    /// When.
    pub at: EpochMs,
    /// What was decided of single items.
    pub classifications: Classifications,
}

/// Where the classified items of a document are, and what is replaced in them.
struct ItemList {
    item_type: ItemType,
    path: &'static str,
    id: &'static str,
    redact: fn(&mut Map<String, Value>) -> Vec<&'static str>,
}

const LISTS: [ItemList; 4] = [
    ItemList {
        item_type: ItemType::Task,
        path: "taskHistory.recentTasks",
        id: "taskId",
        redact: |task| {
            let mut fields = replace(task, &["title", "summary"], &Value::from(REDACTED_TEXT));
            fields.extend(replace(task, &["organizationId"], &Value::from(REDACTED_NAME)));
            fields
        },
    },
    ItemList {
        item_type: ItemType::EpisodicEvent,
        path: "memory.episodic.events",
        id: "eventId",
        redact: |event| replace(event, &["summary", "learnings"], &Value::from(REDACTED_TEXT)),
    },
    ItemList {
        item_type: ItemType::Workflow,
        path: "memory.procedural.workflows",
        id: "name",
        redact: |workflow| {
            let mut fields = replace(workflow, &["description"], &Value::from(REDACTED_TEXT));
            fields.extend(replace(workflow, &["steps"], &json!([REDACTED_TEXT])));
            fields
        },
    },
    ItemList {
        item_type: ItemType::Artifact,
        path: "taskHistory.artifacts",
        id: "artifactId",
        redact: |artifact| {
            let mut fields = replace(artifact, &["name"], &Value::from(REDACTED_TEXT));
            fields.extend(artifact.remove("storageRef").map(|_| "storageRef"));
            fields
        },
    },
];

/// A part of a layer that is classified as a whole.
struct Part {
    item_type: ItemType,
    path: &'static str,
    default: Classification,
    redact: fn(&mut Map<String, Value>) -> Vec<&'static str>,
}

const PARTS: [Part; 3] = [
    Part {
        item_type: ItemType::SystemPrompt,
        path: "cognitive.systemPrompt",
        default: Classification::OrgConfidential,
        redact: |prompt| replace(prompt, &["content"], &Value::from(REDACTED_TEXT)),
    },
    Part {
        item_type: ItemType::MemoryLayer,
        path: "memory.shortTerm",
        default: Classification::OrgInternal,
        redact: |memory| replace(memory, &["content"], &Value::from(REDACTED_TEXT)),
    },
    Part {
        item_type: ItemType::MemoryLayer,
        path: "memory.longTerm",
        default: Classification::OrgInternal,
        redact: |memory| memory.remove("storageRef").map(|_| "storageRef").into_iter().collect(),
    },
];

/// Members that describe the classification of an item, or of its kind, and hold no content. All other members that are
/// not known could hold what was redacted, and go with it.
struct Kept {
    item_type: ItemType,
    members: &'static [&'static str],
}

/// The members of a redacted item that stay. What is not listed is taken out, since nobody knows what it tells.
const KEPT: [Kept; 6] = [
    Kept {
        item_type: ItemType::Task,
        members: &[
            "taskId",
            "title",
            "status",
            "outcome",
            "skillTags",
            "completedAt",
            "organizationId",
            "artifactRefs",
            "durationSeconds",
            "summary",
        ],
    },
    Kept {
        item_type: ItemType::EpisodicEvent,
        members: &[
            "eventId",
            "type",
            "timestamp",
            "summary",
            "learnings",
            "linkedTaskId",
            "significance",
        ],
    },
    Kept {
        item_type: ItemType::Workflow,
        members: &["name", "description", "steps", "learnedFrom"],
    },
    Kept {
        item_type: ItemType::Artifact,
        members: &["artifactId", "type", "name", "createdAt", "linkedTaskId"],
    },
    Kept { item_type: ItemType::SystemPrompt, members: &["format", "content", "encrypted"] },
    Kept {
        item_type: ItemType::MemoryLayer,
        members: &[
            "type",
            "maxTokens",
            "snapshotAt",
            "content",
            "embeddingModel",
            "dimensions",
            "vectorCount",
            "format",
            "encrypted",
        ],
    },
];

/// The members that are known of what holds classified items. Others could hold anything, and go unless the organization
/// decided otherwise of their path.
const KNOWN: [(&str, &[&str]); 4] = [
    ("memory", &["shortTerm", "longTerm", "episodic", "semantic", "procedural"]),
    ("memory.episodic", &["events", "maxEvents", "encrypted"]),
    ("memory.procedural", &["workflows", "encrypted"]),
    ("taskHistory", &["summary", "recentTasks", "recentTasksLimit", "artifacts"]),
];

/// Members of an item that say how it is classified.
const CLASSIFYING: [&str; 4] = ["classification", "classifiedBy", "classifiedAt", "policyRule"];

impl Document {
    /// Takes out what is the organization's, notes it in `privacy.redactedFields` and in a manifest that the organization
    /// signs, and returns the manifest. Redact before you encrypt, and encrypt before you sign.
    ///
    /// What is encrypted cannot be redacted within: it is left as it is if it would stay, and else taken out as a whole.
    ///
    /// ```
    /// use grainstore::EpochMs;
    /// use grainstore_interop::saga::{Document, RedactOptions, RedactionAction, REDACTED_TEXT};
    ///
    /// let mut document = Document::parse(
    ///     br#"{"sagaVersion": "1.0", "documentId": "saga_a1", "layers": {"taskHistory": {"recentTasks": [
    ///         {"taskId": "t1", "status": "completed", "title": "Move the ledger"},
    ///         {"taskId": "t2", "status": "failed", "title": "Secret", "classification": "org-confidential"}]}}}"#,
    /// )?;
    /// let options = RedactOptions {
    ///     organization: "company_a".into(), reason: "organizational-exit".into(),
    ///     at: EpochMs::new(1_774_000_800_000), classifications: Default::default(),
    /// };
    /// let manifest = document.redact(&options, None)?;
    /// assert_eq!(manifest.entries[0].action, RedactionAction::Redacted);
    /// assert_eq!(manifest.entries[1].action, RedactionAction::Removed);
    /// let text = document.canonical()?;
    /// assert!(text.contains(REDACTED_TEXT) && !text.contains("ledger") && !text.contains("Secret"));
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the signer.
    pub fn redact(
        &mut self,
        options: &RedactOptions,
        signer: Option<&dyn Signer>,
    ) -> Result<Manifest> {
        let mut redaction = Redaction { options, entries: Vec::new(), paths: Vec::new() };
        if let Some(layers) = self.layers_mut() {
            let mut value = Value::Object(std::mem::take(layers));
            redaction.run(&mut value);
            if let Value::Object(redacted) = value {
                *layers = redacted;
            }
        }
        let Redaction { entries, paths, .. } = redaction;
        self.note_redacted(&paths);
        let manifest = Manifest {
            applied_at: options.at,
            applied_by: options.organization.clone(),
            reason: options.reason.clone(),
            entries,
        };
        let value = manifest.to_value(self.id(), signer)?;
        self.members_mut().insert("redactionManifest".to_owned(), value);
        Ok(manifest)
    }

    fn note_redacted(&mut self, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        let privacy = self.members_mut().entry("privacy").or_insert_with(|| json!({}));
        let Some(privacy) = privacy.as_object_mut() else { return };
        let list = privacy.entry("redactedFields").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.extend(paths.iter().map(|path| Value::from(path.as_str())));
        }
    }
}

/// A redaction under way.
struct Redaction<'o> {
    options: &'o RedactOptions,
    entries: Vec<ManifestEntry>,
    /// The paths of the fields that were replaced.
    paths: Vec<String>,
}

impl Redaction<'_> {
    fn run(&mut self, layers: &mut Value) {
        self.encrypted_layers(layers);
        self.unknown_parts(layers);
        let tasks = at_path(layers, "taskHistory.recentTasks");
        let classes = TaskClasses::of(tasks, &self.options.classifications);
        for list in &LISTS {
            self.list(layers, list, &classes);
        }
        for part in &PARTS {
            self.part(layers, part);
        }
        self.relationships(layers);
        self.organizations(layers);
    }

    /// Takes out layers and lists that are encrypted and hold what would have to be looked at. Their classes cannot be
    /// told, so that the default decides: none of them may leave as it is.
    fn encrypted_layers(&mut self, layers: &mut Value) {
        const OPAQUE: [(&str, ItemType); 5] = [
            ("cognitive", ItemType::SystemPrompt),
            ("memory", ItemType::MemoryLayer),
            ("memory.episodic", ItemType::EpisodicEvent),
            ("memory.procedural", ItemType::Workflow),
            ("taskHistory", ItemType::Task),
        ];
        for (path, item_type) in OPAQUE {
            let decided = self.options.classifications.of(item_type, path);
            let stays = decided.is_some_and(|class| !is_of_organization(class));
            if at_path(layers, path).is_some_and(is_encrypted) && !stays {
                remove_at(layers, path);
                let class = decided.unwrap_or(Classification::OrgInternal);
                self.note(item_type, path, RedactionAction::Removed, class, &[]);
            }
        }
    }

    /// Takes out the parts of layers that nobody knows.
    fn unknown_parts(&mut self, layers: &mut Value) {
        for (path, known) in KNOWN {
            let Some(part) = at_path(layers, path).filter(|part| !is_encrypted(part)) else {
                continue;
            };
            let Some(members) = part.as_object() else { continue };
            let is_known = |name: &str| known.contains(&name) || CLASSIFYING.contains(&name);
            let unknown: Vec<_> = members
                .keys()
                .filter(|name| !is_known(name))
                .map(|name| format!("{path}.{name}"))
                .collect();
            for at in unknown {
                let decided = self.options.classifications.of(ItemType::MemoryLayer, &at);
                let class = decided.unwrap_or(Classification::OrgInternal);
                if is_of_organization(class) {
                    remove_member(layers, path, at.strip_prefix(path).unwrap_or_default());
                    self.note(ItemType::MemoryLayer, &at, RedactionAction::Removed, class, &[]);
                }
            }
        }
    }

    fn list(&mut self, layers: &mut Value, list: &ItemList, classes: &TaskClasses) {
        let decided = &self.options.classifications;
        let Some(items) = at_path_mut(layers, list.path).and_then(Value::as_array_mut) else {
            return;
        };
        let mut kept = Vec::with_capacity(items.len());
        let mut noted = Vec::new();
        for mut item in std::mem::take(items) {
            let id = item.get(list.id).and_then(Value::as_str).unwrap_or_default().to_owned();
            match classes.classify(&item, list.item_type, &id, decided) {
                Classification::Public | Classification::AgentPortable => kept.push(item),
                class @ Classification::OrgConfidential => {
                    noted.push((id, RedactionAction::Removed, class, Vec::new(), 0));
                }
                class @ Classification::OrgInternal => {
                    let fields = redact_item(&mut item, list.item_type, list.redact);
                    noted.push((id, RedactionAction::Redacted, class, fields, kept.len()));
                    kept.push(item);
                }
            }
        }
        *items = kept;
        for (id, action, class, fields, at) in noted {
            let of_item = |name: &String| format!("{}.{name}", item_path(list.path, at));
            self.paths.extend(fields.iter().map(of_item));
            self.note(list.item_type, &id, action, class, &fields);
        }
    }

    fn part(&mut self, layers: &mut Value, part: &Part) {
        let Some(value) = at_path(layers, part.path) else { return };
        let decided = self.options.classifications.of(part.item_type, part.path);
        let class = decided.or_else(|| said(value)).unwrap_or(part.default);
        // What is encrypted has no texts to replace, so that it stays for whom it is encrypted, or goes.
        let is_opaque = is_encrypted(value);
        match class {
            Classification::Public | Classification::AgentPortable => {}
            Classification::OrgInternal if !is_opaque => {
                let Some(value) = at_path_mut(layers, part.path) else { return };
                let fields = redact_item(value, part.item_type, part.redact);
                self.paths.extend(fields.iter().map(|name| format!("{}.{name}", part.path)));
                self.note(part.item_type, part.path, RedactionAction::Redacted, class, &fields);
            }
            Classification::OrgInternal | Classification::OrgConfidential => {
                remove_at(layers, part.path);
                self.note(part.item_type, part.path, RedactionAction::Removed, class, &[]);
            }
        }
    }

    fn relationships(&mut self, layers: &mut Value) {
        const PATH: &str = "relationships";
        let Some(value) = at_path(layers, PATH) else { return };
        let decided = self.options.classifications.of(ItemType::Relationship, PATH);
        let class = decided.or_else(|| said(value)).unwrap_or(Classification::OrgInternal);
        if is_encrypted(value) && is_of_organization(class) {
            remove_at(layers, PATH);
            return self.note(ItemType::Relationship, PATH, RedactionAction::Removed, class, &[]);
        }
        let organization = at_path_mut(layers, "relationships.organization");
        let Some(organization) = organization.and_then(Value::as_object_mut) else { return };
        match class {
            Classification::Public | Classification::AgentPortable => {}
            Classification::OrgInternal => {
                let names = ["companyId", "companySlug"];
                let fields = owned(replace(organization, &names, &Value::from(REDACTED_NAME)));
                let path = |name: &String| format!("relationships.organization.{name}");
                self.paths.extend(fields.iter().map(path));
                self.note(ItemType::Relationship, PATH, RedactionAction::Redacted, class, &fields);
            }
            Classification::OrgConfidential => {
                remove_at(layers, "relationships.organization");
                let fields = ["organization".to_owned()];
                self.note(ItemType::Relationship, PATH, RedactionAction::Removed, class, &fields);
            }
        }
    }

    /// Takes the name of the organization out of the counts. The counts stay.
    fn organizations(&mut self, layers: &mut Value) {
        let path = "taskHistory.summary.byOrganization";
        let counts = at_path_mut(layers, path).and_then(Value::as_object_mut);
        let own = self.options.organization.as_str();
        if let Some(counts) = counts
            && let Some(count) = counts.remove(own)
        {
            let before = counts.get(REDACTED_NAME).and_then(Value::as_u64).unwrap_or_default();
            let sum = count.as_u64().map(|count| Value::from(count.saturating_add(before)));
            counts.insert(REDACTED_NAME.to_owned(), sum.unwrap_or(count));
            self.paths.push(path.to_owned());
        }
    }

    fn note(
        &mut self,
        item_type: ItemType,
        id: &str,
        action: RedactionAction,
        classification: Classification,
        fields: &[String],
    ) {
        self.entries.push(ManifestEntry {
            item_type,
            id: id.to_owned(),
            action,
            classification,
            fields_affected: fields.to_vec(),
            dispute_status: None,
        });
    }
}

fn is_of_organization(class: Classification) -> bool {
    matches!(class, Classification::OrgInternal | Classification::OrgConfidential)
}

/// Redacts an item, and takes out what is not known of it. Returns the members that changed.
fn redact_item(
    item: &mut Value,
    item_type: ItemType,
    redact: fn(&mut Map<String, Value>) -> Vec<&'static str>,
) -> Vec<String> {
    let Some(members) = item.as_object_mut() else { return Vec::new() };
    let mut fields = owned(redact(members));
    let kept = KEPT.iter().find(|kept| kept.item_type == item_type);
    let kept = kept.map_or(&[][..], |kept| kept.members);
    let is_kept = |name: &str| kept.contains(&name) || CLASSIFYING.contains(&name);
    let unknown: Vec<_> = members.keys().filter(|name| !is_kept(name)).cloned().collect();
    for name in unknown {
        members.remove(&name);
        fields.push(name);
    }
    fields
}

/// Replaces the members that are there. Returns their names.
fn replace(
    members: &mut Map<String, Value>,
    names: &[&'static str],
    by: &Value,
) -> Vec<&'static str> {
    let mut replaced = Vec::new();
    for name in names {
        if let Some(member) = members.get_mut(*name) {
            *member = by.clone();
            replaced.push(*name);
        }
    }
    replaced
}

fn owned(names: Vec<&'static str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Takes a member out of what is at a path; its name may have dots.
fn remove_member(layers: &mut Value, path: &str, dotted: &str) {
    let name = dotted.strip_prefix('.').unwrap_or(dotted);
    if let Some(members) = at_path_mut(layers, path).and_then(Value::as_object_mut) {
        members.remove(name);
    }
}

/// Takes out what is at a path.
fn remove_at(layers: &mut Value, path: &str) {
    let (above, name) = match path.rsplit_once('.') {
        Some((above, name)) => (at_path_mut(layers, above), name),
        None => (Some(layers), path),
    };
    if let Some(members) = above.and_then(Value::as_object_mut) {
        members.remove(name);
    }
}
