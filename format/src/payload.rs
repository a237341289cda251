//! Payloads compressed or encrypted inside the blob (OMS 3.1.1, flag bits 2 and 1).
//!
//! The store does its own encryption and compression outside the blob. The forms here occur in grains
//! from elsewhere, or are written on request.

use std::borrow::Cow;
use std::io::Read;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit, Nonce};

use crate::error::{Error, ErrorKind, Result, corrupt};
use crate::header::{Flags, Header};
use crate::profile::DeviceProfile;

/// Bytes of the nonce, which precedes the ciphertext.
const NONCE_BYTES: usize = 12;

/// The zstd level of compressed payloads.
const ZSTD_LEVEL: i32 = 3;

/// An AES-256-GCM key for payloads, given in the [`EncodeOptions`](crate::EncodeOptions) of a grain.
#[derive(Clone, Copy)]
pub struct PayloadKey([u8; 32]);

impl PayloadKey {
    /// Creates a key from its 32 bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new(&self.0.into())
    }
}

impl std::fmt::Debug for PayloadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PayloadKey(..)")
    }
}

/// Returns the encoded payload of a stored one: decrypts first, then inflates, as the flags say.
///
/// # Errors
/// `ERR_KEY` without the right key, `ERR_CORRUPT` for a broken zstd frame, `ERR_TOO_LARGE` if it
/// inflates beyond the profile.
pub(crate) fn open<'a>(
    header: &Header,
    stored: &'a [u8],
    key: Option<&PayloadKey>,
    profile: &DeviceProfile,
) -> Result<Cow<'a, [u8]>> {
    let mut payload = Cow::Borrowed(stored);
    if header.flags.contains(Flags::ENCRYPTED) {
        payload = Cow::Owned(decrypt(header, &payload, key)?);
    }
    if header.flags.contains(Flags::COMPRESSED) {
        payload = Cow::Owned(inflate(&payload, profile)?);
    }
    Ok(payload)
}

/// The reverse of [`open`]: compresses and encrypts an encoded payload, as the flags say. `sealing` is
/// the key and the nonce. The header bytes are authenticated with the ciphertext.
///
/// # Errors
/// `ERR_KEY` if the flags ask for encryption and no key is given.
pub(crate) fn seal(
    header: &Header,
    payload: Vec<u8>,
    sealing: Option<(&PayloadKey, [u8; NONCE_BYTES])>,
) -> Result<Vec<u8>> {
    let mut payload = payload;
    if header.flags.contains(Flags::COMPRESSED) {
        payload = zstd::encode_all(payload.as_slice(), ZSTD_LEVEL)
            .map_err(|e| corrupt(format!("zstd: {e}")))?;
    }
    if header.flags.contains(Flags::ENCRYPTED) {
        let (key, nonce) = sealing.ok_or_else(no_key)?;
        let sealed = Payload { msg: &payload, aad: &header.to_bytes() };
        let sealed = key.cipher().encrypt(&Nonce::from(nonce), sealed);
        let mut out = nonce.to_vec();
        out.extend(sealed.map_err(|_| no_key())?);
        payload = out;
    }
    Ok(payload)
}

fn decrypt(header: &Header, stored: &[u8], key: Option<&PayloadKey>) -> Result<Vec<u8>> {
    let key = key.ok_or_else(no_key)?;
    let Some((nonce, sealed)) = stored.split_first_chunk::<NONCE_BYTES>() else {
        return Err(corrupt("an encrypted payload is shorter than its nonce"));
    };
    let sealed = Payload { msg: sealed, aad: &header.to_bytes() };
    key.cipher()
        .decrypt(&Nonce::from(*nonce), sealed)
        .map_err(|_| Error::new(ErrorKind::Key, "the key does not open this payload"))
}

fn inflate(frame: &[u8], profile: &DeviceProfile) -> Result<Vec<u8>> {
    let broken = |_| corrupt("the payload is no single zstd frame");
    let limit = profile.max_blob_bytes.saturating_sub(Header::LEN);
    let mut decoder = zstd::Decoder::with_buffer(frame).map_err(broken)?.single_frame();
    let mut payload = Vec::new();
    let bounded = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    (&mut decoder).take(bounded).read_to_end(&mut payload).map_err(broken)?;
    if payload.len() > limit {
        return Err(profile.check_size(payload.len() + Header::LEN).err().unwrap_or_else(no_key));
    }
    if !decoder.finish().is_empty() {
        return Err(corrupt("bytes after the zstd frame"));
    }
    Ok(payload)
}

fn no_key() -> Error {
    Error::new(ErrorKind::Key, "the payload is encrypted and no key was given")
}
