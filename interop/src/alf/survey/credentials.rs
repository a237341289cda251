//! Credentials are ciphertext: what looks like a secret in the clear is refused (ALF 3.4.1).

use data_encoding::BASE64;

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
/// What such a name may have behind it.
const BEHIND: [&str; 4] = ["value", "text", "plain", "s"];
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
            let speaks = name != CIPHERTEXT && is_secret_name(name) && holds(value);
            if speaks { Some(name.clone()) } else { secret_member(value) }
        }),
        Value::Array(items) => items.iter().find_map(secret_member),
        _ => None,
    }
}

/// Returns `true` for the name of a member that speaks of a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name: String = name.chars().filter(|char| char.is_alphanumeric()).collect();
    let name = name.to_lowercase();
    let ends = |name: &str| SECRET_NAMES.iter().any(|secret| name.ends_with(secret));
    ends(&name) || BEHIND.iter().any(|behind| name.strip_suffix(behind).is_some_and(ends))
}

/// Returns `true` for a value that may be a secret, or may have one in it.
fn holds(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => items.iter().any(holds),
        Value::Object(members) => members.values().any(holds),
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
    use super::*;

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
            assert!(is_secret_name(name), "{name}");
        }
        for name in
            ["x", "token_type", "has_password_hint", "key_id", "label", "tags", "nonce", "kdf"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
