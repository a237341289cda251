//! A text under construction: the offsets at which it may be split, and the check for cancellation.

use crate::cancel::CancelCheck;
use crate::error::Error;

/// The text written so far.
#[derive(Debug, Default)]
pub(crate) struct TextBuilder<'w> {
    pub(crate) text: String,
    /// The byte offsets at which an element or row ends, ascending. The text may be split there.
    pub(crate) cuts: Vec<usize>,
    cancel: CancelCheck<'w>,
}

impl<'w> TextBuilder<'w> {
    /// Starts a text with the part before the first element.
    pub(crate) fn new(head: String, watch: CancelCheck<'w>) -> Self {
        Self { text: head, cuts: Vec::new(), cancel: watch }
    }

    /// Marks the end of an element or row, and checks for cancellation.
    ///
    /// # Errors
    /// `CAL-E082` if cancelled.
    pub(crate) fn end_element(&mut self) -> Result<(), Error> {
        self.cuts.push(self.text.len());
        self.cancel.check()
    }
}
