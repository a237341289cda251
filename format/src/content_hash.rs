//! `cas:` URIs: media content named by its hash (OMS 7.1).
//!
//! Content is never fetched. A malformed URI is kept as ordinary text and names no content.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The SHA-256 of content stored outside the grain.
///
/// ```
/// use grainstore_format::{ContentAddress, ContentHash};
///
/// let uri = format!("cas://sha256:{}", ContentAddress::of(b"a photo"));
/// assert!(ContentHash::from_uri(&uri).is_some_and(|hash| hash.matches(b"a photo")));
/// assert_eq!(ContentHash::from_uri("https://example.com/photo.png"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Parses a URI `cas://sha256:` with 64 lowercase hex digits. `None` for any other text.
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        Self::from_checksum(uri.strip_prefix("cas://")?)
    }

    /// Parses a `checksum` or `content_hash`: `sha256:` with 64 lowercase hex digits. `None` for any
    /// other text.
    #[must_use]
    pub fn from_checksum(checksum: &str) -> Option<Self> {
        let hex = checksum.strip_prefix("sha256:")?;
        let mut hash = [0; 32];
        let fits = hex.len() == 64 && HEXLOWER.decode_mut(hex.as_bytes(), &mut hash).is_ok();
        fits.then_some(Self(hash))
    }

    /// Returns the 32 bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns `true` if the content has this hash. The comparison is constant-time.
    #[must_use]
    pub fn matches(&self, content: &[u8]) -> bool {
        let hash: [u8; 32] = Sha256::digest(content).into();
        self.0.ct_eq(&hash).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_leads_to_the_content_of_its_hash_or_nowhere() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let hash = ContentHash::from_uri(&format!("cas://sha256:{abc}")).unwrap();
        assert!(hash.matches(b"abc") && !hash.matches(b"abd"));
        assert_eq!(ContentHash::from_checksum(&format!("sha256:{abc}")), Some(hash));
        let upper = abc.to_uppercase();
        for bad in [
            "",
            "cas:",
            "cas://",
            "cas://sha256:",
            "cas://sha256:abc123...",
            abc,
            &format!("cas:sha256:{abc}"),
            &format!("cas://sha256:{upper}"),
            &format!("cas://sha256:{abc}0"),
            &format!("cas://sha1:{abc}"),
            &format!("https://example.com/{abc}"),
            &format!("CAS://sha256:{abc}"),
        ] {
            assert_eq!(ContentHash::from_uri(bad), None, "{bad}");
        }
    }
}
