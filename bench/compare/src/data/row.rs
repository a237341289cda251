//! One row: what every peer stores of a grain. It knows the format and no store.

use grainstore::ContentAddress;
use grainstore::EpochMs;
use grainstore::format::{BeliefBuilder, Blob, Encoding, EventBuilder, Grain};

use crate::Result;

/// The two grain types of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Kind {
    /// A fact: subject, relation, object.
    Belief,
    /// A turn of a conversation: subject is who speaks, no object.
    Event,
}

/// The fields of a grain that are indexed or answered with.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Its type.
    pub(crate) kind: Kind,
    /// Its partition.
    pub(crate) namespace: String,
    /// Whom it is about, or who speaks.
    pub(crate) subject: String,
    /// What it says about the subject.
    pub(crate) relation: String,
    /// The object of a fact; the words of an event.
    pub(crate) text: String,
    /// Whose memory it is, where it is somebody's.
    pub(crate) user: Option<String>,
    /// The conversation it belongs to.
    pub(crate) session: Option<String>,
    /// Its tags.
    pub(crate) tags: Vec<String>,
    /// When, epoch milliseconds; distinct and ascending within a data set, so that newest first
    /// means the same to every peer.
    pub(crate) time_ms: i64,
    /// The turn it answers.
    pub(crate) parent: Option<ContentAddress>,
}

/// A row ready to be stored: what each peer takes of it, made outside every measurement.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// The indexed fields.
    pub(crate) row: Row,
    /// The grain, for the store that encodes grains itself.
    pub(crate) grain: Grain,
    /// The same grain encoded, for those that store bytes.
    pub(crate) blob: Blob,
}

impl Row {
    /// The object; none for events.
    #[must_use]
    pub(crate) fn object(&self) -> Option<&str> {
        (self.kind == Kind::Belief).then_some(self.text.as_str())
    }

    /// The grain with these fields.
    ///
    /// # Errors
    /// The format's, for fields that make no valid grain.
    pub(crate) fn grain(&self) -> Result<Grain> {
        let at = EpochMs::new(self.time_ms);
        let grain = match self.kind {
            Kind::Belief => {
                let (subject, relation) = (self.subject.as_str(), self.relation.as_str());
                let mut fact = BeliefBuilder::new(at, subject, relation, self.text.as_str(), 0.9)
                    .namespace(self.namespace.as_str())
                    .structural_tags(self.tags.clone());
                if let Some(user) = &self.user {
                    fact = fact.user_id(user.as_str());
                }
                fact.build()?
            }
            Kind::Event => {
                let mut turn = EventBuilder::new(at, self.text.as_str())
                    .subject(self.subject.as_str())
                    .relation(self.relation.as_str())
                    .namespace(self.namespace.as_str())
                    .structural_tags(self.tags.clone());
                if let Some(user) = &self.user {
                    turn = turn.user_id(user.as_str());
                }
                if let Some(session) = &self.session {
                    turn = turn.session_id(session.as_str());
                }
                if let Some(parent) = &self.parent {
                    turn = turn.parent_message_id(parent.to_string());
                }
                turn.build()?
            }
        };
        Ok(grain)
    }

    /// The row with its grain and blob.
    ///
    /// # Errors
    /// As [`Row::grain`].
    pub(crate) fn item(&self) -> Result<Item> {
        let grain = self.grain()?;
        let blob = grain.encode(Encoding::MessagePack)?;
        Ok(Item { row: self.clone(), grain, blob })
    }
}
