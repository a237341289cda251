//! Calls made at random over small sets of words, so that they meet: same facts, same bytes, heads
//! and superseded grains, locks, sources, sessions inside and outside of a namespace.
//!
//! Knows the model only to choose what to call about; what a call may answer is the model's matter.

use super::engine::format::{
    ContentAddress, DeviceProfile, Encoding, Grain, Map, Value, parse_json,
};
use super::engine::{
    Pending, PutOutcome, SameFact, Session, SessionOptions, Store, VerificationStatus as Status,
};
use super::model::{Known, Model};
use super::offers::{Answer, Call, Mark, Offered, Signed};
use super::random::Random;
use super::rules;

/// Who works with the store.
pub(crate) const SESSIONS: [Option<&str>; 6] =
    [None, None, Some("acme"), Some("acme:bot"), Some("shared"), Some("elsewhere")];
/// Where grains belong; nothing and the empty name are the same partition.
pub(crate) const NAMESPACES: [Option<&str>; 6] =
    [None, Some(""), Some("acme"), Some("acme:bot"), Some("acme2"), Some("acme:bot")];
/// Grains are created within 40 seconds from here.
pub(crate) const CREATED_MS: i64 = 1_700_000_000_000;
pub(crate) const RELATIONS: [&str; 3] = ["prefers", "works_at", "mg:knows"];
/// Soft locks stand here more than once: they alone let a version go and bear on the next.
const POLICIES: [&str; 17] = [
    r#"{"mode": "open"}"#,
    r#"{"mode": "soft_locked"}"#,
    r#"{"mode": "soft_locked"}"#,
    r#"{"mode": "soft_locked"}"#,
    r#"{"mode": "soft_locked", "scope": "grain"}"#,
    r#"{"mode": "soft_locked", "scope": "subtree"}"#,
    r#"{"mode": "soft_locked", "scope": "lineage"}"#,
    r#"{"mode": "locked"}"#,
    r#"{"mode": "locked", "scope": "subtree"}"#,
    r#"{"mode": "hold"}"#,
    r#"{"mode": "quorum", "threshold": 1}"#,
    r#"{"mode": "delegated", "scope": "unheard of"}"#,
    r#"{"mode": "timed", "locked_until": 1000, "fallback_mode": "open", "scope": "subtree"}"#,
    r#"{"mode": "timed", "locked_until": 1000, "fallback_mode": "soft_locked"}"#,
    r#"{"mode": "timed", "locked_until": 99000000000, "fallback_mode": "open"}"#,
    r#"{"mode": "consent_cascade"}"#,
    r#"{"mode": "ajar"}"#,
];
/// Protection is followed this far and then remembered (OMS 23.6); longer ways are not made here.
const MAX_DEPTH: usize = 12;

/// Some more than once: holds are to be lifted, and grains to stay current.
const MARKS: [Mark; 12] = [
    Mark::Contradict,
    Mark::Status(Status::Contested),
    Mark::Status(Status::Contested),
    Mark::Status(Status::Verified),
    Mark::Status(Status::Unverified),
    Mark::Status(Status::Retracted),
    Mark::Hold,
    Mark::Hold,
    Mark::Lift,
    Mark::Lift,
    Mark::Lift,
    Mark::Lift,
];

/// Somebody who calls at random.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) random: Random,
    /// A protecting grain that something derives from already and that is still to be stored.
    late: Option<Offered>,
    /// A grain that came in an envelope nobody can verify, and may come in a better one.
    unverified: Option<Grain>,
}

impl Caller {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), late: None, unverified: None }
    }

    /// A call, and the namespace of the session that makes it.
    pub(crate) fn next(&mut self, model: &Model) -> (Option<&'static str>, Call) {
        let namespace = self.random.pick(&SESSIONS);
        if let Some(late) = self.late.take_if(|_| self.random.percent(20)) {
            return (None, Call::Put(late, SameFact::Add));
        }
        let call = match self.random.below(115) {
            // Mostly of grains that are within reach.
            100..110 if self.random.percent(70) => return (None, self.mark(model)),
            100..110 => self.mark(model),
            110..115 => Call::Put(self.signed(model, namespace), SameFact::Add),
            0..30 => Call::Put(self.offered(model, namespace), SameFact::Add),
            30..37 => Call::Put(self.offered(model, namespace), SameFact::Keep),
            37..40 => Call::Put(self.offered(model, namespace), SameFact::Unique),
            40..52 => {
                let offered = self.offered(model, namespace);
                let deep = model.current_twins(&offered.grain).any(|twin| twin.depth >= MAX_DEPTH);
                Call::Put(offered, if deep { SameFact::Keep } else { SameFact::Supersede })
            }
            52..65 => {
                let members = 1 + self.random.below(6);
                Call::Batch((0..members).map(|_| self.offered(model, namespace)).collect())
            }
            _ => self.supersession(model, namespace),
        };
        (namespace, call)
    }

    /// A mark on a stored grain; holds are mostly lifted where there is one.
    fn mark(&mut self, model: &Model) -> Call {
        let mark = self.random.pick(&MARKS);
        let held = || model.grains.iter().rev().take(200).find(|known| known.held);
        let found = match mark {
            Mark::Lift if self.random.percent(80) => held(),
            _ => self.known(model, 60),
        };
        let nowhere = || ContentAddress::of(&self.random.next().to_be_bytes());
        Call::Mark(found.map_or_else(nowhere, |known| known.address), mark)
    }

    /// A grain in an envelope: one that nobody can verify, and later a better one around the same.
    fn signed(&mut self, model: &Model, namespace: Option<&'static str>) -> Offered {
        let again = self.unverified.take_if(|_| self.random.percent(70));
        let is_better = again.is_some();
        let mut fields = again.unwrap_or_else(|| self.grain(model, namespace)).into_fields();
        fields.remove("context");
        let grain = Grain::from_fields(fields).expect("a valid grain");
        let signed = Signed::around(&grain, is_better || self.random.percent(30));
        if !signed.valid {
            self.unverified = Some(grain.clone());
        }
        Offered { grain, encoding: Encoding::default(), finished: true, signed: Some(signed) }
    }

    /// A grain to supersede by another, mostly one that can be.
    pub(crate) fn supersession(&mut self, model: &Model, namespace: Option<&'static str>) -> Call {
        let found = self.known(model, 70).cloned();
        let why = self
            .random
            .percent(50)
            .then(|| self.random.pick(&["it changed", "so", " "]).to_owned());
        let Some(found) = found.filter(|_| self.random.percent(96)) else {
            let old = ContentAddress::of(&self.random.next().to_be_bytes());
            return Call::Supersede { old, new: self.offered(model, namespace), why };
        };
        let mut new = self.offered(model, namespace);
        let mut fields = new.grain.into_fields();
        if self.random.percent(85) {
            for name in ["type", "subject", "relation", "namespace", "description"] {
                if let Some(value) = found.grain.get(name) {
                    fields.insert(name.to_owned(), value.clone());
                }
            }
            complete(&mut fields);
        }
        if new.finished && self.random.percent(80) {
            add_parent(&mut fields, &found.address);
        }
        if self.random.percent(15) {
            // A digest of all that came before.
            let before = rules::parents(&found.grain);
            before.iter().for_each(|parent| add_parent(&mut fields, parent));
            fields.insert("consolidation_level".to_owned(), Value::from(1_i64));
        }
        if let Some(why) = &why
            && (new.finished || self.random.percent(5))
            && self.random.percent(70)
        {
            fields.insert("supersession_justification".to_owned(), Value::from(why.as_str()));
        }
        new.grain = Grain::from_fields(fields).expect("a valid grain");
        Call::Supersede { old: found.address, new, why }
    }

    /// Something to put: mostly new, sometimes the very bytes of a stored grain.
    pub(crate) fn offered(&mut self, model: &Model, namespace: Option<&'static str>) -> Offered {
        let finished = self.random.percent(25);
        let encoding =
            if finished && self.random.percent(50) { Encoding::Cbor } else { Encoding::default() };
        let again = self.random.percent(6);
        let grain = match self.known(model, 30) {
            Some(known) if again => Grain::clone(&known.grain),
            _ => self.grain(model, namespace),
        };
        Offered { grain, encoding, finished, signed: None }
    }

    fn grain(&mut self, model: &Model, namespace: Option<&'static str>) -> Grain {
        let random = &mut self.random;
        let kind =
            random.pick(&["belief", "belief", "belief", "belief", "event", "goal", "consent"]);
        let seconds = i64::try_from(random.below(40)).unwrap_or_default();
        let created_at = CREATED_MS + 1000 * seconds;
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("type", kind.into());
        set("created_at", created_at.into());
        if kind == "belief" || random.percent(60) {
            let subjects = 6 + model.grains.len() / 40;
            set("subject", format!("subject {}", random.below(subjects)).into());
            set("relation", random.pick(&RELATIONS).into());
            set("object", self.object());
        }
        let random = &mut self.random;
        let inside = namespace.filter(|_| random.percent(80));
        if let Some(namespace) = inside.or_else(|| random.pick(&NAMESPACES)) {
            set("namespace", namespace.into());
        }
        if random.percent(20) {
            set("session_id", random.pick(&["s1", "s2"]).into());
            set("structural_tags", Value::Array(vec![random.pick(&["red", "blue"]).into()]));
        }
        if random.percent(22) {
            let policy = parse_json(random.pick(&POLICIES), &DeviceProfile::default());
            set("invalidation_policy", policy.expect("a policy"));
        }
        if random.percent(4) {
            set("invalidation_reason", "obsolete".into());
        }
        if random.percent(5) {
            let note = "grain ".repeat(1 + random.below(3000));
            set("context", Value::Map(Map::from([("note".to_owned(), note.into())])));
        }
        self.derive(model, &mut fields);
        complete(&mut fields);
        Grain::from_fields(fields).expect("a valid grain")
    }

    /// Sometimes a source or two, and sometimes as a digest of them. A source may be stored later.
    fn derive(&mut self, model: &Model, fields: &mut Map) {
        if self.late.is_none() && self.random.percent(8) {
            let late = self.protecting();
            add_parent(fields, &late.blob().address());
            self.late = Some(late);
        }
        let sources = self.random.pick(&[0, 0, 0, 0, 1, 2]);
        for _ in 0..sources {
            if let Some(parent) = self.known(model, 50) {
                add_parent(fields, &parent.address);
            }
        }
        if fields.contains_key("derived_from") && self.random.percent(40) {
            fields.insert("consolidation_level".to_owned(), Value::from(1_i64));
        }
    }

    /// A grain whose policy covers what derives from it.
    fn protecting(&mut self) -> Offered {
        let policy = self.random.pick(&[
            r#"{"mode": "soft_locked", "scope": "subtree"}"#,
            r#"{"mode": "locked", "scope": "subtree"}"#,
            r#"{"mode": "hold", "scope": "subtree"}"#,
        ]);
        let policy = parse_json(policy, &DeviceProfile::default()).expect("a policy");
        let mut fields = Map::from([
            ("type".to_owned(), "belief".into()),
            ("subject".to_owned(), format!("source {}", self.random.next()).into()),
            ("created_at".to_owned(), CREATED_MS.into()),
            ("invalidation_policy".to_owned(), policy),
        ]);
        complete(&mut fields);
        let grain = Grain::from_fields(fields).expect("a valid grain");
        Offered { grain, encoding: Encoding::default(), finished: false, signed: None }
    }

    fn object(&mut self) -> Value {
        match self.random.below(5) {
            0 => Value::Map(Map::from([("city".to_owned(), Value::from("Oslo"))])),
            choice => format!("object {choice}").into(),
        }
    }

    /// A stored grain that is not too deep; this often one that is current.
    pub(crate) fn known<'m>(&mut self, model: &'m Model, current: usize) -> Option<&'m Known> {
        let current = self.random.percent(current);
        let recent = self.random.percent(60);
        let from = if recent { model.grains.len().saturating_sub(40) } else { 0 };
        let choices = model.grains.get(from..)?;
        if choices.is_empty() {
            return None;
        }
        let start = self.random.below(choices.len());
        let mut around = choices.iter().cycle().skip(start).take(choices.len().min(60));
        around.find(|known| known.depth < MAX_DEPTH && (!current || known.is_current()))
    }
}

fn add_parent(fields: &mut Map, address: &ContentAddress) {
    let parent = Value::from(address.to_string());
    match fields.entry("derived_from".to_owned()).or_insert(Value::Array(Vec::new())) {
        Value::Array(parents) if !parents.contains(&parent) => parents.push(parent),
        _ => {}
    }
}

/// Gives a grain the fields its type asks for, where it has none.
fn complete(fields: &mut Map) {
    let kind = fields.get("type").and_then(Value::as_str).map(str::to_owned);
    let required: &[(&str, Value)] = match kind.as_deref() {
        Some("belief") => &[
            ("subject", "somebody".into()),
            ("relation", "prefers".into()),
            ("object", "tea".into()),
            ("confidence", 0.5.into()),
        ],
        Some("event") => &[("content", "something was said".into())],
        Some("goal") => &[("description", "arrive".into()), ("goal_state", "active".into())],
        _ => &[
            ("subject_did", "did:key:z6MkSubject".into()),
            ("grantee_did", "did:key:z6MkGrantee".into()),
            ("scope", Value::Array(vec!["recall".into()])),
            ("is_withdrawal", false.into()),
        ],
    };
    for (name, value) in required {
        fields.entry((*name).to_owned()).or_insert_with(|| value.clone());
    }
}

/// A session that works in this namespace; the operator's where there is none.
pub(crate) fn session(store: &Store, namespace: Option<&str>) -> Session {
    let namespace = namespace.map(str::to_owned);
    store.session(SessionOptions { namespace, ..SessionOptions::default() })
}

/// A call that was made and is not answered yet.
pub(crate) enum Made {
    Put(Pending<PutOutcome>),
    Batch(Pending<Vec<PutOutcome>>),
    Supersede(Pending<ContentAddress>),
    /// Those that mark wait for the disk themselves.
    Answered(Answer),
}

impl Made {
    /// Makes a call without waiting for the disk.
    pub(crate) fn submit(session: &Session, call: &Call) -> Self {
        match call {
            Call::Put(offered, same_fact) => Self::Put(session.submit(offer(offered), *same_fact)),
            Call::Batch(members) => Self::Batch(session.submit_batch(members.iter().map(offer))),
            Call::Supersede { old, new, why } => {
                Self::Supersede(session.submit_supersede(old, offer(new), why.as_deref()))
            }
            Call::Mark(address, mark) => {
                let why = "a reason";
                let marked = match mark {
                    Mark::Contradict => session.contradict(address, why, None),
                    Mark::Status(status) => session.set_verification(address, *status, why, None),
                    Mark::Hold => session.hold(address, why),
                    Mark::Lift => session.lift_hold(address, why, None),
                };
                Self::Answered(match marked {
                    Ok(()) => Answer::Marked,
                    Err(error) => Answer::Refused(error.code()),
                })
            }
        }
    }

    pub(crate) fn wait(self) -> Answer {
        let answer = match self {
            Self::Put(pending) => pending.wait().map(Answer::Put),
            Self::Batch(pending) => pending.wait().map(Answer::Batch),
            Self::Supersede(pending) => pending.wait().map(Answer::Superseded),
            Self::Answered(answer) => Ok(answer),
        };
        answer.unwrap_or_else(|error| Answer::Refused(error.code()))
    }
}

fn offer(offered: &Offered) -> super::engine::Offer {
    if let Some(signed) = &offered.signed {
        return super::engine::Offer::Signed(signed.envelope.clone());
    }
    if offered.finished { offered.blob().into() } else { offered.grain.clone().into() }
}
