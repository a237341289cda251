//! What is refused, before anything is made of it: each with the file and the reason, none with a panic.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::load;
use crate::tiny::{Tiny, put};

const NEEDED: [&str; 5] =
    ["modules.json", "1_Pooling/config.json", "config.json", "tokenizer.json", "model.safetensors"];
const OPTIONAL: [&str; 2] = ["sentence_bert_config.json", "tokenizer_config.json"];

/// Why a directory is refused; the message names the file.
pub(crate) fn refused(dir: &Path, file: &str, case: &str) -> String {
    let error = load(dir).map(|_| ()).expect_err(case);
    assert_eq!(error.code(), "ERR_EMBEDDER", "{case}: {error}");
    let message = error.to_string();
    assert!(message.contains(&format!("{file}: ")), "{case}: {message}");
    assert!(message.lines().count() == 1 && message.len() < 1_000, "{case}: {message}");
    assert!(error.hint().contains("sentence-transformers"), "{case}: {}", error.hint());
    message
}

/// A change of what a directory says is refused, and the message has these words.
fn refuses(file: &str, words: &str, change: impl FnOnce(&mut Tiny)) {
    let mut tiny = Tiny::new(12);
    change(&mut tiny);
    let message = refused(tiny.written().path(), file, words);
    assert!(message.contains(words), "{words}: {message}");
}

#[test]
fn a_file_that_is_missing_or_no_file_or_not_what_it_should_be() {
    for name in NEEDED.into_iter().chain(OPTIONAL) {
        let dir = Tiny::new(12).written();
        let path = dir.path().join(name);
        for bytes in [&b""[..], b"{", b"[]", b"null", b"\xff\xfe", b"{\"a\": 1}", &[0; 4096]] {
            put(dir.path(), name, bytes);
            // An object of other things says nothing of what may be left out.
            if OPTIONAL.contains(&name) && bytes.starts_with(b"{\"a") {
                load(dir.path()).unwrap();
                continue;
            }
            refused(dir.path(), name, &format!("{name} is {bytes:?}"));
        }
        fs::remove_file(&path).unwrap();
        if NEEDED.contains(&name) {
            refused(dir.path(), name, &format!("no {name}"));
        } else {
            load(dir.path()).unwrap();
        }
        fs::create_dir(&path).unwrap();
        refused(dir.path(), name, &format!("{name} is a directory"));
    }
    let dir = Tiny::new(12).written();
    refused(&dir.path().join("absent"), "absent", "no directory");
    refused(&dir.path().join("config.json"), "config.json", "a file for a directory");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let dir = Tiny::new(12).written();
    let path = dir.path().join("config.json");
    fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    assert!(refused(dir.path(), "config.json", "a pipe").contains("no file"));
}

#[test]
fn a_file_that_is_larger_than_any_of_its_kind() {
    for (name, length) in
        [("config.json", 2 << 20), ("tokenizer.json", 65 << 20), ("model.safetensors", 5 << 30)]
    {
        let dir = Tiny::new(12).written();
        // All holes: it takes no room.
        let file = fs::OpenOptions::new().write(true).open(dir.path().join(name)).unwrap();
        file.set_len(length).unwrap();
        assert!(refused(dir.path(), name, name).contains("at most are read"), "{name}");
    }
}

#[test]
fn settings_that_were_cut_anywhere() {
    for name in NEEDED[..4].iter().chain(&OPTIONAL) {
        let dir = Tiny::new(12).written();
        let whole = fs::read(dir.path().join(name)).unwrap();
        for length in (0..whole.len()).step_by(if whole.len() > 512 { 64 } else { 8 }) {
            put(dir.path(), name, &whole[..length]);
            refused(dir.path(), name, &format!("{name} cut to {length}"));
        }
    }
}

#[test]
fn a_byte_of_the_settings_that_changed_is_refused_or_says_something_else() {
    let (mut refusals, mut others) = (0, 0);
    for name in NEEDED[..4].iter().chain(&OPTIONAL) {
        let dir = Tiny::new(12).written();
        let whole = fs::read(dir.path().join(name)).unwrap();
        for at in (0..whole.len()).step_by(if whole.len() > 512 { 17 } else { 5 }) {
            let mut changed = whole.clone();
            // Another letter, digit or sign of JSON.
            changed[at] ^= 0x03;
            put(dir.path(), name, &changed);
            match load(dir.path()) {
                Ok(_) => others += 1,
                // Which file shows it depends: a name of a directory, a size of the model.
                Err(error) => {
                    assert_eq!(error.code(), "ERR_EMBEDDER", "{name} changed at {at}: {error}");
                    refusals += 1;
                }
            }
        }
    }
    assert!(refusals > 40 && others > 10, "{refusals} refused, {others} others");
}

#[test]
fn modules_and_pooling_that_are_not_known() {
    let modules = |at: usize, member: &'static str, value: &'static str| {
        move |tiny: &mut Tiny| tiny.modules[at][member] = json!(value)
    };
    let kind = "sentence_transformers.models.Dense";
    refuses("modules.json", kind, modules(2, "type", kind));
    refuses(
        "modules.json",
        "custom_code.Transformer",
        modules(0, "type", "custom_code.Transformer"),
    );
    refuses("modules.json", "Transformer, Pooling", |tiny| {
        tiny.modules.as_array_mut().unwrap().swap(0, 1);
    });
    refuses("modules.json", "Transformer, Pooling", |tiny| tiny.modules = json!([]));
    for path in ["../other", "/etc", "1_Pooling/../.."] {
        refuses("modules.json", "not below", modules(0, "path", path));
        refuses("modules.json", "not below", modules(1, "path", path));
    }
    refuses("elsewhere", "No such file", modules(1, "path", "elsewhere"));
    let pooling =
        |member: &'static str, value: Value| move |tiny: &mut Tiny| tiny.pooling[member] = value;
    let file = "1_Pooling/config.json";
    for name in ["max_tokens", "mean_sqrt_len_tokens", "cls_token", "lasttoken"] {
        let member: &'static str = format!("pooling_mode_{name}").leak();
        refuses(file, name, pooling(member, json!(true)));
    }
    refuses(file, "pools by []", pooling("pooling_mode_mean_tokens", json!(false)));
    refuses(file, "pooling_mode_max_tokens is 1", pooling("pooling_mode_max_tokens", json!(1)));
    refuses("modules.json", "vectors of 9 numbers", pooling("word_embedding_dimension", json!(9)));
    refuses(file, "word_embedding_dimension", pooling("word_embedding_dimension", json!(-8)));
    let dir = Tiny::new(12).written();
    let name = "config_sentence_transformers.json";
    put(dir.path(), name, br#"{"prompts": {"query": "query: "}, "default_prompt_name": null}"#);
    load(dir.path()).unwrap();
    put(dir.path(), name, br#"{"prompts": {"query": "query: "}, "default_prompt_name": "query"}"#);
    assert!(refused(dir.path(), name, "a prompt").contains("prompt \"query\""));
}

#[test]
fn models_of_another_type_or_of_absurd_size() {
    let config =
        |member: &'static str, value: Value| move |tiny: &mut Tiny| tiny.config[member] = value;
    let absurd = json!(1_000_000_000_000_000_000_u64);
    for name in [
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
    ] {
        refuses("config.json", name, config(name, absurd.clone()));
        refuses("config.json", name, config(name, json!(0)));
        refuses("config.json", "invalid", config(name, json!(-1)));
        refuses("config.json", name, |tiny| {
            tiny.config.as_object_mut().unwrap().remove(name);
        });
    }
    refuses("config.json", "\"distilbert\"", |tiny| {
        tiny.config = json!({ "model_type": "distilbert" });
    });
    refuses("config.json", "3 heads", config("num_attention_heads", json!(3)));
    refuses("config.json", "\"swish\"", config("hidden_act", json!("swish")));
    refuses("config.json", "layer_norm_eps", config("layer_norm_eps", json!(-1.0)));
    refuses(
        "config.json",
        "\"relative_key\"",
        config("position_embedding_type", json!("relative_key")),
    );
    refuses("config.json", "decoder", config("is_decoder", json!(true)));
}

#[test]
fn tokenizers_that_do_not_fit_the_model() {
    refuses("tokenizer.json", "token 20", |tiny| {
        tiny.tokenizer["model"]["vocab"]["extra"] = json!(20);
    });
    refuses("tokenizer.json", "adds 2 tokens", |tiny| tiny.sentences["max_seq_length"] = json!(2));
    refuses("tokenizer.json", "0 are read", |tiny| tiny.sentences["max_seq_length"] = json!(0));
    // A mark that is no token of the model shows itself with the first text.
    refuses("model.safetensors", "4000", |tiny| {
        tiny.tokenizer["post_processor"]["special_tokens"]["[SEP]"]["ids"] = json!([4_000]);
    });
    // Without the word for what it does not know it cannot read the word it is tried on.
    refuses("tokenizer.json", "[UNK]", |tiny| {
        tiny.tokenizer["model"]["unk_token"] = json!("[NONE]");
    });
}
