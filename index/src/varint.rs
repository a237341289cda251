//! Numbers in one to five bytes (LEB128).

/// Appends a number as a varint (LEB128): seven bits a byte, the low ones first.
pub(crate) fn put_varint(to: &mut Vec<u8>, mut value: u32) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            return to.push(low);
        }
        to.push(low | 0x80);
    }
}

/// Reads a varint from the front.
pub(crate) fn take_varint(from: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u32::from(byte & 0x7f);
        value |= bits.checked_shl(shift).filter(|moved| moved >> shift == bits)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
