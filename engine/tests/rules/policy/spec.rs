//! OMS 23 as a specification that runs: small enough to be read beside the standard, and held against
//! the store by random programs.
//!
//! `GRAINSTORE_POLICY_OPS=100000 cargo test --release -p grainstore --test rules policy::spec::random` is the full
//! run. A program that fails is shrunk to a small one.
//!
//! `arriving`: imports. `goals`: goals and their transitions. `nearness`: vectors.

mod arriving;
mod goals;
mod nearness;

use std::collections::{BTreeMap, BTreeSet};

use super::format::cose::{proof, sign_detached};
use super::format::{self, ContentAddress, Encoding, Grain};
use grainstore::{OpenOptions, Session, SessionOptions, Store, VerificationStatus as Status};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::case::{key, proof_of};
use arriving::{Coming, Said};
use goals::{Change, Goal, Terms};
use nearness::Vectors;

// --- the specification ---

/// 23.2: what a mode asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    SoftLocked,
    Locked,
    /// This many of the signers 1, 2 and 3.
    Quorum(usize),
    /// Signer 1.
    Delegated,
    /// Over, into soft_locked.
    Over,
    Hold,
    /// 23.3: also what is malformed.
    Unknown,
}

/// 23.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Grain,
    Lineage,
    Subtree,
}

#[derive(Debug, Clone)]
struct Entry {
    subject: usize,
    mode: Mode,
    scope: Scope,
    /// The signer that is its `author_did`.
    author: u8,
    parents: BTreeSet<usize>,
    before: Option<usize>,
    after: Option<usize>,
    contradicted: bool,
    status: Status,
    held: bool,
    /// What it is beside, where it is a goal.
    goal: Option<Goal>,
    /// 23.5: whether the policies of the versions before that reach no further let go of it.
    released: bool,
    /// Whether it ended before all else, as a file said.
    ended_early: bool,
    /// The vectors it has, by model.
    vectors: BTreeMap<usize, usize>,
}

/// What somebody attempts, and what they bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Supersede,
    Contradict,
    Contest,
    Retract,
}

#[derive(Debug, Clone, Default)]
struct Brings {
    reason: bool,
    /// Who signed the call.
    signer: Option<u8>,
    /// Who signed the supersession_auth.
    cosigners: BTreeSet<u8>,
}

#[derive(Debug, Default)]
struct World(Vec<Entry>);

const DENIED: &str = "ERR_INVALIDATION_DENIED";

impl World {
    fn allows(
        &self,
        act: Act,
        target: usize,
        other_parents: &BTreeSet<usize>,
        brings: &Brings,
    ) -> bool {
        let mut asked = self.asked(target, other_parents);
        if act != Act::Supersede {
            asked.extend(self.later_asked(target));
        }
        !self.0[target].held && asked.into_iter().all(|at| self.0[at].passes(act, brings))
    }

    /// Whose policies bear on replacing a grain by one that has these parents beside it.
    fn asked(&self, target: usize, other_parents: &BTreeSet<usize>) -> BTreeSet<usize> {
        let versions = self.chain_up_to(target);
        let derived = versions.iter().map(|(at, _)| at).chain(other_parents);
        let sources =
            derived.flat_map(|at| self.ancestry(*at)).chain(other_parents.iter().copied());
        let sources = sources.filter(|at| self.0[*at].scope == Scope::Subtree).collect::<Vec<_>>();
        self.versions_up_to(target).into_iter().chain(sources).collect()
    }

    /// The newer versions that protect what they replaced.
    fn later_asked(&self, target: usize) -> impl Iterator<Item = usize> {
        self.later(target).filter(|at| self.0[*at].scope == Scope::Lineage)
    }

    /// The grain and the versions before it (23.7 bypass 3), but for those that let go of it.
    fn versions_up_to(&self, at: usize) -> BTreeSet<usize> {
        let versions = self.chain_up_to(at).into_iter();
        let bound =
            versions.filter(|(at, released)| !released || self.0[*at].scope != Scope::Grain);
        bound.map(|(at, _)| at).collect()
    }

    /// The grain and the versions before it, each with whether a later one was released by a signature.
    fn chain_up_to(&self, at: usize) -> Vec<(usize, bool)> {
        let next = |(at, released): &(usize, bool)| {
            let released = *released || self.0[*at].released;
            self.0[*at].before.map(|before| (before, released))
        };
        std::iter::successors(Some((at, false)), next).collect()
    }

    /// Whether a grain stands in the place of another that came before it. One that lost that place, to a grain
    /// of a file that ends it earlier, does not.
    fn is_older_version(&self, at: usize, of: usize) -> bool {
        self.later(at).any(|later| later == of)
    }

    fn later(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.0[at].after, |at| self.0[*at].after)
    }

    /// What a grain derives from, however far.
    fn ancestry(&self, at: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            open.extend(self.0[at].parents.iter().filter(|up| found.insert(**up)));
        }
        found
    }
}

impl Entry {
    fn passes(&self, act: Act, brings: &Brings) -> bool {
        let authorized = |signer: &&u8| (1..=3).contains(*signer) && **signer != self.author;
        match self.mode {
            Mode::Open => true,
            Mode::SoftLocked | Mode::Over => brings.reason,
            Mode::Locked | Mode::Unknown => false,
            Mode::Quorum(least) => {
                let agree = brings.cosigners.iter().filter(authorized).count();
                act == Act::Supersede && least >= 1 && agree >= least
            }
            Mode::Delegated => brings.signer == Some(1),
            // Lifted, it leaves the grain as if there were no policy.
            Mode::Hold => !self.held,
        }
    }
}

// --- programs ---

#[derive(Debug, Clone)]
struct Made {
    subject: usize,
    mode: Mode,
    scope: Scope,
    author: u8,
    parents: Vec<usize>,
    /// What it says about its transitions, where it is a goal.
    goal: Terms,
}

#[derive(Debug, Clone)]
enum Op {
    Put(Made),
    Supersede(usize, Made, bool, BTreeSet<u8>),
    Mark(usize, Act, Option<u8>),
    Verify(usize, bool),
    Hold(usize),
    Lift(usize, bool),
    PutGoal(Made),
    Transition(usize, Change),
    Embed(usize, Vectors),
    Import(Coming),
    Says(usize, Said),
}

fn made() -> impl Strategy<Value = Made> {
    let mode = prop_oneof![
        4 => Just(Mode::Open),
        2 => Just(Mode::SoftLocked),
        1 => Just(Mode::Locked),
        2 => (0_usize..4).prop_map(Mode::Quorum),
        1 => Just(Mode::Delegated),
        1 => Just(Mode::Over),
        1 => Just(Mode::Hold),
        1 => Just(Mode::Unknown),
    ];
    let scope = prop_oneof![Just(Scope::Grain), Just(Scope::Lineage), Just(Scope::Subtree)];
    let parents = prop::collection::vec(0_usize..40, 0..3);
    (0_usize..6, mode, scope, 0_u8..3, parents, goals::terms()).prop_map(
        |(subject, mode, scope, author, parents, goal)| Made {
            subject,
            mode,
            scope,
            author,
            parents,
            goal,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let signers = prop::collection::btree_set(1_u8..6, 0..4);
    let act = prop_oneof![Just(Act::Contradict), Just(Act::Contest), Just(Act::Retract)];
    prop_oneof![
        5 => made().prop_map(Op::Put),
        6 => (0_usize..40, made(), any::<bool>(), signers)
            .prop_map(|(at, made, why, signers)| Op::Supersede(at, made, why, signers)),
        3 => (0_usize..40, act, prop::option::of(1_u8..3))
            .prop_map(|(at, act, signer)| Op::Mark(at, act, signer)),
        1 => (0_usize..40, any::<bool>()).prop_map(|(at, own)| Op::Verify(at, own)),
        1 => (0_usize..40).prop_map(Op::Hold),
        1 => (0_usize..40, any::<bool>()).prop_map(|(at, agent)| Op::Lift(at, agent)),
        2 => made().prop_map(Op::PutGoal),
        4 => (0_usize..40, goals::change()).prop_map(|(at, change)| Op::Transition(at, change)),
        3 => (0_usize..40, nearness::vectors()).prop_map(|(at, given)| Op::Embed(at, given)),
        4 => arriving::coming(made()).prop_map(Op::Import),
        2 => (0_usize..40, arriving::said()).prop_map(|(at, said)| Op::Says(at, said)),
    ]
}

/// A store, and the world it has to be.
struct Run {
    world: World,
    addresses: Vec<ContentAddress>,
    operator: Session,
    store: Store,
    dir: TempDir,
}

const OPS: usize = 40;

#[test]
fn random_programs_come_out_as_the_specification_says() {
    let ops = std::env::var("GRAINSTORE_POLICY_OPS").ok().and_then(|ops| ops.parse().ok());
    let ops: usize = ops.unwrap_or(2_000);
    let cases = u32::try_from(ops.div_ceil(OPS)).unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let programs = prop::collection::vec(op(), OPS..=OPS);
    TestRunner::new(config)
        .run(&programs, |program| {
            let mut run = Run::new();
            for (at, op) in program.iter().enumerate() {
                let told = run.step(op).map_err(|why| format!("op {at}, {op:?}: {why}"));
                told.map_err(TestCaseError::fail)?;
            }
            let problems = run.store.verify(true).unwrap().problems;
            prop_assert!(problems.is_empty(), "{problems:?}");
            Ok(())
        })
        .unwrap();
}

impl Run {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let options = OpenOptions::new().create(true).operator("did:web:operator");
        let store = Store::open(dir.path(), &options).unwrap();
        let operator = store.session(SessionOptions::default());
        Self { world: World::default(), addresses: Vec::new(), operator, store, dir }
    }

    fn step(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Put(made) => self.put(made),
            _ if self.addresses.is_empty() => Ok(()),
            Op::Supersede(at, made, why, cosigners) => {
                self.supersede(self.place(*at), made, *why, cosigners)
            }
            Op::Mark(at, act, signer) => self.mark(self.place(*at), *act, *signer),
            Op::Verify(at, own) => self.verify(self.place(*at), *own),
            Op::Hold(at) => {
                let at = self.place(*at);
                self.world.0[at].held = true;
                self.expect(at, self.operator.hold(&self.addresses[at], "case"), "OK")
            }
            Op::Lift(at, agent) => self.lift(self.place(*at), *agent),
            Op::PutGoal(made) => self.put_goal(made),
            Op::Transition(at, change) => self.transition(self.place(*at), change),
            Op::Embed(at, given) => self.embed(self.place(*at), given),
            Op::Import(coming) => self.import(coming),
            Op::Says(at, said) => self.says(self.place(*at), *said),
        }
    }

    /// The grains this one is made to derive from.
    fn parents(&self, made: &Made) -> BTreeSet<usize> {
        match self.addresses.len() {
            0 => BTreeSet::new(),
            _ => made.parents.iter().map(|at| self.place(*at)).collect(),
        }
    }

    /// Whether a grain of this kind and subject would replace another that it derives from.
    fn is_version_of(&self, is_goal: bool, subject: usize, at: usize) -> bool {
        let entry = &self.world.0[at];
        entry.goal.is_some() == is_goal && entry.subject == subject
    }

    fn put(&mut self, made: &Made) -> Result<(), String> {
        let parents = self.parents(made);
        let grain = self.grain(made, &parents, false);
        let disguised = parents.iter().any(|at| self.is_version_of(false, made.subject, *at));
        match self.operator.put(grain) {
            Ok(put) if !disguised => {
                self.add(made, parents, None, put.address());
                Ok(())
            }
            Err(error) if disguised && error.code() == "ERR_SUPERSEDE_REQUIRED" => Ok(()),
            other => Err(format!("{other:?}, disguised: {disguised}")),
        }
    }

    fn supersede(
        &mut self,
        old: usize,
        made: &Made,
        why: bool,
        cosigners: &BTreeSet<u8>,
    ) -> Result<(), String> {
        let made = &Made { subject: self.world.0[old].subject, ..made.clone() };
        let others =
            self.parents(made).into_iter().filter(|at| *at != old).collect::<BTreeSet<_>>();
        let parents = others.iter().copied().chain([old]).collect();
        // A goal that stays in its state makes no transition.
        let goal = self.world.0[old].goal.as_ref();
        let goal = goal.map(|goal| goal.said_anew(made, self.addresses.len()));
        let grain = match &goal {
            Some(goal) => self.goal(made, goal, &parents, why),
            None => self.grain(made, &parents, why),
        };
        let grain = cosigned(grain, &self.addresses[old], cosigners);
        let brings = Brings { reason: why, signer: None, cosigners: cosigners.clone() };
        // Its own older versions may be named beside it.
        let mut of_others = others.iter().filter(|at| !self.world.is_older_version(**at, old));
        let expected = if self.world.0[old].after.is_some() {
            "ERR_CONFLICT"
        } else if of_others.any(|at| self.is_version_of(goal.is_some(), made.subject, *at)) {
            "ERR_SUPERSEDE_REQUIRED"
        } else if self.world.allows(Act::Supersede, old, &others, &brings) {
            "OK"
        } else {
            DENIED
        };
        let outcome = self.operator.supersede(&self.addresses[old], grain, None);
        if let Ok(address) = &outcome {
            let released = goal.is_some() && self.world.releases(old, &brings);
            let new = self.add(made, parents, Some(old), *address);
            self.world.0[old].after = Some(new);
            (self.world.0[new].goal, self.world.0[new].released) = (goal, released);
        }
        self.expect(old, outcome, expected)
    }

    fn mark(&mut self, at: usize, act: Act, signer: Option<u8>) -> Result<(), String> {
        let (address, entry) = (self.addresses[at], &self.world.0[at]);
        let brings = Brings { reason: true, signer, cosigners: BTreeSet::new() };
        let wanted = if act == Act::Retract { Status::Retracted } else { Status::Contested };
        let final_already = act != Act::Contradict && entry.status == Status::Retracted;
        let done = match act {
            Act::Contradict => entry.contradicted,
            _ => entry.status == wanted,
        };
        let expected = if done {
            "OK"
        } else if final_already {
            "ERR_CONFLICT"
        } else if self.world.allows(act, at, &BTreeSet::new(), &brings) {
            "OK"
        } else {
            DENIED
        };
        let proof = signer.map(|signer| proof_of(message(act), &address, signer));
        let outcome = match act {
            Act::Contradict => self.operator.contradict(&address, "wrong", proof.as_deref()),
            _ => self.operator.set_verification(&address, wanted, "wrong", proof.as_deref()),
        };
        if outcome.is_ok() {
            match act {
                Act::Contradict => self.world.0[at].contradicted = true,
                _ => self.world.0[at].status = wanted,
            }
        }
        self.expect(at, outcome, expected)
    }

    fn verify(&mut self, at: usize, own: bool) -> Result<(), String> {
        let entry = &self.world.0[at];
        let is_author = own && entry.author != 0;
        let expected = match (entry.status, is_author) {
            (Status::Verified, _) => "OK",
            (Status::Retracted, _) => "ERR_CONFLICT",
            (_, true) => DENIED,
            (_, false) => "OK",
        };
        let actor = is_author.then(|| key(entry.author).did().to_string());
        let session = self.store.session(SessionOptions { actor, ..SessionOptions::default() });
        let outcome =
            session.set_verification(&self.addresses[at], Status::Verified, "checked", None);
        if outcome.is_ok() {
            self.world.0[at].status = Status::Verified;
        }
        self.expect(at, outcome, expected)
    }

    fn lift(&mut self, at: usize, agent: bool) -> Result<(), String> {
        let entry = &self.world.0[at];
        // Under delegated the signers it names would have to lift it, and none is asked here.
        let expected = if !entry.held {
            "ERR_CONFLICT"
        } else if agent || entry.mode == Mode::Delegated {
            DENIED
        } else {
            "OK"
        };
        let actor = agent.then(|| "did:web:agent".to_owned());
        let session = self.store.session(SessionOptions { actor, ..SessionOptions::default() });
        let outcome = session.lift_hold(&self.addresses[at], "settled", None);
        if outcome.is_ok() {
            self.world.0[at].held = false;
        }
        self.expect(at, outcome, expected)
    }

    /// Compares an outcome, and the whole state of the grain it was about.
    fn expect<T>(
        &self,
        at: usize,
        outcome: grainstore::Result<T>,
        expected: &str,
    ) -> Result<(), String> {
        let told = outcome.as_ref().err().map(|error| format!("{}: {error}", error.code()));
        let code = outcome.map_or_else(|error| error.code(), |_| "OK");
        if code != expected {
            return Err(format!("{} instead of {expected}", told.unwrap_or_default()));
        }
        let state = self.operator.get(&self.addresses[at]).unwrap().state;
        let entry = &self.world.0[at];
        let ended =
            entry.after.is_some() || entry.contradicted || entry.status == Status::Retracted;
        let agrees = state.contradicted == entry.contradicted
            && state.verification_status == entry.status
            && state.held == entry.held
            && state.superseded_by == entry.after.map(|after| self.addresses[after])
            && state.system_valid_to.is_some() == ended;
        if agrees { Ok(()) } else { Err(format!("{state:?} instead of {entry:?}")) }
    }

    fn place(&self, at: usize) -> usize {
        at % self.addresses.len()
    }

    fn add(
        &mut self,
        made: &Made,
        parents: BTreeSet<usize>,
        before: Option<usize>,
        address: ContentAddress,
    ) -> usize {
        self.addresses.push(address);
        self.world.0.push(Entry {
            subject: made.subject,
            mode: made.mode,
            scope: made.scope,
            author: made.author,
            parents,
            before,
            after: None,
            contradicted: false,
            status: Status::Unverified,
            held: made.mode == Mode::Hold,
            goal: None,
            released: false,
            ended_early: false,
            vectors: BTreeMap::new(),
        });
        self.addresses.len() - 1
    }

    fn grain(&self, made: &Made, parents: &BTreeSet<usize>, why: bool) -> Grain {
        let json = json!({
            "type": "belief", "subject": format!("s{}", made.subject), "relation": "r",
            "object": format!("grain {}", self.addresses.len()), "confidence": 1.0,
            "created_at": 1000, "invalidation_policy": policy(made),
        });
        self.written(json, made.author, parents, why)
    }

    /// A grain with what all of them have.
    fn written(&self, mut json: Value, author: u8, parents: &BTreeSet<usize>, why: bool) -> Grain {
        let parents = parents.iter().map(|at| self.addresses[*at].to_string());
        json["derived_from"] = Value::from(parents.collect::<Vec<_>>());
        if author != 0 {
            json["author_did"] = Value::from(key(author).did().to_string());
        }
        if why {
            json["supersession_justification"] = Value::from("it moved");
        }
        Grain::from_json(&json.to_string()).unwrap()
    }
}

/// The grain with the signatures of these in its `supersession_auth`.
fn cosigned(grain: Grain, old: &ContentAddress, signers: &BTreeSet<u8>) -> Grain {
    if signers.is_empty() {
        return grain;
    }
    let message =
        proof::supersede_message(old, grain.encode(Encoding::MessagePack).unwrap().bytes());
    let entries = signers.iter().map(|seed| sign_detached(&message, &key(*seed)).unwrap());
    let entries = entries.map(format::Value::Bytes).collect();
    let mut fields = grain.into_fields();
    fields.insert("supersession_auth".to_owned(), format::Value::Array(entries));
    Grain::from_fields(fields).unwrap()
}

fn message(act: Act) -> &'static str {
    match act {
        Act::Contradict => "contradict",
        Act::Retract => "retract",
        Act::Contest | Act::Supersede => "contest",
    }
}

fn policy(made: &Made) -> Value {
    let did = |seed: u8| key(seed).did().to_string();
    let mut policy = match made.mode {
        Mode::Open => json!({ "mode": "open" }),
        Mode::SoftLocked => json!({ "mode": "soft_locked" }),
        Mode::Locked => json!({ "mode": "locked" }),
        Mode::Quorum(least) => {
            json!({ "mode": "quorum", "threshold": least, "authorized": [did(1), did(2), did(3)] })
        }
        Mode::Delegated => json!({ "mode": "delegated", "authorized": [did(1)] }),
        Mode::Over => json!({ "mode": "timed", "locked_until": 0, "fallback_mode": "soft_locked" }),
        Mode::Hold => json!({ "mode": "hold" }),
        Mode::Unknown => json!({ "mode": "ajar" }),
    };
    policy["scope"] = Value::from(match made.scope {
        Scope::Grain => "grain",
        Scope::Lineage => "lineage",
        Scope::Subtree => "subtree",
    });
    policy
}
