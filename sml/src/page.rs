//! A text under construction: the offsets at which it may be split, and the check for cancellation.

use crate::error::Error;
use crate::watch::Watch;

/// The text written so far.
#[derive(Debug, Default)]
pub(crate) struct Page<'w> {
    pub(crate) text: String,
    /// The byte offsets at which an element or row ends, ascending. The text may be split there.
    pub(crate) cuts: Vec<usize>,
    watch: Watch<'w>,
}

impl<'w> Page<'w> {
    /// Starts a text with the part before the first element.
    pub(crate) fn starting(head: String, watch: Watch<'w>) -> Self {
        Self { text: head, cuts: Vec::new(), watch }
    }

    /// Marks the end of an element or row, and checks for cancellation.
    ///
    /// # Errors
    /// `CAL-E082` if cancelled.
    pub(crate) fn cut(&mut self) -> Result<(), Error> {
        self.cuts.push(self.text.len());
        self.watch.check()
    }
}
