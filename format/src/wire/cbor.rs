//! Deterministic CBOR (OMS 16.2, RFC 8949 4.2.1): shortest heads and floats, no tags, no indefinite
//! lengths.

use half::f16;

use super::{Token, TokenReader};
use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::value::{Int, Value};

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const SIMPLE: u8 = 7;

const FALSE: u8 = 20;
const TRUE: u8 = 21;
const NULL: u8 = 22;
const F16: u8 = 25;
const F32: u8 = 26;
const F64: u8 = 27;

pub(super) fn is_map(byte: u8) -> bool {
    byte >> 5 == MAP
}

pub(super) fn token<'a>(reader: &mut TokenReader<'a>) -> Result<Token<'a>> {
    let [byte] = reader.array()?;
    let (major, info) = (byte >> 5, byte & 0x1f);
    if major == SIMPLE {
        return simple(reader, info);
    }
    let n = argument(reader, info)?;
    match major {
        UNSIGNED => Ok(Token::Int(n.into())),
        NEGATIVE => i64::try_from(n)
            .map(|n| Token::Int((-1 - n).into()))
            .map_err(|_| corrupt("an integer is below -2^63")),
        BYTES => reader.take(length(n)?).map(Token::Bytes),
        TEXT => reader.text(length(n)?),
        ARRAY => length(n).map(Token::Array),
        MAP => length(n).map(Token::Map),
        _ => Err(corrupt("CBOR tags have no place in a grain")),
    }
}

/// Skips the next value, or the head of a container. Returns the number of values inside.
pub(super) fn skip_head(reader: &mut TokenReader<'_>) -> Result<usize> {
    let [byte] = reader.array()?;
    let (major, info) = (byte >> 5, byte & 0x1f);
    if major == SIMPLE {
        let width = match info {
            F16 => 2,
            F32 => 4,
            F64 => 8,
            _ => 0,
        };
        return reader.take(width).map(|_| 0);
    }
    let n = argument(reader, info)?;
    match major {
        BYTES | TEXT => reader.take(length(n)?).map(|_| 0),
        ARRAY => length(n),
        MAP => Ok(length(n)?.saturating_mul(2)),
        _ => Ok(0),
    }
}

/// Reads the head of a text. Returns its length.
pub(super) fn text_len(reader: &mut TokenReader<'_>) -> Result<usize> {
    let [byte] = reader.array()?;
    match byte >> 5 {
        TEXT => length(argument(reader, byte & 0x1f)?),
        _ => Err(corrupt("a map key is not text")),
    }
}

/// Reads the argument of a head, which must be in its shortest form.
fn argument(reader: &mut TokenReader<'_>, info: u8) -> Result<u64> {
    let (n, shorter) = match info {
        0..=23 => return Ok(u64::from(info)),
        24 => (u64::from(u8::from_be_bytes(reader.array()?)), 23),
        25 => (u64::from(u16::from_be_bytes(reader.array()?)), u64::from(u8::MAX)),
        26 => (u64::from(u32::from_be_bytes(reader.array()?)), u64::from(u16::MAX)),
        27 => (u64::from_be_bytes(reader.array()?), u64::from(u32::MAX)),
        _ => {
            return Err(corrupt("indefinite or reserved lengths are not deterministic CBOR"));
        }
    };
    if n > shorter { Ok(n) } else { Err(corrupt("a CBOR head is not in its shortest form")) }
}

fn simple<'a>(reader: &mut TokenReader<'a>, info: u8) -> Result<Token<'a>> {
    let (x, width) = match info {
        FALSE => return Ok(Token::Bool(false)),
        TRUE => return Ok(Token::Bool(true)),
        NULL => return Ok(Token::Null),
        F16 => (f16::from_bits(u16::from_be_bytes(reader.array()?)).to_f64(), F16),
        F32 => (f64::from(f32::from_bits(u32::from_be_bytes(reader.array()?))), F32),
        F64 => (f64::from_bits(u64::from_be_bytes(reader.array()?)), F64),
        _ => {
            return Err(corrupt("undefined and other simple values have no place in a grain"));
        }
    };
    if !x.is_finite() {
        return Err(Error::new(ErrorKind::FloatInvalid, "a float is NaN or infinite"));
    }
    if ShortestFloat::of(x).width() != width {
        return Err(corrupt("a CBOR float is not in its shortest form"));
    }
    Ok(Token::Float(x))
}

/// A finite float in the shortest form that preserves its value.
enum ShortestFloat {
    Half(u16),
    Single(u32),
    Double(u64),
}

impl ShortestFloat {
    #[expect(clippy::cast_possible_truncation, reason = "the narrow form is compared back")]
    fn of(x: f64) -> Self {
        let half = f16::from_f64(x);
        if half.to_f64().to_bits() == x.to_bits() {
            return Self::Half(half.to_bits());
        }
        let single = x as f32;
        if f64::from(single).to_bits() == x.to_bits() {
            return Self::Single(single.to_bits());
        }
        Self::Double(x.to_bits())
    }

    fn width(&self) -> u8 {
        match self {
            Self::Half(_) => F16,
            Self::Single(_) => F32,
            Self::Double(_) => F64,
        }
    }
}

fn length(n: u64) -> Result<usize> {
    usize::try_from(n).map_err(|_| corrupt("a length is out of range"))
}

pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    write_head(out, TEXT, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn write_map(out: &mut Vec<u8>, entries: usize) {
    write_head(out, MAP, entries as u64);
}

pub(super) fn write_array(out: &mut Vec<u8>, items: usize) {
    write_head(out, ARRAY, items as u64);
}

pub(super) fn write_scalar(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Bool(b) => out.push(SIMPLE << 5 | if *b { TRUE } else { FALSE }),
        Value::Int(n) => write_int(out, *n),
        Value::Float(x) => write_float(out, *x),
        Value::Str(text) => write_text(out, text),
        Value::Bytes(bytes) => {
            write_head(out, BYTES, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        _ => out.push(SIMPLE << 5 | NULL),
    }
}

fn write_int(out: &mut Vec<u8>, n: Int) {
    match (n.as_u64(), n.as_i64()) {
        (Some(n), _) => write_head(out, UNSIGNED, n),
        // `!n` is -1 - n, computed without overflow.
        (None, Some(n)) => write_head(out, NEGATIVE, (!n).unsigned_abs()),
        (None, None) => {}
    }
}

fn write_float(out: &mut Vec<u8>, x: f64) {
    let shortest = ShortestFloat::of(x);
    out.push(SIMPLE << 5 | shortest.width());
    match shortest {
        ShortestFloat::Half(bits) => out.extend_from_slice(&bits.to_be_bytes()),
        ShortestFloat::Single(bits) => out.extend_from_slice(&bits.to_be_bytes()),
        ShortestFloat::Double(bits) => out.extend_from_slice(&bits.to_be_bytes()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each width is checked by its range")]
fn write_head(out: &mut Vec<u8>, major: u8, n: u64) {
    let major = major << 5;
    match n {
        0..=23 => out.push(major | n as u8),
        24..=0xff => out.extend_from_slice(&[major | 24, n as u8]),
        0x100..=0xffff => {
            out.push(major | 25);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 26);
            out.extend_from_slice(&(n as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}
