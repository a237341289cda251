//! Signatures: COSE_Sign1 around a blob, detached proofs, and the DIDs of signers (OMS 9, 12.2).
//!
//! - `did`: identifiers of signers, and the keys some of them contain. `keys`: keys, and the resolver
//!   trait.
//! - `sign1`: parses a COSE_Sign1 into its parts. `verdict`: verifies the parts.
//! - `envelope`: a signed grain. `proof`: signatures over other messages, for invalidation policies.
//!
//! No key is fetched here: keys that are not in the DID itself come from a [`DidResolver`] of the host.

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
pub use verdict::SignatureVerdict;
