//! The facts of a policy decision. `decide` reads these and nothing else.

use grainstore_format::{EpochMs, GrainRef, GrainState, GrainType, VerificationStatus};

use super::goals::GoalTerms;
use super::proofs::Proofs;
use super::same_did;
use super::terms::{PolicyMode, PolicyTerms};

/// An attempted action on a grain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyAction {
    Supersede,
    Contradict,
    /// Sets a less favourable status than the current one, other than `retracted`.
    Contest,
    Retract,
    /// Sets a more favourable status.
    Verify,
    /// Sets the status `verified` on a grain that requires review by a person.
    Review,
    LiftHold,
}

impl PolicyAction {
    /// Returns the action of setting a status on a grain with the current status `from`.
    pub(crate) fn from_status(from: VerificationStatus, to: VerificationStatus) -> Self {
        /// Ascending trust.
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

/// The authority of the caller: whether it counts as the operator (ruling 51).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Authority {
    /// The host itself, or the actor that it named as the operator.
    Operator,
    /// An actor in a store whose host named no operator; it counts as the operator.
    PresumedOperator,
    /// An actor other than the operator named by the host.
    #[default]
    Agent,
}

impl Authority {
    /// The authority of an actor, given the operator named by the host.
    pub(crate) fn of(actor: Option<&str>, operator: Option<&str>) -> Self {
        match (actor, operator) {
            (None, _) => Self::Operator,
            (Some(_), None) => Self::PresumedOperator,
            (Some(actor), Some(operator)) if same_did(actor, operator) => Self::Operator,
            (Some(_), Some(_)) => Self::Agent,
        }
    }

    pub(crate) fn is_operator(self) -> bool {
        self != Self::Agent
    }
}

/// An attempted action and its circumstances, independent of the protectors.
#[derive(Debug, Clone)]
pub(crate) struct PolicyAttempt<'a> {
    pub(crate) act: PolicyAction,
    pub(crate) now: EpochMs,
    /// The `supersession_justification`, or the reason of a call without a successor.
    pub(crate) justification: Option<&'a str>,
    /// Actor of the session; `None` for the host itself.
    pub(crate) actor: Option<&'a str>,
    /// True if the caller counts as the operator.
    pub(crate) is_operator: bool,
    pub(crate) proofs: &'a Proofs,
    /// Number of grains that count as evidence for a goal transition.
    pub(crate) evidence: u64,
    /// True if the store accepts an authorized signature on a locked grain (OMS 12.5.4).
    pub(crate) locked_accepts_signature: bool,
    /// True if the caller may clear a required review of grains by other authors.
    pub(crate) may_review: bool,
}

/// The relation of a protecting grain to the target, in ascending order of protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ProtectionLink {
    /// An ancestor by derivation: protects if its scope covers derived grains.
    Ancestor,
    /// An older version whose policy authorised its replacement: protects if its scope covers more than its
    /// own grain.
    ReleasedVersion,
    /// A newer version of the target: protects if its scope covers the chain.
    NewerVersion,
    /// The target itself, or an older version of it: protects with any scope.
    TargetOrOlder,
}

impl ProtectionLink {
    /// What the grain is to the target.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ancestor => "ancestor",
            Self::NewerVersion => "newer_version",
            Self::ReleasedVersion | Self::TargetOrOlder => "older_version",
        }
    }
}

/// A grain whose policy can apply to an attempt.
#[derive(Debug, Clone)]
pub(crate) struct Protector {
    pub(crate) terms: PolicyTerms,
    pub(crate) link: ProtectionLink,
    /// True if it is under litigation hold.
    pub(crate) held: bool,
    /// Its `author_did`.
    pub(crate) author: Option<String>,
    /// The signer claimed by its envelope, if the action needs it.
    pub(crate) signer: Option<String>,
    pub(crate) is_goal: bool,
    /// Its requirements for a goal transition, if the attempt is one and it is a version of the goal.
    pub(crate) goal: Option<GoalTerms>,
}

impl Protector {
    /// The protection given by a stored grain.
    pub(crate) fn from_grain(
        grain: &GrainRef<'_>,
        state: &GrainState,
        link: ProtectionLink,
    ) -> Self {
        let author = grain.text("author_did").map(str::to_owned);
        let terms = PolicyTerms::of(grain);
        let is_goal = grain.grain_type() == GrainType::Goal;
        Self { terms, link, held: state.held, author, signer: None, is_goal, goal: None }
    }

    /// Returns `true` if it declares a hold, and that was lifted.
    pub(super) fn is_lifted(&self) -> bool {
        self.terms.mode == PolicyMode::Hold && !self.held
    }

    /// Returns `true` if its policy extends to the target.
    pub(crate) fn applies(&self) -> bool {
        let terms = &self.terms;
        terms.protects()
            && match self.link {
                ProtectionLink::TargetOrOlder => true,
                ProtectionLink::NewerVersion => terms.covers_chain(),
                ProtectionLink::ReleasedVersion => terms.covers_chain() || terms.covers_derived(),
                ProtectionLink::Ancestor => terms.covers_derived(),
            }
    }
}

impl PolicyFacts {
    /// Takes the author of the version of a goal that brought a policy for that of all versions that repeat it:
    /// a transition may name another (OMS 23.5), and the policy goes on binding as it did. The versions stand
    /// newest first, and from `walked` on oldest first.
    pub(crate) fn judge_by_first_author(&mut self, walked: usize) {
        let is_version = |one: &Protector| one.is_goal && one.link == ProtectionLink::TargetOrOlder;
        let firsts = self.protectors.iter().map(|one| {
            let repeats = |other: &&Protector| {
                is_version(one) && is_version(other) && other.terms == one.terms
            };
            let beyond = self.protectors.iter().skip(walked).find(repeats);
            let first = beyond.or_else(|| self.protectors.iter().take(walked).rfind(repeats));
            first.map_or_else(|| one.author.clone(), |first| first.author.clone())
        });
        let firsts: Vec<_> = firsts.collect();
        for (protector, author) in self.protectors.iter_mut().zip(firsts) {
            protector.author = author;
        }
    }
}

/// The facts that a decision depends on, besides the attempt.
#[derive(Debug, Clone)]
pub(crate) struct PolicyFacts {
    /// The target first, then the other grains whose policies can apply.
    pub(crate) protectors: Vec<Protector>,
    /// True if there are more protectors than were examined.
    pub(crate) is_truncated: bool,
}
