//! The consent of a document, as the grain that the others rest on: once it ends or is withdrawn, they are hidden.

use grainstore::format::{Map, Value, parse_datetime};
use grainstore::{EpochMs, ErrorKind};
use serde_json::Value as Json;

use super::{ImportOptions, consent_key};
use crate::error::{Error, Result};
use crate::json;
use crate::kept::clamped;
use crate::saga::consent::has_expired;
use crate::saga::document::{Document, texts};
use crate::saga::map::{Kind, PROFILE, consent_kind, item_of};
use crate::saga::store::{AgentStore, Plan, StoredItem};
use crate::saga::wallet::Wallet;

/// The kind of consents; the id of one is its operation.
pub(in crate::saga) const CONSENT_KIND: Kind = consent_kind();

/// The grantee of a consent of which nobody says whom it is given to.
const NOBODY: &str = "did:web:unspecified.invalid";

/// Stores the consent of a document by itself if the stored one has ended: what rests on that is hidden, and could not
/// be compared with the document.
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
    let Some(stored) = store.find(&CONSENT_KIND, operation)? else { return Ok(()) };
    let end = stored.fields.get("valid_to").and_then(Value::as_i64);
    let has_ended = end.is_some_and(|end| store.session().now() > EpochMs::new(end));
    if !has_ended && !is_withdrawal(&stored) {
        return Ok(());
    }
    let mut alone = Plan::new(store.clone());
    plan(&mut alone, store, document, options)?;
    alone.write(&options.monitor).map(drop)
}

/// Plans the consent of a document, and returns the address that its grains name as their basis; `None` if it has none.
///
/// # Errors
/// `ERR_WITHDRAWN` if it was withdrawn after it was granted, or has expired; those of [`Plan::add_fields`].
pub(super) fn plan(
    plan: &mut Plan<'_>,
    store: &AgentStore<'_>,
    document: &Document,
    options: &ImportOptions<'_>,
) -> Result<Option<String>> {
    let Some(record) = document.get("consent") else { return Ok(None) };
    let text = |name: &str| record.get(name).and_then(Json::as_str).unwrap_or_default();
    let granted_at = parse_datetime(text("grantedAt"))?;
    let now = store.session().now();
    if has_expired(record, now) {
        return Err(withdrawn("the consent of the document has expired"));
    }
    if granted_at > now {
        return Err(withdrawn("the consent of the document is from the future"));
    }
    let operation = text("operation");
    let stored = store.find(&CONSENT_KIND, operation)?;
    let mut old = None;
    if let Some(stored) = stored {
        let since = stored.fields.get("created_at").and_then(Value::as_i64).unwrap_or_default();
        let is_withdrawal = is_withdrawal(&stored);
        if is_withdrawal && granted_at <= EpochMs::new(since) {
            return Err(withdrawn("the consent of the document was withdrawn since"));
        }
        let is_same = !is_withdrawal
            && item_of(&CONSENT_KIND, operation, &stored.fields)?
                .is_some_and(|kept| json::equal(&kept, record));
        // An older record of a consent changes nothing of a newer one.
        if is_same || (!is_withdrawal && granted_at < EpochMs::new(since)) {
            return Ok(Some(stored.address.to_string()));
        }
        old = Some(stored.address);
    }
    let key = consent_key(operation);
    let fields = fields_of(record, store.wallet(), granted_at, options.destination.as_deref());
    plan.add_fields(&key, fields, old, false).map_err(|error| error.in_entry("consent"))?;
    Ok(plan.planned(&key).map(|address| address.to_string()))
}

/// Returns `true` for the withdrawal of a consent.
pub(in crate::saga) fn is_withdrawal(stored: &StoredItem) -> bool {
    stored.fields.get("is_withdrawal").and_then(Value::as_bool) == Some(true)
}

/// The fields of the grain of a record.
fn fields_of(record: &Json, wallet: &Wallet, at: EpochMs, destination: Option<&str>) -> Map {
    let text = |name: &str| record.get(name).and_then(Json::as_str).unwrap_or_default();
    let mut context = Map::from([
        (PROFILE.key("json"), Value::from(json::ascii(record))),
        (PROFILE.key("kind"), Value::from(CONSENT_KIND.name)),
        (PROFILE.key("layer"), Value::from(CONSENT_KIND.name)),
        (PROFILE.key("agent_id"), Value::from(wallet.to_string())),
        (PROFILE.key("id"), Value::from(text("operation"))),
    ]);
    if destination.is_none() {
        context.insert(PROFILE.key("defaults"), Value::from("grantee_did"));
    }
    let scope: Vec<_> =
        texts(record.get("scope")).filter(|it| !it.is_empty()).map(str::to_owned).collect();
    let scope = if scope.is_empty() { vec!["nothing".to_owned()] } else { scope };
    let mut fields = Map::from([
        ("type".to_owned(), Value::from("consent")),
        ("subject_did".to_owned(), Value::from(wallet.did())),
        ("grantee_did".to_owned(), Value::from(destination.unwrap_or(NOBODY))),
        ("scope".to_owned(), Value::from(scope)),
        ("is_withdrawal".to_owned(), Value::from(false)),
        ("basis".to_owned(), Value::from("explicit_consent")),
        ("created_at".to_owned(), Value::from(clamped(at).get())),
        ("context".to_owned(), Value::Map(context)),
        ("structural_tags".to_owned(), Value::from(vec![PROFILE.tag()])),
        ("namespace".to_owned(), Value::from(format!("{}:consent", wallet.namespace()))),
    ]);
    if let Ok(end) = parse_datetime(text("expiresAt")) {
        fields.insert("valid_to".to_owned(), Value::from(end.get()));
    }
    fields
}

fn withdrawn(message: &str) -> Error {
    Error::new(ErrorKind::Withdrawn, message)
        .with_hint("ask the agent for a new consent, and for a document with it")
        .in_entry("consent")
}
