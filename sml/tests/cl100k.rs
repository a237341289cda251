//! The exact counter, and how far the estimate is from it.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]

use std::path::{Path, PathBuf};

use grainstore_format::{EpochMs, Grain};
use grainstore_sml::{
    AssemblyOptions, AssemblySource, Budget, CancelCheck, Cl100k, Clock, Disclosure, Estimator,
    Format, Item, Level, TokenCounter, assemble, render,
};
use serde_json::{Value, json};

const CLOCK: Clock = Clock { now: EpochMs::new(1_768_474_800_000), iso_timestamps: false };

/// The folder of conversations: below the one the environment names, or the one beside the workspace.
fn locomo() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let shared = std::env::var_os("GRAINSTORE_SHARED").map_or(beside, PathBuf::from);
    let folder = shared.join("data/locomo");
    folder.is_dir().then_some(folder)
}

fn turns(file: &Path) -> Vec<String> {
    let rows = std::fs::read_to_string(file).unwrap();
    let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).unwrap());
    rows.map(|row| row["text"].as_str().unwrap().to_owned()).collect()
}

fn events(turns: &[String]) -> Vec<Item> {
    let grains = (0_i64..).zip(turns).map(|(at, turn)| {
        let event = json!({ "type": "event", "content": turn, "role": "user",
            "created_at": 1_768_471_200_000 + at });
        Grain::from_json(&event.to_string()).unwrap()
    });
    grains.map(|grain| Item { grain, verification: None, chosen: None, score: None }).collect()
}

#[test]
fn known_texts_have_the_tokens_the_model_reads() {
    for (text, tokens) in [
        ("", 0),
        ("hello world", 2),
        ("Hey, did you manage to book the dentist for Thursday afternoon?", 13),
        ("明日の朝、駅前のカフェで会いましょう。", 23),
        ("<|endoftext|>", 7),
    ] {
        assert_eq!(Cl100k.count(text), tokens, "{text}");
    }
    assert_eq!(Cl100k.name(), "cl100k_base");
}

#[test]
fn the_estimate_is_within_a_tenth_on_conversations() {
    let Some(folder) = locomo() else {
        println!(
            "skipped: no LoCoMo data; set GRAINSTORE_SHARED to the folder that has data/locomo"
        );
        return;
    };
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with(".turns.jsonl") {
            continue;
        }
        files += 1;
        let said = turns(&path);
        let shown = render(&events(&said), Format::Sml, Level::Standard, &CLOCK);
        for text in [said.join("\n"), shown] {
            let (exact, estimate) = (Cl100k.count(&text), Estimator.count(&text));
            assert!(exact > 5_000, "{}", path.display());
            assert!(
                estimate.abs_diff(exact) * 10 <= exact,
                "{}: {estimate} for {exact}",
                path.display()
            );
        }
    }
    assert!(files > 0);
}

#[test]
fn a_budget_of_exact_tokens_is_kept_and_used() {
    let said: Vec<_> = (0..200)
        .map(|n| {
            format!("antidisestablishmentarianism {n}, 日本語 🎉 and <b>{}</b>", "x".repeat(n))
        })
        .collect();
    let items = events(&said);
    for budget in [120, 500, 2_000] {
        for format in Format::ALL {
            let options = AssemblyOptions {
                format,
                name: None,
                intent: None,
                budget: Budget::Tokens(budget),
                priority: &[],
                disclosure: Disclosure::Auto,
                clock: CLOCK,
                template: None,
                cancel: CancelCheck::NEVER,
            };
            let source = AssemblySource { label: "talk", items: &items, limit: 200, failed: false };
            let assembly = assemble(&[source], &options, &Cl100k).unwrap();
            let used = Cl100k.count(&assembly.text);
            assert_eq!(used, assembly.tokens, "{format:?}");
            assert!(used <= budget && used * 2 > budget, "{format:?}: {used} of {budget}");
        }
    }
}

/// Words by length: the last length of a class, and the weight of the estimator for a small word after a blank.
const LENGTHS: [(usize, usize); 5] = [(6, 100), (9, 104), (11, 108), (13, 127), (15, 163)];

/// Sentences of everyday talk, with the weight of the estimator for the characters that are not ASCII.
const SCRIPTS: [(&str, usize, &str); 9] = [
    ("Greek", 100, "Καλημέρα, θα έρθω αύριο το πρωί με το τρένο. Πού θα συναντηθούμε;"),
    ("Cyrillic", 57, "Доброе утро, завтра я приеду на поезде. Где мы встретимся после работы?"),
    ("Hebrew", 95, "בוקר טוב, אני אגיע מחר ברכבת. איפה ניפגש אחרי העבודה?"),
    ("Arabic", 95, "صباح الخير، سأصل غدا بالقطار. أين نلتقي بعد العمل؟"),
    ("Devanagari", 125, "नमस्ते, मैं कल सुबह ट्रेन से आऊँगा। हम काम के बाद कहाँ मिलेंगे?"),
    ("Thai", 100, "สวัสดี พรุ่งนี้เช้าฉันจะมาโดยรถไฟ เราจะพบกันที่ไหนหลังเลิกงาน"),
    ("kana and CJK", 110, "おはよう、明日の朝は電車で行きます。仕事のあとどこで会いましょうか。"),
    ("CJK", 120, "早上好，我明天坐火车来。下班以后我们在哪里见面？请把地址发给我。"),
    ("Hangul", 145, "안녕하세요, 내일 아침 기차로 갈게요. 퇴근 후에 어디에서 만날까요?"),
];

/// The tokens a character costs beyond those that the rest of a text costs, in hundredths.
fn cost_of_marked(text: &str) -> (usize, usize) {
    let words = text.split(' ').filter(|word| !word.is_ascii());
    let tokens: usize = words.clone().map(|word| Cl100k.count(&format!(" {word}"))).sum();
    let plain = words.clone().flat_map(str::chars).filter(char::is_ascii).count();
    let marked = words.flat_map(str::chars).filter(|c| !c.is_ascii()).count();
    (tokens.saturating_sub(plain / 6) * 100 / marked, marked)
}

/// The fit the weights of the estimator come from: the mean number of tokens of what each weight stands for.
/// Printed with `--nocapture`; docs/benchmarks.md has the table.
#[test]
fn the_weights_are_the_means_of_what_they_stand_for() {
    for (script, weight, text) in SCRIPTS {
        let (measured, characters) = cost_of_marked(text);
        println!("{script}: weight {weight}, measured {measured} a character ({characters})");
        assert!(measured.abs_diff(weight) * 4 <= measured, "{script}: {weight} for {measured}");
    }
    let Some(folder) = locomo() else {
        println!("skipped: no LoCoMo data");
        return;
    };
    let mut words: [Vec<usize>; LENGTHS.len()] = Default::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with(".turns.jsonl") {
            continue;
        }
        for word in turns(&path).iter().flat_map(|turn| turn.split(' ')) {
            let class = LENGTHS.iter().position(|(last, _)| word.len() <= *last);
            if let Some(class) = class
                && !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_lowercase())
            {
                words[class].push(Cl100k.count(&format!(" {word}")));
            }
        }
    }
    for ((last, weight), tokens) in LENGTHS.into_iter().zip(words) {
        let measured = tokens.iter().sum::<usize>() * 100 / tokens.len();
        println!("words to {last}: weight {weight}, measured {measured} ({})", tokens.len());
        assert!(measured.abs_diff(weight) <= 20, "words to {last}: {weight} for {measured}");
    }
}
