//! all-MiniLM-L6-v2 itself, where the host has it: its vectors of real conversations are those that the
//! library it was published with made.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use grainstore::embed::Embedder;
use serde_json::Value;

use crate::{load, vector};

/// Turns that are compared.
const TURNS: usize = 300;

/// The directory that `GRAINSTORE_MODEL_DIR` names.
fn model() -> Option<PathBuf> {
    std::env::var_os("GRAINSTORE_MODEL_DIR").map(PathBuf::from)
}

/// The folder of conversations, as the other tests find it.
fn conversations() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let shared = std::env::var_os("GRAINSTORE_SHARED").map_or(beside, PathBuf::from);
    let folder = shared.join("data/locomo");
    folder.is_dir().then_some(folder)
}

/// The first turns of a conversation as its vectors were made of them, with those vectors.
fn turns(folder: &Path, name: &str) -> Vec<(String, Vec<f32>)> {
    let lines = fs::read_to_string(folder.join(format!("{name}.turns.jsonl"))).unwrap();
    let bytes = fs::read(folder.join(format!("{name}.turns.f32"))).unwrap();
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    let vectors = bytes.chunks(384 * 4).map(|row| row.chunks(4).map(number).collect());
    let text = |line: &str| {
        let turn: Value = serde_json::from_str(line).unwrap();
        let part = |name: &str| turn[name].as_str();
        let said = format!("{}: {}", part("speaker").unwrap(), part("text").unwrap());
        part("caption").map_or(said.clone(), |caption| format!("{said} [shares {caption}]"))
    };
    lines.lines().map(text).zip(vectors).take(TURNS).collect()
}

#[test]
fn its_vectors_are_those_of_the_library_it_was_published_with() {
    let (Some(model), Some(folder)) = (model(), conversations()) else {
        println!(
            "skipped: GRAINSTORE_MODEL_DIR names no directory of all-MiniLM-L6-v2, or there is no \
             data/locomo in GRAINSTORE_SHARED"
        );
        return;
    };
    let embedder = load(&model).unwrap();
    assert_eq!(embedder.dimension(), 384);
    let turns = turns(&folder, "conv-26");
    assert_eq!(turns.len(), TURNS);
    let texts: Vec<&str> = turns.iter().map(|(text, _)| text.as_str()).collect();
    let start = Instant::now();
    let vectors = embedder.embed(&texts).unwrap();
    println!("{} texts in {:.2} s", texts.len(), start.elapsed().as_secs_f64());
    for ((text, given), vector) in turns.iter().zip(&vectors) {
        let products = given.iter().zip(vector.values()).map(|(left, right)| left * right);
        // Both are of length one.
        let cosine: f32 = products.sum();
        assert!(cosine >= 0.999, "{cosine}: {text}");
    }
}

#[test]
fn like_texts_are_near_each_other() {
    let Some(model) = model() else {
        println!("skipped: GRAINSTORE_MODEL_DIR names no directory of all-MiniLM-L6-v2");
        return;
    };
    let embedder = load(&model).unwrap();
    let near = |left: &str, right: &str| -> f32 {
        let (left, right) = (vector(&embedder, left), vector(&embedder, right));
        left.iter().zip(&right).map(|(left, right)| left * right).sum()
    };
    let drink = "A hot drink from leaves";
    assert!(near(drink, "She pours herself a cup of tea") > near(drink, "The bank is shut") + 0.2);
}
