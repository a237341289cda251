//! Canonical MessagePack (OMS 4): smallest forms only, float64 only, no extension types.

use rmp::{Marker, encode};

use super::{Token, TokenReader};
use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::value::{Int, Value};

pub(super) fn is_map(byte: u8) -> bool {
    matches!(Marker::from_u8(byte), Marker::FixMap(_) | Marker::Map16 | Marker::Map32)
}

pub(super) fn token<'a>(reader: &mut TokenReader<'a>) -> Result<Token<'a>> {
    let [byte] = reader.array()?;
    match Marker::from_u8(byte) {
        Marker::Null => Ok(Token::Null),
        Marker::True => Ok(Token::Bool(true)),
        Marker::False => Ok(Token::Bool(false)),
        Marker::FixPos(n) => Ok(Token::Int(u64::from(n).into())),
        Marker::FixNeg(n) => Ok(Token::Int(i64::from(n).into())),
        marker @ (Marker::U8 | Marker::U16 | Marker::U32 | Marker::U64) => unsigned(reader, marker),
        marker @ (Marker::I8 | Marker::I16 | Marker::I32 | Marker::I64) => signed(reader, marker),
        Marker::F64 => finite(f64::from_bits(u64::from_be_bytes(reader.array()?))),
        Marker::FixStr(len) => reader.text(usize::from(len)),
        Marker::Str8 => length(reader.array::<1>()?, 31).and_then(|len| reader.text(len)),
        Marker::Str16 => length(reader.array::<2>()?, 0xff).and_then(|len| reader.text(len)),
        Marker::Str32 => length(reader.array::<4>()?, 0xffff).and_then(|len| reader.text(len)),
        Marker::Bin8 => bytes(reader, |reader| length(reader.array::<1>()?, -1)),
        Marker::Bin16 => bytes(reader, |reader| length(reader.array::<2>()?, 0xff)),
        Marker::Bin32 => bytes(reader, |reader| length(reader.array::<4>()?, 0xffff)),
        Marker::FixArray(len) => Ok(Token::Array(usize::from(len))),
        Marker::Array16 => length(reader.array::<2>()?, 15).map(Token::Array),
        Marker::Array32 => length(reader.array::<4>()?, 0xffff).map(Token::Array),
        Marker::FixMap(len) => Ok(Token::Map(usize::from(len))),
        Marker::Map16 => length(reader.array::<2>()?, 15).map(Token::Map),
        Marker::Map32 => length(reader.array::<4>()?, 0xffff).map(Token::Map),
        Marker::F32 => Err(corrupt("float32 is not canonical")),
        _ => Err(corrupt("extension types have no place in a grain")),
    }
}

/// Skips the next value, or the head of a container. Returns the number of values inside.
pub(super) fn skip_head(reader: &mut TokenReader<'_>) -> Result<usize> {
    let [byte] = reader.array()?;
    let (skipped, inside) = match Marker::from_u8(byte) {
        Marker::U8 | Marker::I8 => (1, 0),
        Marker::U16 | Marker::I16 => (2, 0),
        Marker::U32 | Marker::I32 => (4, 0),
        Marker::U64 | Marker::I64 | Marker::F64 => (8, 0),
        Marker::FixStr(len) => (usize::from(len), 0),
        Marker::Str8 | Marker::Bin8 => (number(reader.array::<1>()?)?, 0),
        Marker::Str16 | Marker::Bin16 => (number(reader.array::<2>()?)?, 0),
        Marker::Str32 | Marker::Bin32 => (number(reader.array::<4>()?)?, 0),
        Marker::FixArray(len) => (0, usize::from(len)),
        Marker::Array16 => (0, number(reader.array::<2>()?)?),
        Marker::Array32 => (0, number(reader.array::<4>()?)?),
        Marker::FixMap(len) => (0, 2 * usize::from(len)),
        Marker::Map16 => (0, number(reader.array::<2>()?)?.saturating_mul(2)),
        Marker::Map32 => (0, number(reader.array::<4>()?)?.saturating_mul(2)),
        _ => (0, 0),
    };
    reader.take(skipped).map(|_| inside)
}

/// Reads the head of a text. Returns its length.
pub(super) fn text_len(reader: &mut TokenReader<'_>) -> Result<usize> {
    let [byte] = reader.array()?;
    match Marker::from_u8(byte) {
        Marker::FixStr(len) => Ok(usize::from(len)),
        Marker::Str8 => number(reader.array::<1>()?),
        Marker::Str16 => number(reader.array::<2>()?),
        Marker::Str32 => number(reader.array::<4>()?),
        _ => Err(corrupt("a map key is not text")),
    }
}

fn number<const N: usize>(bytes: [u8; N]) -> Result<usize> {
    length(bytes, -1)
}

fn unsigned<'a>(reader: &mut TokenReader<'a>, marker: Marker) -> Result<Token<'a>> {
    let (n, smaller) = match marker {
        Marker::U8 => (u64::from(u8::from_be_bytes(reader.array()?)), 127),
        Marker::U16 => (u64::from(u16::from_be_bytes(reader.array()?)), u64::from(u8::MAX)),
        Marker::U32 => (u64::from(u32::from_be_bytes(reader.array()?)), u64::from(u16::MAX)),
        _ => (u64::from_be_bytes(reader.array()?), u64::from(u32::MAX)),
    };
    if n > smaller { Ok(Token::Int(n.into())) } else { Err(not_smallest("integer")) }
}

fn signed<'a>(reader: &mut TokenReader<'a>, marker: Marker) -> Result<Token<'a>> {
    let (n, smaller) = match marker {
        Marker::I8 => (i64::from(i8::from_be_bytes(reader.array()?)), -32),
        Marker::I16 => (i64::from(i16::from_be_bytes(reader.array()?)), i64::from(i8::MIN)),
        Marker::I32 => (i64::from(i32::from_be_bytes(reader.array()?)), i64::from(i16::MIN)),
        _ => (i64::from_be_bytes(reader.array()?), i64::from(i32::MIN)),
    };
    if n < smaller { Ok(Token::Int(n.into())) } else { Err(not_smallest("integer")) }
}

fn finite(x: f64) -> Result<Token<'static>> {
    if x.is_finite() {
        return Ok(Token::Float(x));
    }
    Err(Error::new(ErrorKind::FloatInvalid, "a float is NaN or infinite"))
}

fn bytes<'a>(
    reader: &mut TokenReader<'a>,
    len: impl FnOnce(&mut TokenReader<'a>) -> Result<usize>,
) -> Result<Token<'a>> {
    let len = len(reader)?;
    reader.take(len).map(Token::Bytes)
}

/// Reads a big-endian length, which must be greater than `smaller`, the maximum of the next smaller
/// form.
fn length<const N: usize>(bytes: [u8; N], smaller: i64) -> Result<usize> {
    let len = bytes.iter().fold(0_u64, |len, byte| (len << 8) | u64::from(*byte));
    if i64::try_from(len).is_ok_and(|len| len <= smaller) {
        return Err(not_smallest("length"));
    }
    usize::try_from(len).map_err(|_| corrupt("a length is out of range"))
}

fn not_smallest(what: &str) -> Error {
    corrupt(format!("an {what} is not in its smallest form").replace("an length", "a length"))
}

/// Writes to a `Vec`, which cannot fail.
macro_rules! infallible {
    ($call:expr) => {
        if $call.is_err() {
            debug_assert!(false, "a Vec takes every byte");
        }
    };
}

/// Converts a length to 32 bits. The device profile keeps every blob far below 2^32 bytes.
fn len32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    infallible!(encode::write_str(out, text));
}

pub(super) fn write_map(out: &mut Vec<u8>, entries: usize) {
    infallible!(encode::write_map_len(out, len32(entries)));
}

pub(super) fn write_array(out: &mut Vec<u8>, items: usize) {
    infallible!(encode::write_array_len(out, len32(items)));
}

pub(super) fn write_scalar(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Bool(b) => infallible!(encode::write_bool(out, *b)),
        Value::Int(n) => write_int(out, *n),
        Value::Float(x) => infallible!(encode::write_f64(out, *x)),
        Value::Str(text) => write_text(out, text),
        Value::Bytes(bytes) => infallible!(encode::write_bin(out, bytes)),
        _ => infallible!(encode::write_nil(out)),
    }
}

fn write_int(out: &mut Vec<u8>, n: Int) {
    match (n.as_u64(), n.as_i64()) {
        (Some(n), _) => infallible!(encode::write_uint(out, n)),
        (None, Some(n)) => infallible!(encode::write_sint(out, n)),
        (None, None) => {}
    }
}
