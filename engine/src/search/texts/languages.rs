//! The language in which the text of a namespace is analysed.

use std::collections::BTreeMap;

use grainstore_format::SHARED_PARTITION;
use grainstore_index::text::Language;

/// Languages by namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamespaceLanguages {
    default: Language,
    /// Languages of a namespace and those below it.
    within: BTreeMap<String, Language>,
}

impl Default for NamespaceLanguages {
    /// English for every namespace.
    fn default() -> Self {
        Self { default: Language::English, within: BTreeMap::new() }
    }
}

impl NamespaceLanguages {
    /// Sets the language of a namespace and of those below it; without a namespace, the default of the store.
    pub(crate) fn set(&mut self, namespace: Option<&str>, language: Language) {
        match namespace {
            None => self.default = language,
            Some(namespace) => {
                let name = if namespace.is_empty() { SHARED_PARTITION } else { namespace };
                self.within.insert(name.to_owned(), language);
            }
        }
    }

    /// The language of a namespace: that of the nearest enclosing namespace that has its own, else the
    /// default.
    pub(crate) fn of(&self, partition: &str) -> Language {
        let mut around = if partition.is_empty() { SHARED_PARTITION } else { partition };
        loop {
            if let Some(language) = self.within.get(around) {
                return *language;
            }
            match around.rsplit_once(':') {
                Some((outer, _)) => around = outer,
                None => return self.default,
            }
        }
    }

    /// Language codes: the default, and that of each namespace with its own.
    pub(super) fn codes(&self) -> (String, BTreeMap<String, String>) {
        let within = self.within.iter().map(|(name, of)| (name.clone(), of.code().to_owned()));
        (self.default.code().to_owned(), within.collect())
    }

    /// A text that differs between different settings; part of the analysis hash.
    pub(crate) fn settings(&self) -> String {
        let within = self.within.iter().map(|(name, of)| format!("\n{name} {}", of.code()));
        format!("{}{}", self.default.code(), within.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::visibility::is_in_namespace;

    #[test]
    fn a_namespace_has_the_language_of_the_innermost_one_around_it() {
        let mut languages = NamespaceLanguages::default();
        languages.set(Some("work"), Language::German);
        languages.set(Some("work:paris"), Language::French);
        for (partition, expected) in [
            ("home", Language::English),
            ("work", Language::German),
            ("work:berlin", Language::German),
            ("work:paris:night", Language::French),
            ("work:paris:", Language::French),
            ("work:", Language::German),
            ("workshop", Language::English),
            (":work", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(languages.of(partition), expected, "{partition}");
            let around = languages.within.iter();
            let around = around.filter(|(name, _)| is_in_namespace(partition, Some(name)));
            let innermost = around.max_by_key(|(name, _)| name.len());
            let innermost = innermost.map_or(Language::English, |(_, language)| *language);
            assert_eq!(innermost, expected, "{partition}: what is around is what is in scope");
        }
        assert_eq!(languages.settings(), "en\nwork de\nwork:paris fr");
        languages.set(Some(""), Language::Danish);
        assert_eq!(languages.of(""), Language::Danish);
        assert_eq!(languages.of(SHARED_PARTITION), Language::Danish);
        languages.set(None, Language::None);
        assert_eq!(languages.of("home"), Language::None);
    }
}
