//! JSON forms that serde lacks: strict objects, base64, ordered pairs.

use std::fmt;
use std::marker::PhantomData;

use grainstore::ContentAddress;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::error::{Code, Error, Result};

/// A struct that is read from a JSON object, never from an array of its fields.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        object(source, "an object").map(Object)
    }
}

/// A struct with a description of its JSON form, for error messages.
pub(crate) trait Form {
    /// Its members, as docs/rpc.md writes them.
    const FORM: &'static str;
}

/// A [`Object`] whose error messages describe the expected form.
#[derive(Debug)]
pub(crate) struct Formed<T>(pub(crate) T);

impl<'de, T: Deserialize<'de> + Form> Deserialize<'de> for Formed<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        object(source, T::FORM).map(Formed)
    }
}

fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    source: D,
    form: &'static str,
) -> Result<T, D::Error> {
    struct Fields<T>(PhantomData<T>, &'static str);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.1)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    source.deserialize_map(Fields(PhantomData, form))
}

/// A list of so many items at most. What is beyond them is passed over while it is read, so that it takes no
/// memory; who takes the list refuses it then.
#[derive(Debug)]
pub(crate) struct Few<T, const MOST: usize> {
    items: Vec<T>,
    more: bool,
}

impl<T, const MOST: usize> Default for Few<T, MOST> {
    fn default() -> Self {
        Self { items: Vec::new(), more: false }
    }
}

impl<T, const MOST: usize> Few<T, MOST> {
    /// The first items of the list: all that it has, or as many as there may be.
    pub(crate) fn first(&self) -> &[T] {
        &self.items
    }

    /// The items of the list with this name.
    ///
    /// # Errors
    /// `ERR_LIMIT` where there are more.
    pub(crate) fn all(self, name: &str) -> Result<Vec<T>> {
        if self.more {
            let message = format!("{name} has more than {MOST} items");
            return Err(Error::new(Code::Limit, message, "give fewer, in parts"));
        }
        Ok(self.items)
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Few<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Items<T, const MOST: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Items<T, MOST> {
            type Value = Few<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T, MOST>, A::Error> {
                let mut few = Few::default();
                while few.items.len() < MOST {
                    match list.next_element()? {
                        Some(item) => few.items.push(item),
                        None => return Ok(few),
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {
                    few.more = true;
                }
                Ok(few)
            }
        }
        source.deserialize_seq(Items(PhantomData))
    }
}

/// The address of a grain, such as the one that [`contradict`](crate::contradict) marks. One that is
/// malformed is refused when the operation runs.
#[derive(Debug)]
pub struct Address(Result<ContentAddress, grainstore::format::Error>);

impl Address {
    pub(crate) fn get(self) -> Result<ContentAddress> {
        Ok(self.0?)
    }
}

impl From<ContentAddress> for Address {
    fn from(address: ContentAddress) -> Self {
        Self(Ok(address))
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(source)?.parse()))
    }
}

/// Bytes, base64 in JSON.
///
/// ```
/// let blob: grainstore_rpc::Base64 = serde_json::from_str(r#""dGVh""#)?;
/// assert_eq!(blob.0, b"tea");
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug)]
pub struct Base64(pub Vec<u8>);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        let bytes = data_encoding::BASE64.decode(text.as_bytes());
        bytes.map(Self).map_err(|error| D::Error::custom(format!("not base64: {error}")))
    }
}

/// A key, base64 in JSON. Wiped when dropped, with the text that it was read from, and never printed.
pub(crate) struct SecretBytes(pub(crate) Zeroizing<Vec<u8>>);

impl<'de> Deserialize<'de> for SecretBytes {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(source)?);
        match data_encoding::BASE64.decode(text.as_bytes()) {
            Ok(bytes) => Ok(Self(Zeroizing::new(bytes))),
            Err(error) => Err(D::Error::custom(format!("not base64: {error}"))),
        }
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(..)")
    }
}

/// The pairs of an object, in order, with duplicate names.
#[derive(Debug, Default)]
pub(crate) struct Pairs<T = Value>(pub(crate) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct InOrder<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        source.deserialize_map(InOrder(PhantomData))
    }
}

impl<T: Serialize> Serialize for Pairs<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, member)| (name, member)))
    }
}

/// Reads a member that is present, even if it is null.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    source: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(source).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_and_never_printed() {
        let key: SecretBytes = serde_json::from_str(r#""dGVh""#).unwrap();
        assert_eq!(key.0.as_slice(), b"tea");
        let printed = format!("{key:?}");
        assert!(!printed.contains("116") && !printed.contains("tea"), "{printed}");
        let refused = serde_json::from_str::<SecretBytes>(r#""dGVh?""#).unwrap_err();
        assert!(!refused.to_string().contains("dGVh"), "{refused}");
    }
}
