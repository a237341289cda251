//! How the text of a store is indexed. Knows nothing of texts.

use sha2::{Digest as _, Sha256};

use super::language::Language;

/// The version of the analysis. Terms of one version are not those of another: an index that was
/// built by another has to be built again.
pub const ANALYSIS_VERSION: u32 = 1;

/// How the text of a namespace is indexed. Another setting gives other terms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// What its text is written in.
    pub language: Language,
    /// Whether the thoughts of a model are indexed too: `thinking_content`, and the blocks of a
    /// message that think.
    pub thinking: bool,
}

impl Settings {
    /// The settings of a language, without the thoughts of models.
    #[must_use]
    pub fn new(language: Language) -> Self {
        Self { language, thinking: false }
    }

    /// What an index is marked with that was built by these settings and this version of the
    /// analysis: where it is another, terms may be others. Stable across releases.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let thinking = if self.thinking { "with thinking" } else { "" };
        let text = format!("text {ANALYSIS_VERSION} {} {thinking}", self.language.code());
        let hash: [u8; 32] = Sha256::digest(text).into();
        hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_fingerprint_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for language in Language::all() {
            for thinking in [false, true] {
                assert!(seen.insert(Settings { language, thinking }.fingerprint()));
            }
        }
        assert_eq!(Settings::default().fingerprint(), 9_397_329_750_092_100_453);
    }
}
