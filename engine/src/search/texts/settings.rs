//! Text-indexing settings of a store: the language of each grain, and which grains are indexed at all.

use std::collections::BTreeMap;

use grainstore_format::{GrainRef, GrainType};
use grainstore_index::text::{Document, Language, Settings};
use serde::{Deserialize, Serialize};

use super::languages::NamespaceLanguages;
use crate::base::error::{Error, Result};
use crate::disk::layout::PlainEnvelope;

/// Languages by namespace, and domains of observers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextSettings {
    pub(crate) languages: NamespaceLanguages,
    pub(crate) domains: ObserverDomains,
}

/// Observer types of a domain ([`OpenOptions::observer_domain`](crate::OpenOptions::observer_domain)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ObserverDomain {
    /// Types whose observations are in the full text.
    pub searched: Vec<String>,
    /// Types whose observations are not.
    pub unsearched: Vec<String>,
}

/// Domains of observers by observer type, and whether their observations are searched as text (OMS 17.3). The
/// standard lists no domains; the host names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObserverDomains {
    /// Domain by observer type, with `true` if its observations are searched.
    types: BTreeMap<String, (String, bool)>,
}

impl ObserverDomains {
    /// Assigns an observer type to a domain.
    pub(crate) fn assign(&mut self, observer_type: &str, domain: &str, searched: bool) {
        self.types.insert(observer_type.to_owned(), (domain.to_owned(), searched));
    }

    /// The domains, each with its searched and unsearched observer types.
    pub(crate) fn by_domain(&self) -> BTreeMap<String, ObserverDomain> {
        let mut domains: BTreeMap<String, ObserverDomain> = BTreeMap::new();
        for (observer_type, (domain, searched)) in &self.types {
            let told = domains.entry(domain.clone()).or_default();
            let side = if *searched { &mut told.searched } else { &mut told.unsearched };
            side.push(observer_type.clone());
        }
        domains
    }

    /// Returns `true` if observations of this observer type are searched. One without a domain is.
    fn is_searched(&self, observer_type: &str) -> bool {
        self.types.get(observer_type).is_none_or(|(_, searched)| *searched)
    }
}

/// The stored settings, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TextSettingsRow {
    /// Code of the default language.
    language: String,
    /// Code of the language of each namespace that has its own.
    languages: BTreeMap<String, String>,
    /// Domain of each observer type, with `true` if it is searched.
    observers: BTreeMap<String, (String, bool)>,
}

impl TextSettings {
    /// A text that differs between different settings.
    pub(crate) fn describe(&self) -> String {
        format!("{} {:?}", self.languages.settings(), self.domains.types)
    }

    /// Encodes the settings as a row of the meta table: JSON in an envelope with key 0.
    ///
    /// # Errors
    /// None for settings a host can make.
    pub(crate) fn encode_row(&self) -> Result<Vec<u8>> {
        let (language, languages) = self.languages.codes();
        let row = TextSettingsRow { language, languages, observers: self.domains.types.clone() };
        let json = serde_json::to_vec(&row).map_err(|error| damaged(&error.to_string()))?;
        Ok(PlainEnvelope::seal(0, &json))
    }

    /// Decodes a row of the meta table.
    ///
    /// # Errors
    /// As [`PlainEnvelope::open`]; `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn decode_row(row: &[u8]) -> Result<Self> {
        let body = PlainEnvelope::open(0, row)?;
        let row: TextSettingsRow =
            serde_json::from_slice(body).map_err(|error| damaged(&error.to_string()))?;
        let named = |code: &str| Language::from_code(code).ok_or_else(|| damaged("no language"));
        let mut wording = Self::default();
        wording.languages.set(None, named(&row.language)?);
        for (namespace, code) in &row.languages {
            wording.languages.set(Some(namespace), named(code)?);
        }
        wording.domains.types = row.observers;
        Ok(wording)
    }

    /// The language a grain is analysed in. `None` if it is not indexed as text: an opaque grain, which no
    /// statement can ask for (OMS 19.4), or an observation of a domain that is not searched.
    pub(crate) fn language_of(&self, grain: &GrainRef<'_>) -> Option<Language> {
        let has_words = match grain.grain_type() {
            GrainType::Opaque(_) => false,
            GrainType::Observation => {
                grain.text("observer_type").is_none_or(|of| self.domains.is_searched(of))
            }
            _ => true,
        };
        has_words.then(|| self.languages.of(grain.partition()))
    }

    /// The terms of a grain; empty if it is not indexed as text.
    pub(crate) fn document(&self, grain: &GrainRef<'_>) -> Document {
        let language = self.language_of(grain).map(Settings::new);
        language.map_or_else(Document::default, |settings| Document::of(grain, &settings))
    }

    /// A text that differs between different settings; part of the analysis hash.
    pub(crate) fn settings(&self) -> String {
        let unsearched = self.domains.types.iter().filter(|(_, (_, searched))| !searched);
        let unsearched = unsearched.map(|(observer_type, _)| format!("\n-{observer_type}"));
        format!("{}{}", self.languages.settings(), unsearched.collect::<String>())
    }
}

fn damaged(why: &str) -> Error {
    Error::truth_damaged(format!("what is kept of languages and observers is damaged: {why}"))
}

#[cfg(test)]
mod tests {
    use grainstore_format::{Encoding, Grain};

    use super::*;

    #[test]
    fn what_is_kept_has_these_bytes_and_is_read_back() {
        let mut wording = TextSettings::default();
        wording.languages.set(None, Language::None);
        wording.languages.set(Some("work"), Language::German);
        wording.domains.assign("thermometer", "physical", false);
        let row = wording.encode_row().unwrap();
        let json = r#"{"language":"und","languages":{"work":"de"},"observers":{"thermometer":["physical",false]}}"#;
        assert_eq!(row, PlainEnvelope::seal(0, json.as_bytes()));
        assert_eq!(TextSettings::decode_row(&row).unwrap(), wording);
        for at in 0..row.len() {
            let mut other = row.clone();
            other[at] ^= 1;
            assert!(
                TextSettings::decode_row(&other).is_err()
                    && TextSettings::decode_row(&row[..at]).is_err(),
                "{at}"
            );
        }
    }

    #[test]
    fn observations_of_a_domain_that_is_not_searched_have_no_words() {
        let mut wording = TextSettings::default();
        wording.domains.assign("thermometer", "physical", false);
        wording.domains.assign("annotator", "cognitive", true);
        let observed = |observer_type: &str| {
            let grain = format!(
                r#"{{"type": "observation", "observer_id": "o", "observer_type": "{observer_type}",
                    "subject": "s", "object": "warm", "created_at": 1000}}"#
            );
            let blob = Grain::from_json(&grain).unwrap().encode(Encoding::MessagePack).unwrap();
            wording.language_of(&GrainRef::new(blob.bytes()).unwrap())
        };
        assert_eq!(observed("thermometer"), None);
        assert_eq!(observed("annotator"), Some(Language::English));
        assert_eq!(observed("somebody"), Some(Language::English));
        assert_eq!(wording.settings(), "en\n-thermometer");
        let told = wording.domains.by_domain();
        assert_eq!(told["physical"].unsearched, ["thermometer"]);
        assert_eq!(told["cognitive"].searched, ["annotator"]);
    }
}
