//! Explanation of a policy and preview of a supersession, for `grain policy explain` and the method
//! `policy_explain`.

use grainstore::format::Envelope;
use grainstore::{
    ContentAddress, Grain, Offer, PolicyExplanation, Session, StoredGrain, SupersedePreview,
    explain,
};
use serde_json::{Value, json};

use crate::error::Result;

/// The grain in question.
pub enum Asked {
    /// A grain of this session.
    Stored(Box<StoredGrain>, Session),
    /// A grain that is given.
    Offered(Offer),
}

/// The supersession to preview.
pub struct Attempt {
    /// The session that would replace.
    pub session: Session,
    /// The grain that would be replaced.
    pub old: ContentAddress,
    /// The justification that would be given.
    pub justification: Option<String>,
}

/// The answer.
pub struct Explained {
    /// The policy of the grain in question.
    pub policy: PolicyExplanation,
    /// The preview of its supersession.
    pub tried: Option<Tried>,
}

/// The grain that would be replaced, its policy, and the preview.
pub struct Tried {
    /// The grain that would be replaced.
    pub old: ContentAddress,
    /// Its policy.
    pub policy: PolicyExplanation,
    /// The preview.
    pub trial: SupersedePreview,
}

impl Explained {
    /// Explains the policy of a grain and previews its supersession of another, if one is given. Writes
    /// nothing.
    pub fn of(asked: Asked, attempt: Option<Attempt>) -> Result<Self> {
        let policy = match &asked {
            Asked::Stored(stored, session) => session.policy(stored)?,
            Asked::Offered(Offer::Grain(grain)) => explain(grain)?,
            Asked::Offered(Offer::Blob(bytes)) => explain(&Grain::decode(bytes)?)?,
            Asked::Offered(Offer::Embedded(offer, _)) => {
                return Self::of(Asked::Offered(*offer.clone()), attempt);
            }
            Asked::Offered(Offer::Signed(bytes)) => {
                explain(&Envelope::parse(bytes.clone())?.grain()?)?
            }
        };
        let tried = attempt.map(|attempt| attempt.make(asked.into()));
        Ok(Self { policy, tried: tried.transpose()? })
    }

    /// Returns the answer in JSON.
    pub fn json(&self) -> Value {
        json!({
            "policy": self.policy,
            "old_policy": self.tried.as_ref().map(|tried| &tried.policy),
            "decision": self.tried.as_ref().map(|tried| decision(&tried.trial)),
        })
    }
}

impl Attempt {
    fn make(self, new: Offer) -> Result<Tried> {
        let Self { session, old, justification } = self;
        let policy = session.policy(&session.inspect(&old)?)?;
        let trial = session.try_supersede(&old, new, justification.as_deref())?;
        Ok(Tried { old, policy, trial })
    }
}

impl From<Asked> for Offer {
    fn from(asked: Asked) -> Self {
        match asked {
            Asked::Offered(offer) => offer,
            Asked::Stored(stored, _) => match stored.envelope {
                Some(envelope) => envelope.into(),
                None => Self::Blob(stored.blob),
            },
        }
    }
}

fn decision(trial: &SupersedePreview) -> Value {
    let refusal = trial.refusal.as_ref();
    json!({
        "allowed": refusal.is_none(),
        "needs_review": trial.needs_review,
        "rules": trial.rules,
        "code": refusal.map(grainstore::Error::code),
        "message": refusal.map(ToString::to_string),
        "hint": refusal.map(grainstore::Error::hint),
    })
}
