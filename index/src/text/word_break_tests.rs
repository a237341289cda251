//! Tests of word boundaries.

use super::*;

fn segments(text: &str, apostrophes: bool) -> Vec<String> {
    let mut segments = WordBreaker::of(text, apostrophes, Vec::new());
    let mut found = Vec::new();
    while let Some(segment) = segments.next() {
        found.push(match segment {
            TextRun::Words(_) => {
                let joined = segments.words().iter().map(|word| {
                    let sign = if word.divided { "|" } else { "" };
                    format!("{sign}{}", segments.slice(word.start, word.end))
                });
                joined.collect::<Vec<_>>().join("+")
            }
            TextRun::Unspaced(run) => format!("[{run}]"),
            TextRun::Emoji(cluster) => format!("<{cluster}>"),
        });
    }
    found
}

#[test]
fn a_text_falls_into_words_runs_and_emoji() {
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(segments(text, true), expected, "{text:?}");
    };
    check("", &[]);
    check("  \0 ... !? ", &[]);
    check("one two", &["one", "two"]);
    check("end. Start, then", &["end", "Start", "then"]);
    check("user-id user_id a__b", &["user+id", "user+id", "a+b"]);
    check("2024-05-07", &["2024+05+07"]);
    check("2024-05-07T10:30:00Z", &["2024+05+07+|10+|30+|00Z"]);
    check("src/main.rs", &["src+|main+rs"]);
    check("C:\\temp\\x.txt", &["C+|temp+|x+txt"]);
    check("alice@example.com", &["alice+|example+com"]);
    check("std::vec::Vec", &["std+|vec+|Vec"]);
    check("https://a.b/c?d=e#f x=y", &["https+|a+b+|c+|d+|e+|f", "x", "y"]);
    check("v1.2.3 and 3.14", &["v1+2+3", "and", "3+14"]);
    check("1,000 1,000,000 1,2,3 2024,000", &["1,000", "1,000,000", "1", "2", "3", "2024", "000"]);
    check("well\u{2010}known -not- --x", &["well+known", "not", "x"]);
    check("C++, C# F#1 ab++", &["C", "C", "F", "1", "ab"]);
    check("東京tower", &["[東京]", "tower"]);
    check("ข้าว 5", &["[ข้าว]", "5"]);
    check("ok👍🏽!👩\u{200d}👩\u{200d}👧🇩🇪", &["ok", "<👍🏽>", "<👩\u{200d}👩\u{200d}👧>", "<🇩🇪>"]);
    check("can\u{200d}not so\u{ad}ft a\u{200b}b", &["can\u{200d}not", "so\u{ad}ft", "a", "b"]);
    check("\u{202e}abc\u{202c} שלום", &["abc\u{202c}", "שלום"]);
}

#[test]
fn an_apostrophe_is_part_of_a_word_where_the_language_says_so() {
    assert_eq!(
        segments("don't O\u{2019}Brien dogs' 'a'", true),
        ["don't", "O\u{2019}Brien", "dogs", "a"]
    );
    assert_eq!(segments("l'homme l\u{2019}eau", false), ["l", "homme", "l", "eau"]);
}

#[test]
fn capitals_and_digits_show_the_parts_of_a_word() {
    let check = |word: &str, expected: &[&str]| {
        let mut found = Vec::new();
        inner_parts(word, |part| found.push(part.to_owned()));
        assert_eq!(found, expected, "{word}");
    };
    check("getUserName", &["get", "User", "Name"]);
    check("HTTPServer", &["HTTP", "Server"]);
    check("iPhone", &["i", "Phone"]);
    check("sha256", &["sha", "256"]);
    check("7pm", &["7", "pm"]);
    check("ÜberUns", &["Über", "Uns"]);
    check("TVs", &[]);
    check("NASA", &[]);
    check("Hello", &[]);
    check("2024", &[]);
    check("", &[]);
    check("a1b2c3d4", &[]);
    check("aBcDeFgHiJkLmNoPqRsT", &[]);
}
