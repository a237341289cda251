//! The processing of a text that a sentence-transformers directory describes: its modules, how many tokens
//! are read, and how token vectors are pooled. Must not know tensors.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::folder::Folder;
use crate::base::error::Result;

/// Method that pools the vectors of tokens into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean.
    Mean,
    /// The vector of the first token.
    First,
}

/// The processing of a text.
#[derive(Debug)]
pub(super) struct Recipe {
    /// Directory of the model and its tokenizer.
    pub(super) transformer: Folder,
    pub(super) pooling: Pooling,
    /// Numbers of a vector, according to the pooling module.
    pub(super) dimension: usize,
    /// True if the vector is scaled to length one.
    pub(super) is_normalised: bool,
    /// True if the text is put in lower case before the tokenizer gets it.
    pub(super) is_lowered: bool,
    /// Most tokens read of a text, if the directory limits them.
    pub(super) most_tokens: Option<usize>,
    pub(super) tokenizer: TokenizerSettings,
}

/// Settings of `tokenizer_config.json` beside the tokenizer itself.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TokenizerSettings {
    pub(super) do_lower_case: Option<bool>,
    pub(super) strip_accents: Option<bool>,
    pub(super) tokenize_chinese_chars: Option<bool>,
    /// Some directories write 10^30 for "no limit".
    model_max_length: Option<f64>,
}

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Default, Deserialize)]
struct Sentences {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

#[derive(Default, Deserialize)]
struct Whole {
    default_prompt_name: Option<String>,
}

const MODULES: &str = "modules.json";
const SENTENCES: &str = "sentence_bert_config.json";
const WHOLE: &str = "config_sentence_transformers.json";

impl Recipe {
    /// Reads the settings files of a directory.
    pub(super) fn read(folder: &Folder) -> Result<Self> {
        let modules: Vec<Module> = folder.settings(MODULES)?;
        let kinds: Option<Vec<&str>> = modules.iter().map(Module::kind).collect();
        let is_normalised = match kinds.as_deref() {
            Some(["Transformer", "Pooling"]) => false,
            Some(["Transformer", "Pooling", "Normalize"]) => true,
            _ => {
                let named: Vec<_> = modules.iter().map(|module| module.kind.as_str()).collect();
                let why = format!(
                    "its modules are {}; Transformer, Pooling and perhaps Normalize of \
                     sentence_transformers are what this embedder can do",
                    named.join(", ")
                );
                return Err(folder.refused(MODULES, why));
            }
        };
        let path = |at: usize| modules.get(at).map_or("", |module| module.path.as_str());
        let transformer = folder.within(MODULES, path(0))?;
        let (pooling, dimension) = pooling(&folder.within(MODULES, path(1))?)?;
        let whole: Whole = folder.settings_or_default(WHOLE)?;
        if let Some(prompt) = whole.default_prompt_name {
            let why = format!("it puts the prompt {prompt:?} before texts, which is not done here");
            return Err(folder.refused(WHOLE, why));
        }
        let sentences: Sentences = transformer.settings_or_default(SENTENCES)?;
        let tokenizer: TokenizerSettings =
            transformer.settings_or_default("tokenizer_config.json")?;
        let most_tokens = sentences.max_seq_length.or_else(|| tokenizer.most_tokens());
        let is_lowered = sentences.do_lower_case;
        Ok(Self {
            transformer,
            pooling,
            dimension,
            is_normalised,
            is_lowered,
            most_tokens,
            tokenizer,
        })
    }
}

impl Module {
    /// The last part of its name, if it is a module of sentence-transformers.
    fn kind(&self) -> Option<&str> {
        let own = self.kind.strip_prefix("sentence_transformers.")?;
        own.rsplit('.').next()
    }
}

impl TokenizerSettings {
    fn most_tokens(&self) -> Option<usize> {
        let most = self.model_max_length?;
        // Far beyond the positions of any model supported here.
        (1.0..1e6).contains(&most).then(|| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 1 and a million"
            )]
            let most = most as usize;
            most
        })
    }
}

/// Reads the one pooling method that is set, and the numbers of a vector.
fn pooling(folder: &Folder) -> Result<(Pooling, usize)> {
    const CONFIG: &str = "config.json";
    let said: Map<String, Value> = folder.settings(CONFIG)?;
    let dimension = ["word_embedding_dimension", "embedding_dimension"]
        .iter()
        .find_map(|name| said.get(*name))
        .and_then(Value::as_u64)
        .and_then(|dimension| usize::try_from(dimension).ok())
        .ok_or_else(|| folder.refused(CONFIG, "it has no word_embedding_dimension"))?;
    let mut modes = Vec::new();
    for (name, value) in &said {
        match (name.strip_prefix("pooling_mode"), value) {
            (Some(""), Value::String(mode)) => modes.push(mode.as_str()),
            (Some(mode), Value::Bool(true)) => modes.push(mode.trim_start_matches('_')),
            (None, _) | (Some(_), Value::Bool(false)) => {}
            (Some(_), _) => return Err(folder.refused(CONFIG, format!("{name} is {value}"))),
        }
    }
    match modes.as_slice() {
        ["mean_tokens" | "mean"] => Ok((Pooling::Mean, dimension)),
        ["cls_token" | "cls"] => Ok((Pooling::First, dimension)),
        modes => {
            let why =
                format!("it pools by [{}]; by mean or cls is what is done here", modes.join(", "));
            Err(folder.refused(CONFIG, why))
        }
    }
}
