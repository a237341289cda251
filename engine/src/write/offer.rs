//! The input of a write, before any check, and warnings about probable mistakes in it.

use grainstore_format::{Blob, Envelope, Grain, GrainRef, GrainType, Header, Sensitivity};

use crate::base::error::Error;
use crate::disk::blob::with_fields;
use crate::rules::policy::{doubts, may_be_doubted};
use crate::search::embed::Embedding;
use crate::write::recommendations;
use crate::write::sensitivity::sensitivity_of;

/// A grain to store: fields to encode, an encoded blob, or a signed one.
///
/// ```
/// use grainstore::embed::{Embedding, Metric};
/// use grainstore::{Offer, cal::Near};
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
///
/// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// let vector = Embedding::new("my-model", Metric::Cosine, vec![0.6, 0.8])?;
/// let tea = session.put(Offer::from(grain).with_vectors(vec![vector]))?.address();
/// let near = Near { model: None, values: [0.5, 0.9].into() };
/// let found = session.query(&Query::default().nearing(near), &PageOptions::first(1))?;
/// assert_eq!(found.results[0].content_address, tea);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub enum Offer {
    /// A grain, encoded as MessagePack unless it was decoded from CBOR.
    Grain(Grain),
    /// A blob, stored byte for byte.
    Blob(Vec<u8>),
    /// A signed grain: a COSE_Sign1 around its blob (OMS 9.1), stored byte for byte.
    Signed(Vec<u8>),
    /// One of these with vectors of the grain, which are stored together or not at all. If the grain is
    /// stored already, they replace its vectors in the same spaces.
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
    /// Adds vectors of the grain.
    #[must_use]
    pub fn with_vectors(self, vectors: Vec<Embedding>) -> Self {
        if vectors.is_empty() { self } else { Self::Embedded(Box::new(self), vectors) }
    }

    /// Returns the envelope of a signed grain.
    pub(crate) fn envelope(&self) -> Option<&[u8]> {
        match self {
            Self::Signed(bytes) => Some(bytes),
            Self::Embedded(offer, _) => offer.envelope(),
            Self::Grain(_) | Self::Blob(_) => None,
        }
    }

    /// Splits the offer into the grain without vectors, and the vectors.
    pub(crate) fn split_vectors(self) -> (Self, Vec<Embedding>) {
        match self {
            Self::Embedded(offer, mut vectors) => {
                let (offer, others) = offer.split_vectors();
                vectors.extend(others);
                (offer, vectors)
            }
            offer => (offer, Vec::new()),
        }
    }

    /// Returns warnings, one sentence each: about the invalidation policy, a mode that is not in the
    /// standard, a quorum that cannot be met, a misspelt field (OMS 23.3); and recommendations of the
    /// standard (SHOULD) that the grain does not follow (OMS 6.11, 12.5.3, 17.2, 23.5, 24 to 27, A.7). The
    /// grain is stored all the same. Empty if it is not a valid grain.
    ///
    /// ```
    /// use grainstore::{Offer, prelude::*};
    ///
    /// let grain = Grain::from_json(
    ///     r#"{"type": "belief", "subject": "alice", "relation": "prefers", "object": "tea",
    ///         "confidence": 1, "created_at": "2026-03-02T09:00:00Z",
    ///         "invalidation_policy": {"mode": "lokced"}}"#,
    /// )?;
    /// assert_eq!(Offer::from(grain).warnings().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        // Of most grains there is nothing to tell, and they are not encoded twice.
        let may_apply = |grain: &Grain| {
            recommendations::may_apply(grain)
                || grain.fields().keys().any(|name| may_be_doubted(name))
        };
        let told = |grain: &GrainRef<'_>| {
            [doubts(grain), recommendations::recommendations(grain)].concat()
        };
        self.told(may_apply, told)
    }

    /// What there is to tell of it beside its [`Offer::warnings`] where it takes the place of what is
    /// protected.
    pub(crate) fn warnings_of_successor(&self) -> Vec<String> {
        let is_goal = |grain: &Grain| grain.grain_type() == GrainType::Goal;
        self.told(is_goal, |grain| recommendations::of_successor(grain).into_iter().collect())
    }

    /// Whether it is a valid grain without a `user_id`. Nothing is encoded for that.
    pub(crate) fn is_of_nobody(&self) -> bool {
        let of_blob = |blob: &[u8]| with_fields(blob, |grain| Ok(grain.get("user_id").is_none()));
        let told = match self {
            Self::Grain(grain) => Ok(grain.get("user_id").is_none()),
            Self::Embedded(offer, _) => return offer.is_of_nobody(),
            Self::Blob(bytes) => of_blob(bytes),
            Self::Signed(bytes) => Envelope::parse(bytes.clone())
                .map_err(Error::from)
                .and_then(|envelope| of_blob(envelope.blob()?)),
        };
        told.unwrap_or_default()
    }

    /// The sensitivity in the header of a grain in bytes, which are stored as they are; `None` for any other, and for
    /// what is no grain.
    pub(crate) fn sensitivity_in_bytes(&self) -> Option<Sensitivity> {
        match self {
            Self::Grain(_) => None,
            Self::Embedded(offer, _) => offer.sensitivity_in_bytes(),
            Self::Blob(bytes) => sensitivity_of(bytes).ok(),
            Self::Signed(bytes) => Envelope::parse(bytes.clone())
                .ok()
                .and_then(|of| sensitivity_of(of.blob().ok()?).ok()),
        }
    }

    /// What is told of the grain it is, if anything may be.
    fn told(
        &self,
        may_apply: impl Fn(&Grain) -> bool,
        told: impl Fn(&GrainRef<'_>) -> Vec<String>,
    ) -> Vec<String> {
        let of_blob = |blob: &[u8]| with_fields(blob, |grain| Ok(told(grain)));
        let found = match self {
            Self::Grain(grain) if !may_apply(grain) => return Vec::new(),
            Self::Grain(grain) => {
                let encoding = grain.decoded_header().map(Header::encoding).unwrap_or_default();
                grain.encode(encoding).map_err(Error::from).and_then(|blob| of_blob(blob.bytes()))
            }
            Self::Embedded(offer, _) => return offer.told(may_apply, told),
            Self::Blob(bytes) => of_blob(bytes),
            Self::Signed(bytes) => Envelope::parse(bytes.clone())
                .map_err(Error::from)
                .and_then(|envelope| of_blob(envelope.blob()?)),
        };
        found.unwrap_or_default()
    }
}
