//! Imports in the specification: what a file brings and claims comes as the calls would let it, and all of
//! it or nothing (ruling 37; docs/maintenance.md).

use std::collections::BTreeSet;

use grainstore::format::container::{
    Compression, ContainerEntry as Read, ContainerPlan, ContainerWriter, ManifestEntry,
    PlannedEntry, sort_entries,
};
use grainstore::format::cose::sign;
use grainstore::format::{
    ContentAddress, DecodeOptions, Encoding, Error, Grain, Value, encode_value,
};
use grainstore::{ImportOptions, ImportReport, VerificationStatus as Status};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::{Act, Brings, Made, Mode, Run, World, cosigned, key};

/// Before all that was done here, and behind it.
const EARLY_MS: i64 = 2_000;
const LATE_MS: i64 = 4_000_000_000_000;

/// A file: a grain, and perhaps the claim that it superseded one.
#[derive(Debug, Clone)]
pub(super) struct Coming {
    made: Made,
    /// What it is said to have superseded, and whether that was long ago.
    over: Option<(usize, bool)>,
    reason: bool,
    cosigners: BTreeSet<u8>,
    /// Whether another grain of the file has a signature that does not hold.
    spoiled: bool,
}

/// What a file says of a grain that is here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Said {
    Contradicted,
    Status(Status),
    Held,
}

pub(super) fn coming(made: impl Strategy<Value = Made>) -> impl Strategy<Value = Coming> {
    let over = prop::option::weighted(0.7, (0_usize..40, any::<bool>()));
    let signers = prop::collection::btree_set(1_u8..6, 0..4);
    let spoiled = prop::bool::weighted(0.1);
    (made, over, any::<bool>(), signers, spoiled).prop_map(
        |(made, over, reason, cosigners, spoiled)| Coming {
            made,
            over,
            reason,
            cosigners,
            spoiled,
        },
    )
}

pub(super) fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        Just(Said::Contradicted),
        Just(Said::Status(Status::Contested)),
        Just(Said::Status(Status::Retracted)),
        Just(Said::Status(Status::Verified)),
        Just(Said::Held),
    ]
}

/// What becomes of a grain that arrives, and how many conflicts are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Stored(u64),
    /// Stored, and the claim applied.
    Succeeds(u64),
    LeftOut(u64),
}

impl World {
    /// Whether any policy or hold restricts what becomes of a grain.
    fn protects(&self, at: usize, other_parents: &BTreeSet<usize>) -> bool {
        let restricts = |at: usize| match self.0[at].mode {
            Mode::Open => false,
            Mode::Hold => self.0[at].held,
            _ => true,
        };
        self.0[at].held || self.asked(at, other_parents).into_iter().any(restricts)
    }

    /// What comes of a grain with these parents, some of which it would replace in disguise.
    fn judge(
        &self,
        over: Option<(usize, bool)>,
        others: &BTreeSet<usize>,
        disguised: &BTreeSet<usize>,
        brings: &Brings,
    ) -> Outcome {
        let outcome = self.judge_claim(over, others, brings);
        // In the place of a grain it may name the older versions of that.
        let is_older = |at: usize| match (over, outcome) {
            (Some((old, _)), Outcome::Succeeds(_)) => self.is_older_version(at, old),
            _ => false,
        };
        let mut disguised = disguised.iter().filter(|at| !is_older(**at));
        match disguised.any(|at| self.protects(*at, &BTreeSet::new())) {
            true => Outcome::LeftOut(1 + u64::from(over.is_some())),
            false => outcome,
        }
    }

    /// What comes of it by what it is said to replace.
    fn judge_claim(
        &self,
        over: Option<(usize, bool)>,
        others: &BTreeSet<usize>,
        brings: &Brings,
    ) -> Outcome {
        let Some((old, early)) = over else { return Outcome::Stored(0) };
        let entry = &self.0[old];
        let is_taken = entry.after.is_some();
        // The versions that it would displace are asked, too.
        let mut later = std::iter::successors(entry.after, |at| self.0[*at].after);
        let displaces = later.all(|at| self.allows(Act::Supersede, at, others, brings));
        let comes_first = early && !entry.ended_early && displaces;
        let allowed = self.allows(Act::Supersede, old, others, brings);
        match (is_taken && !comes_first, allowed, self.protects(old, others)) {
            (false, true, _) => Outcome::Succeeds(u64::from(is_taken)),
            (true, _, false) => Outcome::Stored(1),
            _ => Outcome::LeftOut(2),
        }
    }
}

impl Run {
    pub(super) fn import(&mut self, coming: &Coming) -> Result<(), String> {
        let over = coming.over.map(|(at, early)| (self.place(at), early));
        // Goals have rules of their own, which the calls are tried with.
        let over = over.filter(|(at, _)| self.world.0[*at].goal.is_none());
        let old = over.map(|(at, _)| at);
        let subject = old.map_or(coming.made.subject, |at| self.world.0[at].subject);
        let made = &Made { subject, ..coming.made.clone() };
        let others: BTreeSet<_> =
            self.parents(made).into_iter().filter(|at| Some(*at) != old).collect();
        let parents: BTreeSet<usize> = others.iter().copied().chain(old).collect();
        let mut grain = self.grain(made, &parents, coming.reason && old.is_some());
        let mut brings = Brings { reason: coming.reason, ..Brings::default() };
        if let Some(old) = old {
            brings.cosigners.clone_from(&coming.cosigners);
            grain = cosigned(grain, &self.addresses[old], &coming.cosigners);
        }
        let blob = grain.encode(Encoding::MessagePack).unwrap();
        let address = blob.address();
        let stated = over.map(|(at, early)| {
            let ends = if early { EARLY_MS } else { LATE_MS };
            let by = Value::from(address.to_string());
            (self.addresses[at], vec![("sb", by), ("svt", Value::from(ends))])
        });
        let mut entries = vec![blob.bytes().to_vec()];
        entries.extend(coming.spoiled.then(spoiled));
        let outcome = self.taken(&entries, stated.as_slice());
        if coming.spoiled {
            let code = outcome.map_or_else(|error| error.code(), |_| "OK");
            let stays = code == "ERR_SIGNATURE" && !self.operator.exists(&address).unwrap();
            let told = || format!("{code} of a file that is spoiled");
            return stays.then_some(()).ok_or_else(told).and_then(|()| self.unchanged(old));
        }
        let disguised = others.iter().copied();
        let disguised = disguised.filter(|at| self.is_version_of(false, subject, *at)).collect();
        let expected = self.world.judge(over, &others, &disguised, &brings);
        let (added, refused, conflicts) = match expected {
            Outcome::Stored(conflicts) | Outcome::Succeeds(conflicts) => (1, 0, conflicts),
            Outcome::LeftOut(conflicts) => (0, 1, conflicts),
        };
        let imported = outcome.map_err(|error| error.to_string())?;
        let found = (imported.added, imported.refused, imported.conflict_count);
        if found != (added, refused, conflicts) {
            return Err(format!("{imported:?} instead of {expected:?}"));
        }
        if let Outcome::LeftOut(_) = expected {
            let is_out = !self.operator.exists(&address).unwrap();
            return is_out
                .then_some(())
                .ok_or("it is here".to_owned())
                .and_then(|()| self.unchanged(old));
        }
        let before = old.filter(|_| matches!(expected, Outcome::Succeeds(_)));
        let new = self.add(made, parents, before, address);
        if let (Some(before), Some((_, early))) = (before, over) {
            let entry = &mut self.world.0[before];
            entry.after = Some(new);
            entry.ended_early |= early;
        }
        self.unchanged(Some(new))?;
        self.unchanged(old)
    }

    pub(super) fn says(&mut self, at: usize, said: Said) -> Result<(), String> {
        let entry = &self.world.0[at];
        let nothing = (&BTreeSet::new(), &Brings::default());
        let allows = |act| self.world.allows(act, at, nothing.0, nothing.1);
        let (stated, conflicts) = match said {
            Said::Contradicted => {
                (("ct", true.into()), !entry.contradicted && !allows(Act::Contradict))
            }
            Said::Held => (("x_held", true.into()), false),
            Said::Status(status) => {
                let act = if status == Status::Retracted { Act::Retract } else { Act::Contest };
                let conflicts = match (worth(entry.status), worth(status)) {
                    // The worse of the two stays.
                    (own, other) if own > other => true,
                    (own, other) if own == other => false,
                    _ => status != Status::Verified && !allows(act),
                };
                (("vstatus", status.name().into()), conflicts)
            }
        };
        let imported = self.taken(&[], &[(self.addresses[at], vec![stated])]);
        let told = imported.as_ref().map(|imported| imported.conflict_count);
        if told.as_ref().ok() != Some(&u64::from(conflicts)) {
            return Err(format!("{imported:?}, and a conflict is {conflicts}"));
        }
        let entry = &mut self.world.0[at];
        match said {
            _ if conflicts => {}
            Said::Contradicted => entry.contradicted = true,
            Said::Held => entry.held = true,
            Said::Status(status) => entry.status = status,
        }
        self.unchanged(Some(at))
    }

    /// Imports a file of these entries that says this of grains.
    fn taken(&self, entries: &[Vec<u8>], stated: &[Stated]) -> grainstore::Result<ImportReport> {
        let file = self.dir.path().join("in.mg");
        std::fs::write(&file, container(entries, stated)).unwrap();
        self.operator.import([file], &ImportOptions::default())
    }

    /// That a grain is as it has to be.
    fn unchanged(&self, at: Option<usize>) -> Result<(), String> {
        at.map_or(Ok(()), |at| self.expect(at, Ok(()), "OK"))
    }
}

/// How bad a status is.
fn worth(status: Status) -> usize {
    [Status::Unverified, Status::Verified, Status::Contested, Status::Retracted]
        .iter()
        .position(|other| *other == status)
        .unwrap()
}

/// What a manifest says of a grain.
type Stated = (ContentAddress, Vec<(&'static str, Value)>);

/// A grain whose signature does not hold.
fn spoiled() -> Vec<u8> {
    let grain = Grain::from_json(
        r#"{"type": "belief", "subject": "s", "relation": "q", "object": "o", "confidence": 1.0,
            "created_at": 1000}"#,
    );
    let blob = grain.unwrap().encode(Encoding::MessagePack).unwrap();
    let mut envelope = sign(blob.bytes(), &key(9), None).unwrap().into_bytes();
    *envelope.last_mut().unwrap() ^= 1;
    envelope
}

/// A container of these entries, with a manifest that may speak of any grain.
fn container(entries: &[Vec<u8>], stated: &[Stated]) -> Vec<u8> {
    let planned = |entry: &Vec<u8>| {
        let read = Read::read(entry.clone(), &DecodeOptions::default()).unwrap();
        PlannedEntry::of(entry, read.created_at()).unwrap()
    };
    let mut order: Vec<_> = entries.iter().map(planned).collect();
    sort_entries(&mut order).unwrap();
    let mut plan = ContainerPlan::new(Compression::None);
    order.iter().for_each(|entry| assert!(plan.add(entry).unwrap()));
    let mut writer = ContainerWriter::new(Vec::new(), plan).unwrap();
    for wanted in &order {
        writer.push(entries.iter().find(|entry| planned(entry) == *wanted).unwrap()).unwrap();
    }
    let nothing = Vec::<Result<(ContentAddress, ManifestEntry), Error>>::new();
    let mut bytes = writer.finish(nothing).unwrap().0;
    if stated.is_empty() {
        return bytes;
    }
    let manifest = stated.iter().map(|(address, fields)| {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        (address.to_string(), Value::Map(fields.collect()))
    });
    let manifest = Value::Map(manifest.collect());
    bytes.truncate(bytes.len() - 32);
    bytes[3] |= 1 << 4;
    bytes.extend(encode_value(&manifest, Encoding::MessagePack));
    let checksum = Sha256::digest(&bytes);
    bytes.extend(checksum);
    bytes
}
