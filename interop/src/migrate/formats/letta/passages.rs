//! The archival passages of an agent, which lie beside its file.

use serde_json::Value;

use super::date_of;
use crate::error::Result;
use crate::migrate::format::Ask;
use crate::migrate::record::{Body, Record, Sink, Who, rest, text, texts};
use crate::migrate::rows::{self, Row};
use crate::migrate::source::Source;
use crate::migrate::time::{Dated, Unit};

/// The archival memory of an agent, as its API lists it.
pub(super) fn passages(
    ask: &Ask<'_>,
    beside: &Source,
    agent: &str,
    sink: &mut dyn Sink,
) -> Result<()> {
    for file in rows::files(beside, sink)? {
        rows::read(beside, file, &["passages", "results"], sink, &mut |row, sink| {
            passage(ask, &row, agent, sink)
        })?;
    }
    Ok(())
}

fn passage(ask: &Ask<'_>, row: &Row, agent: &str, sink: &mut dyn Sink) -> Result<()> {
    let Row { place, members, .. } = row;
    let Some(id) = text(members, "id") else {
        return sink.misshapen(place, "the passage has no id");
    };
    let said = text(members, "text").or_else(|| text(members, "content"));
    let Some(said) = said else { return sink.misshapen(place, "the passage has no text") };
    if members.get("is_deleted").and_then(Value::as_bool) == Some(true) {
        return sink.skip(place, "the passage is marked as deleted");
    }
    // Its vector is of the model of its source; the store makes its own.
    let used = [
        "id",
        "text",
        "content",
        "tags",
        "created_at",
        "timestamp",
        "updated_at",
        "embedding",
        "embedding_config",
        "is_deleted",
    ];
    let user = ask.user.map(str::to_owned);
    let who = Who { user, agent: text(members, "agent_id").map(str::to_owned), ..Who::default() };
    let created = Dated::of(members.get("created_at"), Unit::Seconds);
    let created = created.or(|| Dated::of(members.get("timestamp"), Unit::Seconds));
    let created = created.or(|| Dated::of_file(row.modified));
    let record = Record {
        who,
        tags: texts(members.get("tags")),
        rest: rest(members, &used),
        priority: Some("cold"),
        updated: date_of(members, "updated_at"),
        ..Record::new(place, "archival passage", Body::knows(agent, said), created)
    };
    sink.record(format!("passage {id}"), record)
}
