//! Parses the bytes of a COSE_Sign1 (RFC 9052 4.2) into its parts, and writes them.
//!
//! Bytes with the right parts in the wrong form are still parsed, with a flaw noted: verification then
//! answers "invalid", not "no signature". Signatures are verified in `verdict`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use coset::cbor::Value as Cbor;
use coset::{
    CoseSign1Builder, HeaderBuilder, ProtectedHeader, SignatureContext, TaggedCborSerializable,
    iana, sig_structure_data,
};

use super::keys::{Algorithm, SigningKey};
use crate::error::{Result, corrupt};
use crate::text::excerpt;
use crate::value::Int;
use crate::wire::{Encoding, Token, TokenReader};

/// The CBOR tag of a COSE_Sign1, encoded in one byte.
const TAG: u8 = 0xd2;
/// The number of that tag.
const TAG_NUMBER: u64 = 18;

/// The parts of a COSE_Sign1.
pub(super) struct Sign1<'a> {
    /// The encoded protected header.
    pub(super) protected: Cow<'a, [u8]>,
    /// The signed payload, or `None` if it is detached.
    pub(super) payload: Option<Cow<'a, [u8]>>,
    pub(super) signature: Cow<'a, [u8]>,
    /// The range of the payload in the bytes, or `None` if it is not contiguous there.
    pub(super) payload_at: Option<Range<usize>>,
    /// The labels of the unprotected header.
    pub(super) unprotected: BTreeSet<Label>,
    /// The deviation from the required form, if there is one.
    pub(super) flaw: Option<&'static str>,
}

/// The label of a header parameter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    Int(Int),
    Text(String),
}

impl Label {
    pub(super) fn number(number: i64) -> Self {
        Self::Int(Int::from(number))
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{:?}", excerpt(text)),
        }
    }
}

/// The protected header: all labels, and the parameters that are used here.
#[derive(Debug, Default)]
pub(super) struct ProtectedParams {
    pub(super) labels: BTreeSet<Label>,
    /// The algorithm, or `None` if there is none or it is not a number.
    pub(super) algorithm: Option<i64>,
    pub(super) content_type: Option<String>,
    /// The signer, from a byte or text string.
    pub(super) kid: Option<Vec<u8>>,
}

/// Returns the claimed signer: the text of `kid`, with its fragment. Not verified.
pub(super) fn kid_of(sign1: &Sign1<'_>) -> Option<String> {
    String::from_utf8(ProtectedParams::read(&sign1.protected)?.kid?).ok()
}

impl<'a> Sign1<'a> {
    /// # Errors
    /// `ERR_CORRUPT` for bytes that are not a COSE_Sign1, even by the lenient parser.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        match StrictParser::read(bytes) {
            Ok(sign1) => Ok(sign1),
            Err(flaw) => read_lenient(bytes, flaw),
        }
    }

    /// Reads the COSE_Sign1 at the start of these bytes and returns it with its length. Bytes after it
    /// are ignored.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for missing parts, and for parts of indefinite length.
    pub(super) fn read_first(bytes: &'a [u8]) -> Result<(Self, usize)> {
        StrictParser::read_first(bytes).map_err(corrupt)
    }

    /// Returns the bytes a signature covers (Sig_structure): the protected header and the message.
    pub(super) fn signed_bytes(&self, message: &[u8]) -> Vec<u8> {
        let protected = ProtectedHeader {
            original_data: Some(self.protected.to_vec()),
            ..ProtectedHeader::default()
        };
        sig_structure_data(SignatureContext::CoseSign1, protected, None, &[], message)
    }
}

/// Signs a message: as the payload of an envelope if a content type is given, else detached.
///
/// # Errors
/// `ERR_CORRUPT` if the COSE library cannot encode the result, which does not happen for the headers
/// built here.
pub(super) fn write(
    message: &[u8],
    key: &SigningKey,
    content_type: Option<&str>,
    iat: Option<i64>,
) -> Result<Vec<u8>> {
    let algorithm = match key.algorithm() {
        Algorithm::EdDsa => iana::Algorithm::EdDSA,
        Algorithm::Es256 => iana::Algorithm::ES256,
    };
    let mut protected =
        HeaderBuilder::new().algorithm(algorithm).key_id(key.did().as_str().as_bytes().to_vec());
    if let Some(content_type) = content_type {
        protected = protected.content_type(content_type.to_owned());
    }
    let mut unprotected = HeaderBuilder::new();
    if let Some(iat) = iat {
        unprotected = unprotected.text_value("iat".to_owned(), Cbor::from(iat));
    }
    let building =
        CoseSign1Builder::new().protected(protected.build()).unprotected(unprotected.build());
    let sign1 = match content_type {
        Some(_) => building.payload(message.to_vec()).create_signature(&[], |tbs| key.sign(tbs)),
        None => building.create_detached_signature(message, &[], |tbs| key.sign(tbs)),
    };
    sign1.build().to_tagged_vec().map_err(|error| corrupt(format!("COSE: {error}")))
}

impl ProtectedParams {
    /// Parses the header, which must be deterministic CBOR without tags. `None` if it is not.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut header = Self::default();
        if bytes.is_empty() {
            return Some(header);
        }
        let mut reader = TokenReader::new(bytes, Encoding::Cbor);
        let Ok(Token::Map(entries)) = reader.token() else { return None };
        for _ in 0..entries {
            let label = match reader.token().ok()? {
                Token::Int(number) => Label::Int(number),
                Token::Str(text) => Label::Text(text.to_owned()),
                _ => return None,
            };
            let before = reader;
            let value = reader.token().ok()?;
            match (&label, value) {
                (Label::Int(n), Token::Int(value)) if n.get() == 1 => {
                    header.algorithm = value.as_i64();
                }
                (Label::Int(n), Token::Str(value)) if n.get() == 3 => {
                    header.content_type = Some(value.to_owned());
                }
                // A numeric content type is none of those used for grains.
                (Label::Int(n), _) if n.get() == 3 => header.content_type = Some(String::new()),
                (Label::Int(n), Token::Bytes(value)) if n.get() == 4 => {
                    header.kid = Some(value.to_vec());
                }
                (Label::Int(n), Token::Str(value)) if n.get() == 4 => {
                    header.kid = Some(value.as_bytes().to_vec());
                }
                _ => {}
            }
            reader = before;
            reader.skip().ok()?;
            if !header.labels.insert(label) {
                return None;
            }
        }
        reader.rest().is_empty().then_some(header)
    }
}

/// A strict parser of the outer structure: argument widths may vary, indefinite lengths are rejected.
struct StrictParser<'a> {
    rest: &'a [u8],
    total_len: usize,
}

/// The major type and the argument of a CBOR head.
struct CborHead {
    major: u8,
    number: u64,
}

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAGGED: u8 = 6;

const TRUNCATED: &str = "it ends too early, or has parts of no definite length";
const WRONG_PARTS: &str = "its parts are not those of a COSE_Sign1";

impl<'a> StrictParser<'a> {
    fn read(bytes: &'a [u8]) -> Result<Sign1<'a>, &'static str> {
        match Self::read_first(bytes)? {
            (sign1, taken) if taken == bytes.len() => Ok(sign1),
            _ => Err("there are bytes after it"),
        }
    }

    fn read_first(bytes: &'a [u8]) -> Result<(Sign1<'a>, usize), &'static str> {
        let mut outline = Self { rest: bytes, total_len: bytes.len() };
        if let [TAG, rest @ ..] = bytes {
            outline.rest = rest;
        }
        let CborHead { major: ARRAY, number: 4 } = outline.head()? else { return Err(WRONG_PARTS) };
        let protected = outline.bytes()?;
        let unprotected = outline.labels()?;
        let payload_head = *outline.rest.first().ok_or(TRUNCATED)?;
        let payload = match payload_head {
            0xf6 => {
                outline.rest = outline.rest.split_first().map_or(&[], |(_, rest)| rest);
                None
            }
            _ => Some(outline.bytes()?),
        };
        let payload_at = payload.map(|payload| {
            let end = outline.total_len.saturating_sub(outline.rest.len());
            end.saturating_sub(payload.len())..end
        });
        let signature = outline.bytes()?;
        let sign1 = Sign1 {
            protected: Cow::Borrowed(protected),
            payload: payload.map(Cow::Borrowed),
            signature: Cow::Borrowed(signature),
            payload_at,
            unprotected,
            flaw: None,
        };
        Ok((sign1, outline.total_len.saturating_sub(outline.rest.len())))
    }

    fn head(&mut self) -> Result<CborHead, &'static str> {
        let (first, rest) = self.rest.split_first().ok_or(TRUNCATED)?;
        self.rest = rest;
        let info = first & 0x1f;
        let width = match info {
            0..=23 => return Ok(CborHead { major: first >> 5, number: u64::from(info) }),
            24..=27 => 1_usize << (info - 24),
            _ => return Err(TRUNCATED),
        };
        let number = self.take(width)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        Ok(CborHead { major: first >> 5, number })
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(taken)
    }

    fn string(&mut self, length: u64) -> Result<&'a [u8], &'static str> {
        self.take(usize::try_from(length).map_err(|_| TRUNCATED)?)
    }

    fn bytes(&mut self) -> Result<&'a [u8], &'static str> {
        match self.head()? {
            CborHead { major: BYTES, number } => self.string(number),
            _ => Err(WRONG_PARTS),
        }
    }

    /// Reads the labels of a header map and skips the values.
    fn labels(&mut self) -> Result<BTreeSet<Label>, &'static str> {
        let CborHead { major: MAP, number: entries } = self.head()? else {
            return Err(WRONG_PARTS);
        };
        let mut labels = BTreeSet::new();
        for _ in 0..entries {
            let label = match self.head()? {
                CborHead { major: UNSIGNED, number } => Label::Int(Int::from(number)),
                CborHead { major: NEGATIVE, number } => {
                    Label::Int(Int::new(-1 - i128::from(number)).ok_or(WRONG_PARTS)?)
                }
                CborHead { major: TEXT, number } => {
                    let text =
                        std::str::from_utf8(self.string(number)?).map_err(|_| WRONG_PARTS)?;
                    Label::Text(text.to_owned())
                }
                _ => return Err(WRONG_PARTS),
            };
            if !labels.insert(label) {
                return Err("a header parameter occurs twice");
            }
            self.skip()?;
        }
        Ok(labels)
    }

    /// Skips one item of any depth, without recursion.
    fn skip(&mut self) -> Result<(), &'static str> {
        let mut pending = 1_u64;
        while let Some(others) = pending.checked_sub(1) {
            let CborHead { major, number } = self.head()?;
            let inside = match major {
                BYTES | TEXT => {
                    self.string(number)?;
                    0
                }
                ARRAY => number,
                MAP => number.saturating_mul(2),
                TAGGED => 1,
                _ => 0,
            };
            pending = others.saturating_add(inside);
        }
        Ok(())
    }
}

/// Parses with a general CBOR reader what [`StrictParser`] rejects, so that the grain inside can still
/// be named.
///
/// # Errors
/// `ERR_CORRUPT`.
fn read_lenient<'a>(bytes: &[u8], flaw: &'static str) -> Result<Sign1<'a>> {
    let no_sign1 = || {
        corrupt("these bytes are no COSE_Sign1").with_hint(
            "a COSE_Sign1 begins with the bytes d2 84, or 84; check what these are, and that they \
             were not cut",
        )
    };
    let mut rest = bytes;
    let value: Cbor = coset::cbor::de::from_reader(&mut rest).map_err(|_| no_sign1())?;
    let parts = match value {
        Cbor::Tag(TAG_NUMBER, inner) => inner.into_array(),
        other => other.into_array(),
    };
    let parts: [Cbor; 4] =
        parts.map_err(|_| no_sign1())?.try_into().map_err(|_: Vec<Cbor>| no_sign1())?;
    let [Cbor::Bytes(protected), Cbor::Map(_), payload, Cbor::Bytes(signature)] = parts else {
        return Err(no_sign1());
    };
    let payload = match payload {
        Cbor::Bytes(payload) => Some(Cow::Owned(payload)),
        Cbor::Null => None,
        _ => return Err(no_sign1()),
    };
    Ok(Sign1 {
        protected: Cow::Owned(protected),
        payload,
        signature: Cow::Owned(signature),
        payload_at: None,
        unprotected: BTreeSet::new(),
        flaw: Some(flaw),
    })
}
