//! Triples: subject, humanized relation and object, separated by tabs, one line per grain. A grain
//! without a triple gives its first attribute, its type and its text.

use std::borrow::Cow;

use super::line::one_line;
use super::{Element, Frame, Layout};
use crate::error::Error;
use crate::page::Page;
use crate::watch::Watch;
use crate::{table, words};

/// The triples format.
pub(super) struct Triples;

impl Layout for Triples {
    fn frame(&self, _: &Frame<'_>) -> Vec<String> {
        Vec::new()
    }

    fn group(&self, _: &Element<'_>) -> String {
        String::new()
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        let [first, second, third] = triple(element).unwrap_or_else(|| instead(element));
        for (part, end) in [(first, '\t'), (second, '\t'), (third, '\n')] {
            out.push_str(&one_line(&part));
            out.push(end);
        }
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

fn triple<'e>(element: &'e Element<'_>) -> Option<[Cow<'e, str>; 3]> {
    if element.shown.chosen {
        return None;
    }
    let grain = &element.item.grain;
    let relation = words::humanize(grain.text("relation")?);
    let object = words::value(grain.get("object")?);
    Some([Cow::Borrowed(grain.text("subject")?), Cow::Owned(relation), object])
}

fn instead<'e>(element: &'e Element<'_>) -> [Cow<'e, str>; 3] {
    let shown = &element.shown;
    let lead = table::lead(shown.grain_type);
    let leads = |name: &str| shown.chosen || lead.is_some_and(|lead| lead == name);
    let value = shown.attributes.iter().find(|(name, _)| leads(name));
    [
        Cow::Borrowed(value.map_or("", |(_, cell)| cell.as_str())),
        Cow::Borrowed(shown.grain_type.name()),
        Cow::Borrowed(&*shown.text),
    ]
}
