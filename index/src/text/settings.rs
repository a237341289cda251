//! How the text of a store is indexed. Knows nothing of texts.

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
}
