//! Directories of BERT models so small that their vectors can be computed by hand, written by the test
//! itself: settings, a tokenizer of two dozen words, random weights.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const HIDDEN: usize = 8;
pub(crate) const HEADS: usize = 2;
pub(crate) const LAYERS: usize = 2;
const INNER: usize = 12;
/// Every word it knows, at the place that is its number.
pub(crate) const WORDS: [&str; 20] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "tea", "coffee", "cup", "of", "a", "town", "in", "norway",
    "one", "two", "three", "alice", "likes", "bob", "##s", "zurich",
];

/// A tensor: its name, its shape, its numbers.
pub(crate) type Weights = (String, Vec<usize>, Vec<f32>);

/// The files of a directory, each as it will be written.
#[derive(Clone)]
pub(crate) struct Tiny {
    pub(crate) modules: Value,
    pub(crate) pooling: Value,
    pub(crate) sentences: Value,
    pub(crate) tokenizer_config: Value,
    pub(crate) config: Value,
    pub(crate) tokenizer: Value,
    pub(crate) tensors: Vec<Weights>,
    /// `F32`, or `BF16` for the upper half of each number.
    pub(crate) kind: &'static str,
}

impl Tiny {
    /// A model that pools by the mean, is normalised, and reads this many tokens of a text.
    pub(crate) fn new(places: usize) -> Self {
        let module = |at: usize, path: &str, kind: &str| {
            let kind = format!("sentence_transformers.models.{kind}");
            json!({ "idx": at, "name": at.to_string(), "path": path, "type": kind })
        };
        Self {
            modules: json!([
                module(0, "", "Transformer"),
                module(1, "1_Pooling", "Pooling"),
                module(2, "2_Normalize", "Normalize"),
            ]),
            pooling: json!({
                "word_embedding_dimension": HIDDEN,
                "pooling_mode_cls_token": false,
                "pooling_mode_mean_tokens": true,
                "pooling_mode_max_tokens": false,
                "pooling_mode_mean_sqrt_len_tokens": false,
            }),
            sentences: json!({ "max_seq_length": places, "do_lower_case": false }),
            tokenizer_config: json!({ "do_lower_case": true, "model_max_length": 1e30 }),
            config: json!({
                "model_type": "bert",
                "vocab_size": WORDS.len(),
                "hidden_size": HIDDEN,
                "num_hidden_layers": LAYERS,
                "num_attention_heads": HEADS,
                "intermediate_size": INNER,
                "max_position_embeddings": places,
                "type_vocab_size": 2,
                "hidden_act": "gelu",
                "layer_norm_eps": 1e-12,
                "position_embedding_type": "absolute",
            }),
            tokenizer: tokenizer(),
            tensors: tensors(places),
            kind: "F32",
        }
    }

    /// The model with the vector of the first token in place of the mean.
    pub(crate) fn by_first(mut self) -> Self {
        self.pooling["pooling_mode_mean_tokens"] = json!(false);
        self.pooling["pooling_mode_cls_token"] = json!(true);
        self
    }

    /// The model with vectors of any length.
    pub(crate) fn not_normalised(mut self) -> Self {
        self.modules.as_array_mut().unwrap().pop();
        self
    }

    /// The numbers of a tensor.
    pub(crate) fn tensor(&self, name: &str) -> &[f32] {
        &self.tensors.iter().find(|(other, ..)| other == name).unwrap().2
    }

    /// A new directory with its files.
    pub(crate) fn written(&self) -> TempDir {
        let dir = TempDir::with_prefix("tiny-bert-").unwrap();
        fs::create_dir(dir.path().join("1_Pooling")).unwrap();
        let json: [(&str, &Value); 6] = [
            ("modules.json", &self.modules),
            ("1_Pooling/config.json", &self.pooling),
            ("sentence_bert_config.json", &self.sentences),
            ("tokenizer_config.json", &self.tokenizer_config),
            ("config.json", &self.config),
            ("tokenizer.json", &self.tokenizer),
        ];
        for (name, value) in json {
            put(dir.path(), name, value.to_string().as_bytes());
        }
        put(dir.path(), "model.safetensors", &self.weights());
        dir
    }

    /// The file of its weights.
    pub(crate) fn weights(&self) -> Vec<u8> {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, shape, numbers) in &self.tensors {
            let start = data.len();
            for number in numbers {
                match self.kind {
                    "BF16" => data.extend_from_slice(&number.to_le_bytes()[2..]),
                    _ => data.extend_from_slice(&number.to_le_bytes()),
                }
            }
            let about = json!({
                "dtype": self.kind, "shape": shape, "data_offsets": [start, data.len()],
            });
            header.insert(name.clone(), about);
        }
        safetensors(&Value::Object(header).to_string(), &data)
    }
}

/// A file of weights with this header.
pub(crate) fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let length = u64::try_from(header.len()).unwrap();
    [&length.to_le_bytes(), header.as_bytes(), data].concat()
}

/// Writes a file of a directory.
pub(crate) fn put(dir: &Path, name: &str, bytes: &[u8]) {
    fs::write(dir.join(name), bytes).unwrap();
}

fn tokenizer() -> Value {
    let vocabulary: serde_json::Map<String, Value> =
        WORDS.iter().zip(0..).map(|(word, id)| ((*word).to_owned(), json!(id))).collect();
    let special = |id: usize| json!({ "id": WORDS[id], "ids": [id], "tokens": [WORDS[id]] });
    let added = |id: usize| {
        json!({ "id": id, "special": true, "content": WORDS[id], "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false })
    };
    let token = |id: &str| json!({ "SpecialToken": { "id": id, "type_id": 0 } });
    let text = |id: &str, kind: usize| json!({ "Sequence": { "id": id, "type_id": kind } });
    json!({
        "version": "1.0",
        // What the tokenizer was last used with; the directory says otherwise.
        "truncation": { "max_length": 4, "strategy": "LongestFirst", "stride": 0 },
        "padding": { "strategy": { "Fixed": 12 }, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]" },
        "added_tokens": [added(0), added(1), added(2), added(3)],
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("[CLS]"), text("A", 0), token("[SEP]")],
            "pair": [token("[CLS]"), text("A", 0), token("[SEP]"), text("B", 1), token("[SEP]")],
            "special_tokens": { "[CLS]": special(2), "[SEP]": special(3) },
        },
        "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary },
    })
}

fn tensors(places: usize) -> Vec<Weights> {
    let mut random = Random(0x5eed);
    let mut made = Vec::new();
    let mut add = |name: String, shape: &[usize], around: f32| {
        let numbers = (0..shape.iter().product()).map(|_| around + random.next()).collect();
        made.push((name, shape.to_vec(), numbers));
    };
    let embeddings = [("word", WORDS.len()), ("position", places), ("token_type", 2)]
        .map(|(name, rows)| (format!("embeddings.{name}_embeddings.weight"), rows));
    for (name, rows) in embeddings {
        add(name, &[rows, HIDDEN], 0.0);
    }
    let norm = |name: &str, add: &mut dyn FnMut(String, &[usize], f32)| {
        add(format!("{name}.LayerNorm.weight"), &[HIDDEN], 1.0);
        add(format!("{name}.LayerNorm.bias"), &[HIDDEN], 0.0);
    };
    norm("embeddings", &mut add);
    for layer in (0..LAYERS).map(|at| format!("encoder.layer.{at}")) {
        let dense = [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
        ];
        for (name, to, from) in dense {
            add(format!("{layer}.{name}.weight"), &[to, from], 0.0);
            add(format!("{layer}.{name}.bias"), &[to], 0.0);
        }
        norm(&format!("{layer}.attention.output"), &mut add);
        norm(&format!("{layer}.output"), &mut add);
    }
    made
}

/// Numbers between -1 and 1, the same in every run.
struct Random(u32);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(u16::try_from(self.0 >> 16).unwrap()) / 32_768.0 - 1.0
    }
}
