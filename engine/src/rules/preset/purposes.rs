//! Comparison of the purposes of a session with those named by a rule. Case, spaces, punctuation and letter
//! width are ignored, so that `SALE` or `Data Sale` cannot bypass a rule on `sale` and `data_sale`.

use unicode_normalization::UnicodeNormalization;

/// Returns `true` if a purpose is one of these; `data_broker*` matches any with that prefix.
pub(super) fn purpose_matches(purpose: &str, of: &[String]) -> bool {
    let purpose = normalize_purpose(purpose);
    of.iter().any(|one| match one.strip_suffix('*') {
        Some(beginning) => purpose.starts_with(&normalize_purpose(beginning)),
        None => purpose == normalize_purpose(one),
    })
}

/// Normalises a purpose to its letters and digits, in lower case and NFKC.
fn normalize_purpose(text: &str) -> String {
    // Upper case first: it unifies letters such as the sharp s and the final sigma.
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
            assert!(purpose_matches(same, &of), "{same:?}");
        }
        for other in ["", " ", "wholesale", "s\u{430}le", "data", "broker", "sale of data"] {
            assert!(!purpose_matches(other, &of), "{other:?}");
        }
        assert_eq!(normalize_purpose("Stra\u{df}e"), normalize_purpose("STRASSE"));
    }
}
