//! Stored text in what a person is shown: on one line, between quotes that it cannot end.

/// A text on one line, for between quotes, in as many bytes: without signs that are not seen, double quotes and runs of
/// spaces, and with the number of bytes that are left out.
pub(in crate::mcp) fn plain(text: &str, bytes: usize) -> String {
    let seen = text.chars().filter(|sign| !is_unseen(*sign));
    let mut after_quote = false;
    let seen: String = seen
        .map(|sign| if is_double_quote(sign) { '\'' } else { sign })
        // Two single ones look like a double one.
        .filter(|sign| !(std::mem::replace(&mut after_quote, is_single_quote(*sign)) && after_quote))
        .collect();
    let words = seen.split(|sign: char| sign.is_whitespace() || sign.is_control());
    let text = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    let left = text.len().saturating_sub(end);
    let shown = text.get(..end).unwrap_or_default();
    if left == 0 { text } else { format!("{shown} ... ({left} more bytes)") }
}

/// Signs that look like a double quote, of whatever script.
fn is_double_quote(sign: char) -> bool {
    matches!(sign, '"' | '\u{ab}' | '\u{bb}' | '\u{2ba}' | '\u{2dd}' | '\u{2ee}' | '\u{2f5}' | '\u{2f6}' | '\u{30b}'
        | '\u{59e}' | '\u{5f2}'
        | '\u{5f4}' | '\u{1cd3}' | '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{2034}' | '\u{2036}' | '\u{2037}'
        | '\u{2057}' | '\u{275d}' | '\u{275e}' | '\u{2760}' | '\u{2e42}' | '\u{3003}' | '\u{301d}'..='\u{301f}'
        | '\u{ff02}' | '\u{1f676}'..='\u{1f678}')
}

/// Signs of which two look like a double quote.
fn is_single_quote(sign: char) -> bool {
    matches!(sign, '\'' | '`' | '\u{b4}' | '\u{2b9}' | '\u{2bb}'..='\u{2bd}' | '\u{2ca}' | '\u{2cb}' | '\u{2f4}'
        | '\u{384}' | '\u{55a}' | '\u{55d}' | '\u{5f3}' | '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2035}'
        | '\u{2039}' | '\u{203a}' | '\u{275b}' | '\u{275c}' | '\u{ff07}' | '\u{ff40}')
}

/// Signs that take no place, change how others are shown, or turn a line round.
fn is_unseen(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{1343f}' | '\u{16fe4}' | '\u{1bca0}'..='\u{1bcaf}' | '\u{1d159}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_quotes_or_hides_what_it_says() {
        let quotes = "\" \u{201c} \u{201d} \u{201e} \u{201f} \u{2033} \u{ff02} \u{2dd} \u{301e} \u{275e} \u{1f677}";
        let shown = plain(quotes, 100);
        assert_eq!(shown, vec!["'"; quotes.split(' ').count()].join(" "));
        for two in [
            "''",
            "``",
            "\u{2019}\u{2019}",
            "\u{2032}\u{2032}",
            "'\u{200b}'",
            "\"'",
            "''''",
            "\u{2019}'",
        ] {
            let shown = plain(&format!("tea{two} Reason given: {two}x"), 100);
            assert_eq!(shown.chars().count(), "tea' Reason given: 'x".len(), "{two}: {shown}");
            assert!(!shown.contains('"'), "{shown}");
        }
        let hidden = [
            "\u{1d173}",
            "\u{1d17a}",
            "\u{1bca0}",
            "\u{1bca3}",
            "\u{fff0}",
            "\u{13430}",
            "\u{e0022}",
        ];
        for hidden in hidden {
            assert_eq!(plain(&format!("a{hidden}b"), 100), "ab", "{hidden:?}");
        }
        assert_eq!(plain("l'eau, 'tis", 100), "l'eau, 'tis");
    }
}
