//! The rules that the text of the standard adds to its schema: what must agree, what must be encrypted, what belongs to
//! which export.

use grainstore::EpochMs;
use grainstore::format::parse_datetime;
use serde_json::Value;

use super::consent::{self, Operation};
use super::document::{Document, at_path, texts};
use super::encrypt::false_boxes;
use super::finding::Findings;
use super::kinds::{ExportType, LISTED_CHAINS, LISTED_TRAITS, Layer};
use super::manifest;
use super::shape::item_path;
use super::vault;

/// The depth of clones above which the standard recommends a warning.
pub(super) const DEEP_CLONE: u64 = 3;

/// A rule: adds what it finds.
type Rule = fn(&Document, EpochMs, &mut Findings);

const RULES: [Rule; 12] = [
    signature_is_of_identity,
    times_are_in_order,
    lineage_agrees,
    vault_is_encrypted,
    layers_suit_the_export,
    encrypted_layers_are_there,
    boxes_are_boxes,
    scope_covers_the_layers,
    chain_is_listed,
    proofs_are_addresses,
    traits_are_listed,
    manifest_agrees,
];

pub(super) fn check_all(document: &Document, now: EpochMs, found: &mut Findings) {
    for rule in RULES {
        rule(document, now, found);
    }
}

fn signature_is_of_identity(document: &Document, _: EpochMs, found: &mut Findings) {
    let Some(identity) = document.layer(Layer::Identity) else {
        return found.error("layers.identity", "every document has an identity layer");
    };
    if let Err(error) = document.wallet() {
        found.error("layers.identity.walletAddress", error.to_string());
    }
    for name in ["walletAddress", "chain"] {
        let text = |of: Option<&Value>| {
            of.and_then(|of| of.get(name)).and_then(Value::as_str).map(str::to_ascii_lowercase)
        };
        let (signs, is) = (text(document.get("signature")), text(Some(identity)));
        if signs.is_some() && signs != is {
            let message = "it is not that of the identity layer";
            found.error(&format!("signature.{name}"), message);
        }
    }
}

fn times_are_in_order(document: &Document, _: EpochMs, found: &mut Findings) {
    let time = |name: &str| parse_datetime(document.text(name)).ok();
    if time("exportedAt").is_none() {
        found.error("exportedAt", "it is a time such as 2026-03-20T10:00:00Z");
    }
    if time("createdAt").is_some_and(|made| time("exportedAt").is_some_and(|out| made > out)) {
        found.error("createdAt", "it is after exportedAt");
    }
}

fn lineage_agrees(document: &Document, _: EpochMs, found: &mut Findings) {
    let Some(identity) = document.layer(Layer::Identity) else { return };
    let depth = identity.get("cloneDepth").and_then(Value::as_u64).unwrap_or_default();
    let has_parent = identity.get("parentSagaId").is_some_and(|parent| !parent.is_null());
    if has_parent && depth == 0 {
        found.error("layers.identity.cloneDepth", "it is above 0 where there is a parentSagaId");
    }
    if depth > DEEP_CLONE {
        let message = format!("a clone of a clone, {depth} deep");
        found.warn("layers.identity.cloneDepth", message);
    }
}

fn vault_is_encrypted(document: &Document, _: EpochMs, found: &mut Findings) {
    let Some(vault) = document.layer(Layer::Vault) else { return };
    let path = "layers.vault";
    if !document.encrypted_layers().any(|layer| layer == Layer::Vault.name()) {
        found.error("privacy.encryptedLayers", "a document with a vault lists it here");
    }
    vault::check_ciphertext(vault, path, found);
}

fn layers_suit_the_export(document: &Document, _: EpochMs, found: &mut Findings) {
    let Ok(export) = document.export_type() else { return };
    for layer in document.layers().filter(|layer| !export.has(*layer)) {
        let path = format!("layers.{layer}");
        let message = format!("an export of type {export} has no {layer}");
        let is_private = matches!(layer, Layer::Memory | Layer::TaskHistory | Layer::Vault);
        match is_private {
            true => found.error(&path, message),
            false => found.warn(&path, message),
        }
    }
    let lacks = Layer::ALL.iter().filter(|layer| {
        let is_common = **layer != Layer::Vault && export != ExportType::Identity;
        is_common && export.has(**layer) && document.layer(**layer).is_none()
    });
    for layer in lacks.filter(|layer| **layer != Layer::Identity) {
        let message = format!("an export of type {export} usually has it");
        found.warn(&format!("layers.{layer}"), message);
    }
}

fn encrypted_layers_are_there(document: &Document, _: EpochMs, found: &mut Findings) {
    let Some(layers) = document.get("layers") else { return };
    for path in document.encrypted_layers().filter(|path| at_path(layers, path).is_none()) {
        found.warn("privacy.encryptedLayers", format!("there is no {path}"));
    }
    if document.encrypted_layers().any(|path| path == Layer::Identity.name()) {
        found.error("privacy.encryptedLayers", "the identity is never encrypted");
    }
}

fn boxes_are_boxes(document: &Document, _: EpochMs, found: &mut Findings) {
    for layer in document.layer_names().filter(|name| *name != Layer::Vault.name()) {
        let Some(value) = document.get("layers").and_then(|layers| layers.get(layer)) else {
            continue;
        };
        false_boxes(value, &format!("layers.{layer}"), &mut |path| {
            found.error(path, "it says that it is encrypted, and holds something else than boxes");
        });
    }
}

fn scope_covers_the_layers(document: &Document, now: EpochMs, found: &mut Findings) {
    let Some(record) = document.get("consent") else { return };
    let names: Vec<&str> = document.layer_names().collect();
    for layer in consent::uncovered(record, names.into_iter()) {
        found.error(&format!("layers.{layer}"), "the consent does not cover it");
    }
    if let (Ok(export), Some(operation)) = (document.export_type(), record.get("operation"))
        && operation != Operation::of_export(export).name()
        && operation != Operation::Share.name()
    {
        found.warn("consent.operation", format!("the document is an export of type {export}"));
    }
    if consent::has_expired(record, now) {
        found.warn("consent.expiresAt", "the consent has expired");
    }
}

fn chain_is_listed(document: &Document, _: EpochMs, found: &mut Findings) {
    let identity = document.layer(Layer::Identity);
    let chain = identity.and_then(|identity| identity.get("chain")).and_then(Value::as_str);
    if chain.is_some_and(|chain| !LISTED_CHAINS.contains(&chain)) {
        found.warn("layers.identity.chain", "the standard does not list this chain");
    }
}

fn proofs_are_addresses(document: &Document, _: EpochMs, found: &mut Findings) {
    let skills = document.layer(Layer::Skills).and_then(|skills| skills.get("verified"));
    for (at, skill) in skills.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let proof = skill.get("verificationProof").and_then(Value::as_str);
        if proof.is_none_or(|proof| !proof.starts_with("https://") && !proof.starts_with("http://"))
        {
            let path = item_path("layers.skills.verified", at);
            found
                .warn(&path, "nothing proves it that can be looked up: it counts as self-reported");
        }
    }
}

fn traits_are_listed(document: &Document, _: EpochMs, found: &mut Findings) {
    let persona = document.layer(Layer::Persona);
    let traits = texts(persona.and_then(|persona| at_path(persona, "personality.traits")));
    for (at, _) in traits.enumerate().filter(|(_, word)| !LISTED_TRAITS.contains(word)) {
        let path = item_path("layers.persona.personality.traits", at);
        found.warn(&path, "it is not in the standard's list of traits");
    }
}

fn manifest_agrees(document: &Document, _: EpochMs, found: &mut Findings) {
    if let Some(value) = document.get("redactionManifest") {
        manifest::check_counts(value, found);
    }
}

/// The recipients of the shares of the vault that have expired.
pub(super) fn expired_shares(document: &Document, now: EpochMs) -> Vec<String> {
    let shares = document.layer(Layer::Vault).and_then(|vault| vault.get("shares"));
    let shares = shares.and_then(Value::as_array).into_iter().flatten();
    shares
        .filter(|share| vault::has_expired(share, now))
        .filter_map(|share| Some(share.get("recipientAddress")?.as_str()?.to_owned()))
        .collect()
}
