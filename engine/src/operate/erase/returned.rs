//! What was erased and is here again, because a backup from before that was put in its place. Such a store
//! cannot know it: the certificates of the erasures are kept elsewhere, and tell it.

use std::collections::HashMap;

use grainstore_format::{ContentAddress, EpochMs};
use grainstore_index::Sequence;
use serde::Serialize;

use super::{EraseOptions, EraseOutcome, ErasureCertificate};
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::blob::with_fields;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::operate::maintain::Problem;
use crate::state::view::View;

/// An erasure that a certificate tells of, and what of it is here: [`Store::returned`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Returned {
    /// The audit entry that the certificate is of.
    pub sequence: u64,
    /// When it was erased.
    #[serde(rename = "time_ms", serialize_with = "as_number")]
    pub time: EpochMs,
    /// Whose it was, where all of a user was erased.
    pub user_id: Option<String>,
    /// The grains that are here again.
    pub addresses: Vec<ContentAddress>,
    /// Whether the user has said more since, which was not erased.
    #[serde(skip)]
    has_later: bool,
}

fn as_number<S: serde::Serializer>(time: &EpochMs, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(time.get())
}

/// A grain of somebody, for the search for who they are.
struct Theirs {
    address: ContentAddress,
    created_at: EpochMs,
}

/// Who has grains here, by what stands for them in the audit log.
type People = HashMap<[u8; 32], (String, Vec<Theirs>)>;

impl Store {
    /// What of these erasures is here again: nothing where the store knows of all of them. It reads the
    /// whole log where one of them is of a user.
    ///
    /// A backup from before an erasure has the grains, and the certificate tells which.
    ///
    /// ```
    /// use grainstore::{EraseOptions, Store, prelude::*};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path().join("memory"), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9).user_id("ann");
    /// let tea = session.put(grain.build()?)?.address();
    /// store.backup(dir.path().join("before"))?;
    /// let done = session.erase_user("ann", "she asked for it", &EraseOptions::new())?;
    /// let certificates: Vec<_> = done.certificate.into_iter().collect();
    /// assert!(store.returned(&certificates)?.is_empty());
    ///
    /// let restored = Store::open(dir.path().join("before"), &OpenOptions::new())?;
    /// assert_eq!(restored.returned(&certificates)?[0].addresses, [tea]);
    /// let operator = restored.session(SessionOptions::default());
    /// operator.erase_returned(&certificates, "erased before", &EraseOptions::new())?;
    /// assert!(!operator.exists(&tea)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_SIGNATURE` for a certificate that this store has not signed, `ERR_CONFLICT` for one of another
    /// store, `ERR_SCHEMA` for one that does not fit together or is of no erasure; `ERR_INTEGRITY`,
    /// `ERR_IO`.
    pub fn returned(&self, certificates: &[ErasureCertificate]) -> Result<Vec<Returned>> {
        let view = self.inner().view()?;
        catch_storage_panic(|| {
            let mut people = None;
            let mut found = Vec::new();
            for certificate in certificates {
                let returned = self.returned_of(&view, certificate, &mut people)?;
                found.extend(returned.filter(|returned| !returned.addresses.is_empty()));
            }
            Ok(found)
        })
    }

    fn returned_of(
        &self,
        view: &View,
        certificate: &ErasureCertificate,
        people: &mut Option<People>,
    ) -> Result<Option<Returned>> {
        let entry = certificate.verify(self.inner().resolver())?;
        certificate.checkpoint.check_own(view)?;
        let (sequence, time) = (entry.sequence, entry.time);
        if !entry.is_erasure() || entry.decision != "done" {
            return Err(no_erasure(sequence));
        }
        if entry.operation != "erase_user" {
            let mut addresses = Vec::new();
            for subject in &entry.subjects {
                let Some(at) = view.sequence_of_subject(subject)? else { continue };
                if !view.is_erased(at)? {
                    addresses.push(view.with_blob(at, |blob| Ok(ContentAddress::of(blob)))?);
                }
            }
            let returned = Returned { sequence, time, user_id: None, addresses, has_later: false };
            return Ok(Some(returned));
        }
        let subject = entry.subjects.first().ok_or_else(|| no_erasure(sequence))?;
        let people = match people {
            Some(people) => people,
            None => people.insert(people_of(view)?),
        };
        let Some((user, grains)) = people.get(subject.as_bytes()) else {
            return Ok(None);
        };
        // Erased here as well, then or later: what is left came after that.
        if view.tombstone_of(user)?.is_some_and(|tombstone| tombstone.time >= time) {
            return Ok(None);
        }
        let (before, later): (Vec<_>, Vec<_>) =
            grains.iter().partition(|grain| grain.created_at <= time);
        let addresses = before.into_iter().map(|grain| grain.address).collect();
        let (user_id, has_later) = (Some(user.clone()), !later.is_empty());
        Ok(Some(Returned { sequence, time, user_id, addresses, has_later }))
    }
}

impl Returned {
    /// One problem a grain, for [`VerifyReport::with_problem`](crate::VerifyReport::with_problem).
    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        self.addresses.iter().map(|address| {
            let (sequence, ms) = (self.sequence, self.time.get());
            let detail = format!(
                "it was erased at {ms} ms, as the certificate of entry {sequence} tells, and is here again"
            );
            Problem::of_returned(address, detail)
        })
    }
}

impl Session {
    /// Erases once more what [`Store::returned`] names: a user as a whole, where all of theirs is from before
    /// their erasure, else grain by grain. What stands against an erasure stands against this one.
    ///
    /// # Errors
    /// As [`Store::returned`] and [`Session::erase_user`]; what was erased before one that is refused stays
    /// erased.
    pub fn erase_returned(
        &self,
        certificates: &[ErasureCertificate],
        reason: &str,
        how: &EraseOptions,
    ) -> Result<Vec<EraseOutcome>> {
        // Who may not erase is told nothing of what there is.
        self.author_to_erase(None, reason)?;
        let mut erasures = Vec::new();
        for returned in self.store().returned(certificates)? {
            match returned.user_id.as_deref().filter(|_| !returned.has_later) {
                Some(user) => erasures.push(self.erase_user(user, reason, how)?),
                None => {
                    for address in &returned.addresses {
                        erasures.push(self.erase(address, reason, how)?);
                    }
                }
            }
        }
        Ok(erasures)
    }
}

/// Everybody who has grains here.
fn people_of(view: &View) -> Result<People> {
    let chain = view.chain_before_genesis()?;
    let mut people = People::new();
    let mut known: HashMap<String, [u8; 32]> = HashMap::new();
    for at in 1..=view.last_sequence()?.get() {
        let at = Sequence::new(at);
        if view.stub_at(at)?.is_some() || view.is_erased(at)? {
            continue;
        }
        let told = view.with_blob(at, |blob| {
            let address = ContentAddress::of(blob);
            with_fields(blob, |grain| {
                let created_at = EpochMs::new(grain.int("created_at").unwrap_or_default());
                Ok(grain
                    .text("user_id")
                    .map(|user| (user.to_owned(), Theirs { address, created_at })))
            })
        })?;
        let Some((user, theirs)) = told else { continue };
        let subject = *known.entry(user.clone()).or_insert_with(|| {
            // As the audit log has it.
            let token = ContentAddress::from_bytes(chain.user_token(&user).0);
            *view.vault().address_key(&token).as_bytes()
        });
        people.entry(subject).or_insert_with(|| (user, Vec::new())).1.push(theirs);
    }
    Ok(people)
}

fn no_erasure(sequence: u64) -> Error {
    let kind = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
    Error::new(kind, format!("entry {sequence} tells of no erasure that was done"))
        .with_hint("give a certificate as an erasure has answered it")
}
