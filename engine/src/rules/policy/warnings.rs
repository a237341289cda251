//! Warnings about probable mistakes in the policy of a grain. They are returned to the caller that stores it
//! and never cause a refusal, since the standard allows the policy (OMS 23.3).

use grainstore_format::{Did, GrainRef};

use super::terms::{FallbackMode, PolicyMode, PolicyTerms};
use super::{same_did, strip_fragment};

const POLICY: &str = "invalidation_policy";
/// Maximum edit distance of a field name that counts as a misspelling of the policy's.
const MAX_EDITS: usize = 2;
/// Maximum number of misspelt fields reported for one grain.
const MAX_MISSPELLINGS: usize = 3;
/// The method of DIDs whose keys lie in themselves, and are looked for nowhere else.
const OFFLINE_DID_PREFIX: &str = "key";
/// Limit in seconds beyond which a time is probably in milliseconds: the year 5138.
const FAR_FUTURE_S: u64 = 100_000_000_000;

/// The authorized signers whose signatures can count.
#[derive(Debug)]
pub(super) struct EligibleSigners<'a> {
    /// Distinct valid DIDs; a string that is no DID can never sign.
    dids: Vec<&'a str>,
    author: Option<&'a str>,
    named: bool,
}

impl<'a> EligibleSigners<'a> {
    pub(super) fn of(terms: &'a PolicyTerms, author: Option<&'a str>) -> Self {
        let dids = terms.authorized.iter().map(|did| strip_fragment(did));
        let mut dids: Vec<_> = dids.filter(|did| did.parse::<Did>().is_ok()).collect();
        dids.sort_unstable();
        dids.dedup();
        Self { dids, author, named: !terms.authorized.is_empty() }
    }

    /// Returns `true` if the policy names any signers, valid or not.
    pub(super) fn are_any_named(&self) -> bool {
        self.named
    }

    /// How many can be verified: without a resolver of the host's, and with one. The author of the grain
    /// counts for no quorum.
    fn verifiable(&self, for_quorum: bool) -> (u64, u64) {
        let counts =
            |did: &&&str| !for_quorum || !self.author.is_some_and(|author| same_did(author, did));
        let dids = self.dids.iter().filter(counts).filter_map(|did| did.parse::<Did>().ok());
        dids.fold((0, 0), |(offline, any), did| {
            let (holds_key, elsewhere) = (did.holds_key(), did.method() != OFFLINE_DID_PREFIX);
            (offline + u64::from(holds_key), any + u64::from(holds_key || elsewhere))
        })
    }

    pub(super) fn can_delegate(&self) -> bool {
        !self.dids.is_empty()
    }

    /// Number of signers that can count for a quorum; the author of the grain cannot (OMS 23.8).
    pub(super) fn quorum_candidates(&self) -> usize {
        let is_author = |did: &str| self.author.is_some_and(|author| same_did(author, did));
        self.dids.iter().filter(|did| !is_author(did)).count()
    }

    pub(super) fn can_reach_quorum(&self, threshold: u64) -> bool {
        u64::try_from(self.quorum_candidates()).is_ok_and(|able| able >= threshold)
    }
}

/// Returns the warnings about a grain's policy, one sentence each.
pub(crate) fn policy_warnings(grain: &GrainRef<'_>) -> Vec<String> {
    let terms = PolicyTerms::of(grain);
    let signers = EligibleSigners::of(&terms, grain.text("author_did"));
    let mut doubts = Vec::new();
    doubts.extend(unreadable_policy(&terms));
    doubts.extend(unsatisfiable_policy(terms.mode, &signers));
    if let PolicyMode::Timed(until, fallback) = terms.mode {
        if until > FAR_FUTURE_S {
            doubts.push(format!(
                "its locked_until {until} is in seconds, thousands of years away: is it in milliseconds?"
            ));
        }
        let then = unsatisfiable_policy(fallback.mode(), &signers);
        doubts.extend(then.map(|doubt| format!("after its locked_until {doubt}")));
    }
    let slips = grain
        .iter()
        .map(|(name, _)| name)
        .filter(|name| is_misspelling(name))
        .take(MAX_MISSPELLINGS);
    doubts.extend(slips.map(|name| {
        format!("its field {name} is none that is known: is {POLICY} meant? It protects nothing so")
    }));
    doubts
}

/// Returns `true` if a field of this name can cause a warning.
pub(crate) fn can_cause_warning(name: &str) -> bool {
    name == POLICY || is_misspelling(name)
}

fn unreadable_policy(terms: &PolicyTerms) -> Option<String> {
    let what = match terms.mode {
        PolicyMode::Malformed => "is malformed",
        PolicyMode::Unknown => "has a mode the standard does not have",
        PolicyMode::Timed(_, FallbackMode::Unknown) => {
            "has a fallback_mode the standard does not have"
        }
        _ => return None,
    };
    Some(format!("its {POLICY} {what}, which counts as locked: nothing may invalidate it"))
}

fn unsatisfiable_policy(mode: PolicyMode, signers: &EligibleSigners<'_>) -> Option<String> {
    match mode {
        PolicyMode::Quorum(None) => Some(
            "its quorum has no threshold of at least 1, so nobody can invalidate it".to_owned(),
        ),
        PolicyMode::Quorum(Some(least)) if !signers.can_reach_quorum(least) => Some(format!(
            "its quorum wants {least} signers and of its authorized DIDs {} can sign, so nobody can \
             invalidate it",
            signers.quorum_candidates()
        )),
        PolicyMode::Delegated if !signers.can_delegate() => {
            Some("it is delegated and authorizes no DID, so nobody can invalidate it".to_owned())
        }
        PolicyMode::Quorum(Some(least)) => {
            unverifiable(signers.verifiable(true), least, "invalidate")
        }
        PolicyMode::Delegated => unverifiable(signers.verifiable(false), 1, "invalidate"),
        PolicyMode::Hold if signers.are_any_named() => {
            unverifiable(signers.verifiable(false), 1, "lift")
        }
        _ => None,
    }
}

/// What there is to say where so many signatures are wanted, and too few can be verified.
fn unverifiable((offline, any): (u64, u64), wanted: u64, verb: &str) -> Option<String> {
    let what = if verb == "lift" { "the hold on it" } else { "it" };
    if offline >= wanted {
        return None;
    }
    Some(match any >= wanted {
        true => format!(
            "{offline} of its authorized DIDs can be verified without a resolver, and it wants {wanted}: \
             the others are verified only where the host resolves them (did:web; --did-documents and \
             --did-resolver of the command): nobody can {verb} {what} elsewhere"
        ),
        false => format!(
            "of its authorized DIDs {any} can be verified anywhere, and it wants {wanted}: a did:key \
             that holds no key of a known kind signs nothing, so nobody can {verb} {what}"
        ),
    })
}

/// Returns `true` if a name is a probable misspelling of the policy field. No field of the standard is.
fn is_misspelling(name: &str) -> bool {
    name != POLICY
        && name.len().abs_diff(POLICY.len()) <= 2 * MAX_EDITS
        && strsim::osa_distance(name, POLICY) <= MAX_EDITS
}
