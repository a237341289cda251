//! Operations on bytes, without a store: `encode`, `decode`.

use grainstore::Grain;
use grainstore::format::{
    Blob, DeviceProfile, EncodeOptions, Encoding, Sensitivity, Value, parse_json,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::Result;
use crate::host::Host;
use crate::json::Base64;
use crate::shape::{Decoded, Encoded};

/// A class of devices, by its name on either face (OMS 18).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Servers and desktops.
    #[default]
    Extended,
    /// Phones and single-board computers.
    Standard,
    /// Microcontrollers.
    Lightweight,
}

impl Profile {
    /// Returns its limits.
    ///
    /// ```
    /// use grainstore::format::DeviceProfile;
    /// use grainstore_rpc::Profile;
    ///
    /// assert_eq!(Profile::Lightweight.limits(), DeviceProfile::LIGHTWEIGHT);
    /// ```
    #[must_use]
    pub fn limits(self) -> DeviceProfile {
        match self {
            Self::Extended => DeviceProfile::EXTENDED,
            Self::Standard => DeviceProfile::STANDARD,
            Self::Lightweight => DeviceProfile::LIGHTWEIGHT,
        }
    }
}

/// The sensitivity a writer gives a grain, by its name on either face (OMS 13.1), for
/// [`as_sensitive`](crate::as_sensitive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sensitive {
    /// Anybody may see it.
    Public,
    /// It stays within the organisation.
    Internal,
    /// It tells of a person.
    Pii,
    /// It tells of a person's health.
    Phi,
}

impl From<Sensitive> for Sensitivity {
    fn from(level: Sensitive) -> Self {
        match level {
            Sensitive::Public => Self::Public,
            Sensitive::Internal => Self::Internal,
            Sensitive::Pii => Self::Pii,
            Sensitive::Phi => Self::Phi,
        }
    }
}

/// Encodes a grain in JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Encode<'p> {
    #[serde(borrow)]
    grain: &'p RawValue,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    profile: Profile,
    sensitivity: Option<Sensitive>,
}

pub(crate) fn encode(given: Encode<'_>, _: &mut Host) -> Result<Encoded> {
    let options = EncodeOptions {
        encoding: given.encoding,
        profile: given.profile.limits(),
        sensitivity: given.sensitivity.map(Into::into),
        ..EncodeOptions::default()
    };
    Ok(Encoded::from(&encode_grain_with(given.grain.get(), &options)?))
}

/// Encodes a grain that is JSON text, with options.
///
/// ```
/// use grainstore::format::{EncodeOptions, Header, Sensitivity};
///
/// let options = EncodeOptions { sensitivity: Some(Sensitivity::Pii), ..EncodeOptions::default() };
/// let json = r#"{"type": "event", "content": "hello", "created_at": "2026-03-02T09:00:00Z"}"#;
/// let blob = grainstore_rpc::encode_grain_with(json, &options)?;
/// assert_eq!(Header::read(blob.bytes())?.0.flags.sensitivity(), Sensitivity::Pii);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
///
/// # Errors
/// Those of [`Grain::from_json`] and [`Grain::encode_with`].
pub fn encode_grain_with(json: &str, options: &EncodeOptions<'_>) -> Result<Blob> {
    let Value::Map(fields) = parse_json(json, &options.profile)? else {
        // Tells what it is instead.
        return Ok(Grain::from_json(json)?.encode_with(options)?);
    };
    Ok(Grain::from_fields_for(fields, &options.profile)?.encode_with(options)?)
}

/// Encodes a grain that is JSON text.
///
/// ```
/// use grainstore::format::Encoding;
///
/// let blob = grainstore_rpc::encode_grain(
///     r#"{"type": "belief", "subject": "alice", "relation": "prefers", "object": "tea",
///         "confidence": 0.9, "created_at": "2026-03-02T09:00:00Z"}"#,
///     Encoding::default(),
/// )?;
/// assert_eq!(blob.address(), grainstore::ContentAddress::of(blob.bytes()));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn encode_grain(json: &str, encoding: Encoding) -> Result<Blob> {
    Ok(Grain::from_json(json)?.encode(encoding)?)
}

/// Decodes a bare blob.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decode {
    blob: Base64,
    #[serde(default)]
    profile: Profile,
}

pub(crate) fn decode(given: Decode, _: &mut Host) -> Result<Decoded> {
    Decoded::within(&given.blob.0, given.profile.limits())
}
