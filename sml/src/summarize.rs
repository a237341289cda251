//! WITH summarize: extracts the sentences that cover most of several grains (see `docs/cal.md`).
//! Sentences are quoted unchanged, but for the characters that no text format shows, and the same grains
//! always give the same sentences.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use grainstore_format::GrainType;

use crate::cancel::CancelCheck;
use crate::error::Error;
use crate::format::one_line;
use crate::item::Item;
use crate::level::Level;
use crate::project::project;
use crate::time::Clock;

/// Maximum number of sentences in a summary.
const MAX_SENTENCES: usize = 3;
/// The length in characters above which a sentence is not used.
const MAX_SENTENCE_CHARS: usize = 300;
/// Words shorter than this, in characters, are ignored because they say little about the topic.
const MIN_WORD_CHARS: usize = 4;

/// A sentence, and the words it is scored by.
struct Sentence {
    text: String,
    words: BTreeSet<String>,
}

/// Returns at most three sentences of the grains, in the order of the grains.
///
/// A word is weighted by the number of grains it occurs in, and by half of that once a chosen sentence
/// contains it. The sentence with the highest gain is chosen next, the first one on a tie. Sentences
/// end at `.`, `!` or `?` before a space, at their ideographic forms, and at a newline. A belief is
/// preceded by its subject.
///
/// ```
/// use grainstore_format::{EpochMs, EventBuilder};
/// use grainstore_sml::{CancelCheck, Clock, Item, summarize};
///
/// let at = EpochMs::new(1_768_471_200_000);
/// let mut items = Vec::new();
/// for content in ["Hello! The review moved.", "Lunch was fine. The review needs numbers."] {
///     let grain = EventBuilder::new(at, content).build()?;
///     items.push(Item { grain, verification: None, chosen: None, score: None });
/// }
/// let clock = Clock { now: at, iso_timestamps: false };
/// let said = summarize(&items, &clock, CancelCheck::NEVER)?;
/// assert!(said.contains(&"The review moved.".to_owned()));
/// assert!(!said.contains(&"Hello!".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `CAL-E082` if cancelled.
pub fn summarize(
    items: &[Item],
    clock: &Clock,
    watch: CancelCheck<'_>,
) -> Result<Vec<String>, Error> {
    let mut spread: BTreeMap<String, u64> = BTreeMap::new();
    let mut sentences = Vec::new();
    for item in items {
        watch.check()?;
        let own = sentences_of(item, clock);
        let said: BTreeSet<&String> = own.iter().flat_map(|sentence| &sentence.words).collect();
        for word in said {
            *spread.entry(word.clone()).or_default() += 1;
        }
        sentences.extend(own);
    }
    let mut chosen: BTreeSet<usize> = BTreeSet::new();
    let mut said: BTreeSet<&String> = BTreeSet::new();
    while chosen.len() < MAX_SENTENCES {
        watch.check()?;
        let gains = sentences.iter().enumerate();
        let gains = gains.map(|(at, sentence)| (gain(sentence, &spread, &said), Reverse(at)));
        let Some((1.., Reverse(at))) = gains.max() else { break };
        chosen.insert(at);
        said.extend(sentences.get(at).iter().flat_map(|sentence| &sentence.words));
    }
    Ok(chosen.into_iter().filter_map(|at| Some(sentences.get(at)?.text.clone())).collect())
}

/// Returns the gain of adding a sentence, in thousandths, or 0 if it has no new word: the squared sum
/// of the word weights over the number of words. The square keeps short sentences from winning by being
/// short.
fn gain(sentence: &Sentence, spread: &BTreeMap<String, u64>, said: &BTreeSet<&String>) -> u64 {
    if sentence.words.iter().all(|word| said.contains(word)) {
        return 0;
    }
    let worth = |word| {
        let spread = spread.get(word).copied().unwrap_or_default();
        if said.contains(word) { spread } else { 2 * spread }
    };
    let sum: u64 = sentence.words.iter().map(worth).sum();
    let words = u64::try_from(sentence.words.len()).unwrap_or(u64::MAX);
    sum.saturating_mul(sum).saturating_mul(1000).checked_div(words).unwrap_or_default()
}

fn sentences_of(item: &Item, clock: &Clock) -> Vec<Sentence> {
    let Some(shown) = project(item, Level::Standard, clock) else { return Vec::new() };
    let subject = item
        .grain
        .text("subject")
        .filter(|_| shown.grain_type == GrainType::Belief && !shown.chosen);
    let text = match subject {
        Some(subject) => format!("{subject} {}", shown.text),
        None => shown.text.into_owned(),
    };
    split_sentences(&text)
        .into_iter()
        .map(one_line)
        .filter(|text| !text.is_empty())
        .filter(|text| text.chars().take(MAX_SENTENCE_CHARS + 1).count() <= MAX_SENTENCE_CHARS)
        .map(|text| Sentence { words: topic_words(&text), text: text.into_owned() })
        .collect()
}

/// Splits a text into sentences, trimmed and not empty.
fn split_sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let before_space = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        let ends = match c {
            '.' | '!' | '?' => before_space,
            '。' | '！' | '？' | '\n' => true,
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            sentences.extend(text.get(start..end));
            start = end;
        }
    }
    sentences.extend(text.get(start..));
    sentences.into_iter().map(str::trim).filter(|sentence| !sentence.is_empty()).collect()
}

/// Returns the lower-case words long enough to say something about the topic, or all words if none is.
fn topic_words(text: &str) -> BTreeSet<String> {
    let all = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let all: BTreeSet<String> = all.map(str::to_lowercase).collect();
    let long = all.iter().filter(|word| word.chars().count() >= MIN_WORD_CHARS);
    let long: BTreeSet<String> = long.cloned().collect();
    if long.is_empty() { all } else { long }
}

#[cfg(test)]
mod tests {
    use grainstore_format::{EpochMs, Grain};

    use super::*;

    const CLOCK: Clock = Clock { now: EpochMs::new(1_768_471_200_000), iso_timestamps: false };

    fn event(content: &str) -> Item {
        let content = serde_json::to_string(content).unwrap();
        let json = format!(
            r#"{{"type": "event", "role": "user", "content": {content}, "created_at": 1768471200000}}"#
        );
        Item {
            grain: Grain::from_json(&json).unwrap(),
            verification: None,
            chosen: None,
            score: None,
        }
    }

    fn of(contents: &[&str]) -> Vec<String> {
        let items: Vec<_> = contents.iter().map(|content| event(content)).collect();
        summarize(&items, &CLOCK, CancelCheck::NEVER).unwrap()
    }

    #[test]
    fn what_most_grains_speak_of_is_said_once_in_their_order() {
        let said = of(&[
            "Hello! The budget review moved to Friday.",
            "Lunch was fine. The budget review needs numbers from Dana.",
            "Dana sends the numbers before the budget review.",
            "Weather is nice.",
        ]);
        assert_eq!(
            said,
            [
                "The budget review moved to Friday.",
                "The budget review needs numbers from Dana.",
                "Dana sends the numbers before the budget review."
            ]
        );
        assert_eq!(of(&["Same words here.", "Same words here.", "Same words here."]).len(), 1);
    }

    #[test]
    fn sentences_end_at_their_signs_and_with_lines() {
        for (text, sentences) in [
            ("One two. Three?", &["One two.", "Three?"][..]),
            ("v1.2 is out", &["v1.2 is out"]),
            ("a\n\n b ", &["a", "b"]),
            ("一。二！", &["一。", "二！"]),
            ("", &[]),
            (" . ", &["."]),
        ] {
            assert_eq!(split_sentences(text), sentences, "{text:?}");
        }
    }

    #[test]
    fn nothing_gives_nothing_and_no_sentence_is_cut() {
        assert!(of(&[]).is_empty());
        assert!(of(&["...", "!"]).is_empty());
        assert_eq!(of(&["ok"]), ["ok"]);
        let long = format!("{} end. Short one.", "word ".repeat(100));
        assert_eq!(of(&[&long]), ["Short one."]);
    }

    #[test]
    fn what_no_text_shows_is_in_no_sentence() {
        for (content, said) in [
            ("a\u{202e}b\u{2066} is\u{2028} here\u{2029}", &["ab is here"][..]),
            ("a\u{7}b\tis\rhere", &["ab ishere"]),
            ("joined\u{200d}up", &["joined\u{200d}up"]),
            ("\u{202e}\u{2028}", &[]),
        ] {
            assert_eq!(of(&[content]), said, "{content:?}");
        }
    }

    #[test]
    fn beliefs_name_whom_they_are_about_and_what_waits_for_review_is_not_said() {
        let item = |json: &str| Item {
            grain: Grain::from_json(json).unwrap(),
            verification: None,
            chosen: None,
            score: None,
        };
        let belief = item(
            r#"{"type": "belief", "subject": "alice", "relation": "mg:prefers", "object": "dark mode",
                "confidence": 0.9, "created_at": 1768471200000}"#,
        );
        let waiting = item(
            r#"{"type": "reasoning", "conclusion": "nobody may see this", "inference_method": "deductive",
                "requires_human_review": true, "created_at": 1768471200000}"#,
        );
        let said = summarize(&[belief, waiting], &CLOCK, CancelCheck::NEVER).unwrap();
        assert_eq!(said, ["alice prefers dark mode"]);
    }

    #[test]
    fn it_stops_between_two_grains_when_it_is_told_to() {
        let items: Vec<_> = (0..9).map(|at| event(&format!("Thing {at} happened."))).collect();
        let looks = std::cell::Cell::new(0);
        let stops = || {
            looks.set(looks.get() + 1);
            looks.get() > 4
        };
        let stopped = summarize(&items, &CLOCK, CancelCheck::from_fn(&stops));
        assert_eq!((stopped.map_err(|error| error.code()), looks.get()), (Err("CAL-E082"), 5));
    }
}
