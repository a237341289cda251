//! Classes of characters for word breaking. Knows nothing of words or languages.

use unicode_normalization::char::is_combining_mark;

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CharClass {
    /// Part of a word in a script that separates words: letters, digits, and marks on them.
    Word,
    /// Part of a run of a script that does not separate words.
    Unspaced,
    /// An emoji.
    Emoji,
    /// Invisible; words continue across it.
    Ignored,
    /// Between words.
    Gap,
}

/// Returns the class of a character.
pub(super) fn class(c: char) -> CharClass {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { CharClass::Word } else { CharClass::Gap };
    }
    if is_common_letter(c) {
        CharClass::Word
    } else if is_ignored(c) {
        CharClass::Ignored
    } else if in_ranges(c, &EMOJI) {
        CharClass::Emoji
    } else if !is_in_word(c) {
        CharClass::Gap
    } else if in_ranges(c, &UNSPACED) {
        CharClass::Unspaced
    } else {
        CharClass::Word
    }
}

/// Returns `true` for the letters of most non-ASCII text, by range alone: Latin, Cyrillic, and Greek without
/// the non-letters of its block.
pub(super) fn is_common_letter(c: char) -> bool {
    matches!(c, 'À'..='Ö' | 'Ø'..='ö' | 'ø'..='\u{24f}' | 'Ή'..='Ώ' | 'Α'..='Ρ' | 'Σ'..='ώ'
        | 'Ѐ'..='ҁ' | 'Ҋ'..='\u{52f}')
        && c != '\u{38b}'
        && c != '\u{38d}'
}

/// Returns `true` if no normalisation form changes the text, judged by ranges alone.
pub(super) fn is_normalization_stable(text: &str) -> bool {
    text.chars()
        .all(|c| matches!(c, '\0'..='\u{7f}' | 'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ÿ' | 'Ѐ'..='ҁ'))
}

/// Returns `true` for a digit or another number.
pub(super) fn is_number(c: char) -> bool {
    c.is_ascii_digit() || !(c.is_ascii() || is_common_letter(c)) && c.is_numeric()
}

/// Returns `true` for a character that is part of a word, or a mark on one.
pub(super) fn is_in_word(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || !c.is_ascii() && (is_common_letter(c) || c.is_alphanumeric() || is_combining_mark(c))
}

/// Returns `true` for joiners, direction marks, soft hyphens and variation selectors, which only affect the
/// rendering. A zero-width space is not one of them: Thai and Khmer put it between words.
pub(super) fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180b}'..='\u{180e}' | '\u{200c}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{e0100}'..='\u{e01ef}')
}

/// Returns `true` for skin tone modifiers, which do not make another emoji.
pub(super) fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

/// Returns `true` for marks that only help reading and are often left out when typing. Other marks are part
/// of the spelling: vowel signs of Indic scripts, voicing marks of kana.
pub(super) fn is_accent(c: char) -> bool {
    matches!(c,
        // Latin, Greek, Cyrillic.
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20f0}' | '\u{fe20}'..='\u{fe2f}'
        // Hebrew points.
        | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}'
        | '\u{5c7}'
        // Arabic vowels, and the tatweel that stretches a line.
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}')
}

/// Returns `true` if accents are separated from the letter by decomposition: Latin and Greek. In Cyrillic the
/// same marks make other letters.
pub(super) fn is_decomposed(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}')
}

/// The replacement, in lower case, of a letter that decomposition leaves as it is.
pub(super) fn base_letter(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ŧ' => "t",
        'ı' => "i",
        'ς' => "σ",
        'ё' => "е",
        'آ' | 'أ' | 'إ' | 'ٱ' => "ا",
        'ى' => "ي",
        _ => return None,
    })
}

/// The ASCII digit of a decimal digit in another script.
pub(super) fn ascii_digit(c: char) -> Option<char> {
    if !is_number(c) {
        return None;
    }
    let zeros = [0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6];
    let more = [0xd66, 0xe50, 0xed0, 0xf20, 0x1040, 0x17e0, 0x1810];
    let code = u32::from(c);
    let zero = zeros.iter().chain(&more).find(|zero| (**zero..**zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}

fn in_ranges(c: char, ranges: &[(char, char)]) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= c);
    after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| c <= *last)
}

/// Ascending. Arrows and circled letters are left out: in plain text they are punctuation.
static EMOJI: [(char, char); 6] = [
    ('\u{231a}', '\u{23ff}'),
    ('\u{25fb}', '\u{25fe}'),
    ('\u{2600}', '\u{27bf}'),
    ('\u{2b05}', '\u{2b55}'),
    ('\u{1f000}', '\u{1f0ff}'),
    ('\u{1f1e6}', '\u{1faff}'),
];

/// Ascending. Punctuation inside these blocks is still [`CharClass::Gap`].
static UNSPACED: [(char, char); 24] = [
    // Thai, Lao.
    ('\u{e00}', '\u{eff}'),
    // Myanmar.
    ('\u{1000}', '\u{109f}'),
    // Hangul letters.
    ('\u{1100}', '\u{11ff}'),
    // Khmer.
    ('\u{1780}', '\u{17ff}'),
    // Tai scripts.
    ('\u{1950}', '\u{19df}'),
    ('\u{1a20}', '\u{1aaf}'),
    // Balinese.
    ('\u{1b00}', '\u{1b7f}'),
    // Iteration mark and zero of Han, its numerals.
    ('\u{3005}', '\u{3007}'),
    ('\u{3021}', '\u{3029}'),
    // Kana, Bopomofo, Hangul letters.
    ('\u{3041}', '\u{30ff}'),
    ('\u{3105}', '\u{318e}'),
    ('\u{31a0}', '\u{31bf}'),
    ('\u{31f0}', '\u{31ff}'),
    // Han.
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    // Yi.
    ('\u{a000}', '\u{a48c}'),
    // Javanese, Myanmar extensions.
    ('\u{a960}', '\u{a9ff}'),
    ('\u{aa60}', '\u{aadf}'),
    // Hangul.
    ('\u{ac00}', '\u{d7ff}'),
    // Han for compatibility.
    ('\u{f900}', '\u{faff}'),
    // Narrow kana and Hangul.
    ('\u{ff66}', '\u{ffdc}'),
    // Kana supplements.
    ('\u{1aff0}', '\u{1b16f}'),
    // Han extensions.
    ('\u{20000}', '\u{2fa1f}'),
    ('\u{30000}', '\u{323af}'),
];

#[cfg(test)]
mod tests {
    use unicode_normalization::UnicodeNormalization as _;

    use super::*;

    #[test]
    fn characters_have_the_class_of_their_script() {
        for (c, expected) in [
            ('a', CharClass::Word),
            ('7', CharClass::Word),
            (' ', CharClass::Gap),
            ('\0', CharClass::Gap),
            ('é', CharClass::Word),
            ('й', CharClass::Word),
            ('\u{301}', CharClass::Word),
            ('न', CharClass::Word),
            ('東', CharClass::Unspaced),
            ('ー', CharClass::Unspaced),
            ('・', CharClass::Gap),
            ('。', CharClass::Gap),
            ('한', CharClass::Unspaced),
            ('ก', CharClass::Unspaced),
            ('฿', CharClass::Gap),
            ('ﾊ', CharClass::Unspaced),
            ('Ａ', CharClass::Word),
            ('😀', CharClass::Emoji),
            ('❤', CharClass::Emoji),
            ('€', CharClass::Gap),
            ('\u{200d}', CharClass::Ignored),
            ('\u{200b}', CharClass::Gap),
            ('\u{ad}', CharClass::Ignored),
        ] {
            assert_eq!(class(c), expected, "{c:?}");
        }
    }

    #[test]
    fn common_letters_are_letters() {
        for c in ('\u{80}'..'\u{600}').filter(|c| is_common_letter(*c)) {
            assert!(c.is_alphanumeric() && !is_ignored(c), "{c:?}");
        }
    }

    #[test]
    fn what_is_stable_is_its_own_normal_form() {
        for c in ('\0'..'\u{600}').filter(|c| is_normalization_stable(&c.to_string())) {
            assert!(c.nfkc().eq([c]), "{c:?}");
        }
    }

    #[test]
    fn ranges_ascend_without_overlap() {
        for ranges in [&EMOJI[..], &UNSPACED[..]] {
            assert!(ranges.iter().all(|(first, last)| first <= last));
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }

    #[test]
    fn digits_of_other_scripts_are_digits() {
        for (c, expected) in [('٣', Some('3')), ('۹', Some('9')), ('०', Some('0')), ('x', None)]
        {
            assert_eq!(ascii_digit(c), expected, "{c}");
        }
    }
}
