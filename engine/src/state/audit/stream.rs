//! The record of a streamed call in the audit log (CAL 21): events, how it ended, never contents.

use grainstore_format::{Map, Value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Outcome of a call's event stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamRecord {
    pub(crate) options: String,
    pub(crate) events: u64,
    pub(crate) cancelled: Option<&'static str>,
    pub(crate) sources_failed: u64,
    /// Grains of the text, once an event said so.
    pub(crate) given: Option<u64>,
}

/// The part of an audit entry that describes the event stream of a call
/// ([`Session::stream`](crate::Session::stream)).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditedStream {
    /// The events requested and the size of a chunk: `chunks, chunk_size = 100`.
    pub options: String,
    /// Events handed over, including the last one even if it was refused.
    pub events_emitted: u64,
    /// Reason of a cancellation: `host`, or `listener` if the listener stopped taking events.
    pub cancel_reason: Option<String>,
    /// Number of sources that failed.
    pub sources_failed: u64,
}

impl Serialize for AuditedStream {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let options = self.options.split(", ").filter(|option| !option.is_empty());
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("stream_enabled", &true)?;
        map.serialize_entry("stream_options", &options.collect::<Vec<_>>())?;
        map.serialize_entry("events_emitted", &self.events_emitted)?;
        map.serialize_entry("cancelled", &self.is_cancelled())?;
        if let Some(reason) = &self.cancel_reason {
            map.serialize_entry("cancel_reason", reason)?;
        }
        map.serialize_entry("sources_failed", &self.sources_failed)?;
        map.end()
    }
}

impl StreamRecord {
    /// Grains of its text, of which any may have been handed over; `None` if the stream ended before its text
    /// was chosen.
    pub(crate) fn given(&self) -> Option<u64> {
        self.given
    }

    /// The public form of this record.
    pub(crate) fn entry(&self) -> AuditedStream {
        AuditedStream {
            options: self.options.clone(),
            events_emitted: self.events,
            cancel_reason: self.cancelled.map(str::to_owned),
            sources_failed: self.sources_failed,
        }
    }

    /// Its fields in the map of an audit entry.
    pub(crate) fn fields(&self) -> Map {
        let mut fields = Map::from([
            ("stream_enabled".to_owned(), Value::from(true)),
            ("stream_options".to_owned(), Value::from(self.options.as_str())),
            ("events_emitted".to_owned(), Value::from(self.events)),
            ("cancelled".to_owned(), Value::from(self.cancelled.is_some())),
            ("sources_failed".to_owned(), Value::from(self.sources_failed)),
        ]);
        fields.extend(self.cancelled.map(|why| ("cancel_reason".to_owned(), Value::from(why))));
        fields
    }
}

impl AuditedStream {
    /// Decodes its fields from the map of an audit entry; `None` if the call was not streamed.
    pub(crate) fn of(fields: &Map) -> Option<Self> {
        let count = |name: &str| u64::try_from(fields.get(name)?.as_i64()?).ok();
        let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
        Some(Self {
            options: text("stream_options")?,
            events_emitted: count("events_emitted")?,
            cancel_reason: text("cancel_reason"),
            sources_failed: count("sources_failed")?,
        })
    }

    /// Returns `true` if it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel_reason.is_some()
    }
}
