//! The plaintext of a vault item: named texts and other JSON, wiped when dropped.

use std::fmt;

use serde_json::{Map, Value};
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::{Error, Result};
use crate::json;

/// The fields of a vault item, opened. Wiped when dropped, and never printed.
///
/// ```
/// use grainstore_interop::saga::Secrets;
///
/// let secrets = Secrets::of([("username", "aria"), ("password", "open sesame")])?;
/// assert_eq!(secrets.get("username").as_deref().map(String::as_str), Some("aria"));
/// assert_eq!(format!("{secrets:?}"), "Secrets(..)");
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[derive(Clone)]
pub struct Secrets(Zeroizing<Vec<u8>>);

impl Secrets {
    /// Takes named texts.
    ///
    /// # Errors
    /// None that texts cause.
    pub fn of<N: Into<String>, T: Into<String>>(
        fields: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Self> {
        let members: Map<_, _> = fields
            .into_iter()
            .map(|(name, text)| (name.into(), Value::String(text.into())))
            .collect();
        let wiped = Wiped(Value::Object(members));
        Ok(Self(Zeroizing::new(json::line(&wiped.0).into_bytes())))
    }

    /// Takes a JSON object, as text.
    ///
    /// # Errors
    /// `ERR_CORRUPT` if it is no JSON, `ERR_SCHEMA` if it is no object. Neither tells any of it.
    pub fn from_json(text: impl AsRef<[u8]>) -> Result<Self> {
        Self::from_bytes(Zeroizing::new(text.as_ref().to_vec()))
    }

    pub(super) fn from_bytes(bytes: Zeroizing<Vec<u8>>) -> Result<Self> {
        let value = json::parse(&bytes).map_err(|_| Error::corrupt("the fields are no JSON"))?;
        match Wiped(value).0 {
            Value::Object(_) => Ok(Self(bytes)),
            _ => Err(Error::schema("the fields of a vault item are an object")),
        }
    }

    /// A field that is text.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Zeroizing<String>> {
        let value = Wiped(json::parse(&self.0).ok()?);
        value.0.get(name)?.as_str().map(|text| Zeroizing::new(text.to_owned()))
    }

    /// All of it, as the text of a JSON object.
    #[must_use]
    pub fn as_json(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns `true` if a field is there, whatever it is.
    pub(super) fn has(&self, name: &str) -> bool {
        json::parse(&self.0).is_ok_and(|value| Wiped(value).0.get(name).is_some())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

/// A value whose texts are overwritten when it is dropped.
struct Wiped(Value);

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        _ => {}
    }
}
