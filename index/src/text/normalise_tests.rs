//! Tests of word normalisation, by language.

use proptest::prelude::*;

use super::*;

fn check(language: Language, word: &str, plain: &str, term: &str) {
    let mut folder = WordNormaliser::new(language);
    let folded = folder.word(word);
    assert_eq!((folded.unstemmed, folded.term), (plain, term), "{word} in {}", language.code());
}

#[test]
fn words_lose_case_accents_and_endings_by_their_language() {
    for (language, word, plain, term) in [
        (Language::English, "Running", "running", "run"),
        (Language::English, "CAFÉ", "cafe", "cafe"),
        (Language::English, "naïve", "naive", "naiv"),
        (Language::English, "2024", "2024", "2024"),
        (Language::English, "Ａｂｃ１", "abc1", "abc1"),
        (Language::English, "ﬁne", "fine", "fine"),
        (Language::None, "Running", "running", "running"),
        (Language::None, "Łódź", "lodz", "lodz"),
        (Language::None, "Straße", "strasse", "strasse"),
        (Language::None, "STRASSE", "strasse", "strasse"),
        (Language::None, "cœur", "coeur", "coeur"),
        (Language::None, "Việt", "viet", "viet"),
        (Language::German, "Häuser", "hauser", "haus"),
        (Language::French, "mangées", "mangees", "mang"),
        (Language::Spanish, "Año", "año", "año"),
        (Language::Spanish, "camión", "camion", "camion"),
        (Language::Swedish, "Öl", "öl", "öl"),
        (Language::Swedish, "idé", "ide", "ide"),
        (Language::Danish, "Ærø", "ærø", "ærø"),
        (Language::Turkish, "IŞIK", "işik", "işik"),
        (Language::Turkish, "ışık", "işik", "işik"),
        (Language::Russian, "ёлки", "елки", "елк"),
        (Language::Russian, "йод", "йод", "йод"),
        (Language::Greek, "λόγος", "λογοσ", "λογ"),
        (Language::None, "كِتَاب", "كتاب", "كتاب"),
        (Language::None, "أحمد", "احمد", "احمد"),
        (Language::None, "שָׁלוֹם", "שלום", "שלום"),
        (Language::None, "हिन्दी", "हिन्दी", "हिन्दी"),
        (Language::None, "١٢٣", "123", "123"),
        (Language::None, "co\u{ad}op", "coop", "coop"),
        (Language::None, "\u{301}", "", ""),
    ] {
        check(language, word, plain, term);
    }
}

#[test]
fn an_english_possessive_is_the_word_and_a_contraction_has_no_apostrophe() {
    for (word, plain) in [
        ("Caroline's", "caroline"),
        ("Caroline\u{2019}s", "caroline"),
        ("don't", "dont"),
        ("O\u{2019}Brien", "obrien"),
        ("it's", "it"),
    ] {
        assert_eq!(WordNormaliser::new(Language::English).word(word).unstemmed, plain, "{word}");
    }
}

#[test]
fn a_composed_and_a_decomposed_letter_are_one() {
    for language in Language::all() {
        let (mut one, mut other) = (WordNormaliser::new(language), WordNormaliser::new(language));
        for (composed, decomposed) in [("å", "a\u{30a}"), ("ñ", "n\u{303}"), ("й", "и\u{306}")]
        {
            assert_eq!(one.word(composed), other.word(decomposed), "{composed} {language:?}");
        }
    }
}

#[test]
fn a_long_word_is_cut_and_stays_apart_from_others() {
    let mut folder = WordNormaliser::new(Language::English);
    let (a, b) = ("a".repeat(70), format!("{}b", "a".repeat(69)));
    let cut = folder.word(&a).term.to_owned();
    assert_eq!(cut.len(), MAX_TERM_BYTES);
    assert!(cut.starts_with(&"a".repeat(CUT_TERM_BYTES)));
    assert_eq!(folder.word(&a.to_uppercase()).term, cut);
    assert_ne!(folder.word(&b).term, cut);
    assert_eq!(folder.word(&"a".repeat(64)).term, "a".repeat(64));
    let wide = folder.word(&"ж".repeat(60)).term.to_owned();
    assert!(wide.len() <= MAX_TERM_BYTES && wide.starts_with('ж'));
}

#[test]
fn marks_that_come_together_when_a_sign_is_left_out_stand_in_one_order() {
    let mut folder = WordNormaliser::new(Language::None);
    // U+FE70 is a space with a mark on it.
    let once = folder.word("\u{1e008}\u{fe70}\u{1939}").unstemmed.to_owned();
    assert_eq!(folder.word(&once).unstemmed, once);
    assert_eq!(folder.word("\u{1e008}\u{1939}").unstemmed, once);
}

proptest! {
    #[test]
    fn no_word_panics_and_all_terms_are_short(word in "\\PC{0,40}", language in 0usize..19) {
        let language = Language::all().nth(language).unwrap_or_default();
        let mut folder = WordNormaliser::new(language);
        let folded = folder.word(&word);
        prop_assert!(folded.term.len() <= MAX_TERM_BYTES);
        prop_assert!(folded.unstemmed.len() <= MAX_TERM_BYTES);
        prop_assert_eq!(folded.term.is_empty(), folded.unstemmed.is_empty());
        prop_assert!(folder.compound(&word).len() <= MAX_TERM_BYTES);
    }

    #[test]
    fn stemmers_bear_words_of_any_letters(word in "\\p{L}{0,70}", language in 0usize..19) {
        let language = Language::all().nth(language).unwrap_or_default();
        let mut folder = WordNormaliser::new(language);
        let first = folder.word(&word).term.to_owned();
        prop_assert_eq!(folder.word(&word).term, first);
    }

    #[test]
    fn plain_words_are_not_changed_by_folding_them_again(word in "[\\p{L}\\p{M}\\p{N}]{0,20}") {
        for language in [Language::None, Language::English, Language::Turkish] {
            let mut folder = WordNormaliser::new(language);
            let once = folder.word(&word).unstemmed.to_owned();
            if !once.contains('~') {
                prop_assert_eq!(folder.word(&once).unstemmed, once);
            }
        }
    }
}
