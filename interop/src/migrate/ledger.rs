//! What came into the store before: of each record of a source the grain it became, in rows that go with the grain, and of
//! each id that it was here, in rows that stay.
//!
//! Knows ids and addresses, not what records say. A record whose grain was erased has the second row alone. While its
//! grains are on their way, that row names them: a run that ends between the grains and their rows is known by it.

use std::collections::HashSet;

use grainstore::{ContentAddress, ErrorKind, Owner, RowChange, Session};
use sha2::{Digest, Sha256};

use crate::error::Result;

/// The name under which the store keeps the rows.
const APPLICATION: &str = "migrate";
/// The table of what records became.
const GRAINS: u8 = 1;
/// The table of the ids that were here. Its rows are empty, or name the grains that are on their way.
const IDS: u8 = 2;
/// The form of the rows, in front of each.
const ROW_FORM: u8 = 1;
/// Versions that a row names at most: of more the newest ones.
const MAX_INTENDED: usize = 4000;

/// Which record of which source, hashed: the rows tell no ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity([u8; 32]);

/// Where records come from and go to: the same id in another format, or meant for another namespace or user, is another
/// record.
#[derive(Debug)]
pub(super) struct Origin<'o> {
    pub(super) format: &'static str,
    pub(super) namespace: Option<&'o str>,
    pub(super) user: Option<&'o str>,
}

/// What a record became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The newest grain of it.
    pub(super) head: ContentAddress,
    /// The hash of the record that the grain was made of.
    pub(super) digest: [u8; 32],
    /// Whether it was ended.
    pub(super) is_ended: bool,
    /// The version it is, in its source.
    pub(super) version: String,
}

/// What the store knows of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing.
    New,
    /// It became a grain.
    Here(Entry),
    /// It became a grain in a run that ended before its rows were written.
    Unfinished(Entry),
    /// It was here, and was erased.
    Erased,
    /// It is here, and is not shown: for a consent that was withdrawn, or a rule.
    Hidden,
}

impl Origin<'_> {
    pub(super) fn identity(&self, id: &str) -> Identity {
        let mut hash = Sha256::new();
        for part in [self.format, self.namespace.unwrap_or(""), self.user.unwrap_or(""), id] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Identity(hash.finalize().into())
    }
}

impl Identity {
    /// Half of it, which tells records of one run apart.
    pub(super) fn short(&self) -> u128 {
        let mut half = [0; 16];
        for (to, from) in half.iter_mut().zip(self.0) {
            *to = from;
        }
        u128::from_be_bytes(half)
    }
}

/// What a run is about to write of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Intent {
    /// Whether nothing of the record was here before.
    pub(super) is_new: bool,
    /// The versions, oldest first.
    pub(super) versions: Vec<Entry>,
}

/// Returns what the store knows of a record.
///
/// # Errors
/// Those of [`Session::row`] and [`Session::inspect`], but for a grain that is not shown.
pub(super) fn known(session: &Session, identity: &Identity) -> Result<Known> {
    let here = match session.row(APPLICATION, GRAINS, identity.0.as_slice()) {
        // A row of another form is as good as none: the record is compared with the store by its bytes.
        Ok(row) => row.and_then(|row| Entry::of_row(&row)),
        Err(error) => return not_shown(error),
    };
    let id = session.row(APPLICATION, IDS, identity.0.as_slice())?;
    let intent = id.as_deref().and_then(Intent::of_row);
    if let Some(intent) = &intent
        && let Some(known) = intent.written(session)?
    {
        return Ok(known);
    }
    Ok(match (here, id) {
        (Some(entry), _) => Known::Here(entry),
        (None, Some(_)) if intent.is_none_or(|intent| !intent.is_new) => Known::Erased,
        (None, _) => Known::New,
    })
}

/// What is known of a record whose grain is not shown.
fn not_shown(error: grainstore::Error) -> Result<Known> {
    match error.kind() {
        ErrorKind::Withdrawn | ErrorKind::Policy => Ok(Known::Hidden),
        ErrorKind::Erased => Ok(Known::Erased),
        _ => Err(error.into()),
    }
}

/// The rows of a record that became a grain.
pub(super) fn changes(identity: &Identity, entry: &Entry) -> [RowChange; 2] {
    let key = identity.0.as_slice();
    let grain = RowChange::put(APPLICATION, GRAINS, key, entry.to_row());
    [grain.owner(Owner::Grain(entry.head)), RowChange::put(APPLICATION, IDS, key, [])]
}

/// The row that names what a run is about to write: it is written before the grains.
pub(super) fn intended(identity: &Identity, intent: &Intent) -> RowChange {
    RowChange::put(APPLICATION, IDS, identity.0.as_slice(), intent.to_row())
}

/// The row of a record of which nothing was written: as it was before.
pub(super) fn given_up(identity: &Identity, is_new: bool) -> RowChange {
    let key = identity.0.as_slice();
    match is_new {
        true => RowChange::remove(APPLICATION, IDS, key),
        false => RowChange::put(APPLICATION, IDS, key, []),
    }
}

impl Intent {
    /// What became of it: the newest version that was written; `None` if none was.
    fn written(&self, session: &Session) -> Result<Option<Known>> {
        for entry in self.versions.iter().rev() {
            match session.inspect(&entry.head) {
                Ok(_) => return Ok(Some(Known::Unfinished(entry.clone()))),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return not_shown(error).map(Some),
            }
        }
        Ok(None)
    }

    /// The form: one byte for the form, one that says whether it is new, then each version as two bytes of its length and
    /// its row.
    fn to_row(&self) -> Vec<u8> {
        let mut row = vec![ROW_FORM, u8::from(self.is_new)];
        let left_out = self.versions.len().saturating_sub(MAX_INTENDED);
        for version in self.versions.iter().skip(left_out).map(Entry::to_row) {
            row.extend_from_slice(&u16::try_from(version.len()).unwrap_or(u16::MAX).to_be_bytes());
            row.extend_from_slice(&version);
        }
        row
    }

    /// `None` for the row of a record that is not on its way.
    fn of_row(row: &[u8]) -> Option<Self> {
        let (&[form, is_new], mut row) = row.split_first_chunk::<2>()?;
        let mut versions = Vec::new();
        while let Some((&length, rest)) = row.split_first_chunk::<2>() {
            let (version, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(length)))?;
            versions.push(Entry::of_row(version)?);
            row = rest;
        }
        let is_whole = form == ROW_FORM && row.is_empty();
        is_whole.then_some(Self { is_new: is_new != 0, versions })
    }
}

impl Entry {
    /// The form: one byte for the form, 32 of the address, 32 of the digest, one for the end, then the version.
    fn to_row(&self) -> Vec<u8> {
        let mut row = vec![ROW_FORM];
        row.extend_from_slice(self.head.as_bytes());
        row.extend_from_slice(&self.digest);
        row.push(u8::from(self.is_ended));
        row.extend_from_slice(self.version.as_bytes());
        row
    }

    fn of_row(row: &[u8]) -> Option<Self> {
        let (&form, row) = row.split_first()?;
        let (head, row) = row.split_first_chunk::<32>()?;
        let (&digest, row) = row.split_first_chunk::<32>()?;
        let (&ended, version) = row.split_first()?;
        let version = String::from_utf8(version.to_vec()).ok()?;
        let head = ContentAddress::from_bytes(*head);
        (form == ROW_FORM).then_some(Self { head, digest, is_ended: ended != 0, version })
    }
}

/// The records of one run, to find the ones that are twice in it.
#[derive(Debug, Default)]
pub(super) struct Seen(HashSet<u128>);

impl Seen {
    /// Returns `true` the first time.
    pub(super) fn is_first(&mut self, identity: &Identity) -> bool {
        self.0.insert(identity.short())
    }

    pub(super) fn has(&self, identity: &Identity) -> bool {
        self.0.contains(&identity.short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_these_bytes() {
        let head = ContentAddress::of(b"tea");
        let entry = Entry { head, digest: [7; 32], is_ended: true, version: "2".to_owned() };
        let row = entry.to_row();
        assert_eq!((row.len(), row[0], row[65], row[66]), (67, 1, 1, b'2'));
        assert_eq!(Entry::of_row(&row), Some(entry));
        for end in 0..66 {
            assert_eq!(Entry::of_row(&row[..end]), None);
        }
        assert_eq!(Entry::of_row(&[&[2], &row[1..]].concat()), None);
    }

    #[test]
    fn a_row_names_the_versions_that_are_on_their_way() {
        let entry = |version: u32| {
            let head = ContentAddress::of(&version.to_be_bytes());
            Entry { head, digest: [7; 32], is_ended: false, version: version.to_string() }
        };
        let intent = Intent { is_new: true, versions: vec![entry(0), entry(10)] };
        let row = intent.to_row();
        assert_eq!((row.len(), &row[..4]), (2 + 2 + 67 + 2 + 68, [1, 1, 0, 67].as_slice()));
        assert_eq!(Intent::of_row(&row), Some(intent));
        assert_eq!(Intent::of_row(&[]), None);
        assert_eq!(Intent::of_row(&row[..row.len() - 1]), None);
        let many = Intent { is_new: false, versions: (0..5000).map(entry).collect() };
        let kept = Intent::of_row(&many.to_row()).map(|intent| intent.versions);
        assert_eq!(kept.as_deref(), Some(&many.versions[1000..]));
    }

    #[test]
    fn another_format_namespace_or_user_is_another_record() {
        let origin = |format, namespace, user| Origin { format, namespace, user }.identity("a");
        let all = [
            origin("mem0", None, None),
            origin("letta", None, None),
            origin("mem0", Some("x"), None),
            origin("mem0", None, Some("x")),
        ];
        let distinct: HashSet<_> = all.iter().map(Identity::short).collect();
        assert_eq!(distinct.len(), all.len());
    }
}
