//! Explanation of a policy and preview of a supersession, for `grain policy explain` and the method
//! `policy_explain`.

use grainstore::format::Envelope;
use grainstore::{
    ContentAddress, Grain, Offer, PolicyExplanation, Session, StoredGrain, SupersedePreview,
    explain,
};
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::error::Result;

/// The grain that [`Explained`] is asked about.
pub enum Asked {
    /// A grain of this session.
    Stored(Box<StoredGrain>, Session),
    /// A grain that is given.
    Offered(Offer),
}

/// The supersession that [`Explained`] is to preview.
pub struct Attempt {
    /// The session that would replace.
    pub session: Session,
    /// The grain that would be replaced.
    pub old: ContentAddress,
    /// The justification that would be given.
    pub justification: Option<String>,
}

/// The explanation of a policy.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{Asked, Attempt, Explained};
///
/// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9);
/// let tea = session.put(grain.build()?)?.address();
/// let coffee = BeliefBuilder::new(session.now(), "alice", "prefers", "coffee", 0.9).build()?;
/// let attempt = Attempt { session, old: tea, justification: None };
/// let explained = Explained::of(Asked::Offered(coffee.into()), Some(attempt))?;
/// assert_eq!(explained.policy.open_to, "anyone");
/// assert!(explained.decision.is_some_and(|preview| preview.refusal.is_none()));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Serialize)]
pub struct Explained {
    /// The policy of the grain in question.
    pub policy: PolicyExplanation,
    /// The policy of the grain that would be replaced.
    pub old_policy: Option<PolicyExplanation>,
    /// The preview of the supersession.
    #[serde(serialize_with = "decision")]
    pub decision: Option<SupersedePreview>,
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
        let (mut old_policy, mut decision) = (None, None);
        if let Some(Attempt { session, old, justification }) = attempt {
            old_policy = Some(session.policy(&session.inspect(&old)?)?);
            decision =
                Some(session.try_supersede(&old, Offer::from(asked), justification.as_deref())?);
        }
        Ok(Self { policy, old_policy, decision })
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

fn decision<S: Serializer>(
    trial: &Option<SupersedePreview>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let decided = trial.as_ref().map(|trial| {
        let refusal = trial.refusal.as_ref();
        json!({
            "allowed": refusal.is_none(),
            "needs_review": trial.needs_review,
            "rules": trial.rules,
            "code": refusal.map(grainstore::Error::code),
            "message": refusal.map(ToString::to_string),
            "hint": refusal.map(grainstore::Error::hint),
        })
    });
    decided.serialize(serializer)
}
