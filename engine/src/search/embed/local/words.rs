//! Texts to tokens of a model. Must not know tensors.

use serde::de::IgnoredAny;
use tokenizers::{
    NormalizerWrapper, PostProcessor, Tokenizer, TruncationDirection, TruncationParams,
    TruncationStrategy,
};

use super::folder::Folder;
use super::recipe::{Recipe, TokenizerSettings};
use crate::base::error::Result;

const FILE: &str = "tokenizer.json";
/// Most bytes of a tokenizer: the largest vocabularies take 20 MiB.
const MOST_BYTES: u64 = 64 << 20;
/// Bytes of a text that are tokenized: several times what the tokens that are read take.
const MOST_TEXT: usize = 64 << 10;

/// Tokens of a text.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) ids: Vec<u32>,
    /// Segment id of each token.
    pub(super) kinds: Vec<u32>,
}

/// The tokenizer of a model.
pub(super) struct Words {
    tokenizer: Tokenizer,
    folder: Folder,
    is_lowered: bool,
    most_tokens: usize,
}

impl Words {
    /// Reads the tokenizer of a model with `vocabulary` tokens that reads at most `most_tokens` of a text.
    pub(super) fn read(recipe: &Recipe, vocabulary: usize, most_tokens: usize) -> Result<Self> {
        let folder = recipe.transformer.clone();
        let bytes = folder.read(FILE, MOST_BYTES)?;
        let refused = |why: &dyn std::fmt::Display| folder.refused(FILE, why);
        // The library may panic on a file that is not JSON.
        serde_json::from_slice::<IgnoredAny>(&bytes).map_err(|error| refused(&error))?;
        let tokenizer = || Tokenizer::from_bytes(bytes).map_err(|error| refused(&error));
        let mut tokenizer = folder.guarded(FILE, tokenizer)?;
        let last = tokenizer.get_vocab(true).into_values().max().unwrap_or_default();
        if usize::try_from(last).is_ok_and(|last| last >= vocabulary) {
            let why = format!("it has token {last}, and the model has {vocabulary} from 0 on");
            return Err(refused(&why));
        }
        // Truncation and padding follow the directory, not what the tokenizer file was last used with.
        let added = tokenizer.get_post_processor().map_or(0, |made| made.added_tokens(false));
        if added >= most_tokens {
            let why = format!("it adds {added} tokens to a text, of which {most_tokens} are read");
            return Err(refused(&why));
        }
        let truncation = TruncationParams {
            direction: TruncationDirection::Right,
            max_length: most_tokens,
            strategy: TruncationStrategy::LongestFirst,
            stride: 0,
        };
        tokenizer.with_padding(None);
        tokenizer.with_truncation(Some(truncation)).map_err(|error| refused(&error))?;
        adjust(&mut tokenizer, &recipe.tokenizer).map_err(|error| refused(&error))?;
        Ok(Self { tokenizer, folder, is_lowered: recipe.is_lowered, most_tokens })
    }

    /// The tokens of a text, at most `most_tokens`; empty for a text without tokens.
    pub(super) fn of(&self, text: &str) -> Result<Tokens> {
        let start = text.get(..text.floor_char_boundary(MOST_TEXT)).unwrap_or_default();
        let encoded = self.folder.guarded(FILE, || {
            let encoded = match self.is_lowered {
                true => self.tokenizer.encode_fast(start.to_lowercase(), true),
                false => self.tokenizer.encode_fast(start, true),
            };
            encoded.map_err(|error| self.folder.refused(FILE, error))
        })?;
        let (ids, kinds) = (encoded.get_ids().to_vec(), encoded.get_type_ids().to_vec());
        if ids.len() > self.most_tokens || kinds.len() != ids.len() {
            let why = format!("it makes {} tokens where {} are read", ids.len(), self.most_tokens);
            return Err(self.folder.refused(FILE, why));
        }
        Ok(Tokens { ids, kinds })
    }
}

/// Applies the normalisation settings of `tokenizer_config.json`, which override those of the tokenizer file
/// as in sentence-transformers.
fn adjust(
    tokenizer: &mut Tokenizer,
    settings: &TokenizerSettings,
) -> Result<(), tokenizers::Error> {
    let Some(NormalizerWrapper::BertNormalizer(normalizer)) = tokenizer.get_normalizer() else {
        return Ok(());
    };
    let mut normalizer = *normalizer;
    normalizer.lowercase = settings.do_lower_case.unwrap_or(normalizer.lowercase);
    normalizer.strip_accents = settings.strip_accents.or(normalizer.strip_accents);
    normalizer.handle_chinese_chars =
        settings.tokenize_chinese_chars.unwrap_or(normalizer.handle_chinese_chars);
    tokenizer.with_normalizer(Some(normalizer))?;
    Ok(())
}
