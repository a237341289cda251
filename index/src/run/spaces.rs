//! The namespaces that a posting list of a run has rows of: found once, then kept in memory with the run. A look-up in
//! several namespaces passes over those the list has nothing of, without reading a block for each.

use std::sync::Arc;

use super::cursor::RunCursor;
use super::lists::RunList;
use super::table::Run;
use crate::error::Result;
use crate::keys;
use crate::posting_lists::{NAMESPACE_BYTES, PostingList};
use crate::term::TermId;

/// Most namespaces that are kept of a list: each takes a seek to find.
const MAX_KEPT: usize = 16_384;

/// Those of `asked`, ascending, that a list of a run may have rows of. They are found for good if about as many are asked
/// for as the store has, which are `all`: a look-up in few of many does not pay for it.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn those_in(
    run: &Arc<Run>,
    list: PostingList,
    asked: &[TermId],
    all: impl FnOnce() -> Result<u64>,
) -> Result<Vec<TermId>> {
    const LEAST_SHARE: u64 = 8;
    let known = run.namespaces(list);
    if known.get().is_none() && (asked.len() as u64).saturating_mul(LEAST_SHARE) >= all()? {
        let found = find(run, list)?;
        known.get_or_init(|| found);
    }
    let Some(Some(known)) = known.get() else { return Ok(asked.to_vec()) };
    let (mut shared, mut asked) = (Vec::new(), asked);
    for namespace in known {
        let (_, from) = asked.split_at(asked.partition_point(|at| at < namespace));
        asked = from;
        shared.extend(asked.first().filter(|at| *at == namespace));
    }
    Ok(shared)
}

/// The namespaces of a list, ascending; `None` if they are too many.
fn find(run: &Arc<Run>, list: PostingList) -> Result<Option<Box<[TermId]>>> {
    let mut cursor = RunCursor::new(run, RunList::from(list));
    let (mut found, mut from) = (Vec::new(), [0; NAMESPACE_BYTES]);
    while cursor.seek(&from)? {
        let Some(namespace) = keys::namespace_of(&keys::key_of(list, cursor.key())) else { break };
        if found.len() == MAX_KEPT {
            return Ok(None);
        }
        found.push(namespace);
        let Ok(next) = u32::try_from(namespace.next().get()) else { break };
        from = next.to_be_bytes();
    }
    Ok(Some(found.into()))
}
