//! What a decision is about. Whoever decides looks at these and at nothing else.

use grainstore_format::{EpochMs, GrainRef, GrainState, VerificationStatus};

use super::goals::GoalTerms;
use super::proofs::Proofs;
use super::same_did;
use super::terms::Terms;

/// What is attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Supersede,
    Contradict,
    /// A status that says less for a grain than the one it has, short of retraction.
    Contest,
    Retract,
    /// A status that says more for it.
    Verify,
    /// The status `verified` for one that asks for the review of a person.
    Review,
    LiftHold,
}

impl Act {
    /// What setting a status comes to, for a grain that has another.
    pub(crate) fn of_status(from: VerificationStatus, to: VerificationStatus) -> Self {
        /// From the least trusted.
        const TRUST: [VerificationStatus; 4] = [
            VerificationStatus::Retracted,
            VerificationStatus::Contested,
            VerificationStatus::Unverified,
            VerificationStatus::Verified,
        ];
        let trust = |status| TRUST.iter().position(|other| *other == status);
        match to {
            VerificationStatus::Retracted => Self::Retract,
            _ if trust(to) < trust(from) => Self::Contest,
            _ => Self::Verify,
        }
    }
}

/// Whether whoever asks has the operator's say (ruling 51 of the project's reading).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Standing {
    /// The host itself, or the one it named as the operator.
    Operator,
    /// An actor in a store whose host named no operator: it counts as the operator.
    Presumed,
    /// An actor beside the operator the host named.
    #[default]
    Agent,
}

impl Standing {
    /// The standing of an actor, beside the operator that was named.
    pub(crate) fn of(actor: Option<&str>, operator: Option<&str>) -> Self {
        match (actor, operator) {
            (None, _) => Self::Operator,
            (Some(_), None) => Self::Presumed,
            (Some(actor), Some(operator)) if same_did(actor, operator) => Self::Operator,
            (Some(_), Some(_)) => Self::Agent,
        }
    }

    pub(crate) fn is_operator(self) -> bool {
        self != Self::Agent
    }
}

/// An attempt, whatever it is aimed at.
#[derive(Debug, Clone)]
pub(crate) struct Attempt<'a> {
    pub(crate) act: Act,
    pub(crate) now: EpochMs,
    /// Why: the `supersession_justification`, or the reason of a call without a successor.
    pub(crate) justification: Option<&'a str>,
    /// Who asks; nothing for the host itself.
    pub(crate) actor: Option<&'a str>,
    /// Whether whoever asks has the operator's say.
    pub(crate) is_operator: bool,
    pub(crate) proofs: &'a Proofs,
    /// Grains that count as evidence for the transition of a goal.
    pub(crate) evidence: u64,
    /// Whether the store lets an authorized signature open a lock (OMS 12.5.4).
    pub(crate) locked_accepts_signature: bool,
    /// Whether whoever asks may clear the review a grain asks for, if it is not its author.
    pub(crate) may_review: bool,
}

/// How a grain that protects is tied to the target. The greater tie protects the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Tie {
    /// The target derives from it: it protects by a scope that covers what is derived.
    Source,
    /// An older version, and the change that replaced it was authorised under its policy: it protects
    /// by a scope that covers more than itself.
    Released,
    /// A newer version of the target: it protects by a scope that covers the chain.
    Later,
    /// The target itself, or an older version of it: it protects whatever its scope.
    Version,
}

/// A grain whose policy bears on an attempt.
#[derive(Debug, Clone)]
pub(crate) struct Protector {
    pub(crate) terms: Terms,
    pub(crate) tie: Tie,
    /// Whether a litigation hold is on it.
    pub(crate) held: bool,
    /// Who wrote it.
    pub(crate) author: Option<String>,
    /// Who is said to have signed it, where that is asked.
    pub(crate) signer: Option<String>,
    /// What it says about its transitions, where the attempt is one and it is a version of the goal.
    pub(crate) goal: Option<GoalTerms>,
}

impl Protector {
    /// What a stored grain brings to a decision.
    pub(crate) fn of(grain: &GrainRef<'_>, state: &GrainState, tie: Tie) -> Self {
        let author = grain.text("author_did").map(str::to_owned);
        let terms = Terms::of(grain);
        Self { terms, tie, held: state.held, author, signer: None, goal: None }
    }

    /// Whether its policy reaches the target.
    pub(crate) fn bears(&self) -> bool {
        let terms = &self.terms;
        terms.protects()
            && match self.tie {
                Tie::Version => true,
                Tie::Later => terms.covers_chain(),
                Tie::Released => terms.covers_chain() || terms.covers_derived(),
                Tie::Source => terms.covers_derived(),
            }
    }
}

/// Everything a decision depends on beside the attempt.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The target first, then what else bears on it.
    pub(crate) protectors: Vec<Protector>,
    /// Whether there are more than were looked at.
    pub(crate) too_many: bool,
}
