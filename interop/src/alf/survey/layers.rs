//! The documents of an archive: each against its shape, and what they say of each other.

use std::collections::BTreeSet;

use serde_json::json;

use super::Survey;
use super::credentials::plain_part;
use super::links::Link;
use crate::alf::bundle::{Bundle, MAX_DOCUMENT_BYTES};
use crate::alf::issue::{Issues, MAX_ISSUES, Place, Severity};
use crate::alf::names::{CREDENTIALS, IDENTITY, LAYERS, Layer, PRINCIPALS};
use crate::alf::schema::{self, Shape};
use crate::error::{Error, Result};
use crate::json::{self, Value};

/// What is the matter with an entry whose name the standard has a use for, and the manifest has not.
pub(in super::super) const UNLISTED: &str =
    "the manifest does not list it, and its name is of the standard: it is left out";

fn shape_of(layer: Layer) -> &'static Shape {
    match layer {
        IDENTITY => &schema::IDENTITY,
        PRINCIPALS => &schema::PRINCIPALS,
        CREDENTIALS => &schema::CREDENTIALS,
        _ => &schema::ATTACHMENTS,
    }
}

impl Survey {
    /// Reads and checks the documents of all layers.
    pub(super) fn check_layers(&mut self, bundle: &Bundle) {
        for layer in LAYERS {
            let Some(entry) = bundle.layer_entry(layer) else { continue };
            let at = Place::entry(entry);
            match read(bundle, entry) {
                Err(error) => self.refuse(error, &at),
                Ok(document) => {
                    let document = self.unwrapped(layer, document, &at);
                    self.check_document(bundle, layer, &document, &at);
                    self.documents.push((layer, document));
                }
            }
        }
        self.check_credential_ids();
        self.check_raw_sources(bundle);
        for name in bundle.unlisted() {
            self.issues.add(Severity::Tolerable, &Place::entry(name), UNLISTED);
        }
        let index = bundle.index_entry().filter(|entry| bundle.archive.entry(entry).is_none());
        if let Some(entry) = index {
            self.warn(&Place::entry(entry), "the index of the memory is missing");
        }
    }

    /// Some archives have their identity in an object of its own, as in an example of the standard.
    fn unwrapped(&mut self, layer: Layer, document: Value, at: &Place<'_>) -> Value {
        match document {
            Value::Object(mut object) if layer == IDENTITY && object.len() == 1 => {
                match object.remove("identity") {
                    Some(inner) => {
                        self.warn(at, "the identity is in an object of its own");
                        inner
                    }
                    None => Value::Object(object),
                }
            }
            document => document,
        }
    }

    fn check_document(&mut self, bundle: &Bundle, layer: Layer, document: &Value, at: &Place<'_>) {
        let mut found = Issues::default();
        schema::check(shape_of(layer), document, at, &mut found);
        if found.fatal > 0 {
            let first = found.errors.listed.first();
            let told = first.map(|issue| format!("{}: {}", issue.path, issue.message));
            let entry = at.to_string();
            let error = Error::schema(told.unwrap_or_default()).in_entry(&entry);
            self.broken.get_or_insert(error);
        }
        self.issues.extend(found);
        let own = document.get("agent_id").and_then(Value::as_str);
        if layer == IDENTITY && own.is_some_and(|id| !id.eq_ignore_ascii_case(bundle.agent_id())) {
            let error =
                Error::schema("it is the identity of another agent than the manifest names");
            self.refuse(error, &at.member("agent_id"));
        }
        let Some((_, list)) = layer.items else {
            self.find_host_dependent(document);
            return;
        };
        let items = document.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let said = bundle.layer(layer).and_then(|said| said.get("count")).and_then(Value::as_u64);
        if said.is_some_and(|said| said != items.len() as u64) {
            let message =
                format!("the manifest counts {} and there are {}", said.unwrap_or(0), items.len());
            self.warn(at, message);
        }
        for (number, item) in items.iter().enumerate() {
            let list = at.member(list);
            self.check_item(bundle, layer, (number, item), &list.item(number));
        }
    }

    fn check_item(
        &mut self,
        bundle: &Bundle,
        layer: Layer,
        (number, item): (usize, &Value),
        at: &Place<'_>,
    ) {
        match layer {
            PRINCIPALS => {
                let own = item.get("id").and_then(Value::as_str);
                let profile = item.get("profile").and_then(|profile| profile.get("principal_id"));
                if profile.and_then(Value::as_str) != own {
                    let error = Error::schema("the profile is that of another principal");
                    self.refuse(error, at);
                }
            }
            CREDENTIALS => {
                if let Some(why) = plain_part(item) {
                    let error = Error::schema(why)
                        .with_hint("encrypt the credential before it goes into an archive");
                    self.refuse(error, at);
                }
            }
            _ => self.check_attachment(bundle, (number, item), at),
        }
    }

    /// Compares an attachment that is in the archive with what is said of it, and counts it.
    fn check_attachment(
        &mut self,
        bundle: &Bundle,
        (number, item): (usize, &Value),
        at: &Place<'_>,
    ) {
        let size = item.get("size_bytes").and_then(Value::as_u64).unwrap_or_default();
        let ids = item.get("referenced_by").and_then(Value::as_array).into_iter().flatten();
        self.links.extend(ids.filter_map(|id| Link::of_attachment(id, number)));
        let Some(path) = item.get("archive_path").and_then(Value::as_str) else {
            let name = item.get("filename").and_then(Value::as_str).unwrap_or_default();
            if self.artifacts.referenced.len() < MAX_ISSUES {
                self.artifacts.referenced.push((name.to_owned(), size));
            }
            self.artifacts.referenced_count = self.artifacts.referenced_count.saturating_add(1);
            self.artifacts.referenced_bytes = self.artifacts.referenced_bytes.saturating_add(size);
            return;
        };
        self.artifacts.included = self.artifacts.included.saturating_add(1);
        self.artifacts.included_bytes = self.artifacts.included_bytes.saturating_add(size);
        let Some((hash, length)) = self.hashes.get(path).copied() else {
            if bundle.kind == super::Kind::Snapshot {
                let error = Error::integrity(format!("its file {path} is not in the archive"));
                self.refuse(error, at);
            }
            return;
        };
        let said = |name: &str| item.get("hash").and_then(|hash| hash.get(name)?.as_str());
        let is_sha256 = said("algorithm").is_none_or(|name| name.eq_ignore_ascii_case("sha256"));
        let found = data_encoding::HEXLOWER.encode(&hash);
        if length != size {
            let error = Error::integrity(format!("its file {path} has another size"));
            self.refuse(error, at);
        } else if is_sha256 && said("value").is_none_or(|said| !said.eq_ignore_ascii_case(&found)) {
            let error = Error::integrity(format!("its file {path} has another hash"));
            self.refuse(error, at);
        }
    }

    fn find_host_dependent(&mut self, identity: &Value) {
        let structured = identity.get("structured");
        let own = structured.and_then(|structured| structured.get("capabilities"));
        for capability in own.and_then(Value::as_array).into_iter().flatten() {
            // What is not known is taken for what needs more.
            let portability = capability.get("portability").and_then(Value::as_str);
            let name = capability.get("name").and_then(Value::as_str);
            if portability.is_some_and(|portability| portability != "intrinsic") {
                self.host_dependent.extend(name.map(str::to_owned));
            }
        }
    }

    /// Warns of credentials that capabilities name and that are not there.
    fn check_credential_ids(&mut self) {
        let document = |layer: Layer| {
            self.documents.iter().find(|(of, _)| *of == layer).map(|(_, document)| document)
        };
        let none = json!({});
        let known = document(CREDENTIALS).unwrap_or(&none).get("credentials");
        let known: BTreeSet<_> = known
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|credential| credential.get("id")?.as_str())
            .collect();
        let capabilities = document(IDENTITY)
            .and_then(|identity| identity.get("structured")?.get("capabilities")?.as_array());
        let mut missing = Vec::new();
        for capability in capabilities.into_iter().flatten() {
            let ids = capability.get("credential_ids").and_then(Value::as_array);
            let ids = ids.into_iter().flatten().filter_map(Value::as_str);
            missing.extend(ids.filter(|id| !known.contains(id)).map(str::to_owned));
        }
        for id in missing {
            let message = format!("a capability names the credential {id}, which is not there");
            self.warn(&Place::entry(IDENTITY.entry), message);
        }
    }

    /// Compares `raw_sources` with the folders under `raw/`.
    fn check_raw_sources(&mut self, bundle: &Bundle) {
        let said = bundle.manifest.get("raw_sources").and_then(Value::as_array);
        let mut said: Vec<&str> = said.into_iter().flatten().filter_map(Value::as_str).collect();
        let mut found: Vec<&str> = bundle.files().filter_map(raw_runtime).collect();
        for list in [&mut said, &mut found] {
            list.sort_unstable();
            list.dedup();
        }
        if bundle.kind == super::Kind::Snapshot && said != found {
            let at = Place::entry(bundle.manifest_entry);
            let message = "it does not name the runtimes under raw/";
            self.issues.add(Severity::Warning, &at.member("raw_sources"), message);
        }
    }
}

/// The runtime of a raw source, by the name of its entry.
pub(in super::super) fn raw_runtime(name: &str) -> Option<&str> {
    name.strip_prefix("raw/")?.split_once('/').map(|(runtime, _)| runtime)
}

fn read(bundle: &Bundle, entry: &str) -> Result<Value> {
    match bundle.archive.read(entry, MAX_DOCUMENT_BYTES)? {
        Some(bytes) => json::parse(&bytes),
        None => Err(Error::integrity("the manifest names it, and it is not there")),
    }
}
