//! A redaction under way: the layers are changed, and every change is noted.

use serde_json::{Map, Value};

use super::RedactOptions;
use super::again::Earlier;
use super::table::{
    CLASSIFYING, ItemList, KEPT, KNOWN, LISTS, OBJECTS, OTHERS, PARTS, Part, REDACTED_NAME,
    UNKNOWN_NAME, is_formed, removed_id, replace,
};
use crate::saga::classify::{Classification, ItemType, TaskClasses, said};
use crate::saga::document::{Document, at_path, at_path_mut};
use crate::saga::encrypt::is_encrypted;
use crate::saga::kinds::Layer;
use crate::saga::manifest::{ManifestEntry, RedactionAction};
use crate::saga::shape::item_path;

/// A redaction under way.
pub(super) struct Redaction<'o> {
    options: &'o RedactOptions,
    /// What was redacted before.
    earlier: &'o Earlier,
    pub(super) entries: Vec<ManifestEntry>,
    /// The paths of the fields that were replaced.
    pub(super) paths: Vec<String>,
}

impl<'o> Redaction<'o> {
    pub(super) fn new(options: &'o RedactOptions, earlier: &'o Earlier) -> Self {
        Self { options, earlier, entries: Vec::new(), paths: Vec::new() }
    }

    pub(super) fn run(&mut self, layers: &mut Value) {
        self.unknown_layers(layers);
        self.malformed_parts(layers);
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

    /// Takes out the layers that nobody knows.
    fn unknown_layers(&mut self, layers: &mut Value) {
        let Some(members) = layers.as_object_mut() else { return };
        let unknown = members.keys().filter(|name| name.parse::<Layer>().is_err());
        for name in unknown.cloned().collect::<Vec<_>>() {
            if self.goes(&name) {
                members.remove(&name);
            }
        }
    }

    /// Takes out the members of a document that nobody knows.
    pub(super) fn unknown_members(&mut self, document: &mut Document) {
        for (name, _) in document.unknown_members() {
            if self.goes(&format!("document.{name}")) {
                document.members_mut().remove(&name);
            }
        }
    }

    /// Returns `true`, and notes it, for something that nobody knows and that is to be taken out, unless it was decided
    /// otherwise of its path.
    fn goes(&mut self, path: &str) -> bool {
        let decided = self.options.classifications.of(ItemType::MemoryLayer, path);
        let class = decided.unwrap_or(Classification::OrgInternal);
        if is_of_organization(class) {
            self.note(ItemType::MemoryLayer, path, RedactionAction::Removed, class, &[]);
        }
        is_of_organization(class)
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

    /// Takes out what is not of the form in which it could be looked at.
    fn malformed_parts(&mut self, layers: &mut Value) {
        let lists = LISTS.iter().map(|list| (list.path, list.item_type, false));
        let objects = OBJECTS.iter().map(|(path, item_type)| (*path, *item_type, true));
        for (path, item_type, is_object) in objects.chain(lists) {
            let Some(value) = at_path(layers, path) else { continue };
            let is_well = match is_object {
                true => value.is_object(),
                false => value.as_array().is_some_and(|items| items.iter().all(Value::is_object)),
            };
            if !is_well {
                remove_at(layers, path);
                let class = Classification::OrgInternal;
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
                if self.goes(&at) {
                    remove_member(layers, path, at.strip_prefix(path).unwrap_or_default());
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
                    let id = removed_id(list.item_type, &id);
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
        if !is_of_organization(class) {
            return;
        }
        let mut fields = unknown_of_others(layers);
        let organization = at_path_mut(layers, "relationships.organization");
        let organization = organization.and_then(Value::as_object_mut);
        let mut action = RedactionAction::Redacted;
        match (class, organization) {
            (_, None) => {}
            (Classification::OrgConfidential, Some(_)) => {
                remove_at(layers, "relationships.organization");
                action = RedactionAction::Removed;
                fields.push("organization".to_owned());
            }
            (_, Some(organization)) => {
                let names = ["companyId", "companySlug"];
                let replaced = owned(replace(organization, &names, &Value::from(REDACTED_NAME)));
                let path = |name: &String| format!("relationships.organization.{name}");
                self.paths.extend(replaced.iter().map(path));
                fields.extend(replaced);
            }
        }
        self.note(ItemType::Relationship, PATH, action, class, &fields);
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
        let is_new = !fields.is_empty() || action == RedactionAction::Removed;
        if !is_new && self.earlier.lists(item_type, id) {
            return;
        }
        self.entries.push(ManifestEntry {
            item_type,
            id: id.to_owned(),
            action,
            classification,
            fields_affected: fields.to_vec(),
            dispute_status: self.options.classifications.dispute_of(item_type, id),
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
    let is_known = |name: &str, value: &Value| is_kept(name) && is_formed(name, value);
    let unknown = members.iter().filter(|(name, value)| !is_known(name, value));
    let unknown: Vec<String> = unknown.map(|(name, _)| name.clone()).collect();
    for name in unknown {
        members.remove(&name);
        // A name that nobody knows could tell what it is of.
        let told = if is_kept(&name) { name } else { UNKNOWN_NAME.to_owned() };
        if !fields.contains(&told) {
            fields.push(told);
        }
    }
    fields
}

/// Takes out what is not known of principals and peers, and lists of them that are none. Returns the names.
fn unknown_of_others(layers: &mut Value) -> Vec<String> {
    let mut gone = Vec::new();
    for (list, known) in OTHERS {
        let path = format!("relationships.{list}");
        let Some(value) = at_path_mut(layers, &path) else { continue };
        let Some(items) = value.as_array_mut().filter(|it| it.iter().all(Value::is_object)) else {
            remove_at(layers, &path);
            gone.push(list.to_owned());
            continue;
        };
        for members in items.iter_mut().filter_map(Value::as_object_mut) {
            let before = members.len();
            members.retain(|name, _| known.contains(&name.as_str()));
            if members.len() < before {
                gone.push(list.to_owned());
            }
        }
    }
    gone.dedup();
    gone
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
