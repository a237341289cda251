//! Every case, step by step, on a whole store.

use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use grainstore::format::{BeliefBuilder, Blob, ContentAddress, EpochMs, Grain, Value};
use grainstore::{
    ManualClock, Offer, OpenOptions, SameFact, Session, SessionOptions, Store, VerificationStatus,
};
use tempfile::TempDir;

use super::case::{Case, Expected, Grains, Step, actor, all};

/// A store, and what the steps of a case need beside it.
struct Runner<'c> {
    case: &'c Case,
    grains: Grains,
    store: Store,
    clock: Arc<ManualClock>,
    /// The last version a `chain` made.
    head: Option<ContentAddress>,
    _dir: TempDir,
}

#[test]
fn every_case_comes_out_as_it_says() {
    let cases = all();
    println!("{} cases", cases.len());
    let (cases, run) = (&cases, |(file, case): &(String, Case)| {
        Runner::new(case).run().err().map(|why| format!("{file}: {}: {why}", case.name))
    });
    // Most of the time goes into waiting for the disk.
    let failures: Vec<String> = thread::scope(|scope| {
        let share = move |first| cases.iter().skip(first).step_by(THREADS);
        let spawn = |first| scope.spawn(move || share(first).filter_map(run).collect());
        let running: Vec<ScopedJoinHandle<'_, Vec<String>>> = (0..THREADS).map(spawn).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

const THREADS: usize = 16;

/// Rows cost pages, and most supersessions are of grains that nothing protects.
#[test]
fn a_supersession_that_nothing_restricts_writes_one_state_and_no_roots() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let plain = BeliefBuilder::new(EpochMs::new(1000), "s", "r", "o", 1.0).build().unwrap();
    let old = session.put(plain).unwrap().address();
    session.supersede(&old, version(&old, 1, None), None).unwrap();
    let rows = store.stats().unwrap().rows;
    let told = ["log", "state", "roots", "reasons", "audit"].map(|table| rows[table]);
    assert_eq!(told, [2, 1, 0, 0, 3]);
}

impl<'c> Runner<'c> {
    fn new(case: &'c Case) -> Self {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::following());
        let accepts = case.options.locked_accepts_authorized_signature;
        let mut options = OpenOptions::new()
            .create(true)
            .clock(Arc::<ManualClock>::clone(&clock))
            .locked_accepts_authorized_signature(accepts);
        if let Some(operator) = &case.options.operator {
            options = options.operator(operator);
        }
        crate::former::put_former_store(dir.path());
        let store = Store::open(dir.path(), &options).unwrap();
        Self { case, grains: Grains::of(case), store, clock, head: None, _dir: dir }
    }

    fn run(mut self) -> Result<(), String> {
        for (at, step) in self.case.steps.iter().enumerate() {
            self.step(step).map_err(|why| format!("step {at} ({}): {why}", step.op))?;
        }
        let verified = self.store.verify(true).unwrap();
        if !verified.ok {
            return Err(format!("the store does not verify: {:?}", verified.problems));
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        self.clock.set(EpochMs::new(step.now_s * 1000));
        let session = self.store.session(SessionOptions {
            namespace: step.namespace.clone(),
            actor: actor(step),
            ..SessionOptions::default()
        });
        let (before, _) = session.audit_head().unwrap();
        let outcome = self.call(&session, step);
        let (code, message) = match &outcome {
            Ok(()) => ("OK", String::new()),
            Err(error) => (error.code(), error.to_string()),
        };
        if code != step.code {
            return Err(format!("{code} ({message}) instead of {}", step.code));
        }
        if let Some(rules) = &step.rules {
            let recorded = session.audit(before.checked_sub(1), 10).unwrap();
            let Some(last) = recorded.last() else { return Err("nothing was recorded".to_owned()) };
            let refused = step.code != "OK";
            if last.rules != *rules || (last.decision == "refused") != refused {
                return Err(format!("{} by {:?} instead of {rules:?}", last.decision, last.rules));
            }
        }
        let target = step.target.as_ref().or(step.grain.as_ref());
        match target.map(|name| self.grains.address(name)) {
            Some(address) => self.check_state(&address, &step.state),
            None => Ok(()),
        }
    }

    fn call(&mut self, session: &Session, step: &Step) -> grainstore::Result<()> {
        let grain = || step.grain.as_deref().unwrap();
        let target = step.target.as_deref();
        let address = target.map_or(NOWHERE, |name| self.grains.address(name));
        let reason = step.reason.as_deref().unwrap_or_default();
        let op = match (step.op.as_str(), step.status.as_deref()) {
            ("set_verification", Some("retracted")) => "retract",
            ("set_verification", _) => "contest",
            (op, _) => op,
        };
        // A grain that is written carries its signature itself.
        let proof = step.signed.as_ref().filter(|_| step.grain.is_none());
        let proof = proof.map(|signed| self.grains.sign(signed, op, target.unwrap()));
        let proof = proof.as_deref();
        let is_note = step.signed.as_ref().is_some_and(|signed| signed.note);
        assert!(!is_note || step.op == "put" || step.code != "OK", "a note replaces nothing");
        match step.op.as_str() {
            "put" => session.put(self.offer(grain())).map(drop),
            "put_fact" => session.put_fact(self.offer(grain()), SameFact::Supersede).map(drop),
            "put_batch" => session.put_batch(step.grains.iter().map(|g| self.offer(g))).map(drop),
            "supersede" => session.supersede(&address, self.offer(grain()), None).map(drop),
            "contradict" => session.contradict(&address, reason, proof),
            "set_verification" => {
                let status = VerificationStatus::from_name(step.status.as_deref().unwrap());
                session.set_verification(&address, status.unwrap(), reason, proof)
            }
            "hold" => session.hold(&address, reason),
            "lift_hold" => session.lift_hold(&address, reason, proof),
            "chain" => {
                self.head = Some(chain(session, address, step)?);
                Ok(())
            }
            "supersede_head" => {
                let head = self.head.unwrap();
                session.supersede(&head, version(&head, usize::MAX, None), None).map(drop)
            }
            other => panic!("no step {other:?}"),
        }
    }

    fn offer(&self, name: &str) -> Offer {
        match self.grains.envelope(name) {
            Some(envelope) => envelope.clone().into(),
            None => Offer::Blob(self.grains.blob(name).bytes().to_vec()),
        }
    }

    fn check_state(&self, address: &ContentAddress, expected: &Expected) -> Result<(), String> {
        let operator = self.store.session(SessionOptions::default());
        let Ok(stored) = operator.get(address) else { return Ok(()) };
        let state = stored.state;
        let status = state.verification_status.name();
        let ended = state.system_valid_to;
        let agrees = expected.current.is_none_or(|it| it == state.is_current())
            && expected.contradicted.is_none_or(|it| it == state.contradicted)
            && expected.held.is_none_or(|it| it == state.held)
            && expected.needs_review.is_none_or(|it| it == state.needs_review)
            && expected.verification_status.as_ref().is_none_or(|it| it == status)
            && expected.ended.is_none_or(|it| it == ended.is_some())
            && expected.ended_s.is_none_or(|it| ended == Some(EpochMs::new(it * 1000)));
        if agrees { Ok(()) } else { Err(format!("{state:?} instead of {expected:?}")) }
    }
}

const NOWHERE: ContentAddress = ContentAddress::from_bytes([0; 32]);

/// Supersedes a grain again and again, without waiting for each.
fn chain(
    session: &Session,
    from: ContentAddress,
    step: &Step,
) -> grainstore::Result<ContentAddress> {
    let mut head = from;
    let mut pending = Vec::new();
    for number in 0..step.length {
        let next = version(&head, number, step.justification.as_deref());
        let address = next.address();
        pending.push(session.submit_supersede(&head, next, None));
        head = address;
    }
    pending.into_iter().try_for_each(|pending| pending.wait().map(drop))?;
    Ok(head)
}

fn version(parent: &ContentAddress, number: usize, why: Option<&str>) -> Blob {
    let object = format!("version {number}");
    let grain = BeliefBuilder::new(EpochMs::new(5000), "s", "r", object, 1.0);
    let grain = grain.derived_from(vec![Value::from(parent.to_string())]);
    let grain = match why {
        Some(why) => grain.supersession_justification(why),
        None => grain,
    };
    let grain: Grain = grain.build().unwrap();
    grain.encode(Default::default()).unwrap()
}
