//! Canonical bytes of single values in both encodings: tokens are read, primitives are written (OMS 4,
//! 16).
//!
//! A [`TokenReader`] reads token by token, rejects every form that is not canonical and never trusts a
//! declared length. It knows no field names and builds no trees.

mod cbor;
mod msgpack;

use std::cmp::Ordering;

use crate::error::{Result, corrupt};
use crate::value::{Int, Value};

/// The encoding of a payload (header flag bit 5), chosen for each [`Grain::encode`](crate::Grain::encode).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Canonical MessagePack, the default (OMS 16.1).
    #[default]
    #[serde(rename = "msgpack")]
    MessagePack,
    /// Deterministic CBOR (OMS 16.2, RFC 8949 4.2.1).
    Cbor,
}

impl Encoding {
    /// Returns `msgpack` or `cbor`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MessagePack => "msgpack",
            Self::Cbor => "cbor",
        }
    }

    /// Compares two map keys in canonical order. CBOR sorts by encoded bytes, so shorter keys come
    /// first.
    pub(crate) fn compare_keys(self, a: &str, b: &str) -> Ordering {
        self.compare_key_bytes(a.as_bytes(), b.as_bytes())
    }

    /// Compares two map keys, as bytes, in canonical order.
    pub(crate) fn compare_key_bytes(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::MessagePack => a.cmp(b),
            Self::Cbor => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        }
    }
}

/// A scalar, or the head of a container with its length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'a> {
    Null,
    Bool(bool),
    Int(Int),
    Float(f64),
    Str(&'a str),
    Bytes(&'a [u8]),
    /// Number of items that follow.
    Array(usize),
    /// Number of entries (key and value) that follow.
    Map(usize),
}

/// A cursor over encoded bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenReader<'a> {
    rest: &'a [u8],
    encoding: Encoding,
}

impl<'a> TokenReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], encoding: Encoding) -> Self {
        Self { rest: bytes, encoding }
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the encoding of a map that begins with this byte. No byte begins a map in both
    /// encodings.
    pub(crate) fn encoding_of_map(byte: u8) -> Option<Encoding> {
        match byte {
            _ if msgpack::is_map(byte) => Some(Encoding::MessagePack),
            _ if cbor::is_map(byte) => Some(Encoding::Cbor),
            _ => None,
        }
    }

    /// Returns `true` if the next value is a map, judged by its first byte alone.
    pub(crate) fn at_map(&self) -> bool {
        self.rest.first().is_some_and(|byte| match self.encoding {
            Encoding::MessagePack => msgpack::is_map(*byte),
            Encoding::Cbor => cbor::is_map(*byte),
        })
    }

    /// Reads the next token.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for malformed, cut or non-canonical bytes, `ERR_FLOAT_INVALID` for NaN and
    /// infinities.
    pub(crate) fn token(&mut self) -> Result<Token<'a>> {
        let token = self.token_without_length_check()?;
        // Every item takes at least one byte, so a longer declared length is wrong.
        let declared = match token {
            Token::Array(items) => items,
            Token::Map(entries) => entries.saturating_mul(2),
            _ => 0,
        };
        if declared > self.rest.len() {
            return Err(corrupt("a container declares more items than there are bytes"));
        }
        Ok(token)
    }

    /// Reads the head of a map whose entries may continue past this buffer. The declared length is not
    /// compared with the bytes present.
    pub(crate) fn map_head(&mut self) -> Result<usize> {
        match self.token_without_length_check()? {
            Token::Map(entries) => Ok(entries),
            _ => Err(corrupt("not a map")),
        }
    }

    fn token_without_length_check(&mut self) -> Result<Token<'a>> {
        match self.encoding {
            Encoding::MessagePack => msgpack::token(self),
            Encoding::Cbor => cbor::token(self),
        }
    }

    /// Reads the next token as a map key.
    pub(crate) fn key(&mut self) -> Result<&'a str> {
        match self.token()? {
            Token::Str(key) => Ok(key),
            _ => Err(corrupt("a map key is not text")),
        }
    }

    /// Skips one whole value of any depth, without recursion.
    pub(crate) fn skip(&mut self) -> Result<()> {
        let mut pending = 1_usize;
        while pending > 0 {
            pending = pending - 1
                + match self.token()? {
                    Token::Array(items) => items,
                    Token::Map(entries) => entries.saturating_mul(2),
                    _ => 0,
                };
        }
        Ok(())
    }

    /// Skips one whole value of any depth, of bytes that were checked before: neither canonical form nor UTF-8
    /// is checked again.
    pub(crate) fn skip_checked(&mut self) -> Result<()> {
        let mut pending = 1_usize;
        while pending > 0 {
            let inside = match self.encoding {
                Encoding::MessagePack => msgpack::skip_head(self)?,
                Encoding::Cbor => cbor::skip_head(self)?,
            };
            pending = (pending - 1).saturating_add(inside);
        }
        Ok(())
    }

    /// Reads the next token as the bytes of a map key, of bytes that were checked before.
    pub(crate) fn key_bytes(&mut self) -> Result<&'a [u8]> {
        let len = match self.encoding {
            Encoding::MessagePack => msgpack::text_len(self)?,
            Encoding::Cbor => cbor::text_len(self)?,
        };
        self.take(len)
    }

    /// Takes the next `len` bytes.
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or_else(|| corrupt("the bytes end too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the next `N` bytes as an array.
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) =
            self.rest.split_first_chunk().ok_or_else(|| corrupt("the bytes end too early"))?;
        self.rest = rest;
        Ok(*taken)
    }

    fn text(&mut self, len: usize) -> Result<Token<'a>> {
        let bytes = self.take(len)?;
        std::str::from_utf8(bytes).map(Token::Str).map_err(|_| corrupt("text is not UTF-8"))
    }
}

/// Encodes one value that is not part of a grain, such as an audit entry or an elided field (OMS
/// 10.1.1).
///
/// ```
/// use grainstore_format::{Encoding, Value, decode_value, encode_value};
///
/// let bytes = encode_value(&Value::from("ann"), Encoding::Cbor);
/// assert_eq!(bytes, b"\x63ann");
/// assert_eq!(decode_value(&bytes, Encoding::Cbor)?, Value::from("ann"));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[must_use]
pub fn encode_value(value: &Value, encoding: Encoding) -> Vec<u8> {
    let mut writer = TokenWriter::new(Vec::new(), encoding);
    writer.value(value);
    writer.into_bytes()
}

/// Appends canonical primitives to a buffer.
#[derive(Debug)]
pub(crate) struct TokenWriter {
    out: Vec<u8>,
    encoding: Encoding,
}

impl TokenWriter {
    pub(crate) fn new(out: Vec<u8>, encoding: Encoding) -> Self {
        Self { out, encoding }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Discards the bytes written so far and keeps the allocation.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(crate) fn text(&mut self, text: &str) {
        match self.encoding {
            Encoding::MessagePack => msgpack::write_text(&mut self.out, text),
            Encoding::Cbor => cbor::write_text(&mut self.out, text),
        }
    }

    pub(crate) fn map(&mut self, entries: usize) {
        match self.encoding {
            Encoding::MessagePack => msgpack::write_map(&mut self.out, entries),
            Encoding::Cbor => cbor::write_map(&mut self.out, entries),
        }
    }

    pub(crate) fn array(&mut self, items: usize) {
        match self.encoding {
            Encoding::MessagePack => msgpack::write_array(&mut self.out, items),
            Encoding::Cbor => cbor::write_array(&mut self.out, items),
        }
    }

    /// Writes a whole value, with nested maps in canonical order.
    pub(crate) fn value(&mut self, value: &Value) {
        match value {
            Value::Array(items) => {
                self.array(items.len());
                for item in items {
                    self.value(item);
                }
            }
            Value::Map(map) => {
                let mut entries: Vec<_> = map.iter().map(|(k, v)| (k.as_str(), v)).collect();
                self.entries(&mut entries);
            }
            scalar => match self.encoding {
                Encoding::MessagePack => msgpack::write_scalar(&mut self.out, scalar),
                Encoding::Cbor => cbor::write_scalar(&mut self.out, scalar),
            },
        }
    }

    /// Writes a map, after sorting the entries into canonical order.
    pub(crate) fn entries(&mut self, entries: &mut [(&str, &Value)]) {
        let encoding = self.encoding;
        entries.sort_unstable_by(|(a, _), (b, _)| encoding.compare_keys(a, b));
        self.map(entries.len());
        for (key, value) in entries {
            self.text(key);
            self.value(value);
        }
    }
}
