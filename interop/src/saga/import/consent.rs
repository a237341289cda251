//! The consent of a document, as the grain that the others rest on: once it ends or is withdrawn, they are hidden.

use std::collections::{BTreeSet, HashMap};

use grainstore::format::{Map, Value, parse_datetime};
use grainstore::{ContentAddress, EpochMs, ErrorKind};
use serde_json::Value as Json;

use super::ImportOptions;
use crate::error::{Error, Result};
use crate::json;
use crate::kept::clamped;
use crate::saga::consent::has_expired;
use crate::saga::document::{Document, texts};
use crate::saga::kinds::Layer;
use crate::saga::map::{Kind, PROFILE, consent_kind, item_of};
use crate::saga::store::{AgentStore, Plan, StoredItem, key_of};
use crate::saga::wallet::Wallet;

/// The kind of consents; the id of one is its operation and the layer that it is for.
pub(in crate::saga) const CONSENT_KIND: Kind = consent_kind();

/// The grantee of a consent of which nobody says whom it is given to.
const NOBODY: &str = "did:web:unspecified.invalid";

/// What the layers of a document rest on, by their names: the first version of a consent for each, so that a newer
/// consent brings back what it covers and nothing else.
pub(super) type Bases = HashMap<String, String>;

/// The id of the consent to an operation, for a layer.
pub(in crate::saga) fn consent_id(operation: &str, layer: &str) -> String {
    format!("{operation}\0{layer}")
}

/// What items of each layer may rest on: the first versions of all consents that are stored.
///
/// # Errors
/// Those of [`AgentStore::heads`].
pub(super) fn bases_of(store: &AgentStore<'_>) -> Result<HashMap<String, Vec<String>>> {
    let mut bases: HashMap<String, Vec<String>> = HashMap::new();
    for row in store.heads()?.into_iter().filter(|row| row.kind == CONSENT_KIND.name) {
        let layer = row.id.split_once('\0').map_or("", |(_, layer)| layer);
        bases.entry(layer.to_owned()).or_default().push(row.address.to_string());
    }
    Ok(bases)
}

/// Stores the consents of a document by themselves if a stored one has ended: what rests on that is hidden, and could
/// not be compared with the document.
///
/// # Errors
/// Those of [`plan`], and of a write.
pub(super) fn renew(
    store: &AgentStore<'_>,
    document: &Document,
    options: &ImportOptions<'_>,
) -> Result<()> {
    let Some(record) = document.get("consent") else { return Ok(()) };
    let operation = record.get("operation").and_then(Json::as_str).unwrap_or_default();
    let mut has_ended = false;
    for layer in covered(record, document) {
        let Some(stored) = store.find(&CONSENT_KIND, &consent_id(operation, &layer))? else {
            continue;
        };
        let end = stored.fields.get("valid_to").and_then(Value::as_i64);
        let is_over = end.is_some_and(|end| store.session().now() > EpochMs::new(end));
        has_ended = has_ended || is_over || is_withdrawal(&stored);
    }
    if !has_ended {
        return Ok(());
    }
    let mut alone = Plan::new(store.clone());
    plan(&mut alone, store, document, options)?;
    alone.write(&options.monitor).map(drop)
}

/// The names of layers that a record covers: those that are known, and those of the document that are not.
fn covered(record: &Json, document: &Document) -> BTreeSet<String> {
    let is_layer = |name: &&str| name.parse::<Layer>().is_ok() || document.has_layer(name);
    texts(record.get("scope")).filter(is_layer).map(str::to_owned).collect()
}

/// Plans the consents of a document, one for each layer that they cover, and returns what its grains name as their
/// basis.
///
/// # Errors
/// `ERR_WITHDRAWN` if it was withdrawn after it was granted, or has expired; those of [`Plan::add_fields`].
pub(super) fn plan(
    plan: &mut Plan<'_>,
    store: &AgentStore<'_>,
    document: &Document,
    options: &ImportOptions<'_>,
) -> Result<Bases> {
    let mut bases = Bases::new();
    let Some(record) = document.get("consent") else { return Ok(bases) };
    let text = |name: &str| record.get(name).and_then(Json::as_str).unwrap_or_default();
    let granted_at = parse_datetime(text("grantedAt"))?;
    let now = store.session().now();
    if has_expired(record, now) {
        return Err(withdrawn("the consent of the document has expired"));
    }
    if granted_at > now {
        return Err(withdrawn("the consent of the document is from the future"));
    }
    for layer in covered(record, document) {
        let grant = Grant { record, layer: &layer, granted_at };
        let basis = grant.plan(plan, store, options)?;
        bases.insert(layer, basis.to_string());
    }
    Ok(bases)
}

/// The consent of a record, for one layer.
struct Grant<'r> {
    record: &'r Json,
    layer: &'r str,
    granted_at: EpochMs,
}

impl Grant<'_> {
    /// Plans it, and returns the address of its first version.
    fn plan(
        &self,
        plan: &mut Plan<'_>,
        store: &AgentStore<'_>,
        options: &ImportOptions<'_>,
    ) -> Result<ContentAddress> {
        let operation = self.record.get("operation").and_then(Json::as_str).unwrap_or_default();
        let id = consent_id(operation, self.layer);
        let key = key_of(&CONSENT_KIND, &id);
        let at = |error: Error| error.in_entry("consent");
        let fields = || self.fields(store.wallet(), &id, options.destination.as_deref());
        let (Some(stored), Some(first)) =
            (store.find(&CONSENT_KIND, &id)?, store.first(&CONSENT_KIND, &id)?)
        else {
            plan.add_fields(&key, fields(), None, false).map_err(at)?;
            return plan.planned(&key).ok_or_else(|| Error::corrupt("a consent is not planned"));
        };
        if last_withdrawal(store, &stored)?.is_some_and(|since| self.granted_at <= since) {
            return Err(withdrawn("the consent of the document was withdrawn since"));
        }
        let since = stored.fields.get("created_at").and_then(Value::as_i64).unwrap_or_default();
        let is_withdrawal = is_withdrawal(&stored);
        let is_same = !is_withdrawal
            && item_of(&CONSENT_KIND, &id, &stored.fields)?
                .is_some_and(|kept| json::equal(&kept, self.record));
        // An older record of a consent changes nothing of a newer one.
        let is_older = !is_withdrawal && self.granted_at < EpochMs::new(since);
        match is_same || is_older {
            true => plan.keep(),
            false => plan.add_version(&key, fields(), stored.address).map_err(at)?,
        }
        Ok(first)
    }

    /// The fields of its grain.
    fn fields(&self, wallet: &Wallet, id: &str, destination: Option<&str>) -> Map {
        let Self { record, layer, granted_at } = self;
        let text = |name: &str| record.get(name).and_then(Json::as_str).unwrap_or_default();
        let mut context = Map::from([
            (PROFILE.key("json"), Value::from(json::ascii(record))),
            (PROFILE.key("kind"), Value::from(CONSENT_KIND.name)),
            (PROFILE.key("layer"), Value::from(CONSENT_KIND.name)),
            (PROFILE.key("agent_id"), Value::from(wallet.to_string())),
            (PROFILE.key("id"), Value::from(id.replace('\0', "~"))),
        ]);
        if destination.is_none() {
            context.insert(PROFILE.key("defaults"), Value::from("grantee_did"));
        }
        let mut fields = Map::from([
            ("type".to_owned(), Value::from("consent")),
            ("subject_did".to_owned(), Value::from(wallet.did())),
            ("grantee_did".to_owned(), Value::from(destination.unwrap_or(NOBODY))),
            ("scope".to_owned(), Value::from(vec![(*layer).to_owned()])),
            ("is_withdrawal".to_owned(), Value::from(false)),
            ("basis".to_owned(), Value::from("explicit_consent")),
            ("created_at".to_owned(), Value::from(clamped(*granted_at).get())),
            ("context".to_owned(), Value::Map(context)),
            ("structural_tags".to_owned(), Value::from(vec![PROFILE.tag()])),
            ("namespace".to_owned(), Value::from(format!("{}:consent", wallet.namespace()))),
        ]);
        if let Ok(end) = parse_datetime(text("expiresAt")) {
            fields.insert("valid_to".to_owned(), Value::from(end.get()));
        }
        fields
    }
}

/// Returns `true` for the withdrawal of a consent.
pub(in crate::saga) fn is_withdrawal(stored: &StoredItem) -> bool {
    stored.fields.get("is_withdrawal").and_then(Value::as_bool) == Some(true)
}

/// When a stored consent was last withdrawn, in any of its versions: what was granted before that counts no more, also
/// after another was given.
///
/// # Errors
/// Those of [`Session::history`](grainstore::Session::history).
pub(in crate::saga) fn last_withdrawal(
    store: &AgentStore<'_>,
    stored: &StoredItem,
) -> Result<Option<EpochMs>> {
    let mut last = None;
    for version in store.session().history(&stored.address)? {
        let grain = version.grain()?;
        let withdraws = grain.get("is_withdrawal").and_then(Value::as_bool) == Some(true);
        if let Some(at) = grain.int("created_at").filter(|_| withdraws) {
            last = last.max(Some(EpochMs::new(at)));
        }
    }
    Ok(last)
}

fn withdrawn(message: &str) -> Error {
    Error::new(ErrorKind::Withdrawn, message)
        .with_hint("ask the agent for a new consent, and for a document with it")
        .in_entry("consent")
}
