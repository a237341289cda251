//! Bytes with the escapes of JSON strings taken back (RFC 8259, section 7), wherever they are, piece by piece.
//!
//! What only looks like an escape stays as it is.

/// Takes escapes back. Its state is that of an escape that has begun.
#[derive(Debug, Default)]
pub(super) struct Unescaper {
    /// An escape that is not whole: from its backslash on, or from that of the first half of a pair on.
    begun: Vec<u8>,
    has_changed: bool,
}

/// What an escape that has begun is.
enum Escape {
    /// It is not whole yet.
    Begun,
    /// It is a character.
    Is(char),
    /// It is none: its first byte stands for itself.
    None,
}

impl Unescaper {
    /// Returns `true` if there was an escape so far.
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Takes the next bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            match (self.begun.is_empty(), *byte) {
                (true, b'\\') => self.begun.push(b'\\'),
                (true, byte) => out.push(byte),
                (false, byte) => {
                    self.begun.push(byte);
                    self.settle(&mut out);
                }
            }
        }
        out
    }

    /// Takes the last bytes, after which there are none.
    pub(super) fn finish(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = self.take(bytes);
        out.append(&mut self.begun);
        out
    }

    /// Gives out what has begun, as far as it is clear what it is.
    fn settle(&mut self, out: &mut Vec<u8>) {
        loop {
            match escape(&self.begun) {
                Escape::Begun => return,
                Escape::Is(character) => {
                    self.has_changed = true;
                    self.begun.clear();
                    return out.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Escape::None => {
                    // Another may begin after the first byte.
                    let plain = self.begun.iter().skip(1).position(|byte| *byte == b'\\');
                    let plain = plain.map_or(self.begun.len(), |at| at + 1);
                    out.extend(self.begun.drain(..plain));
                    if self.begun.is_empty() {
                        return;
                    }
                }
            }
        }
    }
}

fn escape(begun: &[u8]) -> Escape {
    let Some(kind) = begun.get(1) else { return Escape::Begun };
    let character = match kind {
        b'"' | b'\\' | b'/' => char::from(*kind),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(begun),
        _ => return Escape::None,
    };
    Escape::Is(character)
}

/// `\uXXXX`, or two of them that are one character (RFC 8259, section 7).
fn unicode(begun: &[u8]) -> Escape {
    let (first, rest) = begun.split_at(begun.len().min(6));
    let Some(high) = unit(first) else { return Escape::None };
    if first.len() < 6 {
        return Escape::Begun;
    }
    if let Some(character) = char::from_u32(high) {
        return Escape::Is(character);
    }
    let is_pair = rest.iter().zip(b"\\u").all(|(byte, other)| byte == other);
    match unit(rest) {
        Some(low) if is_pair && high < 0xdc00 => match rest.len() {
            6 if (0xdc00..0xe000).contains(&low) => {
                let whole = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                char::from_u32(whole).map_or(Escape::None, Escape::Is)
            }
            6 => Escape::None,
            _ => Escape::Begun,
        },
        _ => Escape::None,
    }
}

/// The number of an escape with as many of its digits as there are; `None` if one is no digit.
fn unit(escape: &[u8]) -> Option<u32> {
    let digits = escape.get(2..).unwrap_or_default().iter();
    digits
        .map(|digit| char::from(*digit).to_digit(16))
        .try_fold(0, |number, digit| Some(number << 4 | digit?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_taken_back_and_others_stay() {
        for (text, expected) in [
            (r#"a\"b\\c\/d\n\t"#, "a\"b\\c/d\n\t"),
            (r"\u0041\u00e9\uD83D\ude00", "A\u{e9}\u{1f600}"),
            (r"\ud83d\u0041", r"\ud83dA"),
            (r"\ud83d!", r"\ud83d!"),
            (r"\ude00\ud83d", r"\ude00\ud83d"),
            (r"C:\users\x41\q\", r"C:\users\x41\q\"),
            (r"\u00\u0041", r"\u00A"),
            (r"\\u0041", r"\u0041"),
        ] {
            let whole = Unescaper::default().finish(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&whole), expected, "{text}");
            let mut unescaper = Unescaper::default();
            let mut parts: Vec<u8> =
                text.as_bytes().chunks(1).flat_map(|byte| unescaper.take(byte)).collect();
            parts.extend(unescaper.finish(&[]));
            assert_eq!(parts, whole, "{text}");
        }
    }
}
