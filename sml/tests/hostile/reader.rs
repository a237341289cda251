//! A strict reader of SML, written from the rules of the format; it knows nothing of the writer.

/// One element as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
}

/// Reads SML strictly: anything that is not exactly envelope, groups and flat elements is an error.
/// Answers the intent and the groups.
pub(crate) fn parse(sml: &str) -> Result<(Option<String>, Vec<Vec<Element>>), String> {
    let mut rest = sml.strip_prefix("<context").ok_or("no envelope")?;
    let attributes = parse_attributes(&mut rest)?;
    let intent = match attributes.as_slice() {
        [] => None,
        [(name, value)] if name == "intent" => Some(value.clone()),
        other => return Err(format!("envelope with {other:?}")),
    };
    rest = rest.strip_prefix("\n\n").ok_or("no empty line after the envelope")?;
    let mut groups = Vec::new();
    let mut group = Vec::new();
    loop {
        if let Some(element) = rest.strip_prefix("  <") {
            rest = element;
            group.push(parse_element(&mut rest)?);
        } else if let Some(next) = rest.strip_prefix('\n') {
            if group.is_empty() {
                return Err("an empty line without a group".to_owned());
            }
            rest = next;
            groups.push(std::mem::take(&mut group));
        } else if rest == "</context>\n" && group.is_empty() {
            return Ok((intent, groups));
        } else {
            return Err(format!("neither element, empty line nor end: {rest:?}"));
        }
    }
}

fn parse_element(rest: &mut &str) -> Result<Element, String> {
    let end = rest.find([' ', '>']).ok_or("a tag without an end")?;
    let (name, tail) = rest.split_at(end);
    *rest = tail;
    let attributes = parse_attributes(rest)?;
    let (text, tail) = rest.split_once('<').ok_or("an element without an end")?;
    let tail = tail.strip_prefix(&format!("/{name}>\n")).ok_or("markup inside an element")?;
    *rest = tail;
    Ok(Element { name: name.to_owned(), attributes, text: unescape(text) })
}

/// ` name="value"` as often as it comes, and the `>` after.
fn parse_attributes(rest: &mut &str) -> Result<Vec<(String, String)>, String> {
    let mut attributes = Vec::new();
    loop {
        if let Some(tail) = rest.strip_prefix('>') {
            *rest = tail;
            return Ok(attributes);
        }
        let tail = rest.strip_prefix(' ').ok_or("no space before an attribute")?;
        let (name, tail) = tail.split_once("=\"").ok_or("an attribute without a value")?;
        let (value, tail) = tail.split_once('"').ok_or("a value without an end")?;
        if !name.chars().all(|c| c.is_ascii_lowercase()) || value.contains(['<', '\n', '\t']) {
            return Err(format!("attribute {name:?} = {value:?}"));
        }
        attributes.push((name.to_owned(), unescape(value)));
        *rest = tail;
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let escapes = [("&lt;", "<"), ("&amp;", "&"), ("&quot;", "\"")];
        let (from, to) = escapes.into_iter().find(|(from, _)| rest.starts_with(from)).unzip();
        match (from, to) {
            (Some(from), Some(to)) => {
                out.push_str(to);
                rest = rest.strip_prefix(from).unwrap_or_default();
            }
            _ => {
                out.push(c);
                rest = rest.strip_prefix(c).unwrap_or_default();
            }
        }
    }
    out
}
