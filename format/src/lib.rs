//! The `.mg` grain format of OMS 1.3: fields, canonical bytes, content addresses, signatures and
//! containers. No I/O.
//!
//! Modules, in the order data flows through them:
//!
//! - `fields`, `grain_type`, `header`, `profile`, `domain`: the tables of the standard.
//! - `json`, `typed` -> `normalise` -> `validate`: turn fields into a [`Grain`].
//! - `wire`, `payload`, `decode`, `grain`: encode a [`Grain`] as a [`Blob`] and decode it again.
//! - `cose`: COSE signatures around a [`Blob`], and detached ones.
//! - `disclose`: selective disclosure, views that hide fields. `content_hash`: `cas:` URIs, content
//!   named by its hash.
//! - `container`: many grains in one `.mg` file, or in a stream of frames.
//! - `grain_ref`: reads single fields straight from the bytes. `state`: the mutable state a store keeps
//!   beside a grain.
//!
//! ```
//! use grainstore_format::{Encoding, Grain};
//!
//! let grain = Grain::from_json(
//!     r#"{"type": "belief", "subject": "alice", "relation": "prefers", "object": "dark mode",
//!         "confidence": 0.9, "created_at": "2026-01-15T10:00:00Z"}"#,
//! )?;
//! let blob = grain.encode(Encoding::MessagePack)?;
//! assert_eq!(Grain::decode(blob.bytes())?.text("object"), Some("dark mode"));
//! println!("{}", blob.address());
//! # Ok::<(), grainstore_format::Error>(())
//! ```

mod address;
pub mod container;
mod content_hash;
pub mod cose;
mod decode;
mod disclose;
mod domain;
mod error;
pub mod fields;
mod grain;
mod grain_ref;
mod grain_type;
mod header;
mod json;
mod normalise;
mod payload;
mod profile;
mod state;
mod text;
mod time;
mod typed;
mod validate;
mod value;
mod wire;

pub use address::ContentAddress;
pub use content_hash::ContentHash;
pub use cose::{
    Algorithm, Did, DidResolver, Envelope, OfflineResolver, SignatureVerdict, SigningKey,
    VerifyingKey, sign, sign_detached, verify_detached,
};
pub use decode::decode_value;
pub use disclose::{
    check_revealed, check_view, disclose, disclosure_of, is_disclosed_view, restore_original,
};
pub use domain::{DOMAIN_PREFIXES, int_key, int_name, is_domain_field};
pub use error::{Error, ErrorKind, Result};
pub use grain::{Blob, DecodeOptions, EncodeOptions, Grain, SHARED_PARTITION};
pub use grain_ref::{ArrayRef, GrainRef, MapRef, PlainBlob, ValueRef};
pub use grain_type::{GrainType, OpaqueType};
pub use header::{Flags, Header, Sensitivity, namespace_hash};
pub use json::parse_json;
pub use payload::PayloadKey;
pub use profile::DeviceProfile;
pub use state::{GrainState, REVIEW_FLAG, VerificationStatus};
pub use text::normalise as normalise_text;
pub use time::{EpochMs, parse_datetime};
pub use typed::{
    Action, ActionBuilder, Belief, BeliefBuilder, Consensus, ConsensusBuilder, Consent,
    ConsentBuilder, Event, EventBuilder, Goal, GoalBuilder, Observation, ObservationBuilder,
    Reasoning, ReasoningBuilder, State, StateBuilder, Workflow, WorkflowBuilder,
};
pub use value::{Int, Map, Value};
pub use wire::{Encoding, encode_value};
