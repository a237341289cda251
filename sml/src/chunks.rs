//! Splits a finished text into chunks of similar size that never end inside an element or a row.

use crate::tokens::TokenCounter;

/// A chunk of the text of an [assembly](crate::assemble()).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The text of the chunk.
    pub text: &'a str,
    /// Its tokens, by the counter in use.
    pub tokens: usize,
    /// The number of elements or rows that end in it.
    pub grains: usize,
}

/// Splits a text at some of the offsets in `cuts`, which are ascending. A chunk has at most `most`
/// tokens, unless a single element has more. The chunks joined give the text. Elements of no length go
/// with their neighbour, so no chunk is empty.
pub(crate) fn chunks<'a>(
    text: &'a str,
    cuts: &'a [usize],
    most: usize,
    counter: &'a dyn TokenCounter,
) -> impl Iterator<Item = Chunk<'a>> {
    let whole = (cuts.last() != Some(&text.len()) && !text.is_empty()).then_some(text.len());
    let mut ends = cuts.iter().copied().chain(whole).peekable();
    let (mut start, mut at) = (0, 0);
    std::iter::from_fn(move || {
        let (mut end, mut tokens, mut pieces) = (start, 0_usize, 0);
        while let Some(next) = ends.peek().copied() {
            let piece = counter.count(text.get(end..next).unwrap_or_default());
            if end > start && next > end && tokens.saturating_add(piece) > most {
                break;
            }
            (end, tokens, pieces) = (next, tokens.saturating_add(piece), pieces + 1);
            ends.next();
        }
        let piece = text.get(start..end).filter(|piece| !piece.is_empty())?;
        start = end;
        let before = at;
        at = cuts.len().min(at + pieces);
        Some(Chunk { text: piece, tokens: counter.count(piece), grains: at - before })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Bytes;

    impl TokenCounter for Bytes {
        fn count(&self, text: &str) -> usize {
            text.len()
        }

        fn name(&self) -> &str {
            "bytes"
        }
    }

    #[test]
    fn pieces_are_gathered_up_to_a_size_and_none_is_cut() {
        for (text, cuts, most, expected) in [
            ("aabbcc.", &[2, 4, 6][..], 4, &[("aabb", 2), ("cc.", 1)][..]),
            ("aabbcc.", &[2, 4, 6], 2, &[("aa", 1), ("bb", 1), ("cc", 1), (".", 0)]),
            ("aabbcc.", &[2, 4, 6], 1, &[("aa", 1), ("bb", 1), ("cc", 1), (".", 0)]),
            ("aabbcc.", &[2, 4, 6], 99, &[("aabbcc.", 3)]),
            ("aabb", &[2, 4], 3, &[("aa", 1), ("bb", 1)]),
            ("aabb", &[], 1, &[("aabb", 0)]),
            ("", &[], 1, &[]),
            ("aabbbb", &[0, 2, 2, 6, 6], 3, &[("aa", 3), ("bbbb", 2)]),
            ("aaaa.", &[0, 4], 3, &[("aaaa", 2), (".", 0)]),
            ("", &[0, 0], 1, &[]),
        ] {
            let found: Vec<_> = chunks(text, cuts, most, &Bytes).collect();
            let told: Vec<_> = found.iter().map(|chunk| (chunk.text, chunk.grains)).collect();
            assert_eq!(told, expected, "{text} at {cuts:?}, {most}");
            assert!(found.iter().all(|chunk| chunk.tokens == chunk.text.len()));
        }
    }

    proptest! {
        #[test]
        fn chunks_join_to_the_text_and_lose_no_grain(
            pieces in prop::collection::vec("[a-z]{0,9}", 0..30),
            tail in "[.]{0,3}",
            most in 0_usize..30,
        ) {
            let mut text = String::new();
            let mut cuts = Vec::new();
            for piece in &pieces {
                text.push_str(piece);
                cuts.push(text.len());
            }
            text.push_str(&tail);
            let found: Vec<_> = chunks(&text, &cuts, most, &Bytes).collect();
            let joined: String = found.iter().map(|chunk| chunk.text).collect();
            prop_assert_eq!(&joined, &text);
            let grains = if text.is_empty() { 0 } else { cuts.len() };
            prop_assert_eq!(found.iter().map(|chunk| chunk.grains).sum::<usize>(), grains);
            for chunk in found {
                prop_assert!(!chunk.text.is_empty());
                let uncut = pieces.iter().any(|piece| piece == chunk.text) || chunk.text == tail;
                prop_assert!(uncut || chunk.tokens <= most, "{:?}", chunk);
            }
        }
    }
}
