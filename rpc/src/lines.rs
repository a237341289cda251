//! Bounded reading of lines.

use std::io::{self, BufRead, Read};

/// Most bytes of a request.
pub(crate) const MAX_REQUEST_BYTES: usize = 64 << 20;

/// The outcome of [`read_line`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// A line is in the buffer, without its newline.
    Read,
    /// The line is longer than the limit; its rest is unread.
    TooLong,
    /// End of input.
    End,
}

/// Clears `buffer` and reads the next line into it, unless that exceeds `limit` bytes.
///
/// ```
/// use grainstore_rpc::{Line, read_line};
///
/// let (mut input, mut buffer) = (&b"tea\na long line\n"[..], Vec::new());
/// assert_eq!(read_line(&mut input, &mut buffer, 5)?, Line::Read);
/// assert_eq!(buffer, b"tea");
/// assert_eq!(read_line(&mut input, &mut buffer, 5)?, Line::TooLong);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn read_line(
    reader: &mut (impl BufRead + ?Sized),
    buffer: &mut Vec<u8>,
    limit: usize,
) -> io::Result<Line> {
    if fill(reader, buffer, limit)? == 0 {
        return Ok(Line::End);
    }
    if buffer.last() == Some(&b'\n') {
        buffer.pop();
    } else if buffer.len() > limit {
        return Ok(Line::TooLong);
    }
    Ok(Line::Read)
}

/// As [`read_line`], but a last line without a newline is none: who sent it may have been cut off.
pub(crate) fn read_whole_line(
    reader: &mut (impl BufRead + ?Sized),
    buffer: &mut Vec<u8>,
    limit: usize,
) -> io::Result<Line> {
    fill(reader, buffer, limit)?;
    match buffer.pop() {
        Some(b'\n') => Ok(Line::Read),
        Some(_) if buffer.len() >= limit => Ok(Line::TooLong),
        _ => Ok(Line::End),
    }
}

/// Clears `buffer` and reads up to a newline, with it, or one byte beyond the limit.
fn fill(
    reader: &mut (impl BufRead + ?Sized),
    buffer: &mut Vec<u8>,
    limit: usize,
) -> io::Result<usize> {
    buffer.clear();
    let room = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    (&mut *reader).take(room).read_until(b'\n', buffer)
}

/// Discards the rest of a line.
pub(crate) fn skip_line(reader: &mut (impl BufRead + ?Sized)) -> io::Result<()> {
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(());
        }
        match available.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                reader.consume(at.saturating_add(1));
                return Ok(());
            }
            None => {
                let all = available.len();
                reader.consume(all);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_none() {
        let (mut reader, mut buffer) = ("one\ntwo".as_bytes(), Vec::new());
        assert_eq!(read_whole_line(&mut reader, &mut buffer, 4).unwrap(), Line::Read);
        assert_eq!(buffer, b"one");
        assert_eq!(read_whole_line(&mut reader, &mut buffer, 4).unwrap(), Line::End);
        let mut long = "0123456789\n".as_bytes();
        assert_eq!(read_whole_line(&mut long, &mut buffer, 4).unwrap(), Line::TooLong);
    }

    #[test]
    fn after_a_line_too_long_reading_goes_on_at_the_next() {
        let mut reader = "0123456789\nnext\nlast".as_bytes();
        let mut buffer = Vec::new();
        assert_eq!(read_line(&mut reader, &mut buffer, 4).unwrap(), Line::TooLong);
        skip_line(&mut reader).unwrap();
        for expected in ["next", "last"] {
            assert_eq!(read_line(&mut reader, &mut buffer, 4).unwrap(), Line::Read);
            assert_eq!(buffer, expected.as_bytes());
        }
        assert_eq!(read_line(&mut reader, &mut buffer, 4).unwrap(), Line::End);
        skip_line(&mut reader).unwrap();
    }
}
