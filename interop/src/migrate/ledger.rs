//! What came into the store before: of each record of a source the grain it became, in rows that go with the grain, and of
//! each id that it was here, in rows that stay.
//!
//! Knows ids and addresses, not what records say. A record whose grain was erased has the second row alone. Before grains
//! are written, that row names them: so what an interrupted run has left is found, and what of it was erased.

use std::collections::HashSet;

use grainstore::{ContentAddress, ErrorKind, Owner, RowChange, Session};
use sha2::{Digest, Sha256};

use crate::error::Result;

/// The name under which the store keeps the rows.
const APPLICATION: &str = "migrate";
/// The table of what records became.
const GRAINS: u8 = 1;
/// The table of the ids that were here. Its rows are empty, unless grains were on their way.
const IDS: u8 = 2;
/// The form of the rows, in front of each.
const ROW_FORM: u8 = 1;

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
    /// Whether an interrupted run has stored the grain, and no row that leads to it.
    pub(super) is_left: bool,
}

/// What the store knows of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing.
    New,
    /// It became a grain.
    Here(Entry),
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

/// Returns what the store knows of a record.
///
/// # Errors
/// Those of [`Session::row`], but for a grain that is not shown.
pub(super) fn known(session: &Session, identity: &Identity) -> Result<Known> {
    match session.row(APPLICATION, GRAINS, identity.0.as_slice()) {
        Ok(Some(row)) => {
            // A row of another form is as good as none: the record is compared with the store by its bytes.
            if let Some(entry) = Entry::of_row(&row) {
                // A change of it may have been on its way.
                let left = session.row(APPLICATION, IDS, identity.0.as_slice())?;
                let left = left.filter(|row| !row.is_empty());
                let left = left.map(|row| on_its_way(session, &row)).transpose()?.flatten();
                return Ok(left.unwrap_or(Known::Here(entry)));
            }
        }
        Ok(None) => {}
        Err(error) => match error.kind() {
            ErrorKind::Withdrawn | ErrorKind::Policy => return Ok(Known::Hidden),
            ErrorKind::Erased => return Ok(Known::Erased),
            _ => return Err(error.into()),
        },
    }
    match session.row(APPLICATION, IDS, identity.0.as_slice())? {
        Some(row) if row.is_empty() => Ok(Known::Erased),
        Some(row) => Ok(on_its_way(session, &row)?.unwrap_or(Known::New)),
        None => Ok(Known::New),
    }
}

/// Returns what became of grains that were on their way; `None` if none of them arrived.
fn on_its_way(session: &Session, row: &[u8]) -> Result<Option<Known>> {
    for entry in Entry::of_intent(row).into_iter().rev() {
        match session.inspect(&entry.head) {
            Ok(_) => return Ok(Some(Known::Here(entry))),
            Err(error) => match error.kind() {
                ErrorKind::NotFound => {}
                ErrorKind::Erased => return Ok(Some(Known::Erased)),
                ErrorKind::Withdrawn | ErrorKind::Policy => return Ok(Some(Known::Hidden)),
                _ => return Err(error.into()),
            },
        }
    }
    Ok(None)
}

/// The row that says that these versions of a record are on their way, oldest first: each grain with the name of the
/// version; the digest is that of the last.
pub(super) fn intent<'v>(
    identity: &Identity,
    digest: &[u8; 32],
    versions: impl Iterator<Item = (&'v ContentAddress, &'v str)>,
) -> RowChange {
    let mut row = vec![ROW_FORM];
    row.extend_from_slice(digest);
    for (address, version) in versions {
        row.extend_from_slice(address.as_bytes());
        // Long names are kept as hashes.
        let length = u8::try_from(version.len()).unwrap_or_default();
        row.push(length);
        row.extend_from_slice(version.as_bytes().get(..usize::from(length)).unwrap_or_default());
    }
    RowChange::put(APPLICATION, IDS, identity.0.as_slice(), row)
}

/// The rows of a record that became a grain.
pub(super) fn changes(identity: &Identity, entry: &Entry) -> [RowChange; 2] {
    let key = identity.0.as_slice();
    let grain = RowChange::put(APPLICATION, GRAINS, key, entry.to_row());
    [grain.owner(Owner::Grain(entry.head)), RowChange::put(APPLICATION, IDS, key, [])]
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
        let is_ended = ended != 0;
        (form == ROW_FORM).then_some(Self { head, digest, is_ended, version, is_left: false })
    }

    /// The versions that were on their way, oldest first. Only of the last one it is known what it says.
    fn of_intent(row: &[u8]) -> Vec<Self> {
        let mut entries = Vec::new();
        let Some((&ROW_FORM, row)) = row.split_first() else { return entries };
        let Some((&digest, mut row)) = row.split_first_chunk::<32>() else { return entries };
        while let Some((head, rest)) = row.split_first_chunk::<32>()
            && let Some((&length, rest)) = rest.split_first()
            && let Some((version, rest)) = rest.split_at_checked(usize::from(length))
        {
            let head = ContentAddress::from_bytes(*head);
            let version = String::from_utf8_lossy(version).into_owned();
            entries.push(Self { head, digest: [0; 32], is_ended: false, version, is_left: true });
            row = rest;
        }
        if let Some(last) = entries.last_mut() {
            last.digest = digest;
        }
        entries
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
        let version = "2".to_owned();
        let entry = Entry { head, digest: [7; 32], is_ended: true, version, is_left: false };
        let row = entry.to_row();
        assert_eq!((row.len(), row[0], row[65], row[66]), (67, 1, 1, b'2'));
        assert_eq!(Entry::of_row(&row), Some(entry));
        for end in 0..66 {
            assert_eq!(Entry::of_row(&row[..end]), None);
        }
        assert_eq!(Entry::of_row(&[&[2], &row[1..]].concat()), None);
    }

    #[test]
    fn versions_on_their_way_come_back_in_order() {
        let identity = Identity([1; 32]);
        let (one, two) = (ContentAddress::of(b"1"), ContentAddress::of(b"2"));
        let change = intent(&identity, &[7; 32], [(&one, "a"), (&two, "")].into_iter());
        let text = format!("{change:?}");
        assert!(!text.is_empty());
        let row = [&[1][..], &[7; 32], one.as_bytes(), &[1], b"a", two.as_bytes(), &[0]].concat();
        let entries = Entry::of_intent(&row);
        let found: Vec<_> =
            entries.iter().map(|it| (it.head, it.digest[0], &*it.version, it.is_left)).collect();
        assert_eq!(found, [(one, 0, "a", true), (two, 7, "", true)]);
        for end in 0..row.len() {
            assert!(Entry::of_intent(&row[..end]).len() < 2);
        }
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
