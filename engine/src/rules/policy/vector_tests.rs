//! The cases of `vectors/policy` on the decision alone: facts are gathered here naively from the stored
//! grains of the case, to any depth, and every step that a policy decides is decided.

use std::collections::{BTreeMap, BTreeSet};

use grainstore_format::{
    self as format, ContentAddress, EpochMs, Grain, GrainRef, GrainState, VerificationStatus,
};

use super::{
    Authority, GoalTerms, GoalTransition, PolicyAction, PolicyAttempt, PolicyFacts, Proofs,
    ProtectionLink, Protector, decide,
};

#[path = "../../../tests/rules/policy/case.rs"]
#[expect(dead_code, reason = "the runner on a whole store uses the rest")]
mod case;

use case::{Case, Grains, Step, actor, all, key};

/// A stored grain of a case, by its name there, and its state.
#[derive(Default)]
struct Kept {
    state: GrainState,
    released: bool,
}

/// Number of protecting ancestors that a store records with a grain.
const MAX_ROOTS: usize = 64;

struct World<'c> {
    case: &'c Case,
    grains: Grains,
    kept: BTreeMap<&'c str, Kept>,
}

#[test]
fn the_decision_alone_comes_out_as_each_case_says() {
    let (mut decided, mut failures) = (0, Vec::new());
    for (file, case) in all() {
        // Grains without a name are not tested here.
        if case.steps.iter().any(|step| step.op == "chain") {
            continue;
        }
        let mut world = World { case: &case, grains: Grains::of(&case), kept: BTreeMap::new() };
        for step in &case.steps {
            match world.step(step) {
                Ok(is_decision) => decided += usize::from(is_decision),
                Err(why) => {
                    failures.push(format!("{file}: {}: {}: {why}", case.name, step.op));
                    break;
                }
            }
        }
    }
    assert!(decided > 300, "{decided} decisions");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

impl<'c> World<'c> {
    /// Runs a step. Returns whether a policy decides it, and an unexpected outcome as an error.
    fn step(&mut self, step: &'c Step) -> Result<bool, String> {
        let is_refused =
            matches!(step.code.as_str(), "ERR_INVALIDATION_DENIED" | "ERR_EVIDENCE_REQUIRED");
        if step.code != "OK" && !is_refused {
            return Ok(false);
        }
        let grain = step.grain.as_deref();
        let target = step.target.as_deref();
        match (step.op.as_str(), target, grain) {
            ("put", _, Some(name)) => self.keep(name),
            ("put_batch", ..) => step.grains.iter().for_each(|name| self.keep(name)),
            ("hold", Some(name), _) => self.change(name, |state| state.held = true),
            ("put_fact", ..) => {}
            (_, Some(target), _) => {
                self.decide(step, target)?;
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn decide(&mut self, step: &'c Step, target: &'c str) -> Result<(), String> {
        let state = self.kept.get(target).map(|kept| kept.state).unwrap_or_default();
        let status = step.status.as_deref().and_then(VerificationStatus::from_name);
        let act = match (step.op.as_str(), status) {
            ("supersede", _) => PolicyAction::Supersede,
            ("contradict", _) => PolicyAction::Contradict,
            ("lift_hold", _) => PolicyAction::LiftHold,
            (_, Some(status)) => PolicyAction::from_status(state.verification_status, status),
            (op, None) => panic!("no step {op:?}"),
        };
        let new = step.grain.as_deref().map(|name| self.grain(name));
        let proofs = self.proofs(step, act, target);
        let (facts, evidence) = self.facts(target, new.as_ref());
        let reason = new.as_ref().map(|new| new.text("supersession_justification"));
        let actor = actor(step);
        let attempt = PolicyAttempt {
            act,
            now: EpochMs::new(step.now_s * 1000),
            justification: reason.unwrap_or(step.reason.as_deref()),
            is_operator: Authority::of(actor.as_deref(), self.case.options.operator.as_deref())
                .is_operator(),
            actor: actor.as_deref(),
            proofs: &proofs,
            evidence,
            locked_accepts_signature: self.case.options.locked_accepts_authorized_signature,
            may_review: Authority::of(actor.as_deref(), self.case.options.operator.as_deref())
                .is_operator(),
        };
        let decision = decide(&attempt, &facts);
        let names = decision.names();
        if step.rules.as_ref().is_some_and(|rules| *rules != names) {
            return Err(format!("{names:?} instead of {:?}", step.rules));
        }
        let review = step.state.needs_review.filter(|_| act != PolicyAction::Supersede);
        if review.is_some_and(|review| review != decision.needs_review) {
            return Err(format!("{names:?}, and the review should be {review:?}"));
        }
        if decision.refusal().is_some() != (step.code != "OK") {
            return Err(format!("{names:?}, and the code should be {}", step.code));
        }
        if step.code == "OK" {
            self.carry_out(step, target, !decision.keeps_older_policies, status);
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        step: &'c Step,
        target: &'c str,
        released: bool,
        status: Option<VerificationStatus>,
    ) {
        if let Some(name) = step.grain.as_deref() {
            let by = self.grains.address(name);
            let is_goal = self.grain(name).grain_type() == format::GrainType::Goal;
            self.keep(name);
            self.kept.entry(name).or_default().released = released && is_goal;
            self.change(target, |state| state.superseded_by = Some(by));
        }
        self.change(target, |state| {
            state.held &= step.op != "lift_hold";
            state.contradicted |= step.op == "contradict";
            state.verification_status = status.unwrap_or(state.verification_status);
        });
    }

    fn keep(&mut self, name: &'c str) {
        let held = self.grain(name).map("invalidation_policy").is_some_and(|policy| {
            policy.get("mode").and_then(format::Value::as_str) == Some("hold")
        });
        let state = GrainState { held, ..GrainState::default() };
        self.kept.insert(name, Kept { state, released: false });
    }

    fn change(&mut self, name: &'c str, change: impl FnOnce(&mut GrainState)) {
        change(&mut self.kept.entry(name).or_default().state);
    }

    fn grain(&self, name: &str) -> Grain {
        match self.grains.envelope(name) {
            Some(envelope) => envelope.grain().unwrap(),
            None => Grain::decode(self.grains.blob(name).bytes()).unwrap(),
        }
    }

    /// The signer, if the signature is for this message and this grain.
    fn proofs(&self, step: &Step, act: PolicyAction, target: &str) -> Proofs {
        let expected = match act {
            PolicyAction::Contest => "contest",
            PolicyAction::Retract => "retract",
            _ => step.op.as_str(),
        };
        let signer = step.signed.as_ref().filter(|signed| {
            signed.message.as_deref().is_none_or(|message| message == expected)
                && signed.about.as_deref().is_none_or(|about| about == target)
                && !signed.note
        });
        let signer = signer.map(|signed| key(signed.seed).did().to_string());
        let cosigners = match &step.grain {
            None => Vec::new(),
            Some(name) => {
                let old = self.grains.address(target);
                super::verified_cosigners(&old, &self.grain(name), &format::OfflineResolver)
                    .unwrap()
            }
        };
        Proofs { signer, cosigners, failure: None }
    }

    /// Returns everything that protects the target, and the evidence of `new`.
    fn facts(&self, target: &str, new: Option<&Grain>) -> (PolicyFacts, u64) {
        let mut ties =
            BTreeMap::from([(self.grains.address(target), ProtectionLink::TargetOrOlder)]);
        let mut order = vec![self.grains.address(target)];
        let mut open: Vec<_> = new.map(parents).unwrap_or_default().into_iter().collect();
        open.retain(|parent| *parent != self.grains.address(target));
        let mut queue: Vec<_> =
            open.into_iter().map(|parent| (parent, ProtectionLink::Ancestor)).collect();
        queue.extend(self.above(&self.grains.address(target), ProtectionLink::TargetOrOlder));
        let mut chain = BTreeSet::from([self.grains.address(target)]);
        while let Some((address, link)) = queue.pop() {
            if self.name_of(&address).is_none() || ties.get(&address) >= Some(&link) {
                continue;
            }
            if ties.insert(address, link).is_none() {
                order.push(address);
            }
            if link != ProtectionLink::Ancestor {
                chain.insert(address);
            }
            queue.extend(self.above(&address, link));
        }
        if new.is_none() {
            let mut next = self.state(&self.grains.address(target)).superseded_by;
            while let Some(address) = next {
                ties.insert(address, ProtectionLink::NewerVersion);
                order.push(address);
                next = self.state(&address).superseded_by;
            }
        }
        let old = GrainRef::new(self.grains.blob(target).bytes()).unwrap();
        let transition = new.and_then(|new| GoalTransition::of(&old, new));
        let protectors = order.iter().map(|address| {
            let name = self.name_of(address).unwrap();
            let stored = GrainRef::new(self.grains.blob(name).bytes()).unwrap();
            let link = ties.get(address).copied().unwrap();
            let mut protector = Protector::from_grain(&stored, &self.state(address), link);
            if let Some(transition) = transition.filter(|_| link != ProtectionLink::Ancestor) {
                protector.goal = GoalTerms::of(&stored, &transition);
            }
            protector
        });
        let protectors: Vec<_> = protectors.collect();
        let bearing = protectors.iter().filter(|protector| protector.applies()).count();
        let facts = PolicyFacts { protectors, is_truncated: bearing > MAX_ROOTS };
        let evidence = new.map(|new| self.evidence(new, &chain)).unwrap_or_default();
        (facts, evidence)
    }

    fn above(
        &self,
        address: &ContentAddress,
        link: ProtectionLink,
    ) -> Vec<(ContentAddress, ProtectionLink)> {
        let Some(name) = self.name_of(address) else { return Vec::new() };
        let released = self.kept.get(name).is_some_and(|kept| kept.released);
        let link = if link == ProtectionLink::TargetOrOlder && released {
            ProtectionLink::ReleasedVersion
        } else {
            link
        };
        let parents = parents(&self.grain(name)).into_iter();
        let tied = parents.map(|parent| {
            let is_version = self.state(&parent).superseded_by == Some(*address);
            (parent, if is_version { link } else { ProtectionLink::Ancestor })
        });
        tied.collect()
    }

    fn evidence(&self, new: &Grain, chain: &BTreeSet<ContentAddress>) -> u64 {
        let namespace = new.partition();
        let named = new.texts("satisfaction_evidence").filter_map(|text| text.parse().ok());
        let named: BTreeSet<ContentAddress> = named.collect();
        let counted = named.iter().filter(|address| {
            let readable = self.name_of(address).is_some_and(|name| {
                let partition = self.grain(name).partition().to_owned();
                namespace == "shared" || partition == namespace
            });
            let state = self.state(address);
            let in_use =
                !state.contradicted && state.verification_status != VerificationStatus::Retracted;
            readable && in_use && !chain.contains(address)
        });
        u64::try_from(counted.count()).unwrap()
    }

    fn state(&self, address: &ContentAddress) -> GrainState {
        let name = self.name_of(address);
        name.and_then(|name| self.kept.get(name)).map(|kept| kept.state).unwrap_or_default()
    }

    /// The name of a stored grain.
    fn name_of(&self, address: &ContentAddress) -> Option<&'c str> {
        self.kept.keys().copied().find(|name| self.grains.address(name) == *address)
    }
}

fn parents(grain: &Grain) -> BTreeSet<ContentAddress> {
    grain.texts("derived_from").filter_map(|text| text.parse().ok()).collect()
}
