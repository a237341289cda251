//! `grain put`: stores grains, prints their addresses.
//!
//! Splits the input into batches; the store decides what is accepted.

mod sent;

use std::io::BufRead;

use clap::{Args, ValueEnum};
use grainstore::format::DeviceProfile;
use grainstore::{Clock as _, EpochMs, Grain, Offer, SameFact, SystemClock};
use grainstore_rpc::{PutAnswer, Sensitive, as_sensitive};
use serde_json::{Map, Value, json};

use self::sent::{Stored, batch_of, same_fact_name};
use super::frames;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::{MAX_BLOB_BYTES, MAX_COSE_BYTES, MAX_JSON_BYTES, Source, to_text};
use crate::lines::{Document, Documents};
use crate::names::{SAME_FACT, SENSITIVITIES, named};
use crate::output::{Output, ignore_closed_output};
use crate::reach::Reach;

pub(super) use self::sent::offered;

/// Hint for a JSON grain without `created_at`.
const UNDATED: &str = "say when it was made: created_at as RFC 3339 or in epoch milliseconds; --created-now takes the present";

/// Grains of one batch.
const BATCH_GRAINS: usize = 10_000;
/// Bytes of text of one batch.
const BATCH_BYTES: usize = 16 << 20;

/// Store grains and print their addresses
///
/// Reads JSON: one grain a line, or one grain over several lines, or one after the other. A file of
/// up to 10,000 grains (16 MiB of text) is stored whole or, when one grain is refused, not at all. A
/// longer file is stored in batches of that size, each whole or not at all; an error then says how
/// many grains of earlier batches are stored, and the same file can be put again: what is stored
/// already counts as a duplicate. With another --same-fact than add every grain is a batch of its own.
#[derive(Debug, Args)]
pub(crate) struct Put {
    /// What to read; - or nothing for stdin
    #[arg(value_name = "FILE|-", default_value = "-")]
    source: Source,
    /// json: text with full field names; mg: one raw blob; cose: one signed grain
    #[arg(long, value_enum, default_value_t)]
    format: PutFormat,
    /// Read a stream of frames: raw blobs and signed grains, as `grain frames pack` writes them. It is stored in
    /// batches, those before an error with it
    #[arg(long, conflicts_with_all = ["format", "created_now", "sensitivity"])]
    frames: bool,
    /// What to do where a current grain says the same: type, namespace, subject, relation, object (unique: whatever
    /// its object)
    #[arg(
        long,
        value_parser = named::<SameFact>(SAME_FACT),
        default_value = "add",
        value_name = "CHOICE"
    )]
    same_fact: SameFact,
    /// Give JSON grains without a created_at the present; without this they are refused
    #[arg(long, conflicts_with = "format")]
    created_now: bool,
    /// The sensitivity of JSON grains, where that is higher than their tags require; a lower one is refused
    #[arg(
        long,
        value_parser = named::<Sensitive>(SENSITIVITIES),
        value_name = "LEVEL",
        conflicts_with = "format"
    )]
    sensitivity: Option<Sensitive>,
}

/// Input formats of grains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PutFormat {
    /// JSON or JSON Lines
    #[default]
    Json,
    /// One raw blob
    Mg,
    /// One signed grain: a COSE_Sign1 around its blob
    Cose,
}

impl PutFormat {
    /// Returns the grain of a binary format, `None` for text.
    pub(crate) fn read(self, source: &Source, output: &mut Output<'_>) -> Result<Option<Offer>> {
        Ok(match self {
            Self::Json => None,
            Self::Mg => Some(Offer::Blob(source.read(MAX_BLOB_BYTES, output)?)),
            Self::Cose => Some(Offer::Signed(source.read(MAX_COSE_BYTES, output)?)),
        })
    }
}

impl Put {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let mut writer = Writer { reach: context.reach()?, same_fact: self.same_fact, stored: 0 };
        if let Some(offer) = self.format.read(&self.source, &mut context.output)? {
            let batch = Batch { lines: Vec::new(), bytes: 0, offers: vec![offer] };
            return writer.store(batch, &mut context.output);
        }
        let reader = self.source.open(&mut context.output)?;
        if self.frames {
            return writer.store_frames(reader, &mut context.output);
        }
        let mut documents = Documents::new(reader, MAX_JSON_BYTES);
        loop {
            let batch = self
                .batch(&mut documents, &writer)
                .map_err(|error| writer.with_stored_count(error))?;
            let ended = !batch.is_full();
            if !batch.offers.is_empty() {
                writer.store(batch, &mut context.output)?;
            }
            if ended {
                if writer.stored == 0 {
                    context.output.note("there was no grain in it");
                }
                return Ok(());
            }
            context.note_progress(&format!("{} grains are stored in", writer.stored));
        }
    }

    /// Reads the next batch.
    fn batch(&self, documents: &mut Documents<impl BufRead>, writer: &Writer) -> Result<Batch> {
        let mut batch = Batch::default();
        while !batch.is_full() {
            match documents.next().map_err(|error| self.source.read_error(&error))? {
                None => break,
                Some(Document::TooLong(line)) => {
                    let message =
                        format!("line {line}: a grain of more than {MAX_JSON_BYTES} bytes");
                    return Err(Error::new(Code::TooLarge, message, "a blob has at most 1 MiB"));
                }
                Some(Document::Text(line, json)) => {
                    let bytes = json.len();
                    let created = self.created_now.then(|| writer.now());
                    let grain = parse_grain(json, created)
                        .map_err(|error| error.in_context(&line_label(line)))?;
                    let offer = as_sensitive(Offer::Grain(grain), self.sensitivity)
                        .map_err(|error| error.in_context(&line_label(line)))?;
                    batch.push(line, bytes, offer);
                }
            }
        }
        Ok(batch)
    }
}

/// Grains of one batch, with the lines they begin on.
#[derive(Debug, Default)]
struct Batch {
    /// One for each grain; empty if the input has no lines.
    lines: Vec<u64>,
    bytes: usize,
    offers: Vec<Offer>,
}

impl Batch {
    fn push(&mut self, line: u64, bytes: usize, offer: Offer) {
        self.lines.push(line);
        self.bytes = self.bytes.saturating_add(bytes);
        self.offers.push(offer);
    }

    fn is_full(&self) -> bool {
        self.offers.len() >= BATCH_GRAINS || self.bytes >= BATCH_BYTES
    }
}

/// Stores batches and prints their results.
struct Writer {
    reach: Reach,
    same_fact: SameFact,
    /// Grains of earlier batches, which stay stored whatever follows.
    stored: usize,
}

impl Writer {
    fn store(&mut self, batch: Batch, output: &mut Output<'_>) -> Result<()> {
        let Batch { lines, offers, .. } = batch;
        let warnings: Vec<_> = offers.iter().map(Offer::warnings).collect();
        let mut told = lines.iter().map(Some).chain(std::iter::repeat(None)).zip(warnings);
        let Some(session) = self.reach.session() else {
            return self.send(&lines, &offers, output);
        };
        if self.same_fact == SameFact::Add {
            let puts =
                session.put_batch(offers).map_err(|error| self.refused(error.into(), &lines));
            for (put, told) in puts?.into_iter().zip(told) {
                let (line, warnings) = told;
                self.print(&PutAnswer::new(put, warnings), line, output)?;
            }
            return ignore_closed_output(output.flush());
        }
        for offer in offers {
            let (line, warnings) = told.next().unwrap_or_default();
            let put = session.put_fact(offer, self.same_fact);
            let put = put.map_err(|error| self.with_stored_count(with_line(error.into(), line)))?;
            self.print(&PutAnswer::new(put, warnings), line, output)?;
            ignore_closed_output(output.flush())?;
        }
        Ok(())
    }

    /// Has the process that has the store open store a batch.
    fn send(&mut self, lines: &[u64], offers: &[Offer], output: &mut Output<'_>) -> Result<()> {
        if self.same_fact == SameFact::Add {
            let asked = batch_of(offers)?;
            let puts = self.reach.read("put_batch", &asked);
            let Stored { results } = puts.map_err(|error| self.refused(error, lines))?;
            for (at, put) in results.into_iter().enumerate() {
                self.print(&put, lines.get(at), output)?;
            }
            return ignore_closed_output(output.flush());
        }
        for (at, offer) in offers.iter().enumerate() {
            let line = lines.get(at);
            let mut asked = offered(offer)?;
            asked.insert("same_fact".to_owned(), json!(same_fact_name(self.same_fact)));
            let put = self.reach.read("put", &asked);
            let put = put.map_err(|error| self.with_stored_count(with_line(error, line)))?;
            self.print(&put, line, output)?;
            ignore_closed_output(output.flush())?;
        }
        Ok(())
    }

    /// The error of a batch, with the line it is about.
    fn refused(&self, error: Error, lines: &[u64]) -> Error {
        let line = error.batch_index().unwrap_or_default();
        self.with_stored_count(with_line(error, lines.get(line)))
    }

    /// The present, by the clock of the store where it is open here.
    fn now(&self) -> EpochMs {
        self.reach.session().map_or_else(|| SystemClock.now(), |session| session.now())
    }

    /// Stores a stream of frames.
    fn store_frames(&mut self, reader: impl BufRead, output: &mut Output<'_>) -> Result<()> {
        let mut batch = Batch::default();
        for entry in frames::read(reader, DeviceProfile::EXTENDED) {
            let entry = entry.map_err(|error| self.with_stored_count(error))?;
            batch.bytes = batch.bytes.saturating_add(entry.bytes().len());
            batch.offers.push(match entry.envelope() {
                Some(envelope) => Offer::Signed(envelope.to_vec()),
                None => Offer::Blob(entry.bytes().to_vec()),
            });
            if batch.is_full() {
                self.store(std::mem::take(&mut batch), output)?;
            }
        }
        if !batch.offers.is_empty() {
            self.store(batch, output)?;
        }
        if self.stored == 0 {
            output.note("there was no grain in it");
        }
        Ok(())
    }

    /// Prints the result of a put. A closed stdout does not stop the storing.
    fn print(
        &mut self,
        put: &PutAnswer,
        line: Option<&u64>,
        output: &mut Output<'_>,
    ) -> Result<()> {
        self.stored = self.stored.saturating_add(1);
        ignore_closed_output(if output.is_json() {
            output.json_line(put)
        } else {
            let printed = output.line(&put.address.to_string());
            let at = line.map(|line| format!("{}: ", line_label(*line))).unwrap_or_default();
            write_warnings(&at, &put.warnings, output);
            printed
        })
    }

    /// Adds to an error how many grains are stored all the same.
    fn with_stored_count(&self, error: Error) -> Error {
        match self.stored {
            0 => error,
            stored => error.in_context(&format!("after {stored} grains that are stored")),
        }
    }
}

/// Prints warnings about a grain that was stored.
pub(super) fn write_warnings(at: &str, warnings: &[String], output: &mut Output<'_>) {
    for warning in warnings {
        output.note(&format!("warning: {at}{warning}"));
    }
}

/// The grain of a JSON text; `created` is its `created_at` if the text has none.
fn parse_grain(json: Vec<u8>, created: Option<EpochMs>) -> Result<Grain> {
    let json = to_text(json)?;
    let error = match Grain::from_json(&json) {
        Ok(grain) => return Ok(grain),
        Err(error) => Error::from(error),
    };
    let Some(fields) = undated(&json) else { return Err(error) };
    match created {
        None => Err(error.with_hint_for("ERR_SCHEMA", UNDATED)),
        Some(created) => {
            let comma = if fields.trim_start().starts_with('}') { "" } else { "," };
            let created = created.get();
            Ok(Grain::from_json(&format!("{{\"created_at\":{created}{comma}{fields}"))?)
        }
    }
}

/// What follows the brace of a JSON object without `created_at`; `None` for any other text.
fn undated(json: &str) -> Option<&str> {
    let fields: Map<String, Value> = serde_json::from_str(json).ok()?;
    let text = json.trim_start().strip_prefix('{')?;
    (!fields.contains_key("created_at")).then_some(text)
}

/// Stores one grain and prints its address.
pub(super) fn store_one(reach: Reach, offer: Offer, output: &mut Output<'_>) -> Result<()> {
    let batch = Batch { lines: Vec::new(), bytes: 0, offers: vec![offer] };
    Writer { reach, same_fact: SameFact::Add, stored: 0 }.store(batch, output)
}

/// Adds the line that an error is about.
fn with_line(error: Error, line: Option<&u64>) -> Error {
    match line {
        Some(line) => error.in_context(&line_label(*line)),
        None => error,
    }
}

fn line_label(line: u64) -> String {
    format!("line {line}")
}
