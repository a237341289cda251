//! Plain text: one line per grain, such as `[goal] alice: complete Q1 review (active)`, without an
//! envelope.

use super::line::{SentenceStyle, write_sentence};
use super::{ContextInfo, Element, Layout};
use crate::cancel::CancelCheck;
use crate::error::Error;
use crate::text_builder::TextBuilder;

/// The plain-text format.
pub(super) struct PlainText;

const STYLE: SentenceStyle = SentenceStyle { show_names: false, special: |_, _, _, _| false };

impl Layout for PlainText {
    fn frame(&self, _: &ContextInfo<'_>) -> Vec<String> {
        Vec::new()
    }

    fn group(&self, _: &Element<'_>) -> String {
        String::new()
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        out.push('[');
        out.push_str(element.projection.grain_type.name());
        out.push_str("] ");
        write_sentence(out, &element.projection, &STYLE);
        out.push('\n');
    }

    fn document<'w>(
        &self,
        _: &ContextInfo<'_>,
        elements: &[Element<'_>],
        _: usize,
        watch: CancelCheck<'w>,
    ) -> Result<TextBuilder<'w>, Error> {
        let mut page = TextBuilder::new(String::new(), watch);
        for element in elements {
            self.element(&mut page.text, element);
            page.end_element()?;
        }
        Ok(page)
    }
}
