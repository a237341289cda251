//! What a record means for the store: whether it is new, unchanged, another version, or erased.

use grainstore::format::{Encoding, ErrorKind as FormatErrorKind};
use grainstore::{ContentAddress, EpochMs, ErrorKind, Grain};
use sha2::{Digest, Sha256};

use super::batch::{Planned, Step};
use super::whose::NOBODYS;
use super::{Pass, Refusal, Writer};
use crate::error::{Error, Result};
use crate::json;
use crate::migrate::grains::{Setting, grain_of};
use crate::migrate::ledger::{Entry, Identity, Known, known};
use crate::migrate::record::{Body, Chain, Record};

/// Bytes of the name of a version up to which it is kept as it is.
const MAX_VERSION_BYTES: usize = 64;

/// The code of a grain that has too many bytes.
const TOO_LARGE: ErrorKind = ErrorKind::Format(FormatErrorKind::TooLarge);

/// Where the versions of a record go on.
struct Start {
    identity: Identity,
    /// The first version that is to be written.
    from: usize,
    /// The grain that it takes the place of.
    old: Option<ContentAddress>,
    /// Whether an earlier migration wrote the record.
    is_known: bool,
    /// Whether nothing of the record was here before.
    is_new: bool,
    /// Whether the version was written before, and says something else now.
    is_rewritten: bool,
    /// What a run wrote of it that ended before the rows.
    unfinished: Option<Entry>,
    returned: Option<EpochMs>,
}

impl Writer<'_> {
    /// Finds out what a record means for the store, and plans it.
    pub(super) fn take(&mut self, chain: Chain) -> Result<(), Refusal> {
        let identity = self.origin.identity(&chain.id);
        let new = Start {
            identity,
            from: 0,
            old: None,
            is_known: false,
            is_new: true,
            is_rewritten: false,
            unfinished: None,
            returned: None,
        };
        if !self.seen.is_first(&identity) {
            return Err(Refusal::Nature("its id was before it in the export"));
        }
        match known(self.run.session, &identity).map_err(Refusal::Run)? {
            Known::Hidden => Err(Refusal::Nature("its grain is in the store, and not shown")),
            Known::New | Known::Erased if self.is_nobodys(&chain) => {
                self.nobodys = self.nobodys.saturating_add(1);
                Err(Refusal::Nature(NOBODYS))
            }
            Known::Erased if !self.run.options.return_erased => {
                Err(Refusal::Nature("it was erased here"))
            }
            Known::Erased => {
                let returned = Some(self.run.began);
                self.plan(chain, &Start { is_new: false, returned, ..new })
            }
            Known::Here(entry) => self.go_on(chain, Start { is_new: false, ..new }, &entry),
            Known::Unfinished(entry) => {
                let unfinished = Some(entry.clone());
                self.go_on(chain, Start { is_new: false, unfinished, ..new }, &entry)
            }
            Known::New => {
                let old = self.predecessor(&chain)?;
                self.plan(chain, &Start { old, ..new })
            }
        }
    }

    /// Goes on where an earlier migration ended.
    fn go_on(&mut self, chain: Chain, start: Start, entry: &Entry) -> Result<(), Refusal> {
        let (chain, says_the_same) = self.of_whom_it_was(chain, entry)?;
        let Some((_, newest)) = chain.versions.last() else { return Ok(()) };
        let last = chain.versions.len().saturating_sub(1);
        let digest = newest.digest();
        let at = chain.versions.iter().position(|(name, _)| version_key(name) == entry.version);
        if entry.is_ended && chain.ending.is_none() {
            return Err(Refusal::Nature("it was ended here, and is in its source again"));
        }
        let is_newest = at.is_none_or(|at| at == last);
        let tells_no_more = chain.is_partial && (at == Some(last) || at.is_none() && says_the_same);
        let is_same = is_newest && (entry.digest == digest || tells_no_more);
        let is_rewritten = !is_same && is_newest;
        let ends_only = is_rewritten && self.ends_only(&chain, newest, &start.identity, entry)?;
        let from = match at {
            _ if is_same || ends_only => chain.versions.len(),
            Some(at) if at < last => at.saturating_add(1),
            _ => last,
        };
        if at.is_none() && chain.versions.len() > 1 {
            let note =
                format!("{}: it came in without its earlier versions, which stay behind", chain.id);
            self.report.note(note);
        }
        let (old, is_known) = (Some(entry.head), true);
        let ending = chain.ending.clone().filter(|_| !(is_same && entry.is_ended));
        let chain = Chain { ending, ..chain };
        self.plan(chain, &Start { from, old, is_known, is_rewritten, ..start })
    }

    /// The grain of the record that this one follows.
    fn predecessor(&mut self, chain: &Chain) -> Result<Option<ContentAddress>, Refusal> {
        let Some(id) = &chain.follows else { return Ok(None) };
        let identity = self.origin.identity(id);
        if let Some(head) = self.batch.head_of(&identity) {
            return Ok(Some(head));
        }
        let known = known(self.run.session, &identity).map_err(Refusal::Run)?;
        if let Known::Here(entry) | Known::Unfinished(entry) = known {
            return Ok(Some(entry.head));
        }
        if !self.seen.has(&identity) {
            let note = format!("{} follows {id}, which is not there before it", chain.id);
            self.report.note(note);
        }
        Ok(None)
    }

    /// Makes the grains of the versions, and puts them in line.
    fn plan(&mut self, chain: Chain, start: &Start) -> Result<(), Refusal> {
        let Some((name, newest)) = chain.versions.last() else { return Ok(()) };
        let (kind, grain_type) = (newest.kind, newest.body.grain_type());
        let (version, digest) = (version_key(name), newest.digest());
        let (mut steps, mut old, mut fresh) = (Vec::new(), start.old, 0_usize);
        for (name, record) in chain.versions.iter().skip(start.from) {
            let (grain, address) = self.grain(&chain.id, record, start, old)?;
            let exists = self.run.session.exists(&address);
            if !exists.map_err(|error| Refusal::Run(error.into()))? {
                fresh = fresh.saturating_add(1);
            }
            let version = version_key(name);
            let entry = Entry { head: address, digest: record.digest(), is_ended: false, version };
            steps.push(Step { grain, old, entry });
            old = Some(address);
        }
        let Some(head) = old else { return Ok(()) };
        if let Body::Message { .. } = newest.body {
            self.messages.remember(&start.identity, head);
        }
        let planned = Planned {
            identity: start.identity,
            place: newest.place.clone(),
            kind,
            grain_type,
            steps,
            fresh,
            ending: chain.ending,
            names_another: self.names_another(newest),
            is_known: start.is_known,
            is_new: start.is_new,
            unfinished: start.unfinished.clone(),
            entry: Entry { head, digest, is_ended: false, version },
        };
        match self.pass {
            Pass::Check => self.check(&planned),
            Pass::Write { .. } => {
                self.batch.push(planned);
                match self.batch.is_full() {
                    true => self.flush().map_err(Refusal::Run),
                    false => Ok(()),
                }
            }
        }
    }

    /// Makes the grain of a version. Where it is too large, what has no field of its own stays behind.
    fn grain(
        &mut self,
        id: &str,
        record: &Record,
        start: &Start,
        predecessor: Option<ContentAddress>,
    ) -> Result<(Grain, ContentAddress)> {
        // What was changed is as old as its change.
        let changed = record.updated.filter(|_| start.is_rewritten);
        let created_at = match changed.filter(|time| time.header_second().is_some()) {
            Some(time) => time,
            None => self.created_at(&record.created)?,
        };
        let parent = match &record.body {
            Body::Message { parent: Some(parent), .. } => {
                self.messages.get(&self.origin.identity(parent))
            }
            _ => None,
        };
        let setting = Setting {
            format: self.run.format,
            id,
            created_at,
            namespace: self.run.options.namespace.as_deref(),
            user: self.run.options.user.as_deref(),
            parent,
            predecessor,
            returned: start.returned,
        };
        match addressed(record, &setting) {
            Err(error) if error.kind() == TOO_LARGE && !record.rest.is_empty() => {
                let shorter = Record { rest: json::Map::new(), ..record.clone() };
                let made = addressed(&shorter, &setting)?;
                let note =
                    format!("{}: fields beside its text stay behind, for its size", record.place);
                self.report.note(note);
                Ok(made)
            }
            made => made,
        }
    }

    /// Counts what would be written, unless the store would refuse it.
    fn check(&mut self, planned: &Planned) -> Result<(), Refusal> {
        // Nothing was written in this pass: what a version takes the place of is in the store.
        if let Some(Step { grain, old: Some(old), .. }) = planned.steps.first() {
            let preview = self.run.session.try_supersede(old, grain.clone(), None);
            if let Some(refusal) = preview.map_err(Error::from)?.refusal {
                return Err(Error::from(refusal).into());
            }
        }
        self.count(planned);
        Ok(())
    }

    fn names_another(&self, record: &Record) -> bool {
        let (given, named) = (&self.run.options.user, &record.who.user);
        given.is_some() && named.is_some() && given != named
    }

    /// Counts a record that was taken.
    pub(super) fn count(&mut self, planned: &Planned) {
        let report = &mut self.report;
        let add = |count: &mut u64, more: usize| *count = count.saturating_add(more as u64);
        if planned.fresh > 0 {
            report.count(planned.kind, &planned.grain_type.to_string());
        }
        match (planned.is_known, planned.fresh) {
            (_, 0) if planned.ending.is_none() => add(&mut report.unchanged, 1),
            (_, 0) => {}
            (true, _) => add(&mut report.changed, 1),
            (false, fresh) => add(&mut report.added, fresh),
        }
        if planned.ending.is_some() {
            add(&mut report.ended, 1);
        }
        if planned.names_another && planned.fresh > 0 {
            add(&mut self.others, 1);
        }
    }
}

/// A grain with its address.
fn addressed(record: &Record, setting: &Setting<'_>) -> Result<(Grain, ContentAddress)> {
    let grain = grain_of(record, setting)?;
    let address = grain.encode(Encoding::default())?.address();
    Ok((grain, address))
}

/// The name of a version as the ledger has it.
fn version_key(name: &str) -> String {
    match name.len() {
        0..=MAX_VERSION_BYTES => name.to_owned(),
        _ => data_encoding::HEXLOWER.encode(&Sha256::digest(name)),
    }
}
