//! A grain that is about to be stored: its bytes, at least as sensitive as asked for, and what did not fit into it.

use grainstore::format::{Blob, Encoding, Envelope, Flags, Map, Sensitivity, Value};
use grainstore::{ContentAddress, EpochMs, Grain, Offer, Owner, Session};

use super::Profile;
use super::spill::{self, Spilled};
use crate::error::Result;

/// The byte of a blob with its flags (OMS 3.1).
const FLAG_BYTE: usize = 1;

/// An encoded grain with the values that are stored beside it.
#[derive(Debug)]
pub(crate) struct NewGrain {
    address: ContentAddress,
    offer: Offer,
    size_bytes: usize,
    spilled: Vec<Spilled>,
}

impl NewGrain {
    /// Encodes fields with full names. Values that are too large for a grain are taken out of it.
    ///
    /// # Errors
    /// Those of [`Grain::from_fields`]; `ERR_TOO_LARGE` for a grain that no spill makes small enough.
    pub(crate) fn new(profile: Profile, fields: Map, least: Sensitivity) -> Result<Self> {
        Self::of(profile, (Grain::from_fields(fields)?, Vec::new()), least)
    }

    /// Encodes fields like [`NewGrain::new`], with an entry of `context` beside the grain, so that no index has it.
    ///
    /// # Errors
    /// As [`NewGrain::new`].
    pub(crate) fn with_beside(
        profile: Profile,
        fields: Map,
        least: Sensitivity,
        entry: &str,
    ) -> Result<Self> {
        let taken = spill::taken(profile, Grain::from_fields(fields)?, entry)?;
        Self::of(profile, taken, least)
    }

    fn of(
        profile: Profile,
        (grain, mut spilled): (Grain, Vec<Spilled>),
        least: Sensitivity,
    ) -> Result<Self> {
        let (blob, more) = spill::encoded(profile, grain)?;
        spilled.extend(more);
        let blob = with_sensitivity(blob, least);
        let (address, size_bytes) = (blob.address(), blob.bytes().len());
        Ok(Self { address, offer: Offer::Blob(blob.into_bytes()), size_bytes, spilled })
    }

    /// A grain of which somebody else has made the bytes.
    pub(crate) fn given(offer: Offer, address: ContentAddress) -> Self {
        let size_bytes = match &offer {
            Offer::Blob(bytes) | Offer::Signed(bytes) => bytes.len(),
            _ => 0,
        };
        Self { address, offer, size_bytes, spilled: Vec::new() }
    }

    /// Adds to fields that the grain derives from another, whose place it does not take.
    pub(crate) fn deriving(mut fields: Map, old: &ContentAddress) -> Map {
        fields.insert("derived_from".to_owned(), Value::from(vec![old.to_string()]));
        fields
    }

    /// Adds to fields that the grain takes the place of another, and why.
    pub(crate) fn succeeding(fields: Map, old: &ContentAddress, why: &str) -> Map {
        let mut fields = Self::deriving(fields, old);
        fields.insert("supersession_justification".to_owned(), Value::from(why));
        fields
    }

    pub(crate) fn address(&self) -> ContentAddress {
        self.address
    }

    /// The bytes that it holds: its own, and those of what was spilled.
    pub(crate) fn held_bytes(&self) -> usize {
        let spilled = self.spilled.iter().map(|spilled| spilled.bytes.len());
        spilled.fold(self.size_bytes, usize::saturating_add)
    }

    /// The grain as it is given to the store. What was spilled is stored after it: [`NewGrain::store_spilled`].
    pub(crate) fn offer(&self) -> Offer {
        self.offer.clone()
    }

    /// Returns `true` if values that did not fit into the grain lie beside it.
    pub(crate) fn has_spilled(&self) -> bool {
        !self.spilled.is_empty()
    }

    /// Whose it is and when it was created, if it is a user's.
    ///
    /// # Errors
    /// Those of [`Grain::decode`].
    pub(crate) fn user_and_time(&self) -> Result<Option<(String, EpochMs)>> {
        let grain = match &self.offer {
            Offer::Blob(blob) => Grain::decode(blob)?,
            Offer::Signed(envelope) => Envelope::parse(envelope.clone())?.grain()?,
            _ => return Ok(None),
        };
        Ok(grain.text("user_id").map(|user| (user.to_owned(), grain.created_at())))
    }

    /// Stores the values that did not fit into the grain, which is stored; they are erased with it.
    ///
    /// # Errors
    /// Those of [`Session::put_side_blob`].
    pub(crate) fn store_spilled(&mut self, session: &Session) -> Result<()> {
        for spilled in self.spilled.drain(..) {
            session.put_side_blob(spilled.bytes, Owner::Grain(self.address))?;
        }
        Ok(())
    }
}

/// Raises the sensitivity in the header, from which nothing else in the blob depends (OMS 13.4).
fn with_sensitivity(blob: Blob, least: Sensitivity) -> Blob {
    let mut bytes = blob.into_bytes();
    if let Some(byte) = bytes.get_mut(FLAG_BYTE) {
        let flags = Flags::from_byte(*byte);
        *byte = flags.with_sensitivity(flags.sensitivity().max(least)).byte();
    }
    Blob::from_bytes(bytes)
}

/// The encoding of every grain that is made here.
pub(super) const ENCODING: Encoding = Encoding::MessagePack;
