//! JSON: `{name, intent, grains [{type, text, attributes}]}`, a grain a line.

use super::quote::quoted;
use super::{Element, Frame, Layout};
use crate::cell::Cell;

/// JSON.
pub(super) struct Json;

const FOOT: &str = "\n]}";

impl Layout for Json {
    fn frame(&self, frame: &Frame<'_>) -> Vec<String> {
        vec![head(frame), FOOT.to_owned()]
    }

    fn group(&self, _: &Element<'_>) -> String {
        String::new()
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        grain(out, element);
        out.push_str(",\n");
    }

    fn document(&self, frame: &Frame<'_>, elements: &[Element<'_>], _: usize) -> String {
        let mut out = head(frame);
        for (at, element) in elements.iter().enumerate() {
            out.push_str(if at == 0 { "\n" } else { ",\n" });
            grain(&mut out, element);
        }
        out.push_str(if elements.is_empty() { "]}" } else { FOOT });
        out
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
