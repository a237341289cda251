//! Signatures: COSE_Sign1 around a blob, proofs beside one, and the DIDs they name (OMS 9, 12.2).
//!
//! - `did`: names of signers, and the keys that lie in some of them. `keys`: keys, and who finds them.
//! - `sign1`: bytes into the parts of a COSE_Sign1. `verdict`: what the parts are worth.
//! - `envelope`: a signed grain. `proof`: signatures over other messages, for invalidation policies.
//!
//! Nothing is fetched: keys that lie elsewhere come from a [`DidResolver`] of the host.

mod did;
mod envelope;
mod keys;
pub mod proof;
mod sign1;
mod verdict;

pub use did::Did;
pub use envelope::{Envelope, sign};
pub use keys::{Algorithm, DidResolver, OfflineResolver, SigningKey, VerifyingKey};
pub use proof::{sign_detached, verify_detached};
pub use verdict::Verdict;
