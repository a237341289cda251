//! The written forms: one line, one line of ASCII, and the canonical form that is signed and hashed.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use crate::error::{Error, Result};

/// Writes a value on one line: names in order, no spaces, text as it is. Integers keep all their digits.
///
/// ```
/// use grainstore_interop::json::{line, parse};
///
/// assert_eq!(line(&parse("{\"ü\": 1, \"a\": [1.0, 2]}".as_bytes())?), "{\"a\":[1.0,2],\"ü\":1}");
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[must_use]
pub fn line(value: &Value) -> String {
    value.to_string()
}

/// Writes a value like [`line()`], with every character beyond ASCII as `\uXXXX`: no normalisation of text changes it.
///
/// ```
/// use grainstore_interop::json::{ascii, parse};
///
/// assert_eq!(ascii(&parse("\"e\u{301} 🦀\"".as_bytes())?), r#""e\u0301 \ud83e\udd80""#);
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[must_use]
pub fn ascii(value: &Value) -> String {
    let mut bytes = Vec::new();
    // Writing into memory does not fail.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, Ascii));
    String::from_utf8(bytes).unwrap_or_default()
}

/// Escapes all that is not ASCII.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        to: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut units = [0; 2];
        for part in fragment.split_inclusive(|char: char| !char.is_ascii()) {
            let mut chars = part.chars();
            match chars.next_back().filter(|last| !last.is_ascii()) {
                None => to.write_all(part.as_bytes())?,
                Some(last) => {
                    to.write_all(chars.as_str().as_bytes())?;
                    for unit in last.encode_utf16(&mut units) {
                        write!(to, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Writes a value in its canonical form (RFC 8785): numbers are doubles, names in the order of their UTF-16.
///
/// ```
/// use grainstore_interop::json::{canonical, parse};
///
/// let value = parse(r#"{"b":1,"a":[1.0,1e21,0.1,-0],"€":"€\n","A":null}"#.as_bytes())?;
/// assert_eq!(canonical(&value)?, r#"{"A":null,"a":[1,1e+21,0.1,0],"b":1,"€":"€\n"}"#);
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
///
/// # Errors
/// `ERR_CORRUPT` for a value without a canonical form.
pub fn canonical(value: &Value) -> Result<String> {
    serde_json_canonicalizer::to_string(value)
        .map_err(|error| Error::corrupt(format!("no canonical form: {error}")))
}
