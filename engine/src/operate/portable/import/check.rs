//! The first pass over the files of an import: checks everything in them, on the caller's thread, without
//! writing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use grainstore_format::container::{Container, ContainerEntry, ManifestEntry, ReadAt};
use grainstore_format::{
    Blob, ContentAddress, DecodeOptions, DidResolver, Envelope, SignatureVerdict, is_disclosed_view,
};
use sha2::{Digest, Sha256};

use super::arrivals::{self, Arrivals};
use super::claims::{self, StatedState};
use super::import_filter::ImportFilter;
use super::{ImportOptions, input_error, with_file_name};
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::{stored_grain, with_fields};
use crate::disk::layout::SignatureWrapper;
use crate::handle::session::{MAX_BATCH_BYTES, Session};
use crate::read::query::ScanError;
use crate::rules::policy::{Proofs, check_ownership, verified_cosigners};
use crate::search::embed::embedding_mismatch;
use crate::state::consent::is_withdrawn;
use crate::state::erasure::check_not_erased;
use crate::state::view::View;
use crate::state::visibility::Visibility;
use crate::write::plan::{
    ClaimedSuccessor, ConflictSubject, Conflicts, ManifestClaim, PreparedGrain,
};

/// Grains between two checks for cancellation, and two reports of progress.
pub(super) const CHECK_INTERVAL_GRAINS: u64 = 256;

/// The open files of an import.
pub(super) struct ImportFiles<S> {
    pub(super) files: Vec<(String, Container<'static, S>)>,
}

/// The result of the first pass.
pub(super) struct CheckedImport {
    /// One for each file.
    pub(super) files: Vec<CheckedFile>,
    pub(super) stated: Vec<StatedState>,
    /// What is said of the end of protected grains that are new here.
    pub(super) arrivals: Arrivals,
    pub(super) claims: Vec<ManifestClaim>,
    pub(super) successors: BTreeMap<ContentAddress, ClaimedSuccessor>,
    pub(super) conflicts: Conflicts,
    /// Users whose grains are imported.
    pub(super) people: BTreeSet<String>,
}

/// The result for one file.
#[derive(Default)]
pub(super) struct CheckedFile {
    /// Numbers of the grains with a valid signature, ascending.
    pub(super) valid: Vec<u32>,
    /// Numbers of the grains that are left out, ascending.
    pub(super) left_out: Vec<u32>,
    /// Hash of its grains and envelopes, to notice a change before the second pass.
    pub(super) digest: [u8; 32],
}

impl<S: ReadAt> ImportFiles<S> {
    /// Opens containers, and checks their checksums and structure.
    ///
    /// # Errors
    /// As [`Container::open`], with the name of the file.
    pub(super) fn open(sources: Vec<(String, S)>) -> Result<Self> {
        let files = sources.into_iter().map(|(name, source)| {
            let opened = Container::open(source, &DecodeOptions::default());
            let container = opened.map_err(|error| input_error(&name, error))?;
            Ok((name, container))
        });
        Ok(Self { files: files.collect::<Result<_>>()? })
    }

    /// Calls `show` for every entry of every manifest.
    pub(super) fn each_manifest_entry(
        &self,
        mut show: impl FnMut(ContentAddress, ManifestEntry) -> Result<()>,
    ) -> Result<()> {
        for (name, container) in &self.files {
            for entry in container.manifest().into_iter().flatten() {
                let (address, carried) = entry.map_err(|error| input_error(name, error))?;
                show(address, carried)?;
            }
        }
        Ok(())
    }

    /// Reads everything, and prepares what the writer thread needs to decide the claims. On an invalid
    /// signature, `claimed` is set to the key id that the envelope states.
    ///
    /// # Errors
    /// Those of [`Session::import`].
    pub(super) fn check(
        &self,
        session: &Session,
        how: &ImportOptions<'_>,
        claimed: &mut Option<String>,
    ) -> Result<CheckedImport> {
        let view = session.view()?;
        let stated = claims::stated_states(
            &view,
            self,
            &Visibility::new(session.viewer(), &*view, session.now()),
        )?;
        let arrivals = match session.principal().is_store_operator() {
            true => Arrivals::new(),
            false => arrivals::stated(&view, self, &how.cancel)?,
        };
        let mut checked = CheckedImport {
            files: Vec::new(),
            stated,
            arrivals,
            claims: Vec::new(),
            successors: BTreeMap::new(),
            conflicts: Conflicts::default(),
            people: BTreeSet::new(),
        };
        let claimed_ends = checked.arrivals.iter().map(|(address, state)| (*address, *state));
        let all: Vec<StatedState> = checked.stated.iter().copied().chain(claimed_ends).collect();
        let mut wanted = self.wanted(&all)?;
        let entering = ImportFilter::new(session, &view, self)?;
        let (room, total) = (MAX_BATCH_BYTES, self.len());
        let mut pass = CheckPass {
            session,
            view: &view,
            entering,
            store_failed: false,
            how,
            claimed: None,
            bytes_left: room,
            done: 0,
            total,
        };
        for (name, container) in &self.files {
            let found = pass.check_file(container, &mut wanted, &mut checked);
            *claimed = pass.claimed.take();
            // Reading the store for its rules may fail; every other error is about the file.
            checked.files.push(found.map_err(|error| match pass.store_failed {
                true => with_file_name(name, error),
                false => input_error(name, error),
            })?);
        }
        for (address, stated) in wanted {
            if let Some(prepared) = prepare_stored(session, &view, &address)? {
                checked.successors.insert(address, ClaimedSuccessor { prepared, stated });
            }
        }
        for (address, successor) in &mut checked.successors {
            if checked.arrivals.contains_key(address) {
                successor.stated.state = arrivals::without_end(&successor.stated.state);
            }
        }
        self.check_embedded(session, &view, &mut checked)?;
        checked.claims = all
            .iter()
            .map(|stated| claim(stated, &checked.successors, session.store().inner().resolver()))
            .collect::<Result<_>>()?;
        Ok(checked)
    }

    /// Records a conflict for vectors in a manifest that fit no space of their model here. A file carries no
    /// vectors, so this means that they are made differently where it comes from.
    fn check_embedded(
        &self,
        session: &Session,
        view: &View,
        checked: &mut CheckedImport,
    ) -> Result<()> {
        let reserved = session.store().inner().retrieval().reserved_spaces();
        let spaces = view.spaces()?;
        self.each_manifest_entry(|address, ManifestEntry { embedded, .. }| {
            let why = embedded
                .iter()
                .find_map(|one| embedding_mismatch(one, spaces.values().chain(&reserved)));
            if let Some(why) = why {
                checked.conflicts.record(address, ConflictSubject::Embedding, why);
            }
            Ok(())
        })
    }

    /// Returns the grains that claims name as successors, each with its manifest entry.
    fn wanted(&self, stated: &[StatedState]) -> Result<BTreeMap<ContentAddress, ManifestEntry>> {
        let named = stated.iter().filter_map(|(_, state)| state.superseded_by);
        let mut wanted: BTreeMap<_, _> = named.map(|by| (by, ManifestEntry::default())).collect();
        if !wanted.is_empty() {
            self.each_manifest_entry(|address, carried| {
                if let Some(slot) = wanted.get_mut(&address) {
                    *slot = carried;
                }
                Ok(())
            })?;
        }
        Ok(wanted)
    }

    fn len(&self) -> u64 {
        self.files.iter().map(|(_, container)| u64::from(container.len())).sum()
    }
}

/// One pass over the grains.
struct CheckPass<'p, 'h> {
    session: &'p Session,
    view: &'p View,
    /// The rules of the store.
    entering: ImportFilter<'p>,
    /// True if reading the store failed, rather than a file.
    store_failed: bool,
    how: &'p ImportOptions<'h>,
    /// The key id stated by an envelope whose signature is invalid.
    claimed: Option<String>,
    /// Bytes of successors that may still be held in memory.
    bytes_left: usize,
    done: u64,
    total: u64,
}

impl CheckPass<'_, '_> {
    fn check_file<S: ReadAt>(
        &mut self,
        container: &Container<'static, S>,
        wanted: &mut BTreeMap<ContentAddress, ManifestEntry>,
        checked: &mut CheckedImport,
    ) -> Result<CheckedFile> {
        let mut found = CheckedFile::default();
        let mut digest = Sha256::new();
        for (number, entry) in (0..).zip(container.entries()?) {
            let entry = entry?;
            digest_entry(&mut digest, &entry);
            let place = |error: Error| error.at_path(Path::new(&format!("grain {number}")));
            let signer =
                self.check_entry(&entry, number, &mut found, (checked, wanted)).map_err(place)?;
            if let Some((address, stated)) = wanted.remove_entry(&entry.address())
                && !found.left_out.contains(&number)
            {
                let bytes = entry.bytes().len();
                self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(too_many_bytes)?;
                let prepared = prepare_entry(entry, signer).map_err(place)?;
                checked.successors.insert(address, ClaimedSuccessor { prepared, stated });
            }
            self.report_progress()?;
        }
        found.digest = digest.finalize().into();
        Ok(found)
    }

    /// Checks one grain. Returns its signer.
    fn check_entry(
        &mut self,
        entry: &ContainerEntry,
        number: u32,
        found: &mut CheckedFile,
        (checked, wanted): (&mut CheckedImport, &BTreeMap<ContentAddress, ManifestEntry>),
    ) -> Result<Option<String>> {
        self.session.viewer().check_writes(entry.grain())?;
        let signer = self.verify_signer(entry)?;
        if signer.is_some() {
            found.valid.push(number);
        }
        let mut why = match check_ownership(entry.grain(), signer.as_deref(), None) {
            Err(error) => Some(error.to_string()),
            Ok(()) if is_disclosed_view(entry.grain()) => {
                Some("a disclosed view is not stored as a grain of its own".to_owned())
            }
            Ok(()) if self.rests_on_withdrawn(entry)? => {
                Some("the consent it rests on was withdrawn".to_owned())
            }
            Ok(()) => {
                let (address, grain) = (entry.address(), entry.grain());
                let supersedes = wanted.contains_key(&address);
                let refusal = self.entering.refusal(&address, grain, supersedes);
                let refusal = refusal.inspect_err(|_| self.store_failed = true)?;
                refusal.map(|refusal| format!("left out: refused by {}", refusal.description()))
            }
        };
        if let Err(error) = check_not_erased(self.view, &entry.address(), entry.grain()) {
            if !error.is_erased() {
                return Err(error);
            }
            why = Some(error.to_string());
        }
        if let Some(why) = why {
            found.left_out.push(number);
            checked.conflicts.record(entry.address(), ConflictSubject::Grain, why);
        } else if let Some(user) = entry.grain().text("user_id").filter(|user| !user.is_empty())
            && !checked.people.contains(user)
        {
            checked.people.insert(user.to_owned());
        }
        Ok(signer)
    }

    /// Returns `true` if the store has a withdrawal of the consent the grain rests on. A withdrawal in the
    /// files themselves hides the grain, but does not exclude it.
    fn rests_on_withdrawn(&self, entry: &ContainerEntry) -> Result<bool> {
        if entry.grain().get("processing_basis").is_none() {
            return Ok(false);
        }
        with_fields(entry.blob(), |grain| is_withdrawn(self.view, grain))
    }

    fn verify_signer(&mut self, entry: &ContainerEntry) -> Result<Option<String>> {
        let Some(bytes) = entry.envelope() else { return Ok(None) };
        let envelope = Envelope::parse(bytes.to_vec())?;
        match envelope.verify(self.session.store().inner().resolver()) {
            SignatureVerdict::Valid(did) => Ok(Some(did.to_string())),
            SignatureVerdict::Unverifiable(_) => Ok(None),
            SignatureVerdict::Invalid(reason) => {
                self.claimed = envelope.kid();
                let message = format!("the signature is invalid: {reason}");
                Err(Error::new(ErrorKind::Signature, message))
            }
        }
    }

    fn report_progress(&mut self) -> Result<()> {
        self.done += 1;
        if self.done.is_multiple_of(CHECK_INTERVAL_GRAINS) || self.done == self.total {
            self.how.cancel.check().map_err(ScanError::Stopped)?;
            if let Some(progress) = self.how.progress {
                progress(self.done, self.total);
            }
        }
        Ok(())
    }
}

/// Adds a grain and its envelope to a hash.
pub(super) fn digest_entry(digest: &mut Sha256, entry: &ContainerEntry) {
    digest.update(entry.address().as_bytes());
    if let Some(envelope) = entry.envelope() {
        digest.update(envelope);
    }
}

/// Prepares a grain of a file for the writer thread.
pub(super) fn prepare_entry(
    entry: ContainerEntry,
    signer: Option<String>,
) -> Result<PreparedGrain> {
    let wrapping = signature_wrapper(&entry, signer.is_some())?.map(Arc::new);
    let blob = Blob::from_bytes(entry.blob().to_vec());
    let prepared = PreparedGrain::new(blob, entry.into_parts().0, true)?;
    let proofs = Proofs { signer, ..Proofs::default() };
    Ok(PreparedGrain { wrapping, proofs, ..prepared })
}

/// Returns the bytes around the blob of a signed grain.
pub(super) fn signature_wrapper(
    entry: &ContainerEntry,
    valid: bool,
) -> Result<Option<SignatureWrapper>> {
    let Some((prefix, suffix)) = entry.wrapper_parts() else { return Ok(None) };
    Ok(Some(SignatureWrapper { valid, prefix: prefix.to_vec(), suffix: suffix.to_vec() }))
}

/// Prepares a grain that is stored already and named as a successor; `None` for one that the session does not
/// see or may not write.
fn prepare_stored(
    session: &Session,
    view: &View,
    address: &ContentAddress,
) -> Result<Option<PreparedGrain>> {
    let Some(row) = view.row(address)? else { return Ok(None) };
    if !session.visibility(view).is_blob_visible(row.sequence, &row.blob)?
        || session.viewer().check_writes(&stored_grain(&row.blob)?).is_err()
    {
        return Ok(None);
    }
    let envelope = view.envelope(row.sequence, &row.blob)?;
    let verdict = envelope.map(|envelope| envelope.verify(session.store().inner().resolver()));
    let signer = verdict.and_then(|verdict| verdict.did().map(ToString::to_string));
    let grain = stored_grain(&row.blob)?;
    let prepared = PreparedGrain::new(Blob::from_bytes(row.blob), grain, true)?;
    Ok(Some(PreparedGrain { proofs: Proofs { signer, ..Proofs::default() }, ..prepared }))
}

fn claim(
    (address, stated): &StatedState,
    successors: &BTreeMap<ContentAddress, ClaimedSuccessor>,
    resolver: &dyn DidResolver,
) -> Result<ManifestClaim> {
    let successor = stated.superseded_by.and_then(|by| successors.get(&by));
    let cosigners = match successor {
        Some(new) => verified_cosigners(address, &new.prepared.grain, resolver)?,
        None => Vec::new(),
    };
    Ok(ManifestClaim { address: *address, stated: *stated, cosigners })
}

fn too_many_bytes() -> Error {
    let message =
        format!("grains of more than {MAX_BATCH_BYTES} bytes are to supersede stored ones");
    Error::new(ErrorKind::Limit, message).with_hint("import into a store of its own")
}
