//! Methods that read: `get`, `get_batch`, `exists`, `history`, `cal` (which may also write), `audit`.

use std::borrow::Cow;

use grainstore::cal::Tier;
use grainstore::limits::MAX_ENTRIES;
use grainstore::{AuditEntry, ContentAddress};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::calls::tier;
use super::params::{self, address, time};
use crate::error::{Code, Error};
use crate::protocol::answer::{Answer, List};
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::question::Question;
use crate::shape::{AuditAnswer, StoredAnswer, Version};

/// Default number of entries of `audit`.
const DEFAULT_LIMIT: usize = 50;

pub(crate) fn get(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Address = params::read(params)?;
    let session = host.session()?;
    let stored = session.get(&address(&params.address)?)?;
    Answer::of(&StoredAnswer::new(session, &stored)?)
}

pub(crate) fn get_batch(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Addresses = params::read(params)?;
    let session = host.session()?;
    let addresses = params.addresses.all("addresses")?;
    let addresses: Vec<ContentAddress> =
        addresses.iter().map(|text| address(text)).collect::<Result<_, _>>()?;
    let mut grains = List::default();
    // In small batches, so that too large an answer is refused before all of it is read.
    for some in addresses.chunks(16) {
        for stored in session.get_batch(some)? {
            let grain = stored.map(|stored| stored.grain()).transpose()?;
            grains.push(&grain)?;
        }
    }
    Answer::of(&json!({ "grains": grains }))
}

pub(crate) fn exists(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Address = params::read(params)?;
    let exists = host.session()?.exists(&address(&params.address)?)?;
    Answer::of(&json!({ "exists": exists }))
}

pub(crate) fn history(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::History = params::read(params)?;
    let session = host.session()?;
    let found = match &params {
        params::History {
            address: Some(text),
            subject: None,
            relation: None,
            namespace: None,
            as_of: None,
            ..
        } => session.history(&address(text)?)?,
        params::History {
            address: None,
            subject: Some(subject),
            relation: Some(relation),
            namespace,
            as_of,
            ..
        } => session.history_of(subject, relation, namespace.as_deref(), time(*as_of))?,
        _ => {
            let message = "give address alone, or subject and relation (with namespace, as_of)";
            return Err(Fault::params(message));
        }
    };
    let mut versions = List::default();
    let mut cursor = params.cursor.unwrap_or_default();
    for stored in found.into_iter().skip(cursor).take(params.limit.unwrap_or(usize::MAX)) {
        let version = Version::try_from(stored)?;
        versions.push(&version).map_err(|fault| fault.go_on_from(cursor as u64))?;
        cursor = cursor.saturating_add(1);
    }
    Answer::of(&json!({ "versions": versions }))
}

pub(crate) fn cal(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Cal = params::read(params)?;
    let session = host.session()?;
    let query = query_text(&params.query)?;
    let evolve = tier(params.tier)? == Tier::Evolve;
    let question = Question {
        query: query.as_bytes(),
        params: params.params.map(|pairs| pairs.0).unwrap_or_default(),
        format: params.format,
        evolve,
        auto_toon: params.auto_toon,
        now: time(params.now),
        ..Question::default()
    };
    let session = session.narrower_part(params.namespace, params.user_id, params.agent_id)?;
    Answer::of(&question.ask(&session)?)
}

/// Returns the query in the form it was sent: the content of a string, or the text of an object.
pub(crate) fn query_text(query: &RawValue) -> Result<Cow<'_, str>, Fault> {
    let sent = query.get();
    if sent.starts_with('{') {
        return Ok(Cow::Borrowed(sent));
    }
    let text: Result<String, _> = serde_json::from_str(sent);
    let said = "query must be CAL: text in a string, or an object in the JSON form";
    text.map(Cow::Owned).map_err(|_| Fault::params(said))
}

/// The end of the log that a page is from.
#[derive(Debug, Serialize)]
struct Head {
    /// Sequence of the newest entry.
    sequence: u64,
    /// SHA-256 of the newest entry, in hex.
    hash: String,
}

pub(crate) fn audit(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Audit = params::read(params)?;
    let session = host.session()?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    if limit > MAX_ENTRIES {
        let message = format!("at most {MAX_ENTRIES} entries at a time");
        return Err(Error::new(Code::Limit, message, "go on with after").into());
    }
    let reads = params.reads.unwrap_or_default();
    let page = match (&params.by, reads) {
        (Some(actor), false) => session.audit_by(actor, params.after, limit)?,
        (None, false) => session.audit(params.after, limit)?,
        (Some(actor), true) => session.reads_by(actor, params.after, limit)?,
        (None, true) => session.reads(params.after, limit)?,
    };
    let entries = listed(page)?;
    let head = if reads { session.reads_head()? } else { Some(session.audit_head()?) };
    // An empty read log has no entry to name.
    let Some((count, hash)) = head.filter(|(count, _)| *count > 0) else {
        return Answer::of(&json!({ "entries": entries, "head": null }));
    };
    Answer::of(
        &json!({ "entries": entries, "head": Head { sequence: count.saturating_sub(1), hash } }),
    )
}

/// Serialises entries. If they do not fit, the error says to continue after the last that did, or after the
/// first if not even that one fits, since asking for it again would never end.
fn listed(page: Vec<AuditEntry>) -> Result<List, Fault> {
    let mut entries = List::default();
    let mut cursor = page.first().map_or(0, |first| first.sequence);
    for entry in page {
        let sequence = entry.sequence;
        entries.push(&AuditAnswer::from(entry)).map_err(|fault| fault.go_on_from(cursor))?;
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
            status: None,
            refused_by: None,
            import: None,
            reason: Some("x".repeat(bytes)),
            call: None,
            reads: None,
            kid: None,
            count: None,
            consent: None,
        };
        let cursor = |page| {
            let fault = listed(page).err()?;
            fault.cursor()
        };
        assert_eq!(cursor(vec![entry(7, 10), entry(8, 4 << 20)]), None, "it fits");
        assert_eq!(cursor(vec![entry(7, 4 << 20), entry(8, 10), entry(9, 4 << 20)]), Some(8));
        assert_eq!(cursor(vec![entry(7, 9 << 20), entry(8, 10)]), Some(7));
    }
}
