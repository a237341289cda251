//! What is offered to a store, what is asked of it, and what it answers.

use super::engine::format::cose::{SigningKey, sign};
use super::engine::format::{
    Blob, ContentAddress, Encoding, Envelope, EpochMs, Grain, Map, Value, VerificationStatus,
};
use super::engine::{PutOutcome, SameFact};
use super::rules;

/// A grain as it is offered to the store.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) grain: Grain,
    pub(crate) encoding: Encoding,
    /// Offered as finished bytes, not as fields to encode.
    pub(crate) finished: bool,
    /// The envelope it comes in, and whether its signature is valid; only around finished bytes.
    pub(crate) signed: Option<Signed>,
}

/// An envelope, byte for byte.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub(crate) envelope: Vec<u8>,
    pub(crate) valid: bool,
}

impl Signed {
    /// An envelope around a grain: by a key that its DID holds, or by somebody whose key nobody finds.
    pub(crate) fn around(grain: &Grain, valid: bool) -> Self {
        let blob = grain.encode(Encoding::default()).expect("a grain encodes");
        let key = SigningKey::ed25519_from_seed(&[7; 32]);
        let envelope = sign(blob.bytes(), &key, None).expect("a signed grain");
        if valid {
            return Self { envelope: envelope.into_bytes(), valid };
        }
        let blob = envelope.blob().expect("a blob").to_vec();
        let length = u16::try_from(blob.len()).expect("a small grain").to_be_bytes();
        let kid = b"did:web:a.example";
        let protected = [&[0xa2, 1, 0x27, 4, 0x40 + 17][..], kid].concat();
        let head = [&[0xd2, 0x84, 0x56][..], &protected, &[0xa0, 0x59], &length].concat();
        Self { envelope: [&head[..], &blob, &[0x58, 64], &[1; 64]].concat(), valid }
    }

    fn blob(&self) -> Blob {
        let envelope = Envelope::parse(self.envelope.clone()).expect("an envelope");
        Blob::from_bytes(envelope.blob().expect("a blob").to_vec())
    }
}

impl Offered {
    pub(crate) fn blob(&self) -> Blob {
        if let Some(signed) = &self.signed {
            return signed.blob();
        }
        let encoding = if self.finished { self.encoding } else { Encoding::default() };
        self.grain.encode(encoding).expect("a grain encodes")
    }

    /// The same with another field or parent, as the store writes it.
    fn with(&self, change: impl FnOnce(&mut Map)) -> Self {
        let mut fields = self.grain.fields().clone();
        change(&mut fields);
        let grain = Grain::from_fields(fields).expect("the change is valid");
        Self { grain, ..self.clone() }
    }

    /// The grain a supersession writes. Finished bytes stay as they are.
    pub(crate) fn successor(&self, old: &ContentAddress, why: Option<&str>) -> Self {
        if self.finished {
            return self.clone();
        }
        let reasoned = match why {
            Some(why) if self.grain.get("supersession_justification").is_none() => {
                self.with(|fields| {
                    fields.insert("supersession_justification".to_owned(), Value::from(why));
                })
            }
            _ => self.clone(),
        };
        reasoned.derived_from(old)
    }

    /// The same with one more parent, unless it is one already.
    pub(crate) fn derived_from(&self, old: &ContentAddress) -> Self {
        if rules::parents(&self.grain).contains(old) {
            return self.clone();
        }
        self.with(|fields| {
            let parents = fields.entry("derived_from".to_owned());
            match parents.or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(parents) => parents.push(Value::from(old.to_string())),
                other => panic!("derived_from is {other:?}"),
            }
        })
    }
}

/// A call that writes.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Put(Offered, SameFact),
    Batch(Vec<Offered>),
    Supersede { old: ContentAddress, new: Offered, why: Option<String> },
    Mark(ContentAddress, Mark),
}

/// A change of a grain's standing that writes no other grain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Contradict,
    Status(VerificationStatus),
    Hold,
    Lift,
}

/// What it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Put(PutOutcome),
    Batch(Vec<PutOutcome>),
    Superseded(ContentAddress),
    Marked,
    Refused(&'static str),
}

/// A call, who made it, when, and what it answered.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    /// The namespace of the session; nothing for the operator.
    pub(crate) namespace: Option<&'static str>,
    pub(crate) now: EpochMs,
    pub(crate) call: Call,
    pub(crate) answer: Answer,
}

impl Settled {
    /// A call that has no answer yet.
    pub(crate) fn awaited(namespace: Option<&'static str>, now: EpochMs, call: Call) -> Self {
        Self { namespace, now, call, answer: Answer::Refused("not answered") }
    }
}
