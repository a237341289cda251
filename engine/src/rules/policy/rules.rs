//! The table of rules: name in the audit log, outcome and reason.

use serde::Serialize;

/// Declares the rules once: variant, outcome, name, description, section of OMS.
macro_rules! rules {
    ($($variant:ident $outcome:ident $name:literal $text:literal $section:literal;)+) => {
        /// A rule that was applied, one for each outcome.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum PolicyRule {
            $($variant),+
        }

        impl PolicyRule {
            /// Every rule, in the order of the table.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The table entry of the rule.
            pub(crate) const fn info(self) -> PolicyRuleInfo {
                match self {
                    $(Self::$variant => PolicyRuleInfo {
                        passes: RuleOutcome::$outcome.passes(),
                        name: $name,
                        text: $text,
                        section: $section,
                    }),+
                }
            }
        }
    };
}

impl PolicyRule {
    /// Returns `true` if the rule passes because of a signature.
    pub(crate) fn rests_on_signature(self) -> bool {
        matches!(self, Self::LockedSigned | Self::Quorum | Self::Delegated)
    }

    /// Returns what the rule came to; `is_unchecked` says that a signature given could not be checked, and
    /// `signatures_open_locks` that one would have opened a lock.
    pub(crate) fn result(self, is_unchecked: bool, signatures_open_locks: bool) -> RuleResult {
        let waits_for_signature = match self {
            Self::NotDelegated | Self::NoQuorum | Self::LiftNotSigned => true,
            Self::Locked => signatures_open_locks,
            _ => false,
        };
        match (self.info().passes, is_unchecked && waits_for_signature) {
            (true, _) => RuleResult::Pass,
            (false, false) => RuleResult::Fail,
            (false, true) => RuleResult::Error,
        }
    }

    /// Returns the rule of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.info().name == name)
    }
}

/// What a rule came to in a decision, in an entry of [`Session::audit`](crate::Session::audit).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum RuleResult {
    /// It was satisfied, or did not apply.
    Pass,
    /// It refused.
    Fail,
    /// It could not be evaluated, and so refused.
    Error,
}

impl RuleResult {
    /// Its name in an audit entry.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Error => "ERROR",
        }
    }

    /// Returns the result of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Pass, Self::Fail, Self::Error].into_iter().find(|result| result.name() == name)
    }
}

/// The table entry of a rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyRuleInfo {
    /// True if the rule lets the attempt pass.
    pub(crate) passes: bool,
    /// Name in the audit log.
    pub(crate) name: &'static str,
    /// Reason: the end of a sentence about the protecting grain.
    pub(crate) text: &'static str,
    /// Section of OMS that the rule comes from.
    pub(crate) section: &'static str,
}

enum RuleOutcome {
    Pass,
    Refuse,
}

impl RuleOutcome {
    const fn passes(self) -> bool {
        matches!(self, Self::Pass)
    }
}

// Names, texts and sections are hashed into the evidence that a store exports (AGES): what is in a row stays as it is,
// and another meaning gets a row of another name.
rules! {
    Open Pass "open" "it restricts nothing" "23.2";
    ConsentCascade Pass "consent_cascade" "it ends with its consent and restricts nothing else" "23.2";
    SoftLocked Pass "soft_locked" "it is soft_locked, and a justification was given" "23.2";
    Unlocked Pass "timed_lock_over" "its locked_until is over" "23.2";
    LockedSigned Pass "locked_signed" "it is locked, and an authorized signature was given" "12.5.4";
    Quorum Pass "quorum" "enough of its authorized signers agree" "23.2";
    Delegated Pass "delegated" "one of its authorized signers signed" "23.2";
    HoldLifted Pass "hold_lifted" "its litigation hold was lifted" "23.2";
    Transition Pass "allowed_transition" "its allowed_transitions have this goal_state" "23.4";
    Evidence Pass "evidence" "the evidence it requires is there" "23.5";
    Verification Pass "verification" "nothing is taken out of use" "23.1";
    Review Pass "review" "the operator or a named reviewer reviewed it" "6.1";
    LiftByOperator Pass "lift_by_operator" "the operator lifts the hold" "23.2";
    LiftSigned Pass "lift_signed" "one of its authorized signers lifts the hold" "23.2";
    RetentionOverridden Pass "malformed_retention_overridden"
        "its retention_policy is malformed, and the operator overrides it" "A.3";
    NotJustified Refuse "soft_locked_without_justification"
        "it is soft_locked: give a supersession_justification" "23.2";
    Locked Refuse "locked" "it is locked: nothing may invalidate it" "23.2";
    TimedLock Refuse "timed_lock" "it is locked until its locked_until" "23.2";
    Hold Refuse "hold" "it is under litigation hold" "23.2";
    NoThreshold Refuse "quorum_without_threshold"
        "it wants a quorum and its threshold is missing or less than 1" "23.2";
    NoQuorum Refuse "quorum_not_met"
        "it wants a quorum, and too few of its authorized signers signed the supersession_auth" "23.2";
    NoSuccessor Refuse "quorum_without_successor"
        "it wants a quorum, and only a supersession carries one" "23.2";
    NotDelegated Refuse "not_delegated"
        "only the signers its policy names may invalidate it, and none of them signed" "23.2";
    OwnKey Refuse "key_separation"
        "the signature is by its own author, whose key proves nothing" "23.8";
    UnknownMode Refuse "unknown_mode" "its policy mode is unknown, which counts as locked" "23.3";
    Malformed Refuse "malformed_policy" "its policy is malformed, which counts as locked" "23.3";
    TooManyAncestors Refuse "too_many_ancestors"
        "its derivation has too many ancestors to check" "23.6";
    NoEvidence Refuse "evidence_required"
        "it requires more satisfaction_evidence than was given" "23.5";
    OwnVerification Refuse "own_verification"
        "its own author cannot vouch for it" "23.8";
    NotReviewer Refuse "not_reviewer"
        "it requires the review of a person: the operator, or a reviewer the host named" "6.1";
    WithdrawalByOthers Refuse "withdrawal_by_others"
        "a consent is withdrawn or replaced between its own two parties only, and these are others" "8.10";
    DisguisedSupersession Refuse "disguised_supersession"
        "it is protected, and the new grain would replace it without asking its policy" "17.2";
    OwnOwnership Refuse "own_ownership"
        "an agent cannot declare whom it belongs to" "12.5.3";
    LiftNotOperator Refuse "lift_not_operator" "only the operator lifts this hold" "23.2";
    LiftNotSigned Refuse "lift_not_signed"
        "only the signers its policy names lift this hold, and none of them signed" "23.2";
    Retained Refuse "retained" "it has to be kept, and the time is not over" "A.3";
    RetentionMalformed Refuse "malformed_retention"
        "its retention_policy is malformed, so nobody knows how long it has to be kept" "A.3";
    InvalidSignature Refuse "invalid_signature" "its signature is invalid" "9.2";
    OutsideSession Refuse "outside_session" "it lies outside the session" "28.2";
    NotOperator Refuse "not_operator"
        "it is for the operator, in a session without a namespace and a user" "28.2";
    VectorsProtected Refuse "vectors_protected"
        "its vectors keep its place in search, and its policy lets nobody else replace it" "23.7";
    DeletionRequires Refuse "deletion_requires"
        "the reason does not name what its retention_policy requires for deletion" "A.3";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let names: BTreeSet<_> = PolicyRule::ALL.iter().map(|rule| rule.info().name).collect();
        assert_eq!(names.len(), PolicyRule::ALL.len());
    }

    /// A reworded rule would change the hashes of evidence that was exported before. Only a new row may change this.
    #[test]
    fn rules_are_worded_as_they_were_when_evidence_was_exported() {
        let mut rows: Vec<_> = PolicyRule::ALL.iter().map(|rule| rule.info()).collect();
        rows.sort_by_key(|row| row.name);
        let told: String = rows
            .iter()
            .map(|row| format!("{}|{}|{}|{}\n", row.name, row.passes, row.text, row.section))
            .collect();
        let digest = grainstore_format::ContentAddress::of(told.as_bytes()).to_string();
        let begin = digest.get(..16).unwrap_or_default();
        assert_eq!((rows.len(), begin), (42, "77667ec8d756b76a"), "{told}");
    }
}
