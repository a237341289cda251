//! Cases of compliance presets as data (`vectors/presets`, its format in `vectors/README.md`): what is
//! stored, what is tried with one grain, and what has to come of it. Knows no store.

use std::path::PathBuf;

use super::format::{Blob, ContentAddress, Encoding, Grain};
use serde::Deserialize;
use serde_json::Value as Json;

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// `put`, `supersede`, `read`, `export` or `erase`.
    pub(crate) op: String,
    grain: Json,
    /// The grain that is superseded.
    old: Option<Json>,
    /// What is stored before, in order; `$0` in a grain is the address of the first. One that derives
    /// from another takes its place.
    #[serde(default)]
    consents: Vec<Json>,
    /// Whether the grain is under hold.
    #[serde(default)]
    pub(crate) held: bool,
    /// Whether a review found the grain right.
    #[serde(default)]
    pub(crate) verified: bool,
    #[serde(default)]
    pub(crate) purposes: Vec<String>,
    /// Whether the store has keys.
    #[serde(default)]
    pub(crate) keys: bool,
    /// Whether the grain is marked for review then.
    #[serde(default)]
    pub(crate) review: bool,
    /// The rule that refuses.
    pub(crate) refused: Option<String>,
    /// Rules that apply and do not refuse.
    #[serde(default)]
    pub(crate) allowed: Vec<String>,
    /// The article it stands on.
    pub(crate) article: String,
}

/// The grains of a case.
#[derive(Debug)]
pub(crate) struct Grains {
    pub(crate) grain: Grain,
    pub(crate) old: Option<Grain>,
    /// Each with the one it takes the place of, by its number.
    pub(crate) consents: Vec<(Grain, Option<usize>)>,
}

/// The cases of a preset.
pub(crate) fn of(preset: &str) -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/presets");
    let text = std::fs::read(folder.join(format!("{preset}.json"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

impl Case {
    pub(crate) fn grains(&self) -> Grains {
        let mut addresses: Vec<ContentAddress> = Vec::new();
        let mut consents = Vec::new();
        for json in &self.consents {
            let before = addresses.iter().position(|_| json.get("derived_from").is_some());
            let grain = grain(json, &addresses);
            addresses.push(blob(&grain).address());
            consents.push((grain, before));
        }
        let old = self.old.as_ref().map(|old| grain(old, &addresses));
        Grains { grain: grain(&self.grain, &addresses), old, consents }
    }
}

pub(crate) fn blob(grain: &Grain) -> Blob {
    grain.encode(Encoding::MessagePack).unwrap()
}

/// The grain of a case, with addresses in the place of `$0` and its like.
fn grain(json: &Json, addresses: &[ContentAddress]) -> Grain {
    let mut text = json.to_string();
    for (number, address) in addresses.iter().enumerate() {
        text = text.replace(&format!("\"${number}\""), &format!("\"{address}\""));
    }
    Grain::from_json(&text).unwrap()
}
