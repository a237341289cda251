//! Encoding of a group of the read log: consecutive entries, with the values they share written once.
//!
//! | bytes | contents |
//! |---|---|
//! | varint | number of entries in the group |
//! | varint | number of entries lost before it because they could not be written |
//! | 8 | time of the first entry, epoch ms, i64; other times are differences to the previous one |
//! | varint, each varint and bytes | texts |
//! | varint, 32 each | hashes of queries |
//! | varint, four varints each | readers: namespace, user, actor, agent, each a text number from 1, or 0 |
//! | | the entries |
//!
//! An entry: flags (1), number of the statement (1), its reader, its hash, zigzag of the time, the
//! duration (varints); then, if flagged, the results, the code, the token (varints), and of a
//! stream its options, events, failed sources and reason of cancellation, 0 for none (varints).

use crate::state::audit::{CallContext, StreamRecord};
use std::collections::HashMap;
use std::sync::Arc;

use grainstore_cal::StatementType;
use grainstore_format::{ContentAddress, EpochMs};

use crate::base::error::{Error, Result};
use crate::state::audit::{AuditEntry, AuditHashChain};
use crate::state::audit::{AuditedCall, AuditedStream, statement_name};
use crate::state::session_options::SessionOptions;

/// Maximum number of entries in a group.
pub(crate) const MAX_GROUP_ENTRIES: usize = 256;
/// Length of a namespace in bytes beyond which its pseudonym is written.
const MAX_TEXT_BYTES: usize = 256;

const RESULTS: u8 = 1;
const CODE: u8 = 2;
const TOKEN: u8 = 4;
const STREAM: u8 = 8;

/// Statements by their number in an entry, from 1; 0 is no statement.
const STATEMENTS: [StatementType; 13] = [
    StatementType::Recall,
    StatementType::Assemble,
    StatementType::SetOp,
    StatementType::Exists,
    StatementType::History,
    StatementType::Explain,
    StatementType::Describe,
    StatementType::Batch,
    StatementType::Coalesce,
    StatementType::Add,
    StatementType::Supersede,
    StatementType::Revert,
    StatementType::DefineTemplate,
];

/// A CAL call that read, or was refused to, to be written to the read log.
#[derive(Debug, Clone)]
pub(crate) struct ReadRecord {
    pub(crate) query_hash: [u8; 32],
    /// `None` for a text that is no statement.
    pub(crate) statement: Option<StatementType>,
    pub(crate) reader: Arc<SessionOptions>,
    pub(crate) token_id: Option<String>,
    pub(crate) time: EpochMs,
    pub(crate) duration_ms: u64,
    pub(crate) results: Option<u64>,
    pub(crate) code: Option<String>,
    pub(crate) stream: Option<AuditedStream>,
}

impl ReadRecord {
    /// The entry of a completed call, in a session with these options.
    pub(crate) fn of(
        errand: &CallContext,
        reader: Arc<SessionOptions>,
        time: EpochMs,
        results: Option<u64>,
        code: Option<String>,
    ) -> Self {
        Self {
            query_hash: errand.query_hash,
            statement: errand.statement,
            reader,
            token_id: errand.token_id.clone(),
            time,
            duration_ms: errand.elapsed_ms(),
            results,
            code,
            stream: errand.streamed.get().map(StreamRecord::entry),
        }
    }
}

/// A decoded entry of the read log, and the user of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedRead {
    /// Pseudonym of the session's user.
    pub(crate) user: Option<String>,
    pub(crate) entry: AuditEntry,
}

/// A decoded group.
#[derive(Debug)]
pub(crate) struct DecodedGroup {
    /// Number of entries lost before it.
    pub(crate) lost: u64,
    pub(crate) reads: Vec<LoggedRead>,
}

/// Values shared by several entries, each numbered in order.
struct SharedValues {
    texts: HashMap<String, u64>,
    text_bytes: Vec<u8>,
    hashes: HashMap<[u8; 32], u64>,
    hash_bytes: Vec<u8>,
    readers: HashMap<[u64; 4], u64>,
    reader_bytes: Vec<u8>,
}

/// Encodes a group, with the pseudonyms and hash tokens of this chain.
pub(crate) fn encode(notes: &[ReadRecord], lost: u64, chain: &AuditHashChain) -> Vec<u8> {
    let mut shared = SharedValues {
        texts: HashMap::new(),
        text_bytes: Vec::new(),
        hashes: HashMap::new(),
        hash_bytes: Vec::new(),
        readers: HashMap::new(),
        reader_bytes: Vec::new(),
    };
    let mut known: HashMap<*const SessionOptions, u64> = HashMap::new();
    let mut entries = Vec::new();
    let first = notes.first().map_or(0, |note| note.time.get());
    let mut before = first;
    for note in notes {
        // Sessions are compared by the address of their options, which the notes keep alive.
        let reader = match known.get(&Arc::as_ptr(&note.reader)) {
            Some(reader) => *reader,
            None => {
                let reader = shared.reader(&note.reader, chain);
                known.insert(Arc::as_ptr(&note.reader), reader);
                reader
            }
        };
        shared.entry(note, reader, note.time.get().wrapping_sub(before), chain, &mut entries);
        before = note.time.get();
    }
    let mut body = Vec::with_capacity(entries.len().saturating_mul(6));
    varint(&mut body, as_u64(notes.len()));
    varint(&mut body, lost);
    body.extend_from_slice(&first.to_be_bytes());
    for (count, bytes) in [
        (shared.texts.len(), &shared.text_bytes),
        (shared.hashes.len(), &shared.hash_bytes),
        (shared.readers.len(), &shared.reader_bytes),
    ] {
        varint(&mut body, as_u64(count));
        body.extend_from_slice(bytes);
    }
    body.extend_from_slice(&entries);
    body
}

impl SharedValues {
    /// Returns the number of a text, from 1.
    fn text(&mut self, text: &str) -> u64 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = as_u64(self.texts.len()).saturating_add(1);
        varint(&mut self.text_bytes, as_u64(text.len()));
        self.text_bytes.extend_from_slice(text.as_bytes());
        self.texts.insert(text.to_owned(), number);
        number
    }

    fn optional(&mut self, text: Option<&str>) -> u64 {
        text.map_or(0, |text| self.text(text))
    }

    fn hash(&mut self, hash: [u8; 32]) -> u64 {
        let next = as_u64(self.hashes.len());
        let bytes = &mut self.hash_bytes;
        *self.hashes.entry(hash).or_insert_with(|| {
            bytes.extend_from_slice(&hash);
            next
        })
    }

    fn reader(&mut self, reader: &SessionOptions, chain: &AuditHashChain) -> u64 {
        let namespace = reader.namespace.as_deref().map(|name| namespace_label(name, chain));
        let user = reader.user_id.as_deref().map(|user| chain.reader_pseudonym(user));
        let actor = reader.actor.as_deref().map(|actor| chain.pseudonym(Some(actor)));
        let agent = reader.agent_id.as_deref().map(|agent| chain.agent_pseudonym(agent));
        let names = [namespace, user, actor, agent].map(|name| self.optional(name.as_deref()));
        let next = as_u64(self.readers.len());
        let bytes = &mut self.reader_bytes;
        *self.readers.entry(names).or_insert_with(|| {
            names.iter().for_each(|name| varint(bytes, *name));
            next
        })
    }

    fn entry(
        &mut self,
        note: &ReadRecord,
        reader: u64,
        later: i64,
        chain: &AuditHashChain,
        out: &mut Vec<u8>,
    ) {
        let mut flags = 0;
        for (flag, is_there) in [
            (RESULTS, note.results.is_some()),
            (CODE, note.code.is_some()),
            (TOKEN, note.token_id.is_some()),
            (STREAM, note.stream.is_some()),
        ] {
            flags |= if is_there { flag } else { 0 };
        }
        let number = STATEMENTS.iter().position(|of| Some(*of) == note.statement);
        let number = number.and_then(|at| u8::try_from(at).ok()).map_or(0, |at| at + 1);
        out.extend_from_slice(&[flags, number]);
        let shown = chain.vault().address_key(&ContentAddress::from_bytes(note.query_hash));
        let hash = self.hash(*shown.as_bytes());
        let zigzag = (later << 1 ^ (later >> 63)).cast_unsigned();
        for value in [reader, hash, zigzag, note.duration_ms] {
            varint(out, value);
        }
        let code = note.code.as_deref().map(|code| self.text(code));
        let token = note.token_id.as_deref().map(|token| self.text(token));
        for value in [note.results, code, token].into_iter().flatten() {
            varint(out, value);
        }
        if let Some(stream) = &note.stream {
            let options = self.text(&stream.options);
            let why = self.optional(stream.cancel_reason.as_deref());
            for value in [options, stream.events_emitted, stream.sources_failed, why] {
                varint(out, value);
            }
        }
    }
}

/// Returns a namespace as written in entries: a long one as its pseudonym.
pub(crate) fn namespace_label(namespace: &str, chain: &AuditHashChain) -> String {
    match namespace.len() > MAX_TEXT_BYTES {
        true => chain.namespace_pseudonym(namespace),
        false => chain.namespace_label(namespace),
    }
}

/// Returns the number of entries in a group.
///
/// # Errors
/// `ERR_INTEGRITY`.
pub(crate) fn entry_count(body: &[u8]) -> Result<u64> {
    ByteReader(body)
        .varint()
        .filter(|count| (1..=as_u64(MAX_GROUP_ENTRIES)).contains(count))
        .ok_or_else(damaged)
}

/// Decodes a group whose first entry has this number.
///
/// # Errors
/// `ERR_INTEGRITY` for bytes that are no group.
pub(crate) fn decode(body: &[u8], first: u64) -> Result<DecodedGroup> {
    entry_count(body)?;
    read(&mut ByteReader(body), first).ok_or_else(damaged)
}

fn read(bytes: &mut ByteReader<'_>, first: u64) -> Option<DecodedGroup> {
    let entries = bytes.varint()?;
    let lost = bytes.varint()?;
    let mut time = i64::from_be_bytes(*bytes.take(8)?.first_chunk()?);
    let texts = bytes.list(|bytes| {
        let length = usize::try_from(bytes.varint()?).ok()?;
        std::str::from_utf8(bytes.take(length)?).ok()
    })?;
    let hashes = bytes.list(|bytes| bytes.take(32)?.first_chunk::<32>().copied())?;
    let readers = bytes.list(|bytes| {
        Some([bytes.text(&texts)?, bytes.text(&texts)?, bytes.text(&texts)?, bytes.text(&texts)?])
    })?;
    let mut reads = Vec::new();
    for number in 0..entries {
        let (flags, statement) = (bytes.byte()?, bytes.byte()?);
        let [namespace, user, actor, agent] = readers.get(bytes.index()?)?.clone();
        let query_hash = *hashes.get(bytes.index()?)?;
        let zigzag = bytes.varint()?;
        time = time.wrapping_add((zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed()));
        let duration_ms = bytes.varint()?;
        let mut told = |flag: u8| match flags & flag != 0 {
            true => bytes.varint().map(Some),
            false => Some(None),
        };
        let (result_count, code, token) = (told(RESULTS)?, told(CODE)?, told(TOKEN)?);
        let named = |number: u64| {
            let at = usize::try_from(number).ok()?.checked_sub(1)?;
            texts.get(at).map(|text| (*text).to_owned())
        };
        let code = code.map_or(Some(None), |code| named(code).map(Some))?;
        let token_id = token.map_or(Some(None), |token| named(token).map(Some))?;
        let stream = match flags & STREAM != 0 {
            true => Some(AuditedStream {
                options: named(bytes.varint()?)?,
                events_emitted: bytes.varint()?,
                sources_failed: bytes.varint()?,
                cancel_reason: bytes.text(&texts)?,
            }),
            false => None,
        };
        let statement = match usize::from(statement).checked_sub(1) {
            Some(at) => Some(statement_name(*STATEMENTS.get(at)?)),
            None => None,
        };
        // A stream that ended early has a code as well, but returned results.
        let refused = code.is_some() && result_count.is_none();
        let call = AuditedCall {
            query_hash,
            statement,
            tier: 0,
            duration_ms,
            token_id,
            namespace,
            agent,
            result_count,
            code,
            stream,
        };
        let sequence = first.checked_add(number)?;
        let entry = AuditEntry::from_read_log(sequence, EpochMs::new(time), actor, refused, call);
        reads.push(LoggedRead { user, entry });
    }
    bytes.0.is_empty().then_some(DecodedGroup { lost, reads })
}

/// The bytes left to read.
struct ByteReader<'b>(&'b [u8]);

impl<'b> ByteReader<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << shift;
            if shifted >> shift != bits {
                return None;
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn index(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    /// Reads the number of a text, or of none.
    fn text(&mut self, texts: &[&str]) -> Option<Option<String>> {
        match self.index()?.checked_sub(1) {
            Some(at) => texts.get(at).map(|text| Some((*text).to_owned())),
            None => Some(None),
        }
    }

    /// Reads a count and that many items. An item takes at least one byte, so a larger count is refused.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.index()?;
        if count > self.0.len() {
            return None;
        }
        (0..count).map(|_| item(self)).collect()
    }
}

/// Writes a number as a varint: seven bits per byte, low ones first.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Converts a length in memory.
pub(crate) fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn damaged() -> Error {
    Error::integrity("a group of the read log is damaged")
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
