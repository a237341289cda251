//! Stores of random steps, and a naive reading of what each session sees of them.

use grainstore::embed::{Embedding, Metric};
use grainstore::{ContentAddress, EraseOptions, Offer};
use serde_json::{Value, json};

use crate::isolation::kit::{NOW, Place, address, code, grain, with};
use crate::isolation::steps::{AGENT, COMMON, LATER, SPACES, Step, USERS, secret, window};

/// What a grain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Belief,
    Event,
    State,
    Skill,
    Goal,
    Consent,
}

/// A grain that was written.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) address: ContentAddress,
    /// A word that stands in it and nowhere else.
    pub(crate) secret: String,
    pub(crate) kind: Kind,
    place: (usize, usize),
    /// The consent it rests on, and which version of it.
    on: Option<(usize, usize)>,
    /// Whether all of its user was erased.
    pub(crate) is_erased: bool,
    /// Addresses that stand in it.
    pub(crate) names: Vec<ContentAddress>,
    pub(crate) superseded_by: Option<ContentAddress>,
    pub(crate) is_current: bool,
    pub(crate) has_vector: bool,
}

/// The versions of a consent: from and to when the last holds, and whether that takes it back.
#[derive(Debug)]
struct Consent {
    versions: Vec<usize>,
    window: (Option<i64>, Option<i64>),
    withdrawn: bool,
}

/// A store, and what is known of it.
pub(crate) struct World {
    pub(crate) place: Place,
    pub(crate) grains: Vec<Written>,
    consents: Vec<Consent>,
    now: i64,
}

/// Who asks: a namespace and a user, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub(crate) space: Option<&'static str>,
    pub(crate) user: Option<&'static str>,
}

impl World {
    pub(crate) fn of(place: Place, steps: &[Step]) -> Self {
        let mut world = Self { place, grains: Vec::new(), consents: Vec::new(), now: NOW };
        for step in steps {
            world.take(step);
        }
        world
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self) {
        self.now = LATER;
        self.place.at(LATER);
    }

    /// Erases all of a user, and goes on once it is scrubbed or while it is.
    pub(crate) fn erase(&mut self, user: usize, at_once: bool) {
        let Some(name) = USERS[user] else { return };
        let erased =
            self.place.all().erase_user(name, "asked to", &EraseOptions::new().now(at_once));
        let is_theirs = |grain: &Written| grain.place.1 == user;
        assert_eq!(code(erased), "OK", "{name}");
        for grain in self.grains.iter_mut().filter(|grain| is_theirs(grain)) {
            grain.is_erased = true;
        }
    }

    fn take(&mut self, step: &Step) {
        let all = self.place.all();
        match *step {
            Step::Put { kind, place, on, link } => self.put(kind, place, on, link),
            Step::Grant { place, window: which } => {
                let fields = self.consent(place, which, None);
                assert_eq!(code(all.put(grain(&fields))), "OK");
                let versions = vec![self.note(&fields, Kind::Consent, place, vec![])];
                self.consents.push(Consent { versions, window: window(which), withdrawn: false });
            }
            Step::Withdraw { place, which } => {
                let Some(at) = self.pick(which) else { return };
                let grant = self.grains[self.consents[at].versions[0]].address;
                let fields = self.consent(place, 0, Some(grant));
                assert_eq!(code(all.put(grain(&fields))), "OK");
                let new = self.note(&fields, Kind::Consent, place, vec![grant]);
                if !self.consents[at].withdrawn {
                    self.end(at, new);
                    self.consents[at].withdrawn = true;
                }
            }
            Step::Renew { place, which, window: times } => {
                let Some(at) = self.pick(which) else { return };
                let last = *self.consents[at].versions.last().unwrap();
                let old = self.grains[last].address;
                let parents = json!({ "derived_from": [old.to_string()],
                    "supersession_justification": self.secret() });
                let fields = with(self.consent(place, times, None), &parents);
                let renewed = all.supersede(&old, grain(&fields), None);
                assert_eq!(code(renewed), "OK");
                let new = self.note(&fields, Kind::Consent, place, vec![old]);
                self.end(at, new);
                let consent = &mut self.consents[at];
                (consent.withdrawn, consent.window) = (false, window(times));
            }
            Step::Supersede { place, which } => self.supersede(place, which),
            Step::Contradict { which } => {
                let which = which % self.grains.len().max(1);
                let Some(old) = self.grains.get(which).filter(|old| old.is_current) else { return };
                if old.kind == Kind::Consent {
                    return;
                }
                let holds = self.holds(old);
                let refused = code(all.contradict(&old.address, &old.secret, None));
                assert_eq!(refused, if holds { "OK" } else { "ERR_WITHDRAWN" });
                self.grains[which].is_current = !holds;
            }
        }
    }

    fn put(&mut self, kind: u8, place: (usize, usize), on: Option<usize>, link: Option<usize>) {
        let linked = link.and_then(|link| self.grains.get(link % self.grains.len().max(1)));
        let link = linked.map(|linked| linked.address);
        let (kind, more) = self.told(kind, link);
        let place = if kind == Kind::Skill { (4, place.1) } else { place };
        let on = on.and_then(|which| self.pick(which));
        let version = on.map_or(0, |at| self.grains.len() % self.consents[at].versions.len());
        let mut fields = with(self.common(place), &more);
        let mut names: Vec<_> = link.into_iter().collect();
        if let Some(at) = on {
            let basis = self.grains[self.consents[at].versions[version]].address;
            fields["processing_basis"] = json!(basis.to_string());
            names.push(basis);
        }
        let values = vec![1.0, f32::from(u8::try_from(self.grains.len()).unwrap())];
        let vector = Embedding::new("eyes", Metric::L2, values).unwrap();
        let offer = Offer::Grain(grain(&fields)).with_vectors(vec![vector]);
        let holds = on.is_none_or(|at| self.consents[at].holds(self.now));
        let refused = code(self.place.all().put(offer));
        assert_eq!(refused, if holds { "OK" } else { "ERR_WITHDRAWN" });
        if holds {
            let at = self.note(&fields, kind, place, names);
            self.grains[at].on = on.map(|consent| (consent, version));
            self.grains[at].has_vector = true;
        }
    }

    fn supersede(&mut self, place: (usize, usize), which: usize) {
        let which = which % self.grains.len().max(1);
        let Some(old) = self.grains.get(which) else { return };
        if old.kind != Kind::Belief || !old.is_current {
            return;
        }
        let (old, holds) = (old.address, self.holds(old));
        let place = (if place.0 == 4 { 0 } else { place.0 }, place.1);
        let (_, more) = self.told(0, None);
        let justified = json!({ "derived_from": [old.to_string()],
            "supersession_justification": self.secret() });
        let fields = with(with(self.common(place), &more), &justified);
        let refused = code(self.place.all().supersede(&old, grain(&fields), None));
        assert_eq!(refused, if holds { "OK" } else { "ERR_WITHDRAWN" });
        if holds {
            let new = self.note(&fields, Kind::Belief, place, vec![old]);
            let by = self.grains[new].address;
            (self.grains[which].superseded_by, self.grains[which].is_current) = (Some(by), false);
        }
    }

    fn secret(&self) -> String {
        secret(self.grains.len())
    }

    /// The fields of every grain: the secret in a tag and in a field nobody knows.
    fn common(&self, (space, user): (usize, usize)) -> Value {
        let secret = self.secret();
        let at = NOW - 10_000 + i64::try_from(self.grains.len()).unwrap();
        let mut fields = json!({ "structural_tags": [secret], "x_note": secret, "created_at": at });
        for (name, value) in [("namespace", SPACES[space]), ("user_id", USERS[user])] {
            if let Some(value) = value {
                fields[name] = json!(value);
            }
        }
        fields
    }

    /// What a grain of a kind says.
    fn told(&self, kind: u8, link: Option<ContentAddress>) -> (Kind, Value) {
        let secret = self.secret();
        let words = format!("{secret} {COMMON}");
        let link = link.map(|link| link.to_string());
        let related =
            link.iter().map(|hash| json!({ "hash": hash, "relation_type": "elaborates" }));
        let related = json!({ "related_to": related.collect::<Vec<_>>() });
        let belief = |subject: &str, relation: &str, object: &str| {
            let fields = json!({ "type": "belief", "subject": subject, "relation": relation,
                "object": object, "confidence": 0.5 });
            with(fields, &related)
        };
        match kind {
            0 => (Kind::Belief, belief("hub", "knows", &words)),
            1 => {
                let mut event = json!({ "type": "event", "content": words, "role": "user",
                    "session_id": "talk", "subject": secret });
                if let Some(link) = link {
                    event["parent_message_id"] = json!(link);
                    event["derived_from"] = json!([link]);
                }
                (Kind::Event, event)
            }
            2 => {
                let context = json!({ "messages_tail": link.unwrap_or_default(), "x": secret });
                (Kind::State, json!({ "type": "state", "context": context, "plan": [words] }))
            }
            3 => (Kind::Skill, belief(AGENT, "mg:has_capability", &words)),
            _ => {
                let goal = json!({ "type": "goal", "description": words, "goal_state": "active",
                    "subject": secret, "relation": "mg:delegates_to", "object": "hub",
                    "session_id": "talk" });
                (Kind::Goal, with(goal, &related))
            }
        }
    }

    /// The fields of a consent; a withdrawal where it names what it takes back.
    fn consent(&self, place: (usize, usize), times: u8, prior: Option<ContentAddress>) -> Value {
        let at = self.common(place);
        let consent =
            crate::isolation::kit::consent(at["created_at"].as_i64().unwrap(), prior.as_ref());
        let (from, to) = if prior.is_some() { (None, None) } else { window(times) };
        let mut fields = with(consent, &at);
        for (name, time) in [("valid_from", from), ("valid_to", to)] {
            if let Some(time) = time {
                fields[name] = json!(time);
            }
        }
        fields
    }

    fn note(
        &mut self,
        fields: &Value,
        kind: Kind,
        place: (usize, usize),
        names: Vec<ContentAddress>,
    ) -> usize {
        let (secret, address) = (self.secret(), address(fields));
        self.grains.push(Written {
            address,
            secret,
            kind,
            place,
            on: None,
            is_erased: false,
            names,
            superseded_by: None,
            is_current: true,
            has_vector: false,
        });
        self.grains.len() - 1
    }

    /// Lets a new version end the last one of a consent.
    fn end(&mut self, consent: usize, by: usize) {
        let address = self.grains[by].address;
        let last = *self.consents[consent].versions.last().unwrap();
        let old = &mut self.grains[last];
        (old.superseded_by, old.is_current) = (Some(address), false);
        self.consents[consent].versions.push(by);
    }

    fn pick(&self, which: usize) -> Option<usize> {
        (!self.consents.is_empty()).then(|| which % self.consents.len())
    }

    /// Whether a grain lies within a session.
    pub(crate) fn reaches(&self, who: Who, grain: &Written) -> bool {
        let own = SPACES[grain.place.0].unwrap_or("shared");
        let in_space = who.space.is_none_or(|space| {
            let space = if space.is_empty() { "shared" } else { space };
            own == space || own.starts_with(&format!("{space}:"))
        });
        let whose = USERS[grain.place.1].filter(|user| !user.is_empty());
        in_space && whose.is_none_or(|whose| who.user.is_none_or(|user| user == whose))
    }

    /// Whether the consent a grain rests on holds now.
    pub(crate) fn holds(&self, grain: &Written) -> bool {
        let Some((at, version)) = grain.on else { return true };
        let consent = &self.consents[at];
        // Of what was erased nobody can show that there was consent.
        let is_there = |version: &usize| !self.grains[*version].is_erased;
        consent.holds(self.now) && consent.versions[version..].iter().all(is_there)
    }

    /// Whether a session is shown a grain.
    pub(crate) fn sees(&self, who: Who, grain: &Written) -> bool {
        !grain.is_erased && self.reaches(who, grain) && self.holds(grain)
    }
}

impl Consent {
    fn holds(&self, now: i64) -> bool {
        let (from, to) = self.window;
        !self.withdrawn && from.is_none_or(|from| now >= from) && to.is_none_or(|to| now <= to)
    }
}
