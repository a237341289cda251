//! The lexer of query texts: words with their operators, and quoted phrases. Knows nothing of terms.

use super::clause::Occur;

/// An item of a query text, between spaces.
pub(super) struct QueryItem<'t> {
    pub(super) occur: Occur,
    pub(super) form: ItemForm<'t>,
}

/// The form of an item.
pub(super) enum ItemForm<'t> {
    /// Within quotes.
    Quoted(&'t str),
    /// A word; never empty.
    Bare(&'t str),
}

/// The first item of a text, and the rest of the text.
pub(super) fn next_item(text: &str) -> Option<(QueryItem<'_>, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\0');
    let (occur, text) = match occur_operator(text) {
        Some((occur, after)) => (occur, after),
        None => (Occur::Should, text),
    };
    if let Some(inside) = text.strip_prefix(is_quote) {
        // A quote without its closing quote is ignored.
        let Some((words, after)) = inside.split_once(is_quote) else {
            return next_item(inside);
        };
        // The `~n` of a proximity query is accepted and ignored.
        let digit = |c: char| c.is_ascii_digit();
        let after = after.strip_prefix('~').map_or(after, |after| after.trim_start_matches(digit));
        return Some((QueryItem { occur, form: ItemForm::Quoted(words) }, after));
    }
    let end = text.find(|c: char| c.is_whitespace() || is_quote(c)).unwrap_or(text.len());
    let (word, after) = text.split_at_checked(end).filter(|(word, _)| !word.is_empty())?;
    Some((QueryItem { occur, form: ItemForm::Bare(word) }, after))
}

/// Reads a `+` or `-` directly before a word or a quote.
fn occur_operator(text: &str) -> Option<(Occur, &str)> {
    let (occur, after) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(after), _) => (Occur::Must, after),
        (_, Some(after)) => (Occur::MustNot, after),
        _ => return None,
    };
    let nothing = |c: char| c.is_whitespace() || matches!(c, '+' | '-');
    (!after.is_empty() && !after.starts_with(nothing)).then_some((occur, after))
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201c}' | '\u{201d}')
}

/// The suffix operator of a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SuffixOperator {
    None,
    Prefix,
    Fuzzy(u8),
}

/// Splits a word from its suffix operator.
pub(super) fn split_suffix(word: &str) -> (&str, SuffixOperator) {
    let word = word.trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']']);
    let begins = word.trim_end_matches('*');
    let (bare, edits) = match word.rsplit_once('~') {
        Some((bare, "" | "1")) => (bare, 1),
        Some((bare, "0")) => (bare, 0),
        Some((bare, edits)) if edits.bytes().all(|b| b.is_ascii_digit()) => (bare, 2),
        _ => (word, 0),
    };
    if begins.len() < word.len() && begins.ends_with(char::is_alphanumeric) {
        (begins, SuffixOperator::Prefix)
    } else if bare.len() < word.len() && bare.ends_with(char::is_alphanumeric) {
        (bare, if edits == 0 { SuffixOperator::None } else { SuffixOperator::Fuzzy(edits) })
    } else {
        (word, SuffixOperator::None)
    }
}
