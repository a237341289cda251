//! What a host offers to the store, before anything of it is checked, and what it may have meant.

use grainstore_format::{Blob, Envelope, Grain, Header};

use crate::base::error::Error;
use crate::rules::policy::{doubts, may_be_doubted};
use crate::search::embed::Embedding;
use crate::state::view::with_fields;
use crate::write::advice;

/// What is offered to the store: fields to encode, a finished blob, or a signed one.
#[derive(Debug, Clone)]
pub enum Offer {
    /// A grain, encoded as MessagePack unless it was decoded from CBOR.
    Grain(Grain),
    /// A blob, kept byte for byte.
    Blob(Vec<u8>),
    /// A signed grain: a COSE_Sign1 around its blob (OMS 9.1), kept byte for byte.
    Signed(Vec<u8>),
    /// One of these with vectors of the grain, which are stored with it or not at all. Of a grain that
    /// is stored already they take the place of those it has in the same spaces.
    Embedded(Box<Offer>, Vec<Embedding>),
}

impl From<Grain> for Offer {
    fn from(grain: Grain) -> Self {
        Self::Grain(grain)
    }
}

impl From<Blob> for Offer {
    fn from(blob: Blob) -> Self {
        Self::Blob(blob.into_bytes())
    }
}

impl From<Envelope> for Offer {
    fn from(envelope: Envelope) -> Self {
        Self::Signed(envelope.into_bytes())
    }
}

impl Offer {
    /// The same with vectors of the grain.
    #[must_use]
    pub fn with_vectors(self, vectors: Vec<Embedding>) -> Self {
        if vectors.is_empty() { self } else { Self::Embedded(Box::new(self), vectors) }
    }

    /// The envelope, where it is a signed grain.
    pub(crate) fn signed(&self) -> Option<&[u8]> {
        match self {
            Self::Signed(bytes) => Some(bytes),
            Self::Embedded(offer, _) => offer.signed(),
            Self::Grain(_) | Self::Blob(_) => None,
        }
    }

    /// The grain by itself, and its vectors.
    pub(crate) fn apart(self) -> (Self, Vec<Embedding>) {
        match self {
            Self::Embedded(offer, mut vectors) => {
                let (offer, others) = offer.apart();
                vectors.extend(others);
                (offer, vectors)
            }
            offer => (offer, Vec::new()),
        }
    }

    /// What is probably not meant so, a sentence each: of the invalidation policy a mode the standard
    /// does not have, a quorum nobody can meet, a misspelt field (OMS 23.3); and what the standard
    /// says a writer SHOULD do and this grain does not (OMS 6.11, 12.5.3, 17.2, 23.5, 24 to 27, A.7). It
    /// is stored all the same. Nothing for what is no grain.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let of_blob = |blob: &[u8]| {
            with_fields(blob, |grain| Ok([doubts(grain), advice::of(grain)].concat()))
        };
        let found = match self {
            // Of most grains there is nothing to tell, and they are not encoded twice.
            Self::Grain(grain)
                if !advice::may_apply(grain)
                    && !grain.fields().keys().any(|name| may_be_doubted(name)) =>
            {
                return Vec::new();
            }
            Self::Grain(grain) => {
                let encoding = grain.decoded_header().map(Header::encoding).unwrap_or_default();
                grain.encode(encoding).map_err(Error::from).and_then(|blob| of_blob(blob.bytes()))
            }
            Self::Embedded(offer, _) => return offer.warnings(),
            Self::Blob(bytes) => of_blob(bytes),
            Self::Signed(bytes) => Envelope::parse(bytes.clone())
                .map_err(Error::from)
                .and_then(|envelope| of_blob(envelope.blob()?)),
        };
        found.unwrap_or_default()
    }
}
