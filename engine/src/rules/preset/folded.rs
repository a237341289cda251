//! Purposes compared: what a session says it is for, against the purposes a rule names. Case, spaces, signs and
//! the width of letters make no other purpose, or `SALE` and `Data Sale` would get round a rule on `sale` and
//! `data_sale`.

use unicode_normalization::UnicodeNormalization;

/// Whether a purpose is one of these; `data_broker*` is any that begins so.
pub(super) fn is_among(purpose: &str, of: &[String]) -> bool {
    let purpose = folded(purpose);
    of.iter().any(|one| match one.strip_suffix('*') {
        Some(beginning) => purpose.starts_with(&folded(beginning)),
        None => purpose == folded(one),
    })
}

/// Letters and digits alone, in lower case and in the form that compatible characters share.
fn folded(text: &str) -> String {
    // Upper case first: letters such as the sharp s and the final sigma have one there.
    let upper = text.nfkc().flat_map(char::to_uppercase);
    let lower = upper.flat_map(char::to_lowercase).collect::<String>();
    lower.nfkc().filter(|character| character.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purpose_is_the_same_however_it_is_written() {
        let of = ["data_sale".to_owned(), "sale".to_owned(), "data_broker*".to_owned()];
        for same in [
            "sale",
            "SALE",
            "Sale ",
            "\u{ff33}\u{ff21}\u{ff2c}\u{ff25}",
            "\u{17f}ale",
            "s\u{200b}ale",
            "s\u{ad}al\u{202e}e",
            "Data Sale",
            "data-sale",
            "dataSale",
            "data\u{a0}sale",
            "data broker transfer",
            "DATA_BROKERS",
        ] {
            assert!(is_among(same, &of), "{same:?}");
        }
        for other in ["", " ", "wholesale", "s\u{430}le", "data", "broker", "sale of data"] {
            assert!(!is_among(other, &of), "{other:?}");
        }
        assert_eq!(folded("Stra\u{df}e"), folded("STRASSE"));
    }
}
