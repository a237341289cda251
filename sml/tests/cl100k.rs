//! The exact counter, and how far the estimate is from it.

#![expect(
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
