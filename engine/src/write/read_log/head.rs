//! The end of the read log, signed with a key of the store: the file `head` beside its other files.
//!
//! | bytes | contents |
//! |---|---|
//! | 0 | version, `01` |
//! | 1..9 | number of entries, u64 |
//! | 9..41 | hash at the end of the last group |
//! | 41..49 | time of signing, epoch ms, i64 |
//! | 49.. | a COSE_Sign1 without payload over `"grainstore-reads-v1"`, the store id and bytes 1..49 |

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use grainstore_format::cose::{SignatureVerdict, SigningKey, sign_detached, verify_detached};
use grainstore_format::{EpochMs, OfflineResolver};

use crate::base::error::{Error, Result};
use crate::disk::layout::AuditHead;
use crate::state::audit::AuditHashChain;

const VERSION: u8 = 1;
const HEAD_FILE: &str = "head";
const NEW_HEAD_FILE: &str = "head.new";

/// The path of the signed head.
pub(super) fn path_of(dir: &Path) -> PathBuf {
    dir.join(HEAD_FILE)
}

fn signed_message(store: &[u8; 16], head: &AuditHead, time: EpochMs) -> Vec<u8> {
    [b"grainstore-reads-v1", &store[..], &head.encode(), &time.get().to_be_bytes()].concat()
}

/// Encodes and signs the head.
///
/// # Errors
/// `ERR_SIGNATURE`, only for a key that cannot sign.
pub(super) fn encode(
    store: &[u8; 16],
    head: &AuditHead,
    time: EpochMs,
    key: &SigningKey,
) -> Result<Vec<u8>> {
    let proof = sign_detached(&signed_message(store, head, time), key)?;
    Ok([&[VERSION][..], &head.encode(), &time.get().to_be_bytes(), &proof].concat())
}

/// Signs the end of the log, and atomically replaces the previous head.
///
/// # Errors
/// `ERR_IO`.
pub(super) fn write(
    dir: &Path,
    store: &[u8; 16],
    head: &AuditHead,
    time: EpochMs,
    chain: &AuditHashChain,
) -> Result<()> {
    let bytes = encode(store, head, time, &chain.read_log_key())?;
    let new = dir.join(NEW_HEAD_FILE);
    let mut file = File::create(&new)?;
    file.write_all(&bytes)?;
    file.sync_data()?;
    fs::rename(&new, path_of(dir))?;
    Ok(())
}

/// Returns the last signed end of the log; `None` if there is none.
///
/// # Errors
/// `ERR_INTEGRITY` for a head that this store has not signed; `ERR_IO`.
pub(super) fn read(
    dir: &Path,
    store: &[u8; 16],
    chain: &AuditHashChain,
) -> Result<Option<AuditHead>> {
    match fs::read(path_of(dir)) {
        Ok(bytes) => decode(&bytes, store, chain).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn decode(bytes: &[u8], store: &[u8; 16], chain: &AuditHashChain) -> Result<AuditHead> {
    let unsigned = || Error::integrity("the head of the read log is not signed by this store");
    let (said_here, proof) = bytes.split_first_chunk::<49>().ok_or_else(unsigned)?;
    let head = AuditHead::decode(said_here.get(1..41).ok_or_else(unsigned)?)?;
    let time = said_here.get(41..).and_then(<[u8]>::first_chunk).ok_or_else(unsigned)?;
    let time = EpochMs::new(i64::from_be_bytes(*time));
    let signer = chain.read_log_key().did();
    match verify_detached(proof, &signed_message(store, &head, time), &OfflineResolver) {
        SignatureVerdict::Valid(did) if did == signer && said_here.first() == Some(&VERSION) => {
            Ok(head)
        }
        _ => Err(unsigned()),
    }
}
