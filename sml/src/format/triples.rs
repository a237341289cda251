//! Triples: subject, humanized relation and object, separated by tabs, one line per grain. A grain
//! without a triple gives its first attribute, its type and its text.

use std::borrow::Cow;

use super::line::one_line;
use super::{ContextInfo, Element, Layout};
use crate::cancel::CancelCheck;
use crate::error::Error;
use crate::text_builder::TextBuilder;
use crate::{table, words};

/// The triples format.
pub(super) struct Triples;

impl Layout for Triples {
    fn frame(&self, _: &ContextInfo<'_>) -> Vec<String> {
        Vec::new()
    }

    fn group(&self, _: &Element<'_>) -> String {
        String::new()
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        let [first, second, third] = triple(element).unwrap_or_else(|| fallback(element));
        for (part, end) in [(first, '\t'), (second, '\t'), (third, '\n')] {
            out.push_str(&one_line(&part));
            out.push(end);
        }
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

fn triple<'e>(element: &'e Element<'_>) -> Option<[Cow<'e, str>; 3]> {
    if element.projection.chosen {
        return None;
    }
    let grain = &element.item.grain;
    let relation = words::humanize(grain.text("relation")?);
    let object = words::value(grain.get("object")?);
    Some([Cow::Borrowed(grain.text("subject")?), Cow::Owned(relation), object])
}

fn fallback<'e>(element: &'e Element<'_>) -> [Cow<'e, str>; 3] {
    let shown = &element.projection;
    let lead = table::lead_attribute(shown.grain_type);
    let leads = |name: &str| shown.chosen || lead.is_some_and(|lead| lead == name);
    let value = shown.attributes.iter().find(|(name, _)| leads(name));
    [
        Cow::Borrowed(value.map_or("", |(_, cell)| cell.as_str())),
        Cow::Borrowed(shown.grain_type.name()),
        Cow::Borrowed(&*shown.text),
    ]
}
