//! An in-memory `Memory` for the tests of this crate: encoded blobs in a list, every read a scan.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use grainstore_format::{
    ContentAddress, Encoding, EpochMs, Grain, GrainRef, GrainState, GrainType,
};

use crate::bounds::{Order, is_within};
use crate::cancel::CancelHandle;
use crate::memory::{
    AccessPlan, Candidate, HashPrefix, Hit, HostInfo, Memory, MemoryError, NamedTemplate,
    PrefixMatch, RecallStats, RecallVisitor, SessionScope, TemplateOwner, TemplateSaveOutcome,
};
use crate::predicate::Predicate;
use crate::query::Query;
use crate::search::{Score, Search};

/// Grains in insertion order, seen by one session.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) scope: SessionScope,
    grains: Mutex<Vec<Kept>>,
    /// The error that writes fail with, if set.
    pub(crate) refusal: Option<MemoryError>,
    /// The subject whose recalls fail, if set.
    pub(crate) broken_subject: Option<String>,
    /// The error they fail with in place of `ERR_BROKEN`.
    pub(crate) broken_with: Option<MemoryError>,
    pub(crate) reasons: Mutex<Vec<String>>,
    /// A callback that runs first in every recall.
    pub(crate) begins: Option<Box<Begins>>,
    /// Number of recalls and counts that ran.
    pub(crate) recalls: AtomicU64,
    /// Number of additional times a recall visits each grain.
    pub(crate) again: AtomicUsize,
    pub(crate) templates: Mutex<Vec<NamedTemplate>>,
    /// Makes every prefix ambiguous.
    pub(crate) claim_ambiguous: AtomicBool,
    /// True if its searches wait for an external service.
    pub(crate) asks_outside: bool,
}

/// A callback given the query and its cancellation handle.
pub(crate) type Begins = dyn Fn(&Query, &CancelHandle) + Send + Sync;

#[derive(Clone)]
struct Kept {
    address: ContentAddress,
    blob: Vec<u8>,
    state: GrainState,
}

impl Fake {
    /// Returns a memory for a session of alice in the namespace `work`.
    pub(crate) fn at_work() -> Self {
        Self {
            scope: SessionScope {
                namespace: Some("work".to_owned()),
                user_id: Some("alice".to_owned()),
                actor: Some("did:example:agent".to_owned()),
                agent_id: Some("agent-7".to_owned()),
            },
            ..Self::default()
        }
    }

    /// Stores a grain given as JSON; `namespace` defaults to `work`, and `created_at` to a base time plus
    /// its index in the list, in milliseconds.
    pub(crate) fn keep(&self, json: &str) -> ContentAddress {
        let mut fields = serde_json::from_str::<serde_json::Map<_, _>>(json).unwrap();
        let created_ms =
            1_000_000_000_000_u64 + u64::try_from(self.grains.lock().unwrap().len()).unwrap();
        fields.entry("namespace").or_insert("work".into());
        fields.entry("created_at").or_insert(created_ms.into());
        let grain = Grain::from_json(&serde_json::Value::from(fields).to_string()).unwrap();
        self.store(&grain)
    }

    /// Changes the state of a grain.
    pub(crate) fn mark(&self, address: ContentAddress, change: impl FnOnce(&mut GrainState)) {
        let mut grains = self.grains.lock().unwrap();
        change(&mut grains.iter_mut().find(|kept| kept.address == address).unwrap().state);
    }

    pub(crate) fn grain(&self, address: &ContentAddress) -> Grain {
        self.get(address).unwrap().unwrap().grain
    }

    fn store(&self, grain: &Grain) -> ContentAddress {
        let blob = grain.encode(Encoding::MessagePack).unwrap();
        let address = blob.address();
        let kept = Kept { address, blob: blob.into_bytes(), state: GrainState::default() };
        self.grains.lock().unwrap().push(kept);
        address
    }

    fn sees(&self, kept: &Kept) -> bool {
        let grain = GrainRef::new(&kept.blob).unwrap();
        self.scope.namespace.as_ref().is_none_or(|own| is_within(grain.partition(), own))
    }

    fn visible(&self) -> Vec<Kept> {
        self.grains.lock().unwrap().iter().filter(|kept| self.sees(kept)).cloned().collect()
    }
}

impl Memory for Fake {
    fn scope(&self) -> &SessionScope {
        &self.scope
    }

    fn recall(
        &self,
        query: &Query,
        cancel: &CancelHandle,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<RecallStats, MemoryError> {
        self.recalls.fetch_add(1, Ordering::Relaxed);
        if let Some(begins) = &self.begins {
            begins(query, cancel);
        }
        if self.broken_subject.is_some() && query.subject_eq() == self.broken_subject.as_deref() {
            let broken = || MemoryError::new("ERR_BROKEN", "the subject is broken", "");
            return Err(self.broken_with.clone().unwrap_or_else(broken));
        }
        let mut kept = self.visible();
        kept.sort_by_cached_key(|kept| {
            let grain = GrainRef::new(&kept.blob).unwrap();
            let rank = match (query.search(), query.order()) {
                // Shares are not negative, so their bit patterns sort in the same order.
                (Some(_), _) => -i128::from(scored(query, &grain).value.to_bits()),
                (None, Order::Newest) => -i128::from(grain.time().get()),
                (None, Order::Oldest) => i128::from(grain.time().get()),
            };
            (rank, kept.address)
        });
        let (mut recalled, mut matched) = (RecallStats::default(), 0);
        let often = std::iter::repeat_n(&kept, self.again.load(Ordering::Relaxed) + 1).flatten();
        for Kept { address, blob, state } in often {
            cancel.check()?;
            recalled.scanned += 1;
            let grain = GrainRef::new(blob).unwrap();
            if !query.matches(address, &grain, state, EpochMs::new(i64::MAX)) {
                continue;
            }
            let score = scored(query, &grain);
            let enough = query.floor().is_none_or(|floor| floor.admits(score.value));
            if score.value == 0.0 || !enough {
                continue;
            }
            matched += 1;
            let candidate = Candidate { address: *address, grain: &grain, state, score };
            if visit(candidate) == ControlFlow::Break(()) {
                return Ok(recalled);
            }
        }
        Ok(RecallStats { total: Some(matched), ..recalled })
    }

    fn matched_fields(
        &self,
        query: &Query,
        hits: &[Hit],
        _: &CancelHandle,
    ) -> Result<Vec<Vec<String>>, MemoryError> {
        let words = words_of(query);
        let matches = |hit: &Hit, name: &str| {
            hit.grain.text(name).is_some_and(|text| share(&words, text) > 0.0)
        };
        let names = |hit| SEARCHED.iter().filter(move |name| matches(hit, name));
        Ok(hits.iter().map(|hit| names(hit).map(|name| (*name).to_owned()).collect()).collect())
    }

    fn locate(&self, prefix: &HashPrefix) -> Result<PrefixMatch, MemoryError> {
        if self.claim_ambiguous.load(Ordering::Relaxed) {
            return Ok(PrefixMatch::Several);
        }
        let starts = |kept: &&Kept| kept.address.to_string().starts_with(prefix.digits());
        let found: Vec<_> = self.visible().iter().filter(starts).map(|kept| kept.address).collect();
        Ok(match found.as_slice() {
            [] if prefix.full_address().is_some()
                && self.grains.lock().unwrap().iter().any(|k| starts(&k)) =>
            {
                PrefixMatch::Elsewhere
            }
            [] => PrefixMatch::Nothing,
            [one] => PrefixMatch::One(*one),
            _ => PrefixMatch::Several,
        })
    }

    fn exists(&self, address: &ContentAddress) -> Result<bool, MemoryError> {
        Ok(self.get(address)?.is_some())
    }

    fn get(&self, address: &ContentAddress) -> Result<Option<Hit>, MemoryError> {
        let found = self.visible().into_iter().find(|kept| kept.address == *address);
        Ok(found.map(|kept| Hit {
            address: kept.address,
            grain: Grain::decode(&kept.blob).unwrap(),
            state: kept.state,
            score: Score::STRUCTURAL,
        }))
    }

    fn history(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Hit>, MemoryError> {
        let mut newest = *address;
        while let Some(next) = self.get(&newest)?.and_then(|hit| hit.state.superseded_by) {
            newest = next;
        }
        let mut versions: Vec<Hit> = self.get(&newest)?.into_iter().collect();
        while let Some(last) = versions.last() {
            let before = last.address;
            let older = self.visible().into_iter().find(|k| k.state.superseded_by == Some(before));
            match older {
                Some(older) => versions.extend(self.get(&older.address)?),
                None => break,
            }
        }
        versions.truncate(limit);
        Ok(versions)
    }

    fn thread(
        &self,
        message: &ContentAddress,
        limit: usize,
        cancel: &CancelHandle,
    ) -> Result<Vec<ContentAddress>, MemoryError> {
        let text = |kept: &Kept, name: &str| {
            let grain = GrainRef::new(&kept.blob).unwrap();
            grain.text(name).map(str::to_owned)
        };
        let visible = self.visible();
        let start = visible.iter().find(|kept| kept.address == *message);
        let is_message =
            |kept: &&Kept| GrainRef::new(&kept.blob).unwrap().grain_type() == GrainType::Event;
        let Some(start) = start.filter(is_message) else { return Ok(Vec::new()) };
        if let Some(id) = text(start, "session_id") {
            let here = visible.iter().filter(|kept| text(kept, "session_id").as_ref() == Some(&id));
            return Ok(here.map(|kept| kept.address).take(limit).collect());
        }
        let link = |kept: &Kept| {
            let grain = GrainRef::new(&kept.blob).unwrap();
            let parent = grain.text("parent_message_id").and_then(|parent| parent.parse().ok());
            (kept.address, parent)
        };
        let links: BTreeMap<ContentAddress, Option<ContentAddress>> =
            self.visible().iter().map(link).collect();
        let mut members = BTreeSet::new();
        members.extend(links.contains_key(message).then_some(*message));
        let mut before = 0;
        while members.len() > before {
            cancel.check()?;
            before = members.len();
            for (child, parent) in &links {
                let Some(parent) = parent.filter(|parent| links.contains_key(parent)) else {
                    continue;
                };
                if members.contains(child) || members.contains(&parent) {
                    members.extend([*child, parent]);
                }
            }
        }
        Ok(members.into_iter().take(limit).collect())
    }

    fn uses_external_service(&self, query: &Query) -> bool {
        self.asks_outside && query.search().is_some()
    }

    fn explain(&self, query: &Query, _: &CancelHandle) -> Result<AccessPlan, MemoryError> {
        let lookups = query.predicates().iter().filter_map(Predicate::lookup);
        let all = u64::try_from(self.grains.lock().unwrap().len()).unwrap();
        Ok(AccessPlan {
            index: "time".to_owned(),
            lookups: lookups.map(|lookup| format!("{lookup:?}")).collect(),
            search: query.search().iter().map(|search| format!("{:?}", search.asks())).collect(),
            estimated: all,
            scans_at_most: Some(all),
        })
    }

    fn describe(&self) -> Result<HostInfo, MemoryError> {
        Ok(HostInfo {
            name: "fake".to_owned(),
            version: "0".to_owned(),
            cal_conformance: "core",
            exceptions: vec!["no text search".to_owned()],
            namespaces: vec!["work".to_owned()],
            ..HostInfo::default()
        })
    }

    fn templates(&self) -> Result<Vec<NamedTemplate>, MemoryError> {
        Ok(self.templates.lock().unwrap().clone())
    }

    fn save_template(&self, template: &NamedTemplate) -> Result<TemplateSaveOutcome, MemoryError> {
        let mut kept = self.templates.lock().unwrap();
        let of_session = template.keeper == TemplateOwner::Session;
        let takes = |of: &NamedTemplate| of_session || of.keeper == template.keeper;
        if kept.iter().any(|of| of.name == template.name && takes(of)) {
            return Ok(TemplateSaveOutcome::Taken);
        }
        if kept.iter().filter(|of| of.keeper == template.keeper).count()
            == NamedTemplate::MAX_PER_OWNER
        {
            return Ok(TemplateSaveOutcome::Full);
        }
        kept.retain(|of| of.name != template.name);
        kept.push(template.clone());
        Ok(TemplateSaveOutcome::Kept)
    }

    fn add(&self, grain: Grain, reason: &str) -> Result<ContentAddress, MemoryError> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        self.reasons.lock().unwrap().push(reason.to_owned());
        Ok(self.store(&grain))
    }

    fn supersede(
        &self,
        old: &ContentAddress,
        grain: Grain,
        reason: &str,
    ) -> Result<ContentAddress, MemoryError> {
        let until = grain.created_at();
        let new = self.add(grain, reason)?;
        self.mark(*old, |state| {
            state.superseded_by = Some(new);
            state.system_valid_to = Some(EpochMs::new(until.get()));
        });
        Ok(new)
    }
}

/// The fields this memory searches.
const SEARCHED: [&str; 4] = ["subject", "relation", "object", "content"];

/// Returns the words a query searches for.
fn words_of(query: &Query) -> Vec<String> {
    let texts = query.search().into_iter().flat_map(Search::asks);
    let lower = texts.map(|ask| ask.text.to_lowercase()).collect::<Vec<_>>().join(" ");
    lower.split_whitespace().map(str::to_owned).collect()
}

/// Returns the share of the words that the text contains.
fn share(words: &[String], text: &str) -> f64 {
    let text = text.to_lowercase();
    let found = words.iter().filter(|word| text.split_whitespace().any(|own| own == *word));
    found.count() as f64 / words.len() as f64
}

/// Returns the share of the words that the searched fields contain.
fn scored(query: &Query, grain: &GrainRef<'_>) -> Score {
    let Some(search) = query.search() else { return Score::STRUCTURAL };
    let fields = match search.asks().iter().find_map(|ask| ask.field) {
        Some(field) => vec![field],
        None => SEARCHED.to_vec(),
    };
    let texts: Vec<&str> = fields.iter().filter_map(|name| grain.text(name)).collect();
    let value = share(&words_of(query), &texts.join(" "));
    Score { value, text: Some(value), vector: None, graph: None }
}
