//! Names on the command line that stand for values of the library, each with its help.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

/// Names, and their help.
type Names = [(&'static str, &'static str)];

/// Formats of an answer.
pub(crate) const FORMATS: &Names = &[
    ("sml", "Semantic markup: one flat element a grain"),
    ("markdown", "Headings and bullets"),
    ("json", "One JSON object with the shown grains"),
    ("yaml", "The same in YAML"),
    ("text", "One line a grain"),
    ("triples", "Subject, relation and object between tabs"),
    ("toon", "Tables, one a grain type"),
];

/// Encodings of a payload.
pub(crate) const ENCODINGS: &Names =
    &[("msgpack", "Canonical MessagePack"), ("cbor", "Deterministic CBOR")];

/// Classes of devices.
pub(crate) const PROFILES: &Names = &[
    ("extended", "Servers and desktops: 1 MiB, 32 levels"),
    ("standard", "Phones and single-board computers: 32 KiB, 16 levels"),
    ("lightweight", "Microcontrollers: 512 bytes, 8 levels, seven fields"),
];

/// Sensitivities of a grain.
pub(crate) const SENSITIVITIES: &Names = &[
    ("public", "Anybody may see it"),
    ("internal", "It stays within the organisation"),
    ("pii", "It tells of a person"),
    ("phi", "It tells of a person's health"),
];

/// Algorithms of signing keys.
pub(crate) const ALGORITHMS: &Names = &[
    ("ed25519", "The key is the seed of an Ed25519 key"),
    ("p256", "The key is the scalar of a P-256 key"),
];

/// Compressions of a portable file.
pub(crate) const COMPRESSIONS: &Names =
    &[("none", "Not at all"), ("zstd", "zstd, level 3"), ("lz4", "lz4: larger, and faster")];

/// Choices for a put when a current grain states the same fact, or another of its subject and relation.
pub(crate) const SAME_FACT: &Names = &[
    ("add", "Store it beside the other"),
    ("keep", "Keep the stored one"),
    ("supersede", "Supersede the stored one"),
    (
        "unique",
        "Refuse it, also if the current one of its subject and relation says something else",
    ),
];

/// Lengths of a partition of an archive.
pub(crate) const GRANULARITIES: &Names =
    &[("quarter", "A quarter of a year"), ("month", "For agents that remember much")];

/// Parses one of these names into the value that has it in JSON.
pub(crate) fn named<T>(names: &'static Names) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let values = names.iter().map(|(name, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(values)
        .try_map(|name| T::deserialize(IntoDeserializer::<Error>::into_deserializer(name)))
}
