//! JSON: `{name, intent, grains [{type, text, attributes}]}`, with one grain per line.

use super::quote::quoted;
use super::{Element, Frame, Layout};
use crate::cell::Cell;
use crate::error::Error;
use crate::page::Page;
use crate::watch::Watch;

/// The JSON format.
pub(super) struct Json;

/// The end of the document, on a line of its own.
const CLOSE: &str = "]}";

impl Layout for Json {
    fn frame(&self, frame: &Frame<'_>) -> Vec<String> {
        vec![head(frame), format!("\n{CLOSE}")]
    }

    fn group(&self, _: &Element<'_>) -> String {
        String::new()
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        grain(out, element);
        out.push_str(",\n");
    }

    fn document<'w>(
        &self,
        frame: &Frame<'_>,
        elements: &[Element<'_>],
        _: usize,
        watch: Watch<'w>,
    ) -> Result<Page<'w>, Error> {
        let mut page = Page::starting(head(frame), watch);
        page.text.push_str(if elements.is_empty() { "" } else { "\n" });
        for (at, element) in elements.iter().enumerate() {
            grain(&mut page.text, element);
            page.text.push_str(if at + 1 < elements.len() { ",\n" } else { "\n" });
            page.cut()?;
        }
        page.text.push_str(CLOSE);
        Ok(page)
    }
}

fn head(frame: &Frame<'_>) -> String {
    let mut out = String::from("{");
    for (name, value) in [("name", frame.name), ("intent", frame.intent)] {
        if let Some(value) = value {
            quoted(&mut out, name);
            out.push(':');
            quoted(&mut out, value);
            out.push(',');
        }
    }
    out.push_str("\"grains\":[");
    out
}

fn grain(out: &mut String, element: &Element<'_>) {
    out.push_str("{\"type\":");
    quoted(out, element.shown.grain_type.name());
    out.push_str(",\"text\":");
    quoted(out, &element.shown.text);
    out.push_str(",\"attributes\":{");
    for (at, (name, cell)) in element.shown.attributes.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        quoted(out, name);
        out.push(':');
        match cell {
            Cell::Text(text) => quoted(out, text),
            Cell::Number(_) | Cell::Flag(_) => out.push_str(cell.as_str()),
        }
    }
    out.push_str("}}");
}
