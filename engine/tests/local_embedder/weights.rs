//! Files of weights that lie: cut, changed, or with a header that claims what is not there.

use std::fs;

use serde_json::{Value, json};

use crate::load;
use crate::refusals::refused;
use crate::tiny::{HIDDEN, Tiny, put, safetensors};

const FILE: &str = "model.safetensors";

/// A file of weights is refused beside the rest of a good directory.
fn refuses(words: &str, weights: &[u8]) {
    let dir = Tiny::new(12).written();
    put(dir.path(), FILE, weights);
    let message = refused(dir.path(), FILE, words);
    assert!(message.contains(words), "{words}: {message}");
}

/// The header of the weights, and what stands behind it.
fn parts() -> (Value, Vec<u8>) {
    let whole = Tiny::new(12).weights();
    let end = 8 + usize::try_from(u64::from_le_bytes(whole[..8].try_into().unwrap())).unwrap();
    (serde_json::from_slice(&whole[8..end]).unwrap(), whole[end..].to_vec())
}

#[test]
fn weights_that_were_cut_anywhere_or_have_more_behind_them() {
    let dir = Tiny::new(12).written();
    let whole = fs::read(dir.path().join(FILE)).unwrap();
    for length in (0..whole.len()).step_by(64).chain([1, 7, 8, 9, whole.len() - 1]) {
        put(dir.path(), FILE, &whole[..length]);
        refused(dir.path(), FILE, &format!("cut to {length}"));
    }
    put(dir.path(), FILE, &[whole.as_slice(), b"more"].concat());
    refused(dir.path(), FILE, "more behind it");
}

#[test]
fn a_byte_that_changed_is_refused_or_is_another_number() {
    let dir = Tiny::new(12).written();
    let whole = fs::read(dir.path().join(FILE)).unwrap();
    let (mut refusals, mut numbers) = (0, 0);
    for at in (0..whole.len()).step_by(67).chain(0..40) {
        for flip in [0x01, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= flip;
            put(dir.path(), FILE, &changed);
            match load(dir.path()) {
                Ok(_) => numbers += 1,
                Err(_) => {
                    refused(dir.path(), FILE, &format!("byte {at} changed by {flip}"));
                    refusals += 1;
                }
            }
        }
    }
    assert!(refusals > 40 && numbers > 40, "{refusals} refused, {numbers} numbers");
}

#[test]
fn headers_that_claim_more_than_there_is() {
    let (header, data) = parts();
    for length in [u64::MAX, u64::MAX - 7, 1 << 62, 200_000_000, 99_999_999] {
        refuses("header", &[&length.to_le_bytes(), b"{}".as_slice(), &data].concat());
    }
    let name = "embeddings.word_embeddings.weight";
    let claim = |member: &str, value: Value| {
        let mut header = header.clone();
        header[name][member] = value;
        safetensors(&header.to_string(), &data)
    };
    let most = u64::MAX;
    for (words, member, value) in [
        ("", "shape", json!([1_u64 << 40, 1_u64 << 40])),
        ("", "shape", json!([most, most])),
        ("", "shape", json!([0, HIDDEN])),
        ("", "shape", json!([])),
        ("", "shape", json!([-1, -160])),
        ("", "data_offsets", json!([0, most])),
        ("", "data_offsets", json!([640, 0])),
        ("", "data_offsets", json!([1_u64 << 40, (1_u64 << 40) + 640])),
        ("", "dtype", json!("F128")),
        ("", "dtype", json!("F64")),
        ("is of i32", "dtype", json!("I32")),
        ("shape mismatch", "shape", json!([HIDDEN, 20])),
    ] {
        refuses(words, &claim(member, value));
    }
}

#[test]
fn weights_of_another_model() {
    let refuses_config = |member: &str, value: Value, words: &str| {
        let mut tiny = Tiny::new(12);
        tiny.config[member] = value;
        let message = refused(tiny.written().path(), FILE, words);
        assert!(message.contains(words), "{member}: {message}");
    };
    refuses_config("num_hidden_layers", json!(3), "encoder.layer.2.");
    refuses_config("vocab_size", json!(21), "embeddings.word_embeddings.weight");
    refuses_config("max_position_embeddings", json!(13), "embeddings.position_embeddings.weight");
    refuses_config("intermediate_size", json!(13), "encoder.layer.0.intermediate.dense.weight");
    let mut tiny = Tiny::new(12);
    for (name, _, numbers) in &mut tiny.tensors {
        if name.ends_with("output.LayerNorm.bias") {
            numbers[0] = f32::NAN;
        }
    }
    let message = refused(tiny.written().path(), FILE, "not a number");
    assert!(message.contains("no vector of a word"), "{message}");
}
