//! YAML: the structure of the JSON format in block style. Text is plain only if YAML 1.1 and 1.2 both
//! read it as that text, else in double quotes.

use super::quote::{is_hidden, quoted, remove_chars};
use super::{ContextInfo, Element, Layout};
use crate::cancel::CancelCheck;
use crate::display_value::DisplayValue;
use crate::error::Error;
use crate::text_builder::TextBuilder;

/// The YAML format.
pub(super) struct Yaml;

/// Words that YAML does not read as text, ignoring case.
const RESERVED_WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

impl Layout for Yaml {
    fn frame(&self, frame: &ContextInfo<'_>) -> Vec<String> {
        vec![head(frame), "grains: []\n".to_owned()]
    }

    fn group(&self, _: &Element<'_>) -> String {
        String::new()
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        out.push_str("  - type: ");
        out.push_str(element.projection.grain_type.name());
        out.push_str("\n    text: ");
        text(out, &element.projection.text);
        if element.projection.attributes.is_empty() {
            out.push_str("\n    attributes: {}\n");
            return;
        }
        out.push_str("\n    attributes:\n");
        for (name, cell) in &element.projection.attributes {
            out.push_str("      ");
            text(out, name);
            out.push_str(": ");
            match cell {
                DisplayValue::Text(value) => text(out, value),
                DisplayValue::Number(_) | DisplayValue::Flag(_) => out.push_str(cell.as_str()),
            }
            out.push('\n');
        }
    }

    fn document<'w>(
        &self,
        frame: &ContextInfo<'_>,
        elements: &[Element<'_>],
        _: usize,
        watch: CancelCheck<'w>,
    ) -> Result<TextBuilder<'w>, Error> {
        let mut page = TextBuilder::new(head(frame), watch);
        page.text.push_str(if elements.is_empty() { "grains: []\n" } else { "grains:\n" });
        for element in elements {
            self.element(&mut page.text, element);
            page.end_element()?;
        }
        Ok(page)
    }
}

fn head(frame: &ContextInfo<'_>) -> String {
    let mut out = String::new();
    for (name, value) in [("name: ", frame.name), ("intent: ", frame.intent)] {
        if let Some(value) = value {
            out.push_str(name);
            text(&mut out, value);
            out.push('\n');
        }
    }
    out
}

/// Appends a text, quoted unless it is plain. Characters no text format shows are dropped, except
/// newline and tab.
fn text(out: &mut String, text: &str) {
    let text = remove_chars(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'));
    if is_plain(&text) { out.push_str(&text) } else { quoted(out, &text) }
}

/// Returns `true` for a letter followed by letters, digits and harmless punctuation, without a trailing
/// space, that is not a reserved word.
fn is_plain(text: &str) -> bool {
    text.starts_with(char::is_alphabetic)
        && !text.ends_with(' ')
        && text.chars().all(|c| c.is_alphanumeric() || " _-.,;/()'%+?!".contains(c))
        && !RESERVED_WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_could_be_anything_else_is_quoted() {
        for plain in ["prefers dark mode", "a", "Zoë's (new) flat", "no one"] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in [
            "",
            " a",
            "a ",
            "NULL",
            "yes",
            "n",
            "1",
            "0x1f",
            ".inf",
            "-a",
            "~",
            "a: b",
            "a #b",
            "[a]",
            "{a}",
            "&a",
            "*a",
            "!a",
            "|",
            ">",
            "'a'",
            "\"a\"",
            "%a",
            "@a",
            "`a`",
            "---",
            "a\nb",
            "a\tb",
            "2026-03-15",
            "<<",
            "=",
            "?",
        ] {
            let mut out = String::new();
            text(&mut out, other);
            assert!(
                out.starts_with('"') && out.ends_with('"') && out.len() > 1,
                "{other:?}: {out}"
            );
        }
    }
}
