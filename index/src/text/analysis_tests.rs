//! Tests of the terms of texts.

use proptest::prelude::*;

use super::super::normalise::MAX_TERM_BYTES;
use super::super::settings::ANALYSIS_VERSION;
use super::*;

/// `term@place` of every token.
fn terms(language: Language, text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let flow = Analyser::new(language).analyse(text, &mut |token| {
        terms.push(format!("{}@{}", token.term, token.position));
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    terms
}

fn check(text: &str, expected: &str) {
    assert_eq!(terms(Language::English, text).join(" "), expected, "{text:?}");
}

#[test]
fn words_stand_at_places_that_count_up() {
    check("", "");
    check("The quick brown foxes", "the@0 quick@1 brown@2 fox@3");
    check("Caroline's dogs don't run.", "carolin@0 dog@1 dont@2 run@3");
    check("Über: 5 €", "uber@0 5@1");
}

#[test]
fn an_identifier_is_found_whole_and_in_parts() {
    check("user-id is", "user-id@0 user@0 id@1 is@2");
    check("user_id", "user_id@0 user@0 id@1");
    check("prefers_dark_mode", "prefers_dark_mode@0 prefer@0 dark@1 mode@2");
    check("2024-05-07 x", "2024-05-07@0 2024@0 05@1 07@2 x@3");
    check("src/main.rs", "src/main.rs@0 src@0 main.rs@1 main@1 rs@2");
    check("alice@example.com", "alice@example.com@0 alic@0 example.com@1 exampl@1 com@2");
    check("2024-05-07T10:30", "2024-05-07t10:30@0 2024-05-07@0 2024@0 05@1 07@2 10@3 30@4");
    check("v1.2", "v1.2@0 v1@0 v@0 1@0 2@1");
    check("1,000 1,2", "1000@0 1@1 2@2");
    check("C++ or C#", "c++@0 c@0 or@1 c#@2 c@2");
    check("mother-in-law's", "mother-in-law@0 mother@0 in@1 law@2");
}

#[test]
fn encoded_data_is_found_whole_alone() {
    let data = "iVBORw0KGgo/AAAANSUhEUg+".repeat(50);
    let found = terms(Language::English, &format!("image {data}x end"));
    assert_eq!(found.len(), 3);
    assert!(found[1].starts_with("ivborw0kggo/") && found[1].ends_with("@1"), "{}", found[1]);
    assert_eq!(found[2], "end@2");
}

#[test]
fn parts_shown_by_capitals_stand_where_their_word_stands() {
    check("getUserName now", "getusernam@0 get@0 user@0 name@0 now@1");
    check("iPhone 12", "iphon@0 i@0 phone@0 12@1");
    check("iphone 12", "iphon@0 12@1");
}

#[test]
fn an_unspaced_script_is_found_by_pairs_and_its_last_character() {
    check("東京都", "東京@0 京都@1 都@2");
    check("東 x", "東@0 x@1");
    check("ﾊﾝ", "ハン@0 ン@1");
    check("한국 어", "한국@0 국@1 어@2");
    check("กินข้าว", "กิน@0 นข้@1 ข้า@2 าว@3 ว@4");
    check("iPhoneを買う", "iphon@0 i@0 phone@0 を買@1 買う@2 う@3");
}

#[test]
fn an_emoji_is_a_word_without_its_skin() {
    check("ok 👍🏽 👍", "ok@0 👍@1 👍@2");
    check("❤\u{fe0f}", "❤@0");
    check("👩\u{200d}👧", "👩\u{200d}👧@0");
}

#[test]
fn an_article_is_apart_from_its_word_outside_english() {
    assert_eq!(terms(Language::French, "l'homme"), ["l@0", "homm@1"]);
    assert_eq!(terms(Language::None, "Caroline's"), ["caroline@0", "s@1"]);
}

#[test]
fn a_sink_that_breaks_off_gets_no_more() {
    let mut left = 3;
    let flow = Analyser::new(Language::English).analyse("a-b c d e 東京都", &mut |_| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((left, flow.is_break()), (0, true));
}

/// Text in the scripts and languages that have rules of their own.
const SAMPLE: &str = "The runners' user-id is getUserName2 in src/main.rs since 2024-05-07T10:30Z. \
    Die Häuser der Straße; les élèves mangées; año nuevo, corazón; città più belle; IŞIK ışığı; \
    öl og ærø, på sjön; käsitteiden; házakban; orașele; huizen; Лучшие ёлки; Λόγους; المكتبات; \
    வீடுகள்; 東京都 サーバー 한국어 ภาษาไทย 👩\u{200d}👧 C++ ﬁne №5 ١٢٣ donaudampfschifffahrtsgesellschaftskapitaensmuetzenknopfloch";

#[test]
fn terms_change_only_together_with_the_version_of_the_analysis() {
    let all: Vec<String> = Language::all().flat_map(|language| terms(language, SAMPLE)).collect();
    assert_eq!((ANALYSIS_VERSION, crc32fast::hash(all.join(" ").as_bytes())), (1, 3_856_964_882));
}

#[test]
fn long_hostile_texts_have_bounded_terms() {
    const BYTES: usize = 1 << 17;
    for unit in [
        "a",
        "\u{301}",
        "\u{301}\u{323}",
        "a-",
        "a/b-",
        "aB",
        "1a",
        "1,000",
        "123,",
        "a'",
        "\0",
        "\u{200b}",
        "a\u{200d}",
        "東",
        "ก",
        "\u{e48}",
        "👩\u{200d}",
        "🇩",
        "ﷺ",
        "क्",
        "ᄀ",
        "שָׁ",
        "http://a/b?c=",
        "_",
        "\"",
    ] {
        let text = format!("x{}", unit.repeat(BYTES / unit.len()));
        for language in [Language::English, Language::Turkish] {
            let mut longest = 0;
            let mut analyser = Analyser::new(language);
            let flow = analyser.analyse(&text, &mut |token| {
                longest = longest.max(token.term.len());
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
            assert!((1..=MAX_TERM_BYTES).contains(&longest), "{unit:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_has_terms_within_bounds_at_places_that_ascend(
        text in "\\PC{0,60}|[a-zA-Z0-9'_./:@T, -]{0,60}|[\\u{0}-\\u{3ff}\\u{1f3f0}-\\u{1f9ff}]{0,60}",
        language in 0usize..19,
    ) {
        let language = Language::all().nth(language).unwrap_or_default();
        let (mut place, mut unit) = (0, 0);
        let mut wrong = None;
        let _flow = Analyser::new(language).analyse(&text, &mut |token| {
            let bounded = (1..=MAX_TERM_BYTES).contains(&token.term.len());
            let ascends = token.position >= place && token.unit >= unit;
            if !(bounded && ascends) {
                wrong = Some(token.term.to_owned());
            }
            (place, unit) = (token.position, token.unit);
            ControlFlow::Continue(())
        });
        prop_assert_eq!(wrong, None);
    }

    #[test]
    fn a_reused_analyser_gives_what_a_new_one_gives(one in "\\PC{0,30}", two in "\\PC{0,30}") {
        let mut analyser = Analyser::new(Language::German);
        let mut found = Vec::new();
        for text in [&one, &two] {
            found.clear();
            let _flow = analyser.analyse(text, &mut |token| {
                found.push(format!("{}@{}", token.term, token.position));
                ControlFlow::Continue(())
            });
        }
        prop_assert_eq!(found, terms(Language::German, &two));
    }
}
