//! The languages of text analysis: the stemmer of each, and the accented letters it treats as letters of
//! their own. Knows nothing of texts or grains.

use frostem::{Algorithm, Stemmer};

/// The language of a text, as configured for its namespace.
///
/// It determines only the stemmer, the folding of accents and the stop words of a query. Text in other
/// scripts is analysed the same way under every language.
///
/// ```
/// use grainstore_index::text::Language;
///
/// assert_eq!(Language::from_code("en-GB"), Some(Language::English));
/// assert_eq!((Language::None.code(), Language::German.code()), ("und", "de"));
/// assert_eq!(Language::all().next(), Some(Language::None));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Language {
    /// `und`: unknown, or a language without a stemmer here. Words are normalised and not stemmed.
    None,
    /// `ar`.
    Arabic,
    /// `da`.
    Danish,
    /// `nl`.
    Dutch,
    /// `en`, the default.
    #[default]
    English,
    /// `fi`.
    Finnish,
    /// `fr`.
    French,
    /// `de`.
    German,
    /// `el`.
    Greek,
    /// `hu`.
    Hungarian,
    /// `it`.
    Italian,
    /// `no`, both written forms.
    Norwegian,
    /// `pt`.
    Portuguese,
    /// `ro`.
    Romanian,
    /// `ru`.
    Russian,
    /// `es`.
    Spanish,
    /// `sv`.
    Swedish,
    /// `ta`.
    Tamil,
    /// `tr`.
    Turkish,
}

/// A language with all its codes, the canonical one first: ISO 639-1, then 639-2 and -3.
struct LanguageRow {
    language: Language,
    codes: &'static [&'static str],
    /// Accented letters that count as letters of their own, not as variants of the bare letter.
    letters: &'static str,
}

const fn row(
    language: Language,
    codes: &'static [&'static str],
    letters: &'static str,
) -> LanguageRow {
    LanguageRow { language, codes, letters }
}

/// In the order of the variants.
#[rustfmt::skip]
static LANGUAGES: [LanguageRow; 19] = [
    // Scripts without spaces have no stemmer and need none.
    row(Language::None, &["und", "mul", "zxx", "zh", "zho", "chi", "ja", "jpn", "ko", "kor", "th",
        "tha", "lo", "lao", "km", "khm", "my", "mya", "bur"], ""),
    row(Language::Arabic, &["ar", "ara"], ""),
    row(Language::Danish, &["da", "dan"], "æøå"),
    row(Language::Dutch, &["nl", "nld", "dut"], ""),
    row(Language::English, &["en", "eng"], ""),
    row(Language::Finnish, &["fi", "fin"], "äöå"),
    row(Language::French, &["fr", "fra", "fre"], ""),
    row(Language::German, &["de", "deu", "ger"], ""),
    row(Language::Greek, &["el", "ell", "gre"], ""),
    row(Language::Hungarian, &["hu", "hun"], "öü"),
    row(Language::Italian, &["it", "ita"], ""),
    row(Language::Norwegian, &["no", "nor", "nb", "nob", "nn", "nno"], "æøå"),
    row(Language::Portuguese, &["pt", "por"], ""),
    row(Language::Romanian, &["ro", "ron", "rum"], ""),
    row(Language::Russian, &["ru", "rus"], ""),
    row(Language::Spanish, &["es", "spa"], "ñ"),
    row(Language::Swedish, &["sv", "swe"], "åäö"),
    row(Language::Tamil, &["ta", "tam"], ""),
    row(Language::Turkish, &["tr", "tur"], "çğöşü"),
];

impl Language {
    /// Iterates over all languages, [`Language::None`] first.
    pub fn all() -> impl Iterator<Item = Self> {
        LANGUAGES.iter().map(|row| row.language)
    }

    /// The language of an ISO 639 code or a BCP 47 tag: `en`, `eng`, `en-GB`, `und`. `None` for an unknown
    /// code; the caller decides whether to treat it as [`Language::None`].
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        let primary = code.trim().split(['-', '_']).next()?;
        let known =
            |row: &&LanguageRow| row.codes.iter().any(|known| known.eq_ignore_ascii_case(primary));
        LANGUAGES.iter().find(known).map(|row| row.language)
    }

    /// The canonical code: two letters, or `und`.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.row().and_then(|row| row.codes.first()).map_or("und", |code| code)
    }

    /// Returns `true` if a lower-case letter with an accent is distinct from the letter without.
    pub(super) fn is_own_letter(self, letter: char) -> bool {
        self.row().is_some_and(|row| row.letters.contains(letter))
    }

    /// The stemmer for lower-case words; `None` for [`Language::None`].
    pub(super) fn stemmer(self) -> Option<Stemmer> {
        let algorithm = match self {
            Self::None => return None,
            Self::Arabic => Algorithm::Arabic,
            Self::Danish => Algorithm::Danish,
            Self::Dutch => Algorithm::Dutch,
            Self::English => Algorithm::English,
            Self::Finnish => Algorithm::Finnish,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Greek => Algorithm::Greek,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Italian => Algorithm::Italian,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Romanian => Algorithm::Romanian,
            Self::Russian => Algorithm::Russian,
            Self::Spanish => Algorithm::Spanish,
            Self::Swedish => Algorithm::Swedish,
            Self::Tamil => Algorithm::Tamil,
            Self::Turkish => Algorithm::Turkish,
        };
        Some(Stemmer::new(algorithm))
    }

    fn row(self) -> Option<&'static LanguageRow> {
        LANGUAGES.iter().find(|row| row.language == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_every_kind_name_their_language() {
        for (code, expected) in [
            ("en", Some(Language::English)),
            ("eng", Some(Language::English)),
            ("en-GB", Some(Language::English)),
            ("EN_us", Some(Language::English)),
            (" nb ", Some(Language::Norwegian)),
            ("ger", Some(Language::German)),
            ("pt-BR", Some(Language::Portuguese)),
            ("und", Some(Language::None)),
            ("zh-Hant-TW", Some(Language::None)),
            ("xx", None),
            ("english", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(Language::from_code(code), expected, "{code}");
        }
    }

    #[test]
    fn each_language_is_found_by_its_own_code_and_no_code_names_two() {
        let mut seen = std::collections::HashSet::new();
        for row in &LANGUAGES {
            assert_eq!(Language::from_code(row.language.code()), Some(row.language));
            assert!(row.codes.iter().all(|code| seen.insert(*code)), "{:?}", row.language);
        }
        assert_eq!(Language::all().count(), 19);
    }

    #[test]
    fn every_language_but_the_unknown_one_has_a_stemmer() {
        for language in Language::all() {
            assert_eq!(language.stemmer().is_none(), language == Language::None, "{language:?}");
        }
    }
}
