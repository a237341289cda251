//! Goals that allow transitions: put, and taken from state to state as they allow it and otherwise.

use super::engine::SameFact;
use super::engine::format::{
    ContentAddress, DeviceProfile, Encoding, Grain, Map, Value, parse_json,
};
use super::kit::calls::{CREATED_MS, Caller, NAMESPACES};
use super::kit::goals;
use super::kit::model::{DENIED, EVIDENCE, Model};
use super::kit::offers::{Answer, Call, Offered, Settled};
use super::tally::Tally;

const STATES: [&str; 4] = ["active", "satisfied", "failed", "suspended"];
const POLICIES: [&str; 8] = [
    r#"{"mode": "open"}"#,
    r#"{"mode": "soft_locked"}"#,
    r#"{"mode": "soft_locked", "scope": "lineage"}"#,
    r#"{"mode": "locked"}"#,
    r#"{"mode": "locked", "scope": "subtree"}"#,
    r#"{"mode": "quorum", "threshold": 1}"#,
    r#"{"mode": "hold"}"#,
    r#"{"mode": "ajar"}"#,
];

/// The goals that were made here, with their later versions.
#[derive(Debug, Default)]
pub(crate) struct Goals(Vec<ContentAddress>);

impl Goals {
    /// A goal to put, or a change of one.
    pub(crate) fn call(&self, caller: &mut Caller, model: &Model) -> Call {
        let back = self.0.len().min(20);
        if back == 0 || caller.random.percent(30) {
            return Call::Put(offered(goal(caller)), SameFact::Add);
        }
        let old = self.0[self.0.len() - 1 - caller.random.below(back)];
        let next = |at: &ContentAddress| model.find(at)?.superseded_by;
        let head = std::iter::successors(Some(old), next).last().unwrap_or(old);
        let old = if caller.random.percent(90) { head } else { old };
        let new = offered(changed(caller, model, &old));
        let why = caller.random.percent(30).then(|| "it came to be".to_owned());
        Call::Supersede { old, new, why }
    }

    /// Notes what came of a call.
    pub(crate) fn settled(&mut self, settled: &Settled, before: &Model, tally: &mut Tally) {
        let Settled { call, answer, namespace, .. } = settled;
        let (old, new) = match (call, answer) {
            (Call::Put(offered, _), Answer::Put(_)) => {
                return self.0.push(offered.blob().address());
            }
            (Call::Supersede { old, new, why }, answer) => {
                if let Answer::Superseded(address) = answer {
                    self.0.push(*address);
                }
                (old, new.successor(old, why.as_deref()).grain)
            }
            _ => return,
        };
        let Some(known) = before.find(old) else { return };
        let done = matches!(answer, Answer::Superseded(_));
        let denied = *answer == Answer::Refused(DENIED);
        let allowed = goals::allows(&known.grain, &known.grain, &new);
        let listed = known.grain.get("allowed_transitions").is_some();
        if listed && (done || denied) {
            tally.note("change of a goal", done);
            if done == allowed {
                tally.note("transition as it is listed", done);
            }
        }
        if goals::required(&known.grain, &known.grain, &new) > 0 {
            let lacking = *answer == Answer::Refused(EVIDENCE);
            let enough = goals::evidence(before, *namespace, old, &new) > 0;
            if lacking || (done && enough) {
                tally.note("evidence", done);
            }
        }
    }
}

fn offered(grain: Grain) -> Offered {
    Offered { grain, encoding: Encoding::default(), finished: false, signed: None }
}

fn goal(caller: &mut Caller) -> Grain {
    let random = &mut caller.random;
    let policy = parse_json(random.pick(&POLICIES), &DeviceProfile::default());
    let allowed = STATES.iter().filter(|_| random.percent(65)).map(|state| (*state).into());
    let allowed = Value::Array(allowed.collect());
    let number = random.next();
    let created_at = CREATED_MS + 1000 * i64::try_from(random.below(40)).unwrap_or_default();
    let mut fields = Map::from([
        ("type".to_owned(), "goal".into()),
        ("description".to_owned(), format!("goal {number}").into()),
        ("goal_state".to_owned(), random.pick(&STATES).into()),
        ("criteria".to_owned(), Value::Array(vec!["arrive".into()])),
        ("created_at".to_owned(), created_at.into()),
        ("allowed_transitions".to_owned(), allowed),
        ("evidence_required".to_owned(), random.pick(&[0_i64, 1, 1, 2]).into()),
        ("invalidation_policy".to_owned(), policy.expect("a policy")),
    ]);
    if let Some(namespace) = random.pick(&NAMESPACES) {
        fields.insert("namespace".to_owned(), namespace.into());
    }
    Grain::from_fields(fields).expect("a valid goal")
}

/// The next version of a goal: mostly the same in another state.
fn changed(caller: &mut Caller, model: &Model, old: &ContentAddress) -> Grain {
    let known = model.find(old).expect("a goal that is here");
    let mut fields = known.grain.fields().clone();
    for name in ["derived_from", "satisfaction_evidence", "supersession_justification"] {
        fields.remove(name);
    }
    let named = caller.random.pick(&[0, 1, 2, 3]);
    let named = (0..named).filter_map(|_| caller.known(model, 70).map(|known| known.address));
    let named: Vec<Value> = named.map(|address| address.to_string().into()).collect();
    let random = &mut caller.random;
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    let state = random.pick(&["satisfied", "satisfied", "failed", "active", "suspended"]);
    set("goal_state", state.into());
    set("satisfaction_evidence", Value::Array(named));
    let later = if random.percent(90) { 500 } else { -500 };
    set("created_at", (known.grain.created_at().get() + later).into());
    match random.below(10) {
        0 => drop(set("criteria", Value::Array(vec!["arrive elsewhere".into()]))),
        1 => drop(set("evidence_required", 0_i64.into())),
        2 => drop(set("structural_tags", Value::Array(vec!["red".into()]))),
        3..6 => ["invalidation_policy", "allowed_transitions", "evidence_required"]
            .iter()
            .for_each(|name| drop(fields.remove(*name))),
        _ => {}
    }
    Grain::from_fields(fields).expect("a valid goal")
}
