//! Exact token counts for `cl100k_base`.

use bpe_openai::cl100k_base;

use super::TokenCounter;

/// The exact [`TokenCounter`] for models that use `cl100k_base`. Requires the feature `cl100k`.
///
/// The vocabulary is compiled into the program and is unpacked on the first count. Time is linear in
/// the text. Special tokens are not recognised: `<|endoftext|>` counts as ordinary text.
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
