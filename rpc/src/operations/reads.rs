//! Operations that read: `resolve`, `get`, `get_batch`, `exists`, `history`, `audit`.

use grainstore::cal::CancelHandle;
use grainstore::limits::{MAX_AUDIT_ENTRIES, MAX_BATCH};
use grainstore::{AuditEntry, ContentAddress, Session, StoredGrain};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::stream::Events;
use crate::answer::List;
use crate::arguments::epoch_ms;
use crate::error::{Code, Error, Result};
use crate::json::{Address, Few};
use crate::shape::{AuditAnswer, StoredAnswer, Version};

/// Default number of entries of `audit`.
const DEFAULT_LIMIT: usize = 50;

/// Most addresses that `resolve` answers.
const MAX_RESOLVED: usize = 1_000;

/// Finds the addresses that begin with some digits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resolve {
    prefix: String,
    limit: Option<usize>,
}

pub(crate) fn resolve(given: Resolve, session: &Session) -> Result<Value> {
    let limit = given.limit.unwrap_or(2);
    if limit > MAX_RESOLVED {
        let message = format!("at most {MAX_RESOLVED} addresses");
        return Err(Error::new(Code::Limit, message, "give more digits"));
    }
    Ok(json!({ "addresses": session.resolve(&given.prefix, limit)? }))
}

/// Reads a grain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Get {
    address: Address,
}

pub(crate) fn get(given: Get, session: &Session) -> Result<StoredAnswer> {
    StoredAnswer::new(session, &session.get(&given.address.get()?)?)
}

/// Reads the contents of several grains.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetBatch {
    addresses: Few<Address, MAX_BATCH>,
}

pub(crate) fn get_batch(given: GetBatch, session: &Session) -> Result<Value> {
    let addresses = given.addresses.all("addresses")?;
    let addresses: Vec<ContentAddress> =
        addresses.into_iter().map(Address::get).collect::<Result<_>>()?;
    let mut grains = List::default();
    // In small batches, so that too large an answer is refused before all of it is read.
    for some in addresses.chunks(16) {
        for stored in session.get_batch(some)? {
            grains.push(&stored.map(|stored| stored.grain()).transpose()?)?;
        }
    }
    Ok(json!({ "grains": grains }))
}

/// Tells whether the session sees a grain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exists {
    address: Address,
}

pub(crate) fn exists(given: Exists, session: &Session) -> Result<Value> {
    Ok(json!({ "exists": session.exists(&given.address.get()?)? }))
}

/// Reads the versions of a grain, or of what is said of a subject under a relation.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::History;
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let of_tea = History { address: Some(tea.into()), ..History::default() };
/// assert_eq!(of_tea.versions(&session)?.len(), 1);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// A version, without what follows.
    pub address: Option<Address>,
    /// The subject.
    pub subject: Option<String>,
    /// The relation.
    pub relation: Option<String>,
    /// The namespace of the subject.
    pub namespace: Option<String>,
    /// The time at which they were current, in epoch milliseconds.
    pub as_of: Option<i64>,
    /// Versions to skip, the newest first; and the most to answer.
    pub cursor: Option<usize>,
    /// The most to answer.
    pub limit: Option<usize>,
}

impl History {
    /// Returns the versions, newest first.
    pub fn versions(self, session: &Session) -> Result<Vec<StoredGrain>> {
        let Self { address, subject, relation, namespace, as_of, .. } = self;
        match (address, subject, relation) {
            (Some(address), None, None) if namespace.is_none() && as_of.is_none() => {
                Ok(session.history(&address.get()?)?)
            }
            (None, Some(subject), Some(relation)) => {
                let namespace = namespace.as_deref();
                Ok(session.history_of(&subject, &relation, namespace, epoch_ms(as_of))?)
            }
            _ => Err(Error::arguments(
                "give address alone, or subject and relation (with namespace, as_of)",
            )),
        }
    }
}

/// The answer of `history`.
#[derive(Debug, Serialize)]
pub(crate) struct Versions {
    versions: List,
}

pub(crate) fn history(given: History, session: &Session) -> Result<Versions> {
    let mut cursor = given.cursor.unwrap_or_default();
    let limit = given.limit.unwrap_or(usize::MAX);
    let mut versions = List::default();
    for stored in given.versions(session)?.into_iter().skip(cursor).take(limit) {
        let version = Version::try_from(stored)?;
        versions.push(&version).map_err(|error| error.go_on_from(cursor as u64))?;
        cursor = cursor.saturating_add(1);
    }
    Ok(Versions { versions })
}

/// Reads a page of the audit log, or of the read log.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let page = grainstore_rpc::Audit::default().page(&session)?;
/// assert_eq!(page.last().map(|entry| entry.operation.as_str()), Some("put"));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// True for the read log.
    pub reads: Option<bool>,
    /// The actor whose entries are read.
    pub by: Option<String>,
    /// The sequence of the entry before the page.
    pub after: Option<u64>,
    /// The sequence of the last entry of the audit log that is looked at.
    pub to: Option<u64>,
    /// The most entries of the page.
    pub limit: Option<usize>,
}

/// The end of the log that a page is from.
#[derive(Debug, Serialize)]
struct Head {
    /// Sequence of the newest entry.
    sequence: u64,
    /// SHA-256 of the newest entry, in hex.
    hash: String,
}

impl Audit {
    /// Returns the entries of the page.
    pub fn page(&self, session: &Session) -> Result<Vec<AuditEntry>> {
        self.page_until(session, &CancelHandle::new())
    }

    fn page_until(&self, session: &Session, cancel: &CancelHandle) -> Result<Vec<AuditEntry>> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        let reads = self.reads.unwrap_or_default();
        if self.to.is_some() && (self.by.is_some() || reads) {
            let message = "to is for all entries of the audit log, without by and reads";
            return Err(Error::arguments(message));
        }
        Ok(match (&self.by, reads) {
            (Some(actor), false) => session.audit_by(actor, self.after, limit)?,
            (None, false) => {
                session.audit_to(self.after, self.to.unwrap_or(u64::MAX), limit, cancel)?
            }
            (Some(actor), true) => session.reads_by(actor, self.after, limit)?,
            (None, true) => session.reads(self.after, limit)?,
        })
    }
}

/// The answer of `audit`.
#[derive(Debug, Serialize)]
pub(crate) struct Entries {
    entries: List,
    head: Option<Head>,
}

pub(crate) fn audit(given: Audit, session: &Session, events: &mut Events<'_>) -> Result<Entries> {
    if given.limit.is_some_and(|limit| limit > MAX_AUDIT_ENTRIES) {
        let message = format!("at most {MAX_AUDIT_ENTRIES} entries at a time");
        return Err(Error::new(Code::Limit, message, "go on with after"));
    }
    let entries = listed(given.page_until(session, &events.cancel())?)?;
    let head = match given.reads {
        Some(true) => session.reads_head()?,
        _ => Some(session.audit_head()?),
    };
    // An empty read log has no entry to name.
    let head = head.filter(|(count, _)| *count > 0);
    let head = head.map(|(count, hash)| Head { sequence: count.saturating_sub(1), hash });
    Ok(Entries { entries, head })
}

/// Serialises entries. If they do not fit, the error says to continue after the last that did, or after the
/// first if not even that one fits, since asking for it again would never end.
fn listed(page: Vec<AuditEntry>) -> Result<List> {
    let mut entries = List::default();
    let mut cursor = page.first().map_or(0, |first| first.sequence);
    for entry in page {
        let sequence = entry.sequence;
        entries.push(&AuditAnswer::from(entry)).map_err(|error| error.go_on_from(cursor))?;
        cursor = sequence;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use grainstore::EpochMs;

    use super::*;

    #[test]
    fn a_page_that_does_not_fit_says_where_to_go_on_and_never_where_it_began() {
        let entry = |sequence, bytes| AuditEntry {
            sequence,
            time: EpochMs::new(0),
            operation: "hold".to_owned(),
            actor: "operator".to_owned(),
            subjects: Vec::new(),
            decision: "done".to_owned(),
            rules: Vec::new(),
            results: Vec::new(),
            code: None,
            latency_ms: 0,
            segment: None,
            status: None,
            refused_by: None,
            import: None,
            reason: Some("x".repeat(bytes)),
            call: None,
            reads: None,
            kid: None,
            count: None,
            consent: None,
            application: None,
            transfer: None,
        };
        let cursor = |page| {
            let error = listed(page).err()?;
            error.refusal()?.data().get("cursor")?.as_u64()
        };
        assert_eq!(cursor(vec![entry(7, 10), entry(8, 4 << 20)]), None, "it fits");
        assert_eq!(cursor(vec![entry(7, 4 << 20), entry(8, 10), entry(9, 4 << 20)]), Some(8));
        assert_eq!(cursor(vec![entry(7, 9 << 20), entry(8, 10)]), Some(7));
    }
}
