//! Credentials are ciphertext: what looks like a secret in the clear is refused (ALF 3.4.1).

use data_encoding::BASE64;

use crate::json::Value;

/// Members that hold secrets in other systems.
const PLAIN_MEMBERS: [&str; 9] = [
    "plaintext",
    "decrypted_payload",
    "payload",
    "secret",
    "password",
    "passphrase",
    "api_key",
    "token",
    "private_key",
];
/// The algorithms that are known, with the bytes of their nonces and tags.
const ALGORITHMS: [(&str, usize, usize); 4] = [
    ("xchacha20-poly1305", 24, 16),
    ("chacha20-poly1305", 12, 16),
    ("aes-256-gcm", 12, 16),
    ("xsalsa20-poly1305", 24, 16),
];

/// Returns what is in the clear in a credential, or cannot be ciphertext; `None` if nothing is.
pub(super) fn plain_part(credential: &Value) -> Option<String> {
    let text = |name: &str| credential.get(name).and_then(Value::as_str);
    if let Some(name) = PLAIN_MEMBERS.iter().find(|name| text(name).is_some()) {
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

/// Text of some length does not come about by chance.
fn is_readable(bytes: &[u8]) -> bool {
    let is_printable = |char: char| !char.is_control() || matches!(char, '\n' | '\r' | '\t');
    !bytes.is_empty() && std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_printable))
}
