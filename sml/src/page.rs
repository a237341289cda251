//! A text while it is written: where it may be cut, and whether to go on writing.

use crate::error::Error;
use crate::watch::Watch;

/// The text so far.
#[derive(Debug, Default)]
pub(crate) struct Page<'w> {
    pub(crate) text: String,
    /// The bytes behind each element or row, ascending: the text may be cut there.
    pub(crate) cuts: Vec<usize>,
    watch: Watch<'w>,
}

impl<'w> Page<'w> {
    /// Nothing yet, with what stands before the first element.
    pub(crate) fn starting(head: String, watch: Watch<'w>) -> Self {
        Self { text: head, cuts: Vec::new(), watch }
    }

    /// The element or row ends here.
    ///
    /// # Errors
    /// `CAL-E082` where the caller stopped it.
    pub(crate) fn cut(&mut self) -> Result<(), Error> {
        self.cuts.push(self.text.len());
        self.watch.check()
    }
}
