//! Owned values of a grain: the data model MessagePack, CBOR and JSON have in common.
//!
//! A [`Value`] is data only. Canonical form, field names and limits are left to the codecs.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// A map of a [`Grain`](crate::Grain): text keys in UTF-8 byte order.
pub type Map = BTreeMap<String, Value>;

/// An integer in the range both encodings share: -2^63 ..= 2^64-1.
///
/// ```
/// use grainstore_format::Int;
///
/// assert_eq!(Int::from(u64::MAX).as_i64(), None);
/// assert_eq!(Int::from(u64::MAX).as_u64(), Some(u64::MAX));
/// assert_eq!(Int::new(i128::from(u64::MAX) + 1), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Int(i128);

impl Int {
    /// Returns the integer, or `None` outside -2^63 ..= 2^64-1.
    #[must_use]
    pub fn new(n: i128) -> Option<Self> {
        (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&n).then_some(Self(n))
    }

    /// Returns the integer as `i64`, if it fits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        i64::try_from(self.0).ok()
    }

    /// Returns the integer as `u64`, if it fits.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        u64::try_from(self.0).ok()
    }

    /// Returns the integer as `i128`, which holds every value of the range.
    #[must_use]
    pub fn get(self) -> i128 {
        self.0
    }

    /// Returns the nearest float64; exact up to 2^53.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "nearest float is what is asked for")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64
    }
}

impl From<i64> for Int {
    fn from(n: i64) -> Self {
        Self(i128::from(n))
    }
}

impl From<u64> for Int {
    fn from(n: u64) -> Self {
        Self(i128::from(n))
    }
}

impl fmt::Debug for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One value of a grain.
///
/// Equality is equality of the canonical bytes: `1` differs from `1.0`, and `0.0` from `-0.0`.
///
/// ```
/// use grainstore_format::Value;
///
/// let value = Value::from(vec!["tea", "coffee"]);
/// assert_eq!(value.type_name(), "array");
/// assert_eq!(value.as_array().map(<[Value]>::len), Some(2));
/// assert_ne!(Value::from(1), Value::from(1.0));
/// ```
#[derive(Debug, Clone)]
pub enum Value {
    /// Null, inside arrays only. A null map entry is dropped (OMS 4.5).
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(Int),
    /// A finite float64.
    Float(f64),
    /// NFC-normalised text.
    Str(String),
    /// Bytes, in `trusted_timestamp.tsp_response` and `supersession_auth` only. Base64 in JSON.
    Bytes(Vec<u8>),
    /// An ordered list.
    Array(Vec<Value>),
    /// A map with text keys.
    Map(Map),
}

impl Value {
    /// Returns the text, if it is text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the integer, if it is one that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(n) => n.as_i64(),
            _ => None,
        }
    }

    /// Returns the number, integer or float.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(n.to_f64()),
            Self::Float(x) => Some(*x),
            _ => None,
        }
    }

    /// Returns the boolean, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Returns the items, if it is a list.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the entries, if it is a map.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the type, for messages: `null`, `bool`, `int`, `float`, `string`, `bytes`, `array` or
    /// `map`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

macro_rules! from {
    ($($source:ty => |$x:ident| $value:expr),+ $(,)?) => {$(
        impl From<$source> for Value {
            fn from($x: $source) -> Self {
                $value
            }
        }
    )+};
}

from! {
    bool => |b| Self::Bool(b),
    i32 => |n| Self::Int(Int::from(i64::from(n))),
    u32 => |n| Self::Int(Int::from(i64::from(n))),
    i64 => |n| Self::Int(n.into()),
    u64 => |n| Self::Int(n.into()),
    f64 => |x| Self::Float(x),
    &str => |s| Self::Str(s.to_owned()),
    String => |s| Self::Str(s),
    Map => |m| Self::Map(m),
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

/// Serializes as OMS writes JSON: floats keep their point (`1.0`), bytes are base64.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(b) => serializer.serialize_bool(*b),
            Self::Int(n) => match (n.as_i64(), n.as_u64()) {
                (Some(n), _) => serializer.serialize_i64(n),
                (None, Some(n)) => serializer.serialize_u64(n),
                (None, None) => serializer.serialize_i128(n.get()),
            },
            Self::Float(x) => serializer.serialize_f64(*x),
            Self::Str(s) => serializer.serialize_str(s),
            Self::Bytes(b) => serializer.serialize_str(&data_encoding::BASE64.encode(b)),
            Self::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Self::Map(map) => {
                let mut out = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map {
                    out.serialize_entry(key, value)?;
                }
                out.end()
            }
        }
    }
}
