//! UUIDs of version 7 (RFC 9562) whose random part is a hash, so that the same thing has the same one each time.

/// Makes a UUID of an instant, and of the first ten bytes of a hash: 12 bits, the variant, 62 bits. Instants before 1970
/// count as 1970.
pub(crate) fn version_7(ms: i64, hash: &[u8; 32]) -> String {
    let [h0, h1, h2, h3, h4, h5, h6, h7, h8, h9, ..] = *hash;
    let ms = u64::try_from(ms).unwrap_or(0) & 0xffff_ffff_ffff;
    let random = u64::from_be_bytes([h2, h3, h4, h5, h6, h7, h8, h9]);
    let (low, variant) = (random & 0x3fff_ffff_ffff_ffff, 0x8000_0000_0000_0000);
    let middle = u16::from_be_bytes([h0, h1]) >> 4;
    let tail = variant | low;
    format!(
        "{:08x}-{:04x}-7{middle:03x}-{:04x}-{:012x}",
        ms >> 16,
        ms & 0xffff,
        tail >> 48,
        tail & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_made_of_an_instant_and_a_hash() {
        let hash = "df928038769506fb66671aced0eb97d45871e169e505ed55a382c744e620550e";
        let hash: grainstore::ContentAddress = hash.parse().unwrap();
        let made = version_7(1_768_471_200_000, hash.as_bytes());
        assert_eq!(made, "019bc119-0100-7df9-8038-769506fb6667");
        assert!(version_7(-1, hash.as_bytes()).starts_with("00000000-0000-7"));
    }
}
