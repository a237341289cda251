//! The tokens of `cl100k_base`, counted exactly.

use bpe_openai::cl100k_base;

use super::TokenCounter;

/// The exact [`TokenCounter`] for models that read `cl100k_base`; under the feature `cl100k`.
///
/// Its vocabulary is part of the program and is unpacked by the first count. Its time is linear in
/// the text. Special tokens are none here: `<|endoftext|>` counts as the text it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cl100k;

impl TokenCounter for Cl100k {
    fn count(&self, text: &str) -> usize {
        cl100k_base().count(text)
    }

    fn name(&self) -> &str {
        "cl100k_base"
    }
}
