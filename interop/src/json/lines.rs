//! JSON lines: one value a line, of which no more than one is held.

use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

use super::parse_within;
use crate::error::{Error, Result};

/// Most bytes of a line of [`Lines`]; `ERR_LIMIT` beyond, and the lines after it are read on.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// The values of a file of JSON lines, with the bytes of each. Empty lines are passed over; a last line may lack its end.
///
/// ```
/// use grainstore_interop::json::Lines;
///
/// let lines: Vec<_> = Lines::of(&b"{\"a\": 1}\n\nnonsense\n2"[..]).collect::<Result<_, _>>()?;
/// assert_eq!(lines[0].value.as_ref().unwrap()["a"], 1);
/// assert_eq!(lines[1].value.as_ref().unwrap_err().entry(), Some("line 3"));
/// assert_eq!((lines[2].number, &lines[2].bytes[..]), (4, &b"2"[..]));
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    source: BufReader<R>,
    number: u64,
    /// Bytes that a line has at most.
    most_bytes: usize,
    /// Bytes of memory that its value takes at most.
    most_memory: u64,
}

/// One line of [`Lines`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// Its bytes, without its end. Empty if it is too long.
    pub bytes: Vec<u8>,
    /// Its value; `ERR_CORRUPT` if it is no JSON, `ERR_LIMIT` if it is too long, with the line's number.
    pub value: Result<Value>,
}

impl<R: Read> Lines<R> {
    /// Reads the lines of a source.
    pub fn of(source: R) -> Self {
        Self::limited(source, MAX_LINE_BYTES, u64::MAX)
    }

    /// Reads the lines of a source, of which each has this many bytes at most, and its value takes this much memory.
    pub(crate) fn limited(source: R, most_bytes: usize, most_memory: u64) -> Self {
        let source = BufReader::with_capacity(1 << 16, source);
        Self { source, number: 0, most_bytes, most_memory }
    }

    /// Reads the bytes up to the end of the line, `None` if there are too many, which are passed over.
    fn next_bytes(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let most = (self.most_bytes as u64).saturating_add(1);
        (&mut self.source).take(most).read_until(b'\n', &mut bytes)?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        } else if bytes.len() > self.most_bytes {
            self.source.skip_until(b'\n')?;
            return Ok(None);
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        Ok(Some(bytes))
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Result<Line>;

    fn next(&mut self) -> Option<Result<Line>> {
        loop {
            match self.source.fill_buf() {
                Ok([]) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(error.into())),
            }
            self.number = self.number.saturating_add(1);
            let number = self.number;
            let at = |error: Error| error.in_entry(&format!("line {number}"));
            let (bytes, value) = match self.next_bytes() {
                Err(error) => return Some(Err(at(error.into()))),
                Ok(None) => {
                    let message = format!("a line has {} bytes at most", self.most_bytes);
                    (Vec::new(), Err(at(Error::limit(message))))
                }
                Ok(Some(bytes)) if bytes.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(Some(bytes)) => {
                    let value = parse_within(&bytes, self.most_memory).map_err(at);
                    (bytes, value)
                }
            };
            return Some(Ok(Line { number, bytes, value }));
        }
    }
}
