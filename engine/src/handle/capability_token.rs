//! Capability tokens (CAL 18.1): their fields, and a signature that cannot be made without the store's key.

use data_encoding::HEXLOWER;
use grainstore_cal::CalOperation;
use grainstore_format::{Encoding, GrainType, Map, Value, encode_value};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::keyring::fill_random;

/// Default and longest life of a token: five minutes.
pub(crate) const MAX_LIFE_MS: u32 = 5 * 60 * 1000;
/// Most uses of one token.
const MAX_USES: u32 = 100;

/// A token to execute a prepared statement with. It is valid for that statement only, in the store that
/// issued it, until the store is closed. [`Session::execute`](crate::Session::execute) takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CapabilityToken {
    /// A random UUID.
    pub token_id: String,
    /// The namespace it works in, whatever the statement says; null for all of them.
    pub namespace: Option<String>,
    /// The user of the session that prepared it.
    pub user_id: Option<String>,
    /// The agent of the session that prepared it.
    pub agent_id: Option<String>,
    /// 0 reads, 1 evolves.
    pub tier: u8,
    /// The operations it allows.
    pub allowed_ops: Vec<CalOperation>,
    /// The grain types it may write, and those it may read if there are any.
    pub allowed_grain_types: Vec<String>,
    /// Start of its life, epoch milliseconds.
    pub issued_at: i64,
    /// End of its life, epoch milliseconds.
    pub expires_at: i64,
    /// Number of times it may be used.
    pub max_uses: u32,
    /// Number of writes it may make.
    pub write_quota_remaining: u32,
    /// HMAC-SHA256 over the other fields and the prepared statement, in hex.
    pub signature: String,
}

/// Limits a host sets on a token of [`Session::prepare`](crate::Session::prepare). The default is one use of
/// what the statement needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenLimits {
    /// Number of times it may be used; 1 by default.
    pub max_uses: u32,
    /// Its life in milliseconds; by default five minutes, which is the maximum.
    pub life_ms: u32,
    /// The operations it allows; by default all of the statement's tier.
    pub allowed_ops: Option<Vec<CalOperation>>,
    /// The grain types it may write, and those it may read if there are any. If empty, it reads all types and
    /// writes the type the statement writes.
    pub allowed_grain_types: Vec<GrainType>,
    /// Number of writes it may make; by default one for each use.
    pub write_quota: Option<u32>,
}

impl Default for TokenLimits {
    fn default() -> Self {
        Self {
            max_uses: 1,
            life_ms: MAX_LIFE_MS,
            allowed_ops: None,
            allowed_grain_types: Vec::new(),
            write_quota: None,
        }
    }
}

impl TokenLimits {
    /// Checks the limits against the maximums of a token.
    ///
    /// # Errors
    /// `ERR_SCHEMA`.
    pub(crate) fn check(&self) -> Result<()> {
        let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
        if !(1..=MAX_USES).contains(&self.max_uses) {
            let message = format!("a token is used 1 to {MAX_USES} times");
            return Err(Error::new(schema, message).with_hint("prepare again for more"));
        }
        if !(1..=MAX_LIFE_MS).contains(&self.life_ms) {
            let message = format!("a token holds for 1 to {MAX_LIFE_MS} milliseconds");
            return Err(Error::new(schema, message).with_hint("prepare again when it is over"));
        }
        Ok(())
    }
}

impl CapabilityToken {
    /// Returns `true` if it allows all these operations.
    pub(crate) fn allows(&self, operations: &[CalOperation]) -> bool {
        operations.iter().all(|operation| self.allowed_ops.contains(operation))
    }

    /// Returns `true` if it names this type.
    pub(crate) fn names_type(&self, grain_type: GrainType) -> bool {
        self.allowed_grain_types.iter().any(|name| name == grain_type.name())
    }

    /// The grain types it may read; `None` for all of them.
    pub(crate) fn readable_types(&self) -> Option<Vec<GrainType>> {
        let named = GrainType::STANDARD.into_iter().filter(|of| self.names_type(*of));
        (!self.allowed_grain_types.is_empty()).then(|| named.collect())
    }

    /// The bytes that are signed beside the statement, in a canonical encoding, so that a token has one
    /// signed form.
    fn signed_bytes(&self) -> Vec<u8> {
        let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::from);
        let ops = self.allowed_ops.iter().map(|of| Value::from(format!("{of:?}")));
        let fields = Map::from([
            ("token_id".to_owned(), Value::from(self.token_id.as_str())),
            ("namespace".to_owned(), text(&self.namespace)),
            ("user_id".to_owned(), text(&self.user_id)),
            ("agent_id".to_owned(), text(&self.agent_id)),
            ("tier".to_owned(), Value::from(i64::from(self.tier))),
            ("allowed_ops".to_owned(), Value::Array(ops.collect())),
            (
                "allowed_grain_types".to_owned(),
                Value::Array(
                    self.allowed_grain_types.iter().map(|of| Value::from(of.as_str())).collect(),
                ),
            ),
            ("issued_at".to_owned(), Value::from(self.issued_at)),
            ("expires_at".to_owned(), Value::from(self.expires_at)),
            ("max_uses".to_owned(), Value::from(i64::from(self.max_uses))),
            (
                "write_quota_remaining".to_owned(),
                Value::from(i64::from(self.write_quota_remaining)),
            ),
        ]);
        encode_value(&Value::Map(fields), Encoding::MessagePack)
    }

    /// Signs the token for the statement with this hash.
    ///
    /// # Errors
    /// `ERR_KEY`, which HMAC never gives since it takes keys of any length.
    pub(crate) fn sign(mut self, key: &[u8; 32], statement: &[u8; 32]) -> Result<Self> {
        let signature = mac(key, &self.signed_bytes(), statement)?.finalize().into_bytes();
        self.signature = HEXLOWER.encode(&signature);
        Ok(self)
    }

    /// Returns `true` if this key signed the token for the statement with this hash. The comparison takes
    /// constant time.
    pub(crate) fn verify(&self, key: &[u8; 32], statement: &[u8; 32]) -> bool {
        let given = HEXLOWER.decode(self.signature.as_bytes()).unwrap_or_default();
        mac(key, &self.signed_bytes(), statement).is_ok_and(|mac| mac.verify_slice(&given).is_ok())
    }
}

fn mac(key: &[u8; 32], token: &[u8], statement: &[u8; 32]) -> Result<Hmac<Sha256>> {
    let bad = ErrorKind::Format(grainstore_format::ErrorKind::Key);
    let mut mac = Hmac::<Sha256>::new_from_slice(key)
        .map_err(|_| Error::new(bad, "the key of tokens is none"))?;
    mac.update(b"grainstore-cal-token-v1\0");
    mac.update(statement);
    mac.update(token);
    Ok(mac)
}

/// A random UUID, version 4.
///
/// # Errors
/// `ERR_IO` without random bytes.
pub(crate) fn random_uuid() -> Result<String> {
    let mut bytes = [0; 16];
    fill_random(&mut bytes)?;
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = 0x40 | (*version & 0x0f);
    *variant = 0x80 | (*variant & 0x3f);
    let hex = HEXLOWER.encode(&bytes);
    let part = |from, to| hex.get(from..to).unwrap_or_default();
    Ok([part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> CapabilityToken {
        CapabilityToken {
            token_id: random_uuid().unwrap(),
            namespace: Some("work".to_owned()),
            user_id: Some("alice".to_owned()),
            agent_id: None,
            tier: 1,
            allowed_ops: vec![CalOperation::Add],
            allowed_grain_types: vec!["belief".to_owned()],
            issued_at: 1000,
            expires_at: 2000,
            max_uses: 1,
            write_quota_remaining: 1,
            signature: String::new(),
        }
    }

    #[test]
    fn every_field_is_under_the_signature_and_so_is_the_statement() {
        let (key, statement) = ([7; 32], [9; 32]);
        let good = token().sign(&key, &statement).unwrap();
        assert!(good.verify(&key, &statement));
        assert!(!good.verify(&[8; 32], &statement), "another store");
        assert!(!good.verify(&key, &[8; 32]), "another statement");
        let json = serde_json::to_value(&good).unwrap();
        let changes = [
            ("token_id", serde_json::json!("x")),
            ("namespace", serde_json::json!("other")),
            ("namespace", serde_json::json!(null)),
            ("user_id", serde_json::json!("bob")),
            ("agent_id", serde_json::json!("")),
            ("tier", serde_json::json!(0)),
            ("allowed_ops", serde_json::json!(["Add", "Supersede"])),
            ("allowed_grain_types", serde_json::json!([])),
            ("issued_at", serde_json::json!(1001)),
            ("expires_at", serde_json::json!(i64::MAX)),
            ("max_uses", serde_json::json!(2)),
            ("write_quota_remaining", serde_json::json!(100)),
            ("signature", serde_json::json!("")),
            ("signature", serde_json::json!("0".repeat(64))),
            ("signature", serde_json::json!(good.signature.to_uppercase() + "0")),
        ];
        for (field, value) in changes {
            let mut json = json.clone();
            json[field] = value.clone();
            let altered: CapabilityToken = serde_json::from_value(json).unwrap();
            assert!(!altered.verify(&key, &statement), "{field}: {value}");
        }
    }

    #[test]
    fn ids_are_uuids_of_version_four_and_differ() {
        let (one, other) = (random_uuid().unwrap(), random_uuid().unwrap());
        assert_ne!(one, other);
        let parts: Vec<_> = one.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(one.chars().nth(14), Some('4'));
        assert!(one.chars().nth(19).is_some_and(|digit| "89ab".contains(digit)));
    }
}
