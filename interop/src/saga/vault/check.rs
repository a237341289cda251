//! What proves that a vault is ciphertext: envelopes where fields belong, and nothing of a credential beside them.

use data_encoding::BASE64;
use grainstore::EpochMs;
use grainstore::format::parse_datetime;
use serde_json::Value;

use crate::saga::aes::{NONCE_BYTES, TAG_BYTES};
use crate::saga::finding::Findings;
use crate::saga::shape::item_path;

/// The members of an envelope, and no others.
const ENVELOPE: [&str; 6] = ["__encrypted", "v", "alg", "ct", "iv", "at"];

/// The members of a vault, of its parts, and no others: what is beside them could be a credential in plain.
const VAULT: [&str; 5] = ["encryption", "items", "shares", "version", "updatedAt"];
const ENCRYPTION: [&str; 5] = ["algorithm", "keyDerivation", "keyWrapAlgorithm", "salt", "info"];
const ITEM: [&str; 9] =
    ["itemId", "type", "name", "category", "tags", "createdAt", "updatedAt", "fields", "keyWraps"];
const WRAP: [&str; 6] =
    ["recipient", "algorithm", "wrappedKey", "iv", "authTag", "ephemeralPublicKey"];
const SHARE: [&str; 7] = [
    "recipientAddress",
    "recipientPublicKey",
    "permission",
    "itemIds",
    "grantedBy",
    "grantedAt",
    "expiresAt",
];

/// Tells of everything in a vault that is not encrypted and should be. It tells where, and none of it.
pub(crate) fn check_ciphertext(vault: &Value, path: &str, found: &mut Findings) {
    check_members(vault, &VAULT, path, found);
    if let Some(encryption) = vault.get("encryption") {
        check_members(encryption, &ENCRYPTION, &format!("{path}.encryption"), found);
    }
    check_list(vault, "shares", &SHARE, path, found);
    let items = vault.get("items").and_then(Value::as_array).into_iter().flatten();
    let mut ids = std::collections::HashSet::new();
    for (at, item) in items.enumerate() {
        let path = item_path(&format!("{path}.items"), at);
        if let Some(id) = item.get("itemId").and_then(Value::as_str)
            && !ids.insert(id)
        {
            found.error(&format!("{path}.itemId"), "two items of the vault have this id");
        }
        check_item(item, &path, found);
    }
    let salt = vault.get("encryption").and_then(|it| it.get("salt")).and_then(Value::as_str);
    if salt.is_some_and(|salt| bytes_of(salt) != Some(32)) {
        found.error(&format!("{path}.encryption.salt"), "a salt has 32 bytes");
    }
}

fn check_item(item: &Value, path: &str, found: &mut Findings) {
    if let Some(why) = flaw(item.get("fields")) {
        found.error(&format!("{path}.fields"), why);
    }
    check_members(item, &ITEM, path, found);
    check_list(item, "keyWraps", &WRAP, path, found);
    let wraps = item.get("keyWraps").and_then(Value::as_array);
    if wraps.is_none_or(Vec::is_empty) {
        found.error(&format!("{path}.keyWraps"), "nobody could open it: it has no key wrap");
    }
}

/// Tells of members that are not known and are no envelopes.
fn check_members(value: &Value, known: &[&str], path: &str, found: &mut Findings) {
    let members = value.as_object().into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| !known.contains(&name.as_str())) {
        if flaw(Some(value)).is_some() {
            let message = "it is not known here, and is plaintext: credentials are encrypted";
            found.error(&format!("{path}.{name}"), message);
        }
    }
}

/// Tells of them in each of a list.
fn check_list(value: &Value, name: &str, known: &[&str], path: &str, found: &mut Findings) {
    let list = value.get(name).and_then(Value::as_array).into_iter().flatten();
    for (at, one) in list.enumerate() {
        check_members(one, known, &item_path(&format!("{path}.{name}"), at), found);
    }
}

/// What keeps a value from being an envelope.
fn flaw(fields: Option<&Value>) -> Option<&'static str> {
    let Some(Value::Object(members)) = fields else {
        return Some("it is an envelope of ciphertext");
    };
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    if members.get("__encrypted") != Some(&Value::Bool(true)) {
        return Some("it is plaintext: an envelope has __encrypted");
    }
    if members.keys().any(|name| !ENVELOPE.contains(&name.as_str())) {
        return Some("it has something beside its ciphertext");
    }
    if members.get("v").and_then(Value::as_u64) != Some(1) || text("alg") != "aes-256-gcm" {
        return Some("its version or algorithm is not known, so that nobody can open it");
    }
    let fits = bytes_of(text("iv")) == Some(NONCE_BYTES)
        && bytes_of(text("at")) == Some(TAG_BYTES)
        && bytes_of(text("ct")).is_some_and(|length| length > 0);
    (!fits).then_some("its ct, iv of 12 bytes and at of 16 bytes are in base64")
}

fn bytes_of(text: &str) -> Option<usize> {
    BASE64.decode(text.as_bytes()).ok().map(|bytes| bytes.len())
}

/// Returns `true` for a share, or another value with `expiresAt`, whose time is over. A time that is none counts as
/// over.
pub(crate) fn has_expired(value: &Value, now: EpochMs) -> bool {
    match value.get("expiresAt") {
        None | Some(Value::Null) => false,
        Some(time) => {
            time.as_str().and_then(|time| parse_datetime(time).ok()).is_none_or(|end| end < now)
        }
    }
}
