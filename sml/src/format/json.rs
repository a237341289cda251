//! JSON: `{name, intent, grains [{type, text, attributes}]}`, with one grain per line.

use super::quote::quoted;
use super::{ContextInfo, Element, Layout};
use crate::cancel::CancelCheck;
use crate::display_value::DisplayValue;
use crate::error::Error;
use crate::text_builder::TextBuilder;

/// The JSON format.
pub(super) struct Json;

/// The end of the document, on a line of its own.
const CLOSE: &str = "]}";

impl Layout for Json {
    fn frame(&self, frame: &ContextInfo<'_>) -> Vec<String> {
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
        frame: &ContextInfo<'_>,
        elements: &[Element<'_>],
        _: usize,
        watch: CancelCheck<'w>,
    ) -> Result<TextBuilder<'w>, Error> {
        let mut page = TextBuilder::new(head(frame), watch);
        page.text.push_str(if elements.is_empty() { "" } else { "\n" });
        for (at, element) in elements.iter().enumerate() {
            grain(&mut page.text, element);
            page.text.push_str(if at + 1 < elements.len() { ",\n" } else { "\n" });
            page.end_element()?;
        }
        page.text.push_str(CLOSE);
        Ok(page)
    }
}

fn head(frame: &ContextInfo<'_>) -> String {
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
    quoted(out, element.projection.grain_type.name());
    out.push_str(",\"text\":");
    quoted(out, &element.projection.text);
    out.push_str(",\"attributes\":{");
    for (at, (name, cell)) in element.projection.attributes.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        quoted(out, name);
        out.push(':');
        match cell {
            DisplayValue::Text(text) => quoted(out, text),
            DisplayValue::Number(_) | DisplayValue::Flag(_) => out.push_str(cell.as_str()),
        }
    }
    out.push_str("}}");
}
