//! What the vectors are: those of the model, whatever else is embedded beside a text.

use std::path::Path;
use std::thread;

use grainstore::embed::{Embedder, LocalEmbedder, LocalOptions};
use serde_json::json;

use crate::tiny::{HIDDEN, Tiny, WORDS, put};
use crate::{apart, by_hand, load, vector};

/// As far as sums of 32 bits and of 64 may be apart here.
const NOISE: f32 = 2e-5;

fn embedder(tiny: &Tiny) -> LocalEmbedder {
    load(tiny.written().path()).unwrap()
}

/// Texts of known words, of every length up to this.
fn texts(most: usize) -> Vec<String> {
    let text = |length: usize| {
        let words = (0..length).map(|at| WORDS[4 + (at * at + 3 * length) % 14]);
        words.collect::<Vec<_>>().join(" ")
    };
    (1..=most).map(text).collect()
}

fn narrowed(vector: &[f64]) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "rounded to what is compared")]
    vector.iter().map(|value| *value as f32).collect()
}

#[test]
fn a_vector_is_what_the_model_makes_computed_by_hand() {
    let tiny = Tiny::new(12);
    let models = [
        (tiny.clone(), false, true),
        (tiny.clone().not_normalised(), false, false),
        (tiny.clone().by_first(), true, true),
        (tiny.by_first().not_normalised(), true, false),
    ];
    for (tiny, by_first, is_normalised) in models {
        let embedder = embedder(&tiny);
        assert_eq!(embedder.dimension(), HIDDEN);
        for text in texts(15) {
            let mut by_hand = by_hand::vector(&tiny, &text, 12, by_first);
            if is_normalised {
                by_hand = by_hand::normalised(&by_hand);
            }
            let off = apart(&vector(&embedder, &text), &narrowed(&by_hand));
            assert!(off < NOISE, "{text}: {off} off; first {by_first}, normalised {is_normalised}");
        }
    }
}

#[test]
fn a_text_has_the_same_vector_in_any_company() {
    // So long that a few texts fill a batch: the longest two, and 32 of the shortest.
    let embedder = embedder(&Tiny::new(512));
    let mut texts = texts(100);
    texts.push("tea ".repeat(509));
    texts.extend((0..9).map(|at| "cup of tea ".repeat(150 + at)));
    let alone: Vec<_> = texts.iter().map(|text| vector(&embedder, text)).collect();
    for step in [1, 37, 109] {
        let order: Vec<usize> = (0..texts.len()).map(|at| at * step % texts.len()).collect();
        let given: Vec<&str> = order.iter().map(|at| texts[*at].as_str()).collect();
        let together = embedder.embed(&given).unwrap();
        assert_eq!(together.len(), texts.len());
        for (at, vector) in order.iter().zip(&together) {
            let off = apart(vector.values(), &alone[*at]);
            assert!(off < NOISE, "text {at} of {step}: {off} off");
        }
    }
    // They are not all alike, or the above says nothing.
    assert!(apart(&alone[0], &alone[1]) > 0.01);
    assert!(embedder.embed(&[]).unwrap().is_empty());
}

#[test]
fn threads_that_ask_at_once_get_the_same() {
    let embedder = embedder(&Tiny::new(12));
    let texts = texts(40);
    let expected: Vec<_> = texts.iter().map(|text| vector(&embedder, text)).collect();
    thread::scope(|scope| {
        for turn in 0..4 {
            let (embedder, texts, expected) = (&embedder, &texts, &expected);
            scope.spawn(move || {
                for (at, text) in texts.iter().enumerate().skip(turn).step_by(2) {
                    assert!(apart(&vector(embedder, text), &expected[at]) < NOISE);
                }
            });
        }
    });
}

#[test]
fn as_many_tokens_are_read_as_the_directory_says() {
    const LONG: &str = "tea coffee cup of a town in norway";
    const SHORT: &str = "tea coffee cup of";
    // What the sentences say, then what the tokenizer says, then the places of the model.
    let cases = [
        (json!({ "max_seq_length": 6 }), json!(null), 4),
        (json!({ "max_seq_length": 6 }), json!(10), 4),
        (json!({}), json!(6), 4),
        (json!({ "max_seq_length": null }), json!(9.0), 7),
        (json!({ "max_seq_length": 512 }), json!(3), 10),
        (json!({}), json!(1e30), 10),
        (json!({}), json!(null), 10),
    ];
    for (sentences, tokenizer, words) in cases {
        let mut tiny = Tiny::new(12);
        (tiny.sentences, tiny.tokenizer_config) =
            (sentences.clone(), json!({ "model_max_length": tokenizer }));
        let embedder = embedder(&tiny);
        let (long, again) = (format!("{LONG} {LONG}"), format!("{LONG} {SHORT}"));
        let read: Vec<&str> = long.split(' ').take(words).collect();
        let off = apart(&vector(&embedder, &long), &vector(&embedder, &read.join(" ")));
        assert!(off < NOISE, "{sentences} {tokenizer}: {off} off");
        let fewer = read[..words - 1].join(" ");
        assert!(apart(&vector(&embedder, &again), &vector(&embedder, &fewer)) > NOISE);
    }
}

#[test]
fn a_text_of_any_length_is_read_at_its_start() {
    let embedder = embedder(&Tiny::new(12));
    let expected = vector(&embedder, &"tea ".repeat(10));
    for long in
        ["tea ".repeat(250_000), format!("{}{}", "tea ".repeat(10), "\u{1f375}".repeat(99_999))]
    {
        assert!(apart(&vector(&embedder, &long), &expected) < NOISE);
    }
    // One word of a megabyte is one nobody knows.
    let unknown = vector(&embedder, "xyz");
    assert!(apart(&vector(&embedder, &"x".repeat(1 << 20)), &unknown) < NOISE);
}

#[test]
fn letters_are_changed_as_the_directory_says() {
    let same = |tiny: &Tiny, left: &str, right: &str| {
        let embedder = embedder(tiny);
        apart(&vector(&embedder, left), &vector(&embedder, right)) < NOISE
    };
    let mut tiny = Tiny::new(12);
    assert!(same(&tiny, "Z\u{fc}rich TEAS", "zurich teas"), "as the tokenizer says");
    assert!(!same(&tiny, "tea", "teas"), "parts of words are tokens");
    tiny.tokenizer_config = json!({ "do_lower_case": false });
    assert!(
        same(&tiny, "TEA", "coffeetea") && !same(&tiny, "TEA", "tea"),
        "what stands beside it holds"
    );
    tiny.sentences["do_lower_case"] = json!(true);
    assert!(same(&tiny, "TEA", "tea"), "in lower case before the tokenizer sees it");
    tiny.tokenizer_config = json!({ "strip_accents": false });
    assert!(same(&tiny, "Z\u{fc}rich", "coffeetea"));
}

#[test]
fn weights_may_be_half_as_wide_and_named_as_part_of_a_larger_model() {
    let mut tiny = Tiny::new(12);
    let widths: Vec<_> = texts(5).iter().map(|text| vector(&embedder(&tiny), text)).collect();
    for (name, ..) in &mut tiny.tensors {
        *name = format!("bert.{name}");
    }
    tiny.tensors.push(("cls.predictions.bias".to_owned(), vec![3], vec![0.0; 3]));
    for (text, expected) in texts(5).iter().zip(&widths) {
        assert!(apart(&vector(&embedder(&tiny), text), expected) < NOISE);
    }
    let mut tiny = Tiny::new(12);
    tiny.kind = "BF16";
    let embedder = embedder(&tiny);
    for (_, _, numbers) in &mut tiny.tensors {
        for number in numbers {
            *number = f32::from_bits(number.to_bits() & 0xffff_0000);
        }
    }
    for text in texts(5) {
        let by_hand = by_hand::normalised(&by_hand::vector(&tiny, &text, 12, false));
        assert!(apart(&vector(&embedder, &text), &narrowed(&by_hand)) < NOISE);
    }
}

#[test]
fn a_text_without_a_word_is_refused() {
    let code = |embedder: &LocalEmbedder, texts: &[&str]| {
        embedder.embed(texts).map(|_| ()).map_err(|error| error.code())
    };
    let mut tiny = Tiny::new(12);
    assert_eq!(code(&embedder(&tiny), &["tea", " \n"]), Err("ERR_EMPTY"));
    // Marks before and behind are what such a text has.
    assert_eq!(code(&embedder(&tiny), &["\u{7}"]), Ok(()));
    tiny.tokenizer["post_processor"] = json!(null);
    assert_eq!(code(&embedder(&tiny), &["tea", "\u{7}"]), Err("ERR_EMPTY"));
}

#[test]
fn a_model_has_the_name_it_is_given_or_that_of_its_directory() {
    let dir = Tiny::new(12).written();
    let name = dir.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(load(dir.path()).unwrap().model(), name);
    assert_eq!(load(&dir.path().join("1_Pooling/..")).unwrap().model(), name);
    let named = |name: &str| {
        let model = Some(name.to_owned());
        LocalEmbedder::new(LocalOptions { model, ..LocalOptions::new(dir.path()) })
    };
    assert_eq!(named("all-Tiny").unwrap().model(), "all-Tiny");
    for name in [String::new(), "x".repeat(257)] {
        assert_eq!(named(&name).unwrap_err().code(), "ERR_SCHEMA");
    }
}

#[test]
fn parts_lie_where_the_directory_says() {
    let mut tiny = Tiny::new(12);
    let expected = vector(&embedder(&tiny), "cup of tea");
    tiny.modules[0]["path"] = json!("0_Transformer");
    tiny.modules[0]["type"] = json!("sentence_transformers.base.modules.transformer.Transformer");
    tiny.pooling = json!({ "embedding_dimension": HIDDEN, "pooling_mode": "mean" });
    let dir = tiny.written();
    let below = dir.path().join("0_Transformer");
    std::fs::create_dir(&below).unwrap();
    let moved = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"];
    for name in moved {
        std::fs::rename(dir.path().join(name), below.join(name)).unwrap();
    }
    put(&below, "sentence_bert_config.json", br#"{"max_seq_length": 12}"#);
    put(Path::new(dir.path()), "sentence_bert_config.json", b"not read");
    assert!(apart(&vector(&load(dir.path()).unwrap(), "cup of tea"), &expected) < NOISE);
}
