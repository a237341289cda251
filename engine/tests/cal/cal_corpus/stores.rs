//! Stores as cases name them, put together through sessions.

use std::sync::Arc;

use grainstore::format::parse_datetime;
use grainstore::{
    EpochMs, Grain, ManualClock, MasterKey, OpenOptions, Session, SessionOptions, Store,
    VerificationStatus,
};
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use tempfile::TempDir;

use crate::cal_corpus::case::{As, StoreSpec};
use crate::cal_corpus::labels::Labels;

/// A store and the names of its grains.
pub(crate) struct Built {
    pub(crate) store: Store,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) labels: Labels,
    pub(crate) now: EpochMs,
    _dir: TempDir,
}

/// One call on the way to a store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    put: Option<String>,
    supersede: Option<String>,
    by: Option<String>,
    contradict: Option<String>,
    verify: Option<String>,
    status: Option<String>,
    erase: Option<String>,
    grain: Option<Json>,
    /// When, in ISO 8601; the `created_at` of the grain without it.
    at: Option<String>,
    /// How many grains, numbered from 1 after their label; `#` in their texts is the number.
    times: Option<usize>,
}

impl Built {
    pub(crate) fn of(spec: &StoreSpec) -> Self {
        Self::opened(spec, OpenOptions::new())
    }

    /// The same in an encrypted store, all of it folded into the indexes.
    pub(crate) fn encrypted(spec: &StoreSpec) -> Self {
        let built = Self::opened(spec, OpenOptions::new().key(MasterKey::new([7; 32])));
        built.store.flush().unwrap();
        built
    }

    fn opened(spec: &StoreSpec, options: OpenOptions) -> Self {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::following());
        let now = instant(&spec.now);
        clock.set(now);
        let options = options.create(true).clock(Arc::<ManualClock>::clone(&clock));
        let store = Store::open(dir.path().join("s.grains"), &options).unwrap();
        let mut built = Self { store, clock, labels: Labels::default(), now, _dir: dir };
        for step in &spec.steps {
            let call = serde_json::from_value(step.clone());
            built.call(&call.unwrap_or_else(|error| panic!("{step}: {error}")), &spec.common);
        }
        built.clock.set(now);
        built
    }

    /// A session as somebody.
    pub(crate) fn session(&self, who: &As) -> Session {
        self.store.session(SessionOptions {
            namespace: who.namespace.clone(),
            user_id: who.user.clone(),
            actor: who.actor.clone(),
            agent_id: who.agent.clone(),
            purposes: who.purposes.clone(),
            ..SessionOptions::default()
        })
    }

    fn call(&mut self, call: &Call, common: &Map<String, Json>) {
        let operator = self.session(&As::default());
        if let Some(at) = &call.at {
            self.clock.set(instant(at));
        }
        match call {
            Call { put: Some(label), times: Some(times), grain: Some(grain), .. } => {
                let grains =
                    (1..=*times).map(|number| self.grain(&numbered(grain, number), common));
                let put = operator.put_batch(grains.collect::<Vec<_>>()).unwrap();
                for (at, put) in put.iter().enumerate() {
                    self.labels.name(&format!("{label}{}", at + 1), put.address());
                }
            }
            Call { put: Some(label), grain: Some(grain), at, .. } => {
                let grain = self.grain(grain, common);
                if at.is_none() {
                    self.clock.set(grain.created_at());
                }
                let address = operator.put(grain).unwrap().address();
                self.labels.name(label, address);
            }
            Call { supersede: Some(old), by: Some(label), grain: Some(grain), at, .. } => {
                let grain = self.grain(grain, common);
                if at.is_none() {
                    self.clock.set(grain.created_at());
                }
                let old = self.labels.address(old);
                let address = operator.supersede(&old, grain, None).unwrap();
                self.labels.name(label, address);
            }
            Call { contradict: Some(label), .. } => {
                operator.contradict(&self.labels.address(label), "for a case", None).unwrap();
            }
            Call { verify: Some(label), status: Some(status), .. } => {
                let status = VerificationStatus::from_name(status).unwrap();
                let address = self.labels.address(label);
                operator.set_verification(&address, status, "for a case", None).unwrap();
            }
            Call { erase: Some(label), .. } => {
                let address = self.labels.address(label);
                operator.erase(&address, "for a case", &Default::default()).unwrap();
            }
            other => panic!("no such call: {other:?}"),
        }
    }

    fn grain(&self, grain: &Json, common: &Map<String, Json>) -> Grain {
        let mut fields = common.clone();
        let own = self.labels.spell_all(grain);
        fields.extend(own.as_object().unwrap().clone());
        let json = Json::from(fields).to_string();
        Grain::from_json(&json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }
}

/// An instant in ISO 8601.
pub(crate) fn instant(text: &str) -> EpochMs {
    parse_datetime(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The grain with its number for `#`, and as many milliseconds later.
fn numbered(grain: &Json, number: usize) -> Json {
    let text = grain.to_string().replace('#', &number.to_string());
    let mut json: Json = serde_json::from_str(&text).unwrap();
    if let Some(at) = json["created_at"].as_str().map(instant) {
        json["created_at"] = Json::from(at.get() + i64::try_from(number).unwrap());
    }
    json
}
