//! The case files on a whole store: what is allowed is really done; what is refused leaves nothing but an
//! entry in the audit log, and says the rule, the article and the way out.

use grainstore::cal::Query;
use grainstore::{
    EpochMs, EraseOptions, Error, ExportOptions, ManualClock, MasterKey, OpenOptions, PageOptions,
    Preset, Session, SessionOptions, Store, VerificationStatus,
};
use std::sync::Arc;
use tempfile::TempDir;

use super::case::{self, Case, Grains, blob};

struct World<'c> {
    case: &'c Case,
    grains: Grains,
    dir: TempDir,
    store: Store,
    preset: Preset,
}

impl<'c> World<'c> {
    fn new(preset: Preset, case: &'c Case) -> Self {
        let dir = TempDir::new().unwrap();
        // Late enough that nothing has to be kept for its age: 2034.
        let clock = Arc::new(ManualClock::following());
        clock.set(EpochMs::new(2_020_000_000_000));
        let options = OpenOptions::new().create(true).preset(preset).clock(clock);
        let options = if case.keys { options.key(MasterKey::new([7; 32])) } else { options };
        let store = Store::open(dir.path().join("store"), &options).unwrap();
        let world = Self { case, grains: case.grains(), dir, store, preset };
        let session = world.session(None);
        for (consent, before) in &world.grains.consents {
            match before.map(|at| blob(&world.grains.consents[at].0).address()) {
                Some(before) => drop(session.supersede(&before, consent.clone(), None).unwrap()),
                None => drop(session.put(consent.clone()).unwrap()),
            }
        }
        world
    }

    fn session(&self, namespace: Option<&str>) -> Session {
        self.store.session(SessionOptions {
            namespace: namespace.map(str::to_owned),
            purposes: self.case.purposes.clone(),
            ..SessionOptions::default()
        })
    }

    /// Does what the case tries.
    fn try_it(&self) -> Result<(), Error> {
        let session = self.session(None);
        let (grain, address) = (self.grains.grain.clone(), blob(&self.grains.grain).address());
        if self.case.op == "put" {
            return session.put(grain).map(drop);
        }
        if self.case.op == "supersede" {
            let old = session.put(self.grains.old.clone().unwrap()).unwrap().address();
            return session.supersede(&old, grain, None).map(drop);
        }
        session.put(grain).unwrap();
        if self.case.held && !session_has_hold(&session, &address) {
            session.hold(&address, "a matter").unwrap();
        }
        if self.case.verified {
            let verified = VerificationStatus::Verified;
            session.set_verification(&address, verified, "looked at", None).unwrap();
        }
        match self.case.op.as_str() {
            "read" => {
                let read = session.get(&address).map(drop);
                assert_eq!(
                    session.exists(&address).unwrap(),
                    read.is_ok(),
                    "what is given is there"
                );
                let found = session.query(&Query::default(), &PageOptions::default()).unwrap();
                let shown = found.results.iter().any(|row| row.content_address == address);
                assert_eq!(shown, read.is_ok(), "and no more than what is given is found");
                read
            }
            "erase" => session.erase(&address, "asked for", &EraseOptions::default()).map(drop),
            "export" => {
                let file = self.dir.path().join("out.mg");
                let own = self.session(Some("case"));
                let exported = own.export(&file, &Query::default(), &ExportOptions::default());
                assert_eq!(exported.is_ok(), file.exists(), "no file of what is refused");
                exported.map(|exported| assert_eq!((exported.exported, exported.refused), (1, 0)))
            }
            other => panic!("no operation {other:?}"),
        }
    }

    /// What has to be so after what was allowed.
    fn check_done(&self) {
        let session = self.session(None);
        // What supersedes has a parent more.
        let written = session.audit(None, usize::MAX).unwrap();
        let written: Vec<_> = written.iter().filter(|e| e.operation == "supersede").collect();
        let address = match self.case.op.as_str() {
            "supersede" => *written.last().unwrap().subjects.last().unwrap(),
            _ => blob(&self.grains.grain).address(),
        };
        if self.case.op == "erase" {
            return assert_eq!(session.get(&address).map(drop).unwrap_err().code(), "ERR_ERASED");
        }
        let stored = session.get(&address).unwrap();
        assert_eq!(stored.state.needs_review, self.case.review, "{}", self.case.name);
    }

    /// What has to be so after a refusal.
    fn check_refused(&self, rule: &str, error: &Error) {
        let case = self.case;
        let rules = self.store.rules();
        let rule = rules.rules.iter().find(|known| known.id == rule).unwrap();
        let told = error.to_string();
        assert_eq!(error.code(), "ERR_POLICY", "{}: {told}", case.name);
        assert!(told.contains(rule.id) && told.contains(&case.article), "{}: {told}", case.name);
        assert_eq!((error.hint(), rule.article), (rule.fix, case.article.as_str()));
        let session = self.session(None);
        let entries = session.audit(None, usize::MAX).unwrap();
        let last = entries.iter().rfind(|entry| entry.decision == "refused").unwrap();
        assert_eq!(
            (last.operation.as_str(), last.decision.as_str()),
            (case.op.as_str(), "refused")
        );
        assert_eq!(last.rules, [rule.id], "{}", case.name);
        assert_eq!(last.why(), Some(rule.because));
        if case.op == "put" {
            let address = blob(&self.grains.grain).address();
            assert!(!session.exists(&address).unwrap(), "{}", case.name);
        }
        if case.op == "supersede" {
            let old = blob(self.grains.old.as_ref().unwrap()).address();
            assert!(session.get(&old).unwrap().state.is_current(), "{}", case.name);
        }
        let verified = self.store.verify(false).unwrap();
        assert!(verified.ok, "{}: {:?}", case.name, verified.problems);
    }
}

fn session_has_hold(session: &Session, address: &grainstore::ContentAddress) -> bool {
    session.get(address).unwrap().state.held
}

#[test]
fn each_preset_does_and_refuses_what_its_cases_say() {
    for preset in Preset::all() {
        let cases = case::of(preset.name());
        let least = if preset == Preset::default() { 12 } else { 20 };
        assert!(cases.len() >= least, "{}: {} cases", preset.name(), cases.len());
        for case in &cases {
            let world = World::new(preset, case);
            match (&case.refused, world.try_it()) {
                (None, Ok(())) => world.check_done(),
                (Some(rule), Err(error)) => world.check_refused(rule, &error),
                (None, Err(error)) => panic!("{}, {}: {error}", preset.name(), case.name),
                (Some(rule), Ok(())) => panic!("{}, {}: {rule}", preset.name(), case.name),
            }
        }
    }
}

/// The sentences of the standard hold under every preset, whichever rule says so first.
#[test]
fn what_the_standard_refuses_no_preset_allows() {
    for preset in Preset::all().filter(|preset| *preset != Preset::default()) {
        let cases = case::of(Preset::default().name());
        for case in cases.iter().filter(|case| case.refused.is_some()) {
            // A stricter preset may not let in what is to be exported.
            let world = World::new(preset, case);
            let session = world.session(None);
            if case.op == "export" && session.put(world.grains.grain.clone()).is_err() {
                continue;
            }
            if let Some(old) = &world.grains.old
                && session.put(old.clone()).is_err()
            {
                continue;
            }
            let refused = world.try_it();
            let code = refused.map_err(|error| error.code());
            assert_eq!(code, Err("ERR_POLICY"), "{}, {}", world.preset.name(), case.name);
        }
    }
}
