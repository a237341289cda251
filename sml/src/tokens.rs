//! Token counting: the trait for a host's tokenizer, and the default estimator.
//!
//! It knows text only. `assemble` decides what is counted and against which budget.

#[cfg(feature = "cl100k")]
mod cl100k;

#[cfg(feature = "cl100k")]
pub use cl100k::Cl100k;

/// Counts the tokens of a text as a model would see them.
///
/// Assembly counts each line by itself and adds up the counts, so a counter should be nearly additive
/// over lines: `count(a + b)` close to `count(a) + count(b)` if `a` ends in a newline, and never less
/// than `count(a)`. A counter that violates this leads to fewer grains shown, never to an exceeded
/// budget: the finished text is counted as a whole, and grains are dropped until it fits. Several
/// threads may count at once.
///
/// ```
/// use grainstore_sml::TokenCounter;
///
/// struct Words;
///
/// impl TokenCounter for Words {
///     fn count(&self, text: &str) -> usize {
///         text.split_whitespace().count()
///     }
///     fn name(&self) -> &str {
///         "words"
///     }
/// }
/// assert_eq!(Words.count("alice prefers tea"), 3);
/// ```
pub trait TokenCounter: Sync {
    /// Returns the number of tokens in `text`.
    fn count(&self, text: &str) -> usize;

    /// Returns a stable name for reports, such as `cl100k_base`.
    fn name(&self) -> &str;
}

/// The default [`TokenCounter`]: an estimate close to `cl100k_base`, computed in one pass over the
/// text.
///
/// The error is within about 10 % for English chat text, and within about 30 % for other scripts. Two
/// properties hold exactly: the count is additive over lines (`count(a + b) = count(a) + count(b)` if
/// `a` ends in a newline), and it depends on the text only.
///
/// ```
/// use grainstore_sml::{Estimator, TokenCounter};
///
/// let (first, second) = ("Alice likes tea.\n", "She works at Acme.");
/// let both = format!("{first}{second}");
/// assert_eq!(Estimator.count(&both), Estimator.count(first) + Estimator.count(second));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Estimator;

impl TokenCounter for Estimator {
    fn count(&self, text: &str) -> usize {
        let mut line = LineEstimate::default();
        let mut tokens = 0;
        for c in text.chars() {
            line.push(c);
            if c == '\n' {
                tokens += line.tokens();
                line = LineEstimate::default();
            }
        }
        tokens + line.tokens()
    }

    fn name(&self) -> &str {
        "estimate"
    }
}

/// The weight of one token. All weights below are in hundredths of a token.
const TOKEN_WEIGHT: usize = 100;

/// One line while it is read: the weight of the completed runs, and the current run.
#[derive(Default)]
struct LineEstimate {
    weight: usize,
    before: CharClass,
    run: CharRun,
}

/// A run of characters of one class.
#[derive(Default, Clone, Copy)]
struct CharRun {
    class: CharClass,
    chars: usize,
    capitals: usize,
    first: char,
}

/// Classes of characters that a tokenizer tends to keep together.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum CharClass {
    /// Before the first character of a line.
    #[default]
    LineStart,
    Space,
    Newline,
    Letter,
    Digit,
    Mark,
    /// A non-ASCII character, with its weight.
    Other(usize),
}

impl CharClass {
    fn of(c: char) -> Self {
        match c {
            '\n' => Self::Newline,
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            ' ' | '\t' | '\r' => Self::Space,
            _ if c.is_ascii() => Self::Mark,
            _ => Self::Other(weight_of_char(c)),
        }
    }
}

/// Weights of non-ASCII characters, by the last code point of a range of blocks. They reflect how well
/// the vocabulary covers the script.
const SCRIPT_WEIGHTS: [(u32, usize); 12] = [
    (0x024F, 60),     // Latin with marks
    (0x036F, 100),    // combining marks
    (0x03FF, 100),    // Greek
    (0x052F, 57),     // Cyrillic
    (0x06FF, 95),     // Hebrew, Arabic
    (0x0DFF, 125),    // Indic
    (0x0E7F, 100),    // Thai
    (0x1FFF, 130),    // other syllabic scripts
    (0x30FF, 100),    // symbols, kana
    (0xABFF, 120),    // CJK
    (0xFFFF, 145),    // Hangul and forms
    (0x10_FFFF, 250), // emoji and rare scripts
];

fn weight_of_char(c: char) -> usize {
    let known = SCRIPT_WEIGHTS.iter().find(|(last, _)| u32::from(c) <= *last);
    known.map_or(TOKEN_WEIGHT, |(_, weight)| *weight)
}

impl LineEstimate {
    fn push(&mut self, c: char) {
        let class = CharClass::of(c);
        if class != self.run.class {
            self.close(class);
            self.run = CharRun { class, first: c, ..CharRun::default() };
        }
        self.run.chars += 1;
        self.run.capitals += usize::from(c.is_ascii_uppercase());
    }

    fn close(&mut self, after: CharClass) {
        self.weight += self.run.weight(self.before, after);
        self.before = self.run.class;
    }

    /// Returns the weight of the line in whole tokens, rounded to nearest. A line that is not empty is
    /// at least one.
    fn tokens(mut self) -> usize {
        self.close(CharClass::LineStart);
        let floor = usize::from(self.before != CharClass::LineStart);
        ((self.weight + TOKEN_WEIGHT / 2) / TOKEN_WEIGHT).max(floor)
    }
}

impl CharRun {
    /// Returns the weight of the run, given the classes before and after it.
    fn weight(&self, before: CharClass, after: CharClass) -> usize {
        match self.class {
            CharClass::LineStart => 0,
            CharClass::Space => self.spaces(after),
            CharClass::Newline => {
                if before == CharClass::Mark {
                    0
                } else {
                    TOKEN_WEIGHT
                }
            }
            CharClass::Letter => self.word(before),
            CharClass::Digit => self.chars.div_ceil(3) * TOKEN_WEIGHT,
            CharClass::Mark => self.marks(before, after),
            CharClass::Other(weight) => self.chars * weight,
        }
    }

    /// One space belongs to the word after it, but not to a number. Several are a token of their own.
    fn spaces(&self, after: CharClass) -> usize {
        let own = if after == CharClass::Digit { TOKEN_WEIGHT } else { 0 };
        if self.chars > 1 { own + TOKEN_WEIGHT } else { own }
    }

    /// Short words are one token, long ones are split. Capitals and a missing space before the word
    /// split earlier.
    fn word(&self, before: CharClass) -> usize {
        let n = self.chars;
        if self.capitals > 1 {
            return TOKEN_WEIGHT + n.saturating_sub(2) * 45;
        }
        let long = match n {
            0..=6 => 0,
            7..=9 => 4,
            10..=11 => 8,
            12..=13 => 27,
            _ => 50 + (n - 14) * 25,
        };
        let strange = match (before == CharClass::Space, self.capitals) {
            (true, 0) => 0,
            (true, _) => n.saturating_sub(4) * 8,
            (false, _) => n.saturating_sub(3) * 10,
        };
        TOKEN_WEIGHT + long + strange
    }

    /// Up to three marks in a row are one token. A single mark may join the word after it.
    fn marks(&self, before: CharClass, after: CharClass) -> usize {
        match (self.chars, after) {
            (1, CharClass::Letter) if self.first == '\'' && before == CharClass::Letter => 0,
            (1, CharClass::Letter) => 60,
            (n, _) => n.div_ceil(3) * TOKEN_WEIGHT,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(text: &str) -> usize {
        Estimator.count(text)
    }

    /// Texts with their `cl100k_base` count and the allowed error of the estimate in percent: count,
    /// percent, text.
    const MEASURED: [(usize, usize, &str); 15] = [
        (13, 10, "Hey, did you manage to book the dentist for Thursday afternoon?"),
        (23, 10, "Yes, they had one slot left at 4:30, so I moved the standup to the morning."),
        (
            24,
            10,
            "I've been thinking about what you said, and you're right: we shouldn't ship it before \
             the tests pass.",
        ),
        (
            22,
            10,
            "Could you remind me to water the plants when I'm back from Lisbon? It's getting \
             really hot here.",
        ),
        (
            26,
            10,
            "My sister's wedding is on the 14th of June 2026, and I still haven't found anything \
             to wear!",
        ),
        (
            22,
            10,
            "The meeting went fine... mostly. Nobody had read the document, so we spent an hour \
             going over it.",
        ),
        (
            23,
            10,
            "  <belief subject=\"alice\" confidence=\"0.92\">prefers window seats on long \
             flights</belief>\n",
        ),
        (
            28,
            10,
            "  <event role=\"assistant\" time=\"10m ago\">The report is ready; I sent it to the \
             whole team.</event>\n",
        ),
        (
            30,
            10,
            "  <action tool=\"search_flights\" phase=\"completed\">{\"cheapest\":149,\"carrier\":\
             \"TAP\",\"stops\":0}</action>\n",
        ),
        (
            40,
            10,
            "  <consent action=\"granted\" grantor=\"did:web:example.com:alice\" \
             grantee=\"did:web:example.com:agent\">store, retrieve</consent>\n",
        ),
        (15, 20, "Ja, das Treffen findet nächste Woche am Donnerstag statt."),
        (15, 20, "¿Puedes enviarme la dirección del restaurante, por favor?"),
        (23, 20, "明日の朝、駅前のカフェで会いましょう。"),
        (15, 20, "请把会议记录发给我，谢谢。"),
        (18, 20, "Завтра утром я поеду на вокзал."),
    ];

    #[test]
    fn estimates_come_near_the_real_tokenizer() {
        for (real, percent, text) in MEASURED {
            let off = count(text).abs_diff(real);
            assert!(off * 100 <= real * percent, "{} for {real}: {text}", count(text));
        }
    }

    #[test]
    fn every_line_counts_and_nothing_is_nothing() {
        assert_eq!(count(""), 0);
        assert_eq!(count("\n"), 1);
        assert_eq!(count("\n\n\n"), 3);
    }

    #[test]
    fn long_runs_of_anything_cost_by_their_length() {
        for unit in ["a", "A", "7", "-", "é", "語", "🎉", "\u{1b}", "\n"] {
            let long = count(&unit.repeat(1000));
            assert!(long >= 200, "{long} for 1000 times {unit:?}");
        }
    }

    proptest! {
        #[test]
        fn lines_add_up(lines in prop::collection::vec(".{0,40}", 0..10), tail in ".{0,40}") {
            let mut text = String::new();
            let mut sum = 0;
            for line in &lines {
                let line = format!("{line}\n");
                sum += count(&line);
                text.push_str(&line);
            }
            prop_assert_eq!(count(&text), sum);
            text.push_str(&tail);
            prop_assert_eq!(count(&text), sum + count(&tail));
        }

        #[test]
        fn visible_text_is_never_free(text in "[a-zA-Z0-9é語🎉.]{1,20}") {
            prop_assert!(count(&text) >= 1);
        }
    }
}
