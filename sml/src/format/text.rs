//! Plain text: one line per grain, such as `[goal] alice: complete Q1 review (active)`, without an
//! envelope.

use super::line::{Style, sentence};
use super::{Element, Frame, Layout};
use crate::error::Error;
use crate::page::Page;
use crate::watch::Watch;

/// The plain-text format.
pub(super) struct Text;

const STYLE: Style = Style { names: false, special: |_, _, _, _| false };

impl Layout for Text {
    fn frame(&self, _: &Frame<'_>) -> Vec<String> {
        Vec::new()
    }

    fn group(&self, _: &Element<'_>) -> String {
        String::new()
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        out.push('[');
        out.push_str(element.shown.grain_type.name());
        out.push_str("] ");
        sentence(out, &element.shown, &STYLE);
        out.push('\n');
    }

    fn document<'w>(
        &self,
        _: &Frame<'_>,
        elements: &[Element<'_>],
        _: usize,
        watch: Watch<'w>,
    ) -> Result<Page<'w>, Error> {
        let mut page = Page::starting(String::new(), watch);
        for element in elements {
            self.element(&mut page.text, element);
            page.cut()?;
        }
        Ok(page)
    }
}
