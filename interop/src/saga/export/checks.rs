//! What an export must have before it is made: consent, redaction, and nothing that is held taken out.

use std::collections::HashSet;

use grainstore::format::parse_datetime;
use grainstore::{EpochMs, ErrorKind, format};
use serde_json::Value;

use super::stored::unknown;
use super::{ExportOptions, TransferRequest};
use crate::error::{Error, Result};
use crate::saga::classify::ItemType;
use crate::saga::consent::{Operation, check_use, consent_message, covers};
use crate::saga::document::Document;
use crate::saga::import::{CONSENT_KIND, consent_id, last_withdrawal};
use crate::saga::kinds::{ExportType, Layer};
use crate::saga::manifest::{Manifest, RedactionAction};
use crate::saga::map::{LAYER, split};
use crate::saga::native::ItemName;
use crate::saga::redact::RedactOptions;
use crate::saga::store::AgentStore;
use crate::saga::transfer_consent::TransferConsents;
use crate::saga::wallet::Wallet;

/// The layers of an export, and those that were asked for and are not consented to.
///
/// # Errors
/// `ERR_NOT_FOUND`, `ERR_POLICY`, and those of [`check_use`].
pub(super) fn layers(
    store: &AgentStore<'_>,
    export_type: ExportType,
    options: &ExportOptions<'_>,
    now: EpochMs,
) -> Result<(Vec<Layer>, Vec<Layer>)> {
    let is_asked = |layer: Layer| {
        layer == Layer::Identity
            || options.layers.as_ref().is_none_or(|layers| layers.contains(&layer))
    };
    let wanted: Vec<_> = Layer::ALL
        .iter()
        .copied()
        .filter(|layer| export_type.has(*layer) && is_asked(*layer))
        .collect();
    if store.find(&LAYER, Layer::Identity.name())?.is_none() {
        return Err(unknown(store));
    }
    let Some(record) = &options.consent else {
        return match options.crosses_organizations {
            true => Err(Error::new(
                ErrorKind::Policy,
                "an export that leaves the organization has the consent of the agent",
            )
            .with_hint("give a consent that the agent signed")),
            false => Ok((wanted, Vec::new())),
        };
    };
    let operation = Operation::of_export(export_type);
    check_use(record, store.wallet(), operation, now)?;
    withdrawal(store, record, &wanted)?;
    let (layers, narrowed): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|layer| covers(record, *layer));
    if narrowed.contains(&Layer::Identity) {
        return Err(Error::new(ErrorKind::Policy, "the consent does not cover the identity")
            .with_hint("every document has the identity; ask for a consent that covers it")
            .in_entry("consent.scope"));
    }
    // What the store does not have is not missed.
    let mut missed = Vec::new();
    for layer in narrowed {
        if store.has(&LAYER, layer.name())? {
            missed.push(layer);
        }
    }
    Ok((layers, missed))
}

/// Checks who consents to a transfer, and returns the consents that are recommended and missing.
///
/// # Errors
/// `ERR_POLICY` for a transfer to another organization without what is required; `ERR_SIGNATURE`.
pub(super) fn transfer(
    store: &AgentStore<'_>,
    export_type: ExportType,
    options: &ExportOptions<'_>,
    document_id: &str,
) -> Result<Vec<&'static str>> {
    let is_needed = export_type == ExportType::Transfer && options.crosses_organizations;
    match &options.transfer {
        None if is_needed => Err(Error::new(
            ErrorKind::Policy,
            "a transfer to another organization names who consents to it",
        )
        .with_hint("have the consent message signed, and give the signatures")),
        None => Ok(Vec::new()),
        Some(request) => {
            let operation = Operation::of_export(export_type);
            let TransferRequest { kind, destination, at, consents } = request;
            let message = consent_message(operation, document_id, destination, *at);
            let missing = consents.check(*kind, store.wallet(), &message)?;
            if let Some(organization) = options.organization {
                source_signs(consents, organization.wallet())?;
            }
            Ok(missing)
        }
    }
}

/// Refuses a manifest that another than the source of a transfer would sign.
///
/// # Errors
/// `ERR_POLICY`.
fn source_signs(consents: &TransferConsents, organization: &Wallet) -> Result<()> {
    let is_signer = |(wallet, _): &(Wallet, String)| wallet.is_of_key(organization);
    let is_source = consents.source.as_ref().is_none_or(is_signer);
    match is_source && !consents.destination.as_ref().is_some_and(is_signer) {
        true => Ok(()),
        false => {
            let message = "the organization that the agent leaves signs the manifest, and no other";
            Err(Error::new(ErrorKind::Policy, message)
                .with_hint("give the key of the source of the transfer"))
        }
    }
}

/// Refuses a consent that was withdrawn in this store after it was granted, for one of these layers that it covers, also
/// if another was given since.
fn withdrawal(store: &AgentStore<'_>, record: &Value, layers: &[Layer]) -> Result<()> {
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let granted = parse_datetime(text("grantedAt"))?;
    for layer in layers.iter().filter(|layer| covers(record, **layer)) {
        let id = consent_id(text("operation"), layer.name());
        let Some(stored) = store.find(&CONSENT_KIND, &id)? else { continue };
        if last_withdrawal(store, &stored)?.is_some_and(|since| granted <= since) {
            let message = "the consent was withdrawn after it was granted";
            return Err(Error::new(ErrorKind::Withdrawn, message).in_entry("consent"));
        }
    }
    Ok(())
}

/// How an export is redacted; `None` if it is not.
///
/// # Errors
/// `ERR_POLICY` if it must be and nothing says how, if nobody signs the manifest, or the agent itself, or if it is a
/// backup.
pub(super) fn redaction<'o>(
    document: &Document,
    agent: &Wallet,
    export_type: ExportType,
    options: &'o ExportOptions<'_>,
) -> Result<Option<&'o RedactOptions>> {
    let refused = |message: &str, hint| {
        Err(Error::new(ErrorKind::Policy, message.to_owned()).with_hint(hint))
    };
    let may_have = document.layers().any(Layer::may_be_of_organization);
    let signs_itself = options.crosses_organizations
        && options.organization.is_some_and(|by| by.wallet().is_of_key(agent));
    match &options.redact {
        Some(_) if signs_itself => refused(
            "the agent would sign the manifest of its organization",
            "give the key of the organization",
        ),
        None if options.crosses_organizations && may_have => refused(
            "an export that leaves the organization is redacted",
            "say how, or ask for layers without anything of the organization",
        ),
        None => Ok(None),
        Some(_) if export_type == ExportType::Backup => {
            refused("a backup is not redacted", "ask for a transfer or a full export")
        }
        Some(_) if options.crosses_organizations && options.organization.is_none() => refused(
            "the organization signs the manifest of what it redacts",
            "give the key of the organization",
        ),
        Some(redact) => Ok(Some(redact)),
    }
}

/// Refuses a redaction that took out an item under a hold: what is held is to be shown whole, or not at all.
///
/// # Errors
/// `ERR_INVALIDATION_DENIED`, with the item.
pub(super) fn held(manifest: &Manifest, held: &[ItemName]) -> Result<()> {
    let removed = manifest.entries.iter().filter(|it| it.action == RedactionAction::Removed);
    for entry in removed {
        let is_it = |(kind, id): &&ItemName| {
            let (of, name) = match entry.item_type {
                ItemType::Task => ("task", entry.id.as_str()),
                ItemType::EpisodicEvent => ("event", entry.id.as_str()),
                ItemType::Workflow => ("workflow", entry.id.as_str()),
                ItemType::Artifact => ("artifact", entry.id.as_str()),
                ItemType::MemoryLayer if entry.id.ends_with("shortTerm") => ("short-term", ""),
                ItemType::MemoryLayer if entry.id.ends_with("longTerm") => ("long-term", ""),
                ItemType::MemoryLayer => (LAYER.name, Layer::Memory.name()),
                ItemType::SystemPrompt => (LAYER.name, Layer::Cognitive.name()),
                ItemType::Relationship => ("organization", ""),
            };
            *kind == of && id.split('\0').next() == Some(name)
        };
        if held.iter().any(|one| is_it(&one)) {
            let message = "the redaction would take out an item that is held";
            return Err(Error::new(ErrorKind::InvalidationDenied, message)
                .with_hint("classify it otherwise, or lift the hold first")
                .in_entry(&format!("{} {}", entry.item_type, entry.id)));
        }
    }
    Ok(())
}

/// Refuses a redaction after which something is gone that is held, whatever the manifest calls it: an item, or a member
/// of a layer.
///
/// # Errors
/// `ERR_INVALIDATION_DENIED`, with the layer or the item.
pub(super) fn held_whole(before: &Value, document: &Document, held: &[ItemName]) -> Result<()> {
    let mut there = HashSet::new();
    let mut lost = Vec::new();
    for layer in Layer::ALL {
        let after = document.layer(*layer).map(|value| split(*layer, value));
        let was = before.get(layer.name()).map(|value| split(*layer, value).skeleton);
        let is = after.as_ref().map(|split| &split.skeleton);
        if was.is_some_and(|was| is.is_none_or(|is| has_lost(&was, is))) {
            lost.push(layer.name());
        }
        there.extend(after.into_iter().flat_map(|it| it.items).map(|it| (it.kind.name, it.id)));
    }
    let is_gone = |(kind, id): &&ItemName| match *kind == LAYER.name {
        true => lost.contains(&id.as_str()),
        false => !there.contains(&(*kind, id.clone())),
    };
    match held.iter().find(is_gone) {
        None => Ok(()),
        Some((kind, id)) => {
            let entry = if *kind == LAYER.name { id.clone() } else { format!("{kind} {id}") };
            let message = "the redaction would take out something that is held";
            Err(Error::new(ErrorKind::InvalidationDenied, message)
                .with_hint("classify it otherwise, or lift the hold first")
                .in_entry(&entry.replace('\0', "~")))
        }
    }
}

/// Returns `true` if a member of an object is there no more. Lists are those of items, and nulls stand for parts: they
/// are looked at by themselves.
fn has_lost(before: &Value, after: &Value) -> bool {
    let Some(members) = before.as_object() else { return false };
    members
        .iter()
        .filter(|(_, value)| !value.is_null())
        .any(|(name, value)| after.get(name).is_none_or(|after| has_lost(value, after)))
}

/// The error for what is too large to be encrypted at once.
pub(super) fn too_large(message: &str) -> Error {
    Error::new(ErrorKind::Format(format::ErrorKind::TooLarge), message.to_owned())
        .with_hint("ask for fewer grains, or leave the long-term memory in plain")
}
