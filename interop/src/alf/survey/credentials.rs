//! Credentials are ciphertext: what looks like a secret in the clear is refused (ALF 3.4.1).

use data_encoding::BASE64;

use crate::alf::schema::is_uuid;
use crate::json::Value;

/// How names of members end that hold secrets, without what is between words.
const SECRET_NAMES: [&str; 19] = [
    "plaintext",
    "cleartext",
    "payload",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "token",
    "apikey",
    "privatekey",
    "accesskey",
    "secretkey",
    "signingkey",
    "authkey",
    "sshkey",
    "mnemonic",
    "credential",
    "cookie",
];
/// Those that are counted, as in `max_tokens`: a number of many of them tells none.
const COUNTED: [&str; 3] = ["token", "cookie", "credential"];
/// What makes many of one.
const MANY: &str = "s";
/// What is named by an id of ALF, which tells nothing of it.
const NAMED_BY_ID: &str = "credential";
/// What such a name may have behind it.
const BEHIND: [&str; 4] = ["value", "text", "plain", MANY];
/// The member of the standard whose name ends like theirs.
const CIPHERTEXT: &str = "encrypted_payload";
/// Bytes of a ciphertext that tell it from text that is readable but for a few bytes.
const MIN_JUDGED_BYTES: usize = 24;
/// The algorithms that are known, with the bytes of their nonces and tags.
const ALGORITHMS: [(&str, usize, usize); 4] = [
    ("xchacha20-poly1305", 24, 16),
    ("chacha20-poly1305", 12, 16),
    ("aes-256-gcm", 12, 16),
    ("xsalsa20-poly1305", 24, 16),
];

/// Returns what is in the clear in a credential, or cannot be ciphertext; `None` if nothing is.
pub(in super::super) fn plain_part(credential: &Value) -> Option<String> {
    let text = |name: &str| credential.get(name).and_then(Value::as_str);
    if let Some(name) = secret_member(credential) {
        return Some(format!("its member {name} holds a secret in the clear"));
    }
    let payload = BASE64.decode(text("encrypted_payload")?.as_bytes()).ok()?;
    if is_readable(&payload) {
        return Some("encrypted_payload is text, not ciphertext".to_owned());
    }
    let encryption = credential.get("encryption")?;
    let said = |name: &str| encryption.get(name).and_then(Value::as_str);
    let algorithm = said("algorithm")?.to_ascii_lowercase();
    let known = ALGORITHMS.iter().find(|(name, ..)| *name == algorithm)?;
    let (_, nonce_bytes, tag_bytes) = known;
    let nonce = BASE64.decode(said("nonce")?.as_bytes()).ok()?;
    if nonce.len() != *nonce_bytes {
        return Some(format!("a nonce of {algorithm} has {nonce_bytes} bytes"));
    }
    let is_short = payload.len() < *tag_bytes;
    is_short.then(|| format!("a ciphertext of {algorithm} has at least {tag_bytes} bytes"))
}

/// The first member, at any depth, whose name speaks of a secret and that holds something.
fn secret_member(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let secret = secret_of(name).filter(|_| name != CIPHERTEXT);
            if secret.is_some_and(|secret| holds(value, secret)) {
                Some(name.clone())
            } else {
                secret_member(value)
            }
        }),
        Value::Array(items) => items.iter().find_map(secret_member),
        _ => None,
    }
}

/// Returns `true` for the name of a member that speaks of a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    secret_of(name).is_some()
}

/// The secret that the name of a member speaks of.
#[derive(Debug, Clone, Copy)]
struct Secret {
    name: &'static str,
    /// True if it speaks of many.
    is_many: bool,
}

fn secret_of(name: &str) -> Option<Secret> {
    let name: String = name.chars().filter(|char| char.is_alphanumeric()).collect();
    let name = name.to_lowercase();
    let ends = |name: &str| SECRET_NAMES.iter().find(|secret| name.ends_with(**secret)).copied();
    let one = ends(&name).map(|name| Secret { name, is_many: false });
    let behind = || {
        BEHIND.iter().find_map(|behind| {
            let secret = name.strip_suffix(behind).and_then(ends)?;
            Some(Secret { name: secret, is_many: *behind == MANY })
        })
    };
    one.or_else(behind)
}

/// Returns `true` for a value that may be such a secret, or may have one in it.
fn holds(value: &Value, secret: Secret) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => !(secret.is_many && COUNTED.contains(&secret.name)),
        Value::String(text) => !(text.is_empty() || (secret.name == NAMED_BY_ID && is_uuid(text))),
        Value::Array(items) => items.iter().any(|item| holds(item, secret)),
        Value::Object(members) => members.values().any(|value| holds(value, secret)),
    }
}

/// Text of some length does not come about by chance, nor do bytes of which nearly all are text.
fn is_readable(bytes: &[u8]) -> bool {
    let is_printable = |char: char| !char.is_control() || matches!(char, '\n' | '\r' | '\t');
    let is_text = std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_printable));
    let readable = bytes.iter().filter(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t'));
    let most = bytes.len().saturating_sub(bytes.len() / 8);
    !bytes.is_empty() && (is_text || (bytes.len() >= MIN_JUDGED_BYTES && readable.count() >= most))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_and_ids_are_no_secrets() {
        let uuid = "019470a0-0000-7000-8000-000000000001";
        for (credential, is_plain) in [
            (json!({"max_tokens": 4096, "limits": {"tokens": [1, 2.5]}, "cookies": 3}), false),
            (
                json!({"parent_credential": uuid, "x": {"credentials": [uuid.to_uppercase()]}}),
                false,
            ),
            (json!({"max_tokens": "4096"}), true),
            (json!({"tokens": ["abc"]}), true),
            // Some keys look like ids, and some passwords like numbers.
            (json!({"token": uuid}), true),
            (json!({"api_key": uuid}), true),
            (json!({"passcode": 4096}), true),
            (json!({"token": 4096}), true),
            (json!({"password": 12_345_678}), true),
            (json!({"parent_credential": "hunter2"}), true),
            (json!({"parent_credential": {"id": uuid, "value": "hunter2"}}), true),
        ] {
            assert_eq!(plain_part(&credential).is_some(), is_plain, "{credential}");
        }
    }

    #[test]
    fn names_of_secrets_are_known_however_they_are_written() {
        for name in [
            "password",
            "apiKey",
            "api_key",
            "access-token",
            "clientSecret",
            "secret_value",
            "Passwords",
            "private_key",
            "plaintext",
            "decrypted_payload",
            "x_token",
            "SSHKey",
            "secretText",
        ] {
            assert!(secret_of(name).is_some(), "{name}");
        }
        for name in
            ["x", "token_type", "has_password_hint", "key_id", "label", "tags", "nonce", "kdf"]
        {
            assert!(secret_of(name).is_none(), "{name}");
        }
    }
}
