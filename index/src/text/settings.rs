//! Settings of text analysis. Knows nothing of texts.

use sha2::{Digest as _, Sha256};

use super::language::Language;

/// The version of the analysis, a part of the fingerprint of [`Settings`]. Terms differ between versions: an
/// index of another version must be rebuilt.
pub const ANALYSIS_VERSION: u32 = 1;

/// The text analysis of a namespace. Other settings give other terms.
///
/// ```
/// use grainstore_index::text::{Language, Settings};
///
/// let english = Settings::new(Language::English);
/// assert!(!english.thinking);
/// assert_ne!(english.fingerprint(), Settings::new(Language::German).fingerprint());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The language of its text.
    pub language: Language,
    /// True if the reasoning of a model is indexed too: `thinking_content`, and the thinking blocks of a
    /// message.
    pub thinking: bool,
}

impl Settings {
    /// The settings of a language, without the reasoning of models.
    #[must_use]
    pub fn new(language: Language) -> Self {
        Self { language, thinking: false }
    }

    /// Identifies the settings and the version of the analysis. An index with another fingerprint may have
    /// other terms. Stable across releases.
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
