//! Bounded reading of JSON documents that span one or several lines.

use std::io::{self, BufRead};

use grainstore_rpc::{Line, read_line};

/// A sequence of JSON documents: each begins on a line of its own and may span several.
#[derive(Debug)]
pub(crate) struct Documents<R> {
    reader: R,
    limit: usize,
    line: u64,
    buffer: Vec<u8>,
}

/// The next document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Document {
    /// The text of a document and the line it begins on.
    Text(u64, Vec<u8>),
    /// A document beginning on this line exceeds the limit.
    TooLong(u64),
}

impl<R: BufRead> Documents<R> {
    /// Reads documents of at most `limit` bytes.
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, line: 0, buffer: Vec::new() }
    }

    /// Returns the next document, `None` at the end. Empty lines are skipped.
    pub(crate) fn next(&mut self) -> io::Result<Option<Document>> {
        let mut text = Vec::new();
        let mut first = 0;
        let mut nesting = Nesting::default();
        loop {
            let room = self.limit.saturating_sub(text.len());
            match read_line(&mut self.reader, &mut self.buffer, room)? {
                Line::End if text.is_empty() => return Ok(None),
                // The JSON parser will report what is missing.
                Line::End => return Ok(Some(Document::Text(first, text))),
                Line::TooLong => {
                    let line = if text.is_empty() { self.line.saturating_add(1) } else { first };
                    return Ok(Some(Document::TooLong(line)));
                }
                Line::Read => self.line = self.line.saturating_add(1),
            }
            if text.is_empty() {
                if self.buffer.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                first = self.line;
            } else {
                text.push(b'\n');
            }
            nesting.read(&self.buffer);
            text.append(&mut self.buffer);
            if nesting.is_closed() {
                return Ok(Some(Document::Text(first, text)));
            }
        }
    }
}

/// The bracket depth at the end of the text read so far.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    in_string: bool,
}

impl Nesting {
    /// Reads one line. A string never continues on the next line: JSON has no newline in strings.
    fn read(&mut self, line: &[u8]) {
        let mut escaped = false;
        for byte in line {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns `true` if a document can end here: all brackets are closed, or a string was not.
    fn is_closed(&self) -> bool {
        self.depth == 0 || self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(input: &str, limit: usize) -> Vec<String> {
        let mut documents = Documents::new(input.as_bytes(), limit);
        let mut found = Vec::new();
        while let Some(document) = documents.next().unwrap() {
            match document {
                Document::Text(line, text) => {
                    found.push(format!("{line}:{}", String::from_utf8(text).unwrap()));
                }
                Document::TooLong(line) => {
                    found.push(format!("{line}!"));
                    break;
                }
            }
        }
        found
    }

    #[test]
    fn documents_end_where_their_brackets_close_and_a_line_does() {
        for (input, expected) in [
            ("", &[][..]),
            ("\n \n", &[]),
            ("{}\n\n{\"a\": 1}", &["1:{}", "3:{\"a\": 1}"]),
            ("{\n \"a\": [\n1]}\n{}", &["1:{\n \"a\": [\n1]}", "4:{}"]),
            ("{\"a\": \"}{\\\"\"}\n{}", &["1:{\"a\": \"}{\\\"\"}", "2:{}"]),
            ("{} {}\n42\n}", &["1:{} {}", "2:42", "3:}"]),
            ("{\"open\n{}", &["1:{\"open", "2:{}"]),
            ("{\"a\":", &["1:{\"a\":"]),
        ] {
            assert_eq!(texts(input, 100), expected, "{input:?}");
        }
    }

    #[test]
    fn a_document_past_the_limit_is_not_read_to_its_end() {
        assert_eq!(texts("{}\n{\"a\": 1}", 4), ["1:{}", "2!"]);
        assert_eq!(texts("{}\n{\n\"abc\"", 4), ["1:{}", "2!"]);
        let mut endless = io::BufReader::new(io::repeat(b'x'));
        let mut buffer = Vec::new();
        assert_eq!(read_line(&mut endless, &mut buffer, 1000).unwrap(), Line::TooLong);
        assert!(buffer.len() <= 1001);
    }
}
