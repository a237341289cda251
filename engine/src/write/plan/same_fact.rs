//! Current grains that state the same fact as a grain that is put, or another one of its subject and relation.
//!
//! Both are decided among what the caller sees, staged by earlier members of the group or stored.

use std::cmp::Reverse;

use grainstore_format::{ContentAddress, EpochMs, Grain, GrainRef, Value};
use grainstore_index::{
    IndexLookup, Object, Posting, Scope, Sequence, TimeOrder, TimeRange, object_hash,
};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::state::visibility::Visibility;

use super::{Principal, WritePlan};

/// Fields that identify a fact, together with type and namespace.
const FACT_FIELDS: &[&str] = &["subject", "relation", "object"];
/// Fields of which one fact is current, where a put is to be the only one.
const UNIQUE_FIELDS: &[&str] = &["subject", "relation"];
/// What a caller can do about a current fact.
const SUPERSEDE_IT: &str = "supersede that one, or put this one beside it (add)";

impl WritePlan<'_> {
    /// Returns a current grain of the same type, namespace, subject, relation and object that the caller
    /// sees.
    pub(super) fn find_same_fact(
        &self,
        grain: &Grain,
        author: &Principal,
    ) -> Result<Option<ContentAddress>> {
        let (Some(subject), Some(relation), Some(said)) =
            (grain.text("subject"), grain.text("relation"), grain.get("object"))
        else {
            return Ok(None);
        };
        let reach = self.reach_of(author);
        for staged in self.grains.iter().rev() {
            if has_same(FACT_FIELDS, &staged.prepared.grain, grain)
                && self.state(staged.sequence)?.is_current_at(self.now)
                && reach.is_blob_visible(staged.sequence, staged.prepared.blob.bytes())?
            {
                return Ok(Some(staged.prepared.blob.address()));
            }
        }
        let scope = Scope::Exact(grain.partition().into());
        let (subject, relation) = (Some(subject.into()), Some(relation.into()));
        // Other types of objects are not indexed.
        let object = match said {
            Value::Str(text) => Some(Object::Text(text.as_str().into())),
            Value::Map(_) => Some(Object::Map(object_hash(said))),
            _ => None,
        };
        let shape = IndexLookup::Triple { subject, relation, object };
        self.view.with_user_index(grain.text("user_id"), |index| {
            let mut newest: Option<(Posting, ContentAddress)> = None;
            for posting in index.scan(&scope, &shape, TimeRange::default(), TimeOrder::Newest)? {
                let posting = posting?;
                // Of several with the same time, the last written one wins.
                match &newest {
                    Some((found, _)) if found.time != posting.time => break,
                    Some((found, _)) if found.sequence > posting.sequence => continue,
                    _ => {}
                }
                if self.view.is_erased(posting.sequence)?
                    || !self.state(posting.sequence)?.is_current_at(self.now)
                {
                    continue;
                }
                let found = self.view.with_blob(posting.sequence, |blob| {
                    let same = with_fields(blob, |view| {
                        Ok(has_same_ref(FACT_FIELDS, view, grain)
                            && reach.is_visible(posting.sequence, view)?)
                    })?;
                    Ok(same.then(|| ContentAddress::of(blob)))
                })?;
                newest = found.map(|address| (posting, address)).or(newest);
            }
            Ok(newest.map(|(_, address)| address))
        })
    }

    /// What the caller sees.
    fn reach_of<'p>(&'p self, author: &'p Principal) -> Visibility<'p> {
        let reach = Visibility::new(&author.viewer, self, self.now);
        match &self.rules {
            Some(rules) => reach.with_rules(rules, &author.purposes),
            None => reach,
        }
    }

    /// Refuses a grain of whose type, namespace, subject and relation another one is current, which the
    /// caller sees and which is not of another user than the grain.
    ///
    /// # Errors
    /// `ERR_CONFLICT`, which names the one that [`Session::latest`](crate::Session::latest) answers.
    pub(super) fn check_unique(&self, grain: &Grain, author: &Principal) -> Result<()> {
        let Some(current) = self.find_of_relation(grain, author)? else { return Ok(()) };
        let message = format!("{current} is current, of the same subject and relation");
        Err(Error::new(ErrorKind::Conflict, message).with_hint(SUPERSEDE_IT))
    }

    /// Like [`WritePlan::check_unique`], for a grain whose bytes are stored: it has to be current itself.
    ///
    /// # Errors
    /// `ERR_CONFLICT`, which names the current one, or the grain itself where none is.
    pub(super) fn check_unique_stored(
        &self,
        (address, at): (&ContentAddress, Sequence),
        grain: &Grain,
        author: &Principal,
    ) -> Result<()> {
        let is_fact = UNIQUE_FIELDS.iter().all(|name| grain.text(name).is_some());
        if !is_fact || self.state(at)?.is_current_at(self.now) {
            return Ok(());
        }
        self.check_unique(grain, author)?;
        let message = format!("{address} is stored already and not current any more");
        Err(Error::new(ErrorKind::Conflict, message)
            .with_hint("put a grain with another created_at"))
    }

    /// Returns the newest current grain of the same type, namespace, subject and relation; of several of one
    /// instant the one with the least address.
    fn find_of_relation(
        &self,
        grain: &Grain,
        author: &Principal,
    ) -> Result<Option<ContentAddress>> {
        let (Some(subject), Some(relation)) = (grain.text("subject"), grain.text("relation"))
        else {
            return Ok(None);
        };
        let reach = self.reach_of(author);
        let mut newest: Option<(EpochMs, Reverse<ContentAddress>)> = None;
        for staged in &self.grains {
            let blob = &staged.prepared.blob;
            if has_same(UNIQUE_FIELDS, &staged.prepared.grain, grain)
                && is_of_its_user(staged.prepared.grain.text("user_id"), grain)
                && self.state(staged.sequence)?.is_current_at(self.now)
                && reach.is_blob_visible(staged.sequence, blob.bytes())?
            {
                newest = newest.max(Some((staged.prepared.grain.time(), Reverse(blob.address()))));
            }
        }
        let scope = Scope::Exact(grain.partition().into());
        let shape = IndexLookup::subject_relation(subject.into(), relation.into());
        let users = [grain.text("user_id"), author.viewer.user_id(), None];
        self.view.with_users_index(&users, |index| {
            for posting in index.scan(&scope, &shape, TimeRange::default(), TimeOrder::Newest)? {
                let posting = posting?;
                if newest.is_some_and(|(time, _)| time > posting.time) {
                    break;
                }
                if self.view.is_erased(posting.sequence)?
                    || !self.state(posting.sequence)?.is_current_at(self.now)
                {
                    continue;
                }
                let found = self.view.with_blob(posting.sequence, |blob| {
                    let counts = with_fields(blob, |view| {
                        Ok(has_same_ref(UNIQUE_FIELDS, view, grain)
                            && is_of_its_user(view.text("user_id"), grain)
                            && reach.is_visible(posting.sequence, view)?)
                    })?;
                    Ok(counts.then(|| (posting.time, Reverse(ContentAddress::of(blob)))))
                })?;
                newest = newest.max(found);
            }
            Ok(())
        })?;
        Ok(newest.map(|(_, Reverse(address))| address))
    }
}

/// Returns `true` unless both grains have a user, and not the same one.
fn is_of_its_user(stored: Option<&str>, grain: &Grain) -> bool {
    let named = |user: &&str| !user.is_empty();
    match (stored.filter(named), grain.text("user_id").filter(named)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// Returns `true` if both grains have the same type, partition and values of these fields.
fn has_same(fields: &[&str], stored: &Grain, grain: &Grain) -> bool {
    stored.grain_type() == grain.grain_type()
        && stored.partition() == grain.partition()
        && fields.iter().all(|name| stored.get(name) == grain.get(name))
}

/// Like [`has_same`], for an encoded grain.
fn has_same_ref(fields: &[&str], stored: &GrainRef<'_>, grain: &Grain) -> bool {
    let same =
        |name: &&str| stored.get(name).map(|value| value.to_value()).as_ref() == grain.get(name);
    stored.grain_type() == grain.grain_type()
        && stored.partition() == grain.partition()
        && fields.iter().all(same)
}
