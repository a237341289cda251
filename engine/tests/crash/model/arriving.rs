//! Imports: what a file brings comes, what it claims of a grain that is here is judged like the call that would
//! make it so, and all of it comes or nothing (ruling 29, 37).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::engine::cal::{Predicate, Query, Visibility};
use super::engine::format::{ContentAddress, Encoding, EpochMs, GrainState, GrainType};
use super::engine::{ExportOptions, ImportOptions, Session, VerificationStatus as Status};
use super::files::{Stated, container, state, superseded};
use super::kit::agree::same;
use super::kit::calls::{CREATED_MS, Caller};
use super::kit::marked;
use super::kit::model::{ACCESS, Broken, Entry, Known, Model, allow};
use super::kit::offers::{Answer, Call, Offered};
use super::kit::rules::{self, Lock};
use super::tally::Tally;

/// After all that is done here.
const LATE_MS: i64 = 4_000_000_000_000;

/// A file, as it was put together.
#[derive(Debug, Default)]
pub(crate) struct Coming {
    entries: Vec<Offered>,
    stated: Vec<Stated>,
}

/// What the report of an import must say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    added: u64,
    duplicate: u64,
    refused: u64,
    conflicts: u64,
}

/// What becomes of a claim that a grain superseded another.
#[derive(Debug, PartialEq, Eq)]
enum Claimed {
    /// It was so already.
    Same,
    Applied {
        asks_review: bool,
    },
    Refused {
        is_protected: bool,
    },
}

impl Coming {
    pub(crate) fn random(
        caller: &mut Caller,
        model: &Model,
        namespace: Option<&'static str>,
    ) -> Self {
        let mut coming = Self::default();
        match caller.random.below(10) {
            0..4 => {
                let count = 1 + caller.random.below(4);
                (0..count).for_each(|_| coming.bring(caller.offered(model, namespace)));
            }
            4..8 => coming.claim(caller, model, namespace),
            _ => coming.say(caller, model),
        }
        if caller.random.percent(40)
            && let Some(known) = caller.known(model, 50)
        {
            let grain = known.grain.as_ref().clone();
            let encoding = match known.bytes.as_ref() == default_bytes(&grain) {
                true => Encoding::default(),
                false => Encoding::Cbor,
            };
            coming.bring(Offered { grain, encoding, finished: true, signed: None });
        }
        coming
    }

    /// Adds a grain, each once. A manifest stands in a file of the default encoding.
    fn bring(&mut self, offered: Offered) {
        let offered = Offered { finished: true, signed: None, ..offered };
        let address = offered.blob().address();
        let is_here = self.entries.iter().any(|entry| entry.blob().address() == address);
        let is_cbor = offered.encoding == Encoding::Cbor && !self.stated.is_empty();
        if !is_here && !is_cbor {
            self.entries.push(offered);
        }
    }

    /// A new version, and mostly the claim that it superseded the one before.
    fn claim(&mut self, caller: &mut Caller, model: &Model, namespace: Option<&'static str>) {
        let Call::Supersede { old, new, why } = caller.supersession(model, namespace) else {
            return;
        };
        let new = new.successor(&old, why.as_deref());
        let new = Offered { encoding: Encoding::default(), finished: true, ..new };
        let at = caller.random.pick(&[CREATED_MS + 50_000, CREATED_MS + 60_000, LATE_MS]);
        if caller.random.percent(40) {
            return self.bring(new);
        }
        self.stated.push(superseded(old, new.blob().address(), at));
        self.bring(new);
        // Sometimes what is to have superseded it is here already.
        if caller.random.percent(35)
            && let Some((old, by)) = parent_and_child(caller, model)
        {
            self.entries.clear();
            self.stated = vec![superseded(old, by, at)];
        }
    }

    /// What a file says of a grain that is here.
    fn say(&mut self, caller: &mut Caller, model: &Model) {
        let Some(known) = caller.known(model, 70) else { return };
        let address = known.address;
        let of = |status| GrainState { verification_status: status, ..GrainState::default() };
        let said = match caller.random.below(6) {
            0 => GrainState { contradicted: true, ..GrainState::default() },
            1 => GrainState { held: true, ..GrainState::default() },
            2 => of(Status::Verified),
            3 => of(Status::Retracted),
            _ => of(Status::Contested),
        };
        self.stated.push(state(address, said));
    }

    /// What it has, for the message of a failure.
    pub(crate) fn told(&self) -> String {
        let entries = self.entries.iter();
        let entries: Vec<_> = entries
            .map(|entry| (entry.blob().address(), format!("{:?}", entry.grain.fields())))
            .collect();
        format!("{entries:#?} {:?}", self.stated)
    }

    fn bytes(&self) -> Vec<u8> {
        let entries: Vec<_> =
            self.entries.iter().map(|entry| entry.blob().bytes().to_vec()).collect();
        container(&entries, &self.stated)
    }

    /// Imports the file, and judges what came of it.
    pub(crate) fn import(
        &self,
        (session, dir): (&Session, &Path),
        model: &mut Model,
        (namespace, now): (Option<&str>, EpochMs),
        tally: &mut Tally,
    ) -> Result<(), String> {
        let file = dir.join("in.mg");
        let bytes = self.bytes();
        std::fs::write(&file, &bytes).map_err(|error| error.to_string())?;
        let outcome = session.import([file], &ImportOptions::default());
        let reaches = |entry: &Offered| rules::reaches(namespace, rules::partition(&entry.grain));
        let broken = match self.entries.iter().all(reaches) {
            true => Broken::new(),
            false => Broken::from([ACCESS]),
        };
        let code = outcome.as_ref().err().map(super::engine::Error::code);
        let answer = code.map_or(Answer::Marked, Answer::Refused);
        allow(&broken, &answer)?;
        tally.note("import", code.is_none());
        let checksum: [u8; 32] = bytes[bytes.len() - 32..].try_into().expect("a checksum");
        let subjects = vec![ContentAddress::from_bytes(checksum)];
        let (subjects, decision) =
            if code.is_none() { (subjects, "done") } else { (Vec::new(), "refused") };
        model.audit.push(Entry { time: now, operation: "import", subjects, decision });
        let Ok(imported) = outcome else { return Ok(()) };
        let found = Report {
            added: imported.added,
            duplicate: imported.duplicate,
            refused: imported.refused,
            conflicts: imported.conflict_count,
        };
        let expected = self.settle(model, namespace, now, tally);
        same(&format!("report ({:?})", imported.conflicts), &found, &expected)
    }

    /// What comes of it, in the order of the file.
    fn settle(
        &self,
        model: &mut Model,
        namespace: Option<&str>,
        now: EpochMs,
        tally: &mut Tally,
    ) -> Report {
        let mut report = Report::default();
        let claim = self.claimed(model, namespace);
        let mut order: Vec<&Offered> = self.entries.iter().collect();
        order.sort_by_key(|entry| (entry.grain.created_at(), entry.blob().address()));
        let (successors, others): (Vec<_>, Vec<_>) = order
            .into_iter()
            .partition(|entry| claim.is_some_and(|(_, by, _)| by == entry.blob().address()));
        let mut added = Vec::new();
        for entry in others {
            let address = entry.blob().address();
            if model.find(&address).is_some() {
                report.duplicate += 1;
                continue;
            }
            let before = added.len();
            let disguised = disguised(model, entry, None);
            match disguised.iter().find(|parent| model.is_protected(parent)) {
                Some(parent) => {
                    report.refused += 1;
                    report.conflicts += 1;
                    model.note_supersession(now, parent, address, "refused");
                }
                None => added.push((entry, !disguised.is_empty())),
            }
            if !disguised.is_empty() {
                tally.note("next version that nothing claims", added.len() > before);
            }
        }
        for (entry, needs_review) in added {
            report.added += 1;
            put_in(model, entry, needs_review);
        }
        if let Some(claim) = claim {
            let new = successors.first().copied();
            settle_claim(model, (namespace, now), claim, new, &mut report, tally);
        }
        if let Some((address, said)) = self.marked(model, namespace) {
            settle_marks(model, now, address, &said, &mut report, tally);
        }
        report
    }

    /// The claim of a supersession of a grain that is here and seen.
    fn claimed(
        &self,
        model: &Model,
        namespace: Option<&str>,
    ) -> Option<(ContentAddress, ContentAddress, EpochMs)> {
        let (old, stated) = self.stated.first()?;
        let (by, at) = (stated.state.superseded_by?, stated.state.system_valid_to?);
        reached(model, old, namespace).then_some((*old, by, at))
    }

    /// What is said beside of a grain that is here and seen.
    fn marked(
        &self,
        model: &Model,
        namespace: Option<&str>,
    ) -> Option<(ContentAddress, GrainState)> {
        let (address, stated) = self.stated.first()?;
        let says = stated.state.superseded_by.is_none() && reached(model, address, namespace);
        says.then_some((*address, stated.state))
    }
}

/// A file the store has written changes nothing when it comes back.
pub(crate) fn return_of_an_export(
    (session, dir): (&Session, &Path),
    model: &mut Model,
    (namespace, now): (Option<&str>, EpochMs),
    subject: &str,
    tally: &mut Tally,
) -> Result<(), String> {
    let file = dir.join("out.mg");
    let all = Visibility { superseded: true, contradicted: true, retracted: true };
    let about = Predicate::text_is("subject", subject).map_err(|error| error.to_string())?;
    let query = Query::default().when(about).seeing(all);
    let exported = session.export(&file, &query, &ExportOptions::default());
    let exported = exported.map_err(|error| error.to_string())?;
    let seen = model.grains.iter().filter(|known| {
        known.grain.text("subject") == Some(subject)
            && rules::reaches(namespace, rules::partition(&known.grain))
    });
    let seen = seen.count() as u64;
    same("exported", &exported.exported, &seen)?;
    if seen == 0 {
        return Ok(());
    }
    let bytes = std::fs::read(&file).map_err(|error| error.to_string())?;
    let imported = session.import([&file], &ImportOptions::default());
    let imported = imported.map_err(|error| error.to_string())?;
    let found = (imported.added, imported.duplicate, imported.refused, imported.conflict_count);
    same("what came back", &found, &(0, seen, 0, 0))?;
    let checksum: [u8; 32] = bytes[bytes.len() - 32..].try_into().expect("a checksum");
    let subjects = vec![ContentAddress::from_bytes(checksum)];
    model.audit.push(Entry { time: now, operation: "import", subjects, decision: "done" });
    tally.note("return of an export", true);
    Ok(())
}

/// A grain of the last few, and one of its kind that derives from it.
fn parent_and_child(
    caller: &mut Caller,
    model: &Model,
) -> Option<(ContentAddress, ContentAddress)> {
    let from = model.grains.len().saturating_sub(200 + caller.random.below(200));
    model.grains[from..].iter().find_map(|known| {
        let same = |parent: &&Known| {
            parent.superseded_by.is_none() && parent.grain.grain_type() == known.grain.grain_type()
        };
        let parents = rules::parents(&known.grain);
        let parent = parents.iter().filter_map(|parent| model.find(parent)).find(same)?;
        Some((parent.address, known.address))
    })
}

fn default_bytes(grain: &super::engine::Grain) -> Vec<u8> {
    grain.encode(Encoding::default()).expect("a grain encodes").into_bytes()
}

fn reached(model: &Model, address: &ContentAddress, namespace: Option<&str>) -> bool {
    let reaches = |known: &Known| rules::reaches(namespace, rules::partition(&known.grain));
    model.find(address).is_some_and(reaches)
}

/// The parents, in the order of their addresses, that a grain would replace in disguise.
fn disguised(model: &Model, new: &Offered, old: Option<&ContentAddress>) -> Vec<ContentAddress> {
    let parents: BTreeSet<_> = rules::parents(&new.grain).into_iter().collect();
    let others = parents.into_iter().filter(|parent| !model.is_older(parent, old));
    others.filter(|parent| model.is_disguised_as(&new.grain, parent)).collect()
}

fn put_in(model: &mut Model, entry: &Offered, needs_review: bool) {
    model.add(entry);
    if let Some(known) = model.grains.last_mut() {
        known.needs_review |= needs_review;
    }
}

/// What the call that would make it so may answer.
fn judge(
    model: &Model,
    (namespace, now): (Option<&str>, EpochMs),
    (old, by, at): (ContentAddress, ContentAddress, EpochMs),
    new: &super::engine::Grain,
) -> Claimed {
    let known = model.find(&old).expect("a grain that is here");
    if known.superseded_by == Some(by) {
        return Claimed::Same;
    }
    let is_protected = model.is_protected_from(&old, Some(new));
    let fits = known.grain.grain_type() == new.grain_type() && rules::parents(new).contains(&old);
    let is_later = known.superseded_by.is_some() && known.ended.is_none_or(|ended| at >= ended);
    let (broken, asks_review) = model.broken_policies(namespace, now, &old, new);
    // The versions that an earlier supersession would displace are asked, too.
    let (mut displaces, mut displaced_asks, mut next) = (true, false, known.superseded_by);
    while let Some(version) = next {
        let is_consent = new.grain_type() == GrainType::Consent && namespace.is_some();
        let Some(later) = model.find(&version).filter(|_| !is_consent) else {
            displaces = false;
            break;
        };
        let (broken, asks) = model.broken_policies(namespace, now, &version, new);
        displaces &= broken.is_empty();
        displaced_asks |= asks;
        next = later.superseded_by;
    }
    match () {
        () if !fits => Claimed::Refused { is_protected },
        () if model.merges_consents(namespace, &old, new) => {
            Claimed::Refused { is_protected: true }
        }
        () if is_later || !displaces => Claimed::Refused { is_protected },
        () if !broken.is_empty() => Claimed::Refused { is_protected: true },
        () => Claimed::Applied { asks_review: asks_review || displaced_asks },
    }
}

fn settle_claim(
    model: &mut Model,
    (namespace, now): (Option<&str>, EpochMs),
    claim: (ContentAddress, ContentAddress, EpochMs),
    new: Option<&Offered>,
    report: &mut Report,
    tally: &mut Tally,
) {
    let (old, by, _) = claim;
    // A successor outside the session is to it as if it were not there.
    let here = model.find(&by).filter(|_| reached(model, &by, namespace));
    let here = here.map(|known| Arc::clone(&known.grain));
    if here.is_none() && model.find(&old).is_some_and(|old| old.superseded_by == Some(by)) {
        return;
    }
    report.duplicate += u64::from(here.is_some() && new.is_some());
    let Some(grain) = here.clone().or_else(|| new.map(|new| new.grain.clone().into())) else {
        report.conflicts += 1;
        model.note_supersession(now, &old, by, "refused");
        return;
    };
    let claimed = judge(model, (namespace, now), claim, &grain);
    tally.note("claim of a supersession", matches!(claimed, Claimed::Applied { .. }));
    let others = match new.filter(|_| here.is_none()) {
        Some(new) => disguised(model, new, Some(&old)),
        None => Vec::new(),
    };
    let lost = claimed == Claimed::Refused { is_protected: true };
    let replaced = others.iter().find(|parent| !lost && model.is_protected(parent));
    if here.is_none() && (lost || replaced.is_some()) {
        report.refused += 1;
        report.conflicts += 2;
        if let Some(parent) = replaced {
            model.note_supersession(now, parent, by, "refused");
        }
        model.note_supersession(now, &old, by, "refused");
        return;
    }
    let asks_review = match claimed {
        Claimed::Same => false,
        Claimed::Refused { .. } => {
            report.conflicts += 1;
            model.note_supersession(now, &old, by, "refused");
            here.is_none()
        }
        Claimed::Applied { asks_review } => asks_review,
    };
    if let Some(new) = new.filter(|_| here.is_none()) {
        report.added += 1;
        put_in(model, new, !others.is_empty());
    }
    let place = model.places[&by];
    model.grains[place].needs_review |= asks_review;
    if matches!(claimed, Claimed::Applied { .. }) {
        take_place(model, (namespace, now), claim, report, tally);
    }
}

/// Ends a grain as a file says: then, and now at the latest.
fn take_place(
    model: &mut Model,
    (namespace, now): (Option<&str>, EpochMs),
    (old, by, at): (ContentAddress, ContentAddress, EpochMs),
    report: &mut Report,
    tally: &mut Tally,
) {
    let place = model.places[&old];
    let before = model.grains[place].superseded_by;
    if let Some(before) = before {
        report.conflicts += 1;
        if reached(model, &before, namespace) {
            let place = model.places[&before];
            model.grains[place].needs_review = true;
        }
        tally.note("earlier supersession", true);
    }
    let known = &mut model.grains[place];
    let ended = known.ended.map_or(at, |ended| ended.min(at));
    known.ended = Some(ended.min(now.max(known.began())));
    known.superseded_by = Some(by);
    model.note_supersession(now, &old, by, "done");
}

/// What a file says of a grain beside: as the calls would do it, without a reason.
fn settle_marks(
    model: &mut Model,
    now: EpochMs,
    address: ContentAddress,
    said: &GrainState,
    report: &mut Report,
    tally: &mut Tally,
) {
    let locks = marked::locks_over(model, &address, now);
    let is_open = locks.iter().all(|lock| *lock == Lock::Open);
    let place = model.places[&address];
    let known = &mut model.grains[place];
    let (own, status) = (worth(known.status), worth(said.verification_status));
    let takes_away = said.contradicted || said.verification_status != Status::Verified;
    let (operation, changes) = match said {
        GrainState { contradicted: true, .. } => ("contradict", !known.contradicted),
        GrainState { held: true, .. } => ("hold", !known.held),
        _ => ("set_verification", status > own),
    };
    // The worse of two states stays.
    report.conflicts += u64::from(own > status && status > 0);
    if !changes {
        return;
    }
    let done = said.held || is_open || !takes_away;
    tally.note("mark that a file claims", done);
    let decision = if done { "done" } else { "refused" };
    model.audit.push(Entry { time: now, operation, subjects: vec![address], decision });
    if !done {
        report.conflicts += 1;
        return;
    }
    known.contradicted |= said.contradicted;
    known.held |= said.held;
    if status > own {
        known.status = said.verification_status;
    }
    if said.contradicted || known.status == Status::Retracted {
        known.end(now);
    }
}

/// How bad a status is.
fn worth(status: Status) -> usize {
    let all = [Status::Unverified, Status::Verified, Status::Contested, Status::Retracted];
    all.iter().position(|other| *other == status).expect("one of them")
}
