//! A row of the log: the envelope of a blob or a stub, and in a plain store of format 3 the audit entry of the write
//! that brought the grain before it. A durable put writes one row then, and not two.

use grainstore_index::Sequence;

use super::checksum_of;
use crate::base::error::{Error, Result};

/// A row of the log, in its parts.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | 2; a row that begins with an envelope's version has no such head |
/// | 1..5 | CRC-32 of the row's key (8 bytes), bytes 5..17 and the entry |
/// | 5..13 | number of the audit entry, u64 |
/// | 13..17 | length of the entry, u32; 0 for a row without one |
/// | 17.. | the entry, then the envelope |
///
/// The checksum is for `verify`: nothing else tells that the last entry of all has changed.
///
/// The number of a row without an entry is one that numbers never descend by. So the last row with the number of an
/// entry is the one that has it, if any has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogRowParts<'b> {
    /// `None` for a row of the first form.
    pub(crate) number: Option<u64>,
    pub(crate) entry: Option<&'b [u8]>,
    check: [u8; 4],
    /// Empty, so that it cannot be opened, if the head is damaged.
    pub(crate) envelope: &'b [u8],
}

/// The head of a row with a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogRowHead<'b> {
    pub(crate) number: u64,
    pub(crate) entry: Option<&'b [u8]>,
}

impl<'b> LogRowParts<'b> {
    const NUMBERED: u8 = 2;

    /// Returns the parts of a row of a plain store.
    pub(crate) fn split(row: &'b [u8]) -> Self {
        match row {
            [Self::NUMBERED, rest @ ..] => Self::split_numbered(rest).unwrap_or(Self::whole(&[])),
            _ => Self::whole(row),
        }
    }

    /// A row of the first form.
    pub(crate) fn whole(envelope: &'b [u8]) -> Self {
        Self { number: None, entry: None, check: [0; 4], envelope }
    }

    /// Returns `true` if the head is as it was written for the row with this key.
    pub(crate) fn has_sound_head(&self, at: Sequence) -> bool {
        let head = self.number.map(|number| LogRowHead { number, entry: self.entry });
        head.is_none_or(|head| {
            head.length().is_ok_and(|length| head.check(at, length) == self.check)
        })
    }

    /// Returns a row with the head of this one, sound or not, around another envelope.
    ///
    /// # Errors
    /// As [`LogRowHead::encode`].
    pub(crate) fn with_envelope(&self, envelope: &[u8]) -> Result<Vec<u8>> {
        match self.number {
            Some(number) => {
                LogRowHead { number, entry: self.entry }.encode_checked(self.check, envelope)
            }
            None => Ok(envelope.to_vec()),
        }
    }

    fn split_numbered(rest: &'b [u8]) -> Option<Self> {
        let (check, rest) = rest.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (entry, envelope) = rest.split_at_checked(length)?;
        let entry = Some(entry).filter(|entry| !entry.is_empty());
        Some(Self { number: Some(u64::from_be_bytes(*number)), entry, check: *check, envelope })
    }
}

impl LogRowHead<'_> {
    /// Returns the row at this place, with this head and an envelope.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for an entry of 4 GiB.
    pub(crate) fn encode(&self, at: Sequence, envelope: &[u8]) -> Result<Vec<u8>> {
        self.encode_checked(self.check(at, self.length()?), envelope)
    }

    fn length(&self) -> Result<[u8; 4]> {
        let length = u32::try_from(self.entry.unwrap_or_default().len());
        let length = length.map_err(|_| Error::integrity("an audit entry has too many bytes"))?;
        Ok(length.to_be_bytes())
    }

    fn check(&self, at: Sequence, length: [u8; 4]) -> [u8; 4] {
        let (at, number) = (at.get().to_be_bytes(), self.number.to_be_bytes());
        checksum_of(&[&at, &number, &length, self.entry.unwrap_or_default()])
    }

    fn encode_checked(&self, check: [u8; 4], envelope: &[u8]) -> Result<Vec<u8>> {
        let entry = self.entry.unwrap_or_default();
        let mut row = Vec::with_capacity(17 + entry.len() + envelope.len());
        row.push(LogRowParts::NUMBERED);
        row.extend_from_slice(&check);
        row.extend_from_slice(&self.number.to_be_bytes());
        row.extend_from_slice(&self.length()?);
        row.extend_from_slice(entry);
        row.extend_from_slice(envelope);
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;
    use crate::disk::layout::PlainEnvelope;

    #[test]
    fn rows_of_the_log_have_these_bytes() {
        let (at, envelope) = (Sequence::new(5), PlainEnvelope::seal(5, b"body"));
        let head = LogRowHead { number: 0x0102, entry: Some(b"\x80") };
        let row = head.encode(at, &envelope).unwrap();
        let golden =
            ["02", "dabbb338", "0000000000000102", "00000001", "80", "010049d99db1626f6479"];
        assert_eq!(HEXLOWER.encode(&row), golden.concat());
        let parts = LogRowParts::split(&row);
        assert_eq!((parts.number, parts.entry), (Some(0x0102), Some(&b"\x80"[..])));
        assert_eq!(parts.envelope, envelope);
        let bare = LogRowHead { number: 0x0103, entry: None }.encode(at, &envelope).unwrap();
        let golden = ["02", "9e0681eb", "0000000000000103", "00000000", "010049d99db1626f6479"];
        assert_eq!(HEXLOWER.encode(&bare), golden.concat());
        let parts = LogRowParts::split(&bare);
        assert_eq!((parts.number, parts.entry), (Some(0x0103), None));
        assert_eq!(parts.with_envelope(b"stub").unwrap(), [&bare[..17], b"stub"].concat());
        let first = LogRowParts::split(&envelope);
        assert_eq!(first, LogRowParts::whole(&envelope));
        assert_eq!(first.with_envelope(b"stub").unwrap(), b"stub");
    }

    #[test]
    fn a_head_that_has_changed_or_stands_in_another_row_is_not_sound() {
        let at = Sequence::new(5);
        let row = LogRowHead { number: 7, entry: Some(b"entry") }.encode(at, b"envelope").unwrap();
        assert!(LogRowParts::split(&row).has_sound_head(at));
        assert!(!LogRowParts::split(&row).has_sound_head(Sequence::new(6)));
        for bit in 8..8 * (row.len() - b"envelope".len()) {
            let mut flipped = row.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let parts = LogRowParts::split(&flipped);
            assert!(!parts.has_sound_head(at) || parts.envelope.is_empty(), "bit {bit}");
        }
    }

    #[test]
    fn a_head_that_is_cut_off_leaves_nothing_to_open() {
        let head = LogRowHead { number: 7, entry: Some(b"entry") };
        let row = head.encode(Sequence::new(5), b"").unwrap();
        for length in 1..row.len() {
            let parts = LogRowParts::split(&row[..length]);
            assert_eq!(parts, LogRowParts::whole(&[]), "{length}");
        }
    }
}
