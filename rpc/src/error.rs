//! The error type of operations: a stable code, a message, a hint, and the exit code of a command.
//!
//! Converts errors of the store, the format and CAL without changing their codes.

use std::borrow::Cow;
use std::io;

use grainstore::{cal, format};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::patience::Stalled;

/// Hint for damage to a store, if there is no better one.
const DAMAGED_HINT: &str =
    "copy the directory first; `grain verify` tells what is damaged; restore a backup";

/// The code of JSON-RPC for parameters that are missing, unknown or of the wrong type.
pub(crate) const INVALID_PARAMS: i64 = -32_602;

/// What an error is about that is about the input, and not about what is stored.
const INPUT: &str = "input";

/// Results of operations, with their [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason an operation ended early.
///
/// ```
/// use grainstore_rpc::{Code, Error};
///
/// let error = Error::new(Code::NotFound, "no store is open", "call open first");
/// assert!(error.has_code(Code::NotFound));
/// assert_eq!(error.exit_code(), 1);
/// assert_eq!(error.refusal().map(|refusal| refusal.hint.as_str()), Some("call open first"));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug)]
pub enum Error {
    /// The reader of stdout has closed it: no error, and there is nowhere to report one.
    OutputClosed,
    /// The error was reported already; only the exit code remains.
    AlreadyReported(u8),
    /// The operation was refused or failed.
    Refused(Box<Refusal>),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutputClosed => f.write_str("the reader of the output has closed it"),
            Self::AlreadyReported(code) => write!(f, "reported already; exit code {code}"),
            Self::Refused(refusal) => write!(f, "{}: {}", refusal.code, refusal.message),
        }
    }
}

impl std::error::Error for Error {}

/// A refusal or failure, as it is reported: what an [`Error`] is about.
#[derive(Debug)]
pub struct Refusal {
    /// The stable code, such as `ERR_ACCESS`.
    pub code: Cow<'static, str>,
    /// The message, for people.
    pub message: String,
    /// The way out.
    pub hint: String,
    /// The CAL error and its query.
    pub cal: Option<(cal::Error, String)>,
    /// True if the error is about the input, not about stored data.
    of_input: bool,
    /// True if the operation was called wrongly.
    pub(crate) of_usage: bool,
    /// Where to continue after an answer that was too large.
    cursor: Option<u64>,
    /// The grain of a batch that it is about, from 0.
    index: Option<usize>,
    /// The query that another process was asked.
    asked: Option<String>,
    /// The `data` of an error that another process answered.
    remote: Option<Value>,
    /// True if the store could not be opened or joined, whatever was asked of it.
    of_reach: bool,
}

/// The codes that this crate raises itself, each in an [`Error`]; all others come from the crates below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Malformed input.
    Corrupt,
    /// Input over a size limit.
    TooLarge,
    /// An invalid option or value.
    Schema,
    /// A missing, wrong or unexpected key.
    Key,
    /// The target exists already.
    Conflict,
    /// No such store or grain.
    NotFound,
    /// An address prefix that is ambiguous.
    HashLength,
    /// A name that is no grain type.
    UnknownType,
    /// More than one answer may hold.
    Limit,
    /// A file that cannot be read or written.
    Io,
    /// A signature that is not valid.
    Signature,
    /// A store that was found damaged.
    Integrity,
    /// Cancelled work, by its CAL code.
    Cancelled,
    /// An invalid capability token.
    Token,
}

impl Code {
    /// The stable code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Corrupt => "ERR_CORRUPT",
            Self::Signature => "ERR_SIGNATURE",
            Self::Integrity => "ERR_INTEGRITY",
            Self::Token => "ERR_TOKEN",
            Self::TooLarge => "ERR_TOO_LARGE",
            Self::Schema => "ERR_SCHEMA",
            Self::Key => "ERR_KEY",
            Self::Conflict => "ERR_CONFLICT",
            Self::NotFound => "ERR_NOT_FOUND",
            Self::HashLength => "ERR_HASH_LENGTH",
            Self::UnknownType => "ERR_UNKNOWN_TYPE",
            Self::Limit => "ERR_LIMIT",
            Self::Io => "ERR_IO",
            Self::Cancelled => "CAL-E082",
        }
    }
}

impl Error {
    /// An error of this crate.
    pub fn new(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::refused(code.name(), message.into(), hint.into())
    }

    /// An error with a code of another crate's, such as `ERR_BUSY`.
    pub fn of_code(
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::refused(code, message.into(), hint)
    }

    /// Arguments that do not go together.
    pub(crate) fn arguments(message: impl Into<String>) -> Self {
        Self::usage(Code::Schema, message, "")
    }

    /// An answer over the size limit.
    pub(crate) fn answer_too_large() -> Self {
        let hint = "ask for less at a time: a smaller limit, LIMIT and OFFSET, or the cursor";
        Self::new(Code::Limit, "the answer is larger than 8 MiB", hint)
    }

    /// Adds where to continue: the `cursor` of `history`, the `after` of `audit`.
    pub(crate) fn go_on_from(mut self, cursor: u64) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.cursor = Some(cursor);
        }
        self
    }

    /// Says which grain of a batch it is about, from 0.
    pub(crate) fn of_grain(mut self, index: usize) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.index = Some(index);
        }
        self
    }

    /// An operation that was called wrongly, on the command line or by a host.
    pub fn usage(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let mut error = Self::new(code, message, hint);
        if let Self::Refused(refusal) = &mut error {
            refusal.of_usage = true;
        }
        error
    }

    /// An error that the session may not do what it was asked.
    #[cfg(target_os = "linux")]
    pub(crate) fn new_access(message: impl Into<String>) -> Self {
        Self::refused("ERR_ACCESS", message.into(), "work as the user whose store it is")
    }

    /// The error of a process that has the store open and does not answer.
    pub(crate) fn owner_hangs(pid: u32) -> Self {
        let message = format!("the store is open in {}, which does not answer", process(pid));
        Self::refused(
            "ERR_BUSY",
            message,
            "look after that process; the store is free once it has ended",
        )
    }

    /// Converts the member `error` of a response.
    pub(crate) fn from_fault(fault: &RawValue) -> Self {
        #[derive(serde::Deserialize)]
        struct Fault {
            code: i64,
            message: String,
            data: Option<Value>,
        }
        let Ok(Fault { code, message, data }) = serde_json::from_str(fault.get()) else {
            return Self::new(Code::Corrupt, "an error that cannot be read", "use one version");
        };
        let text = |name: &str| data.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let is_usage = code == INVALID_PARAMS;
        let named = text("code").unwrap_or_else(|| Code::Schema.name().to_owned());
        let mut error = Self::refused(named, message, text("hint").unwrap_or_default());
        if let Self::Refused(refusal) = &mut error {
            let number = |name: &str| data.as_ref()?.get(name)?.as_u64();
            refusal.of_usage = is_usage;
            refusal.of_input = text("about").is_some_and(|about| about == INPUT);
            refusal.cursor = number("cursor");
            refusal.index = number("index").and_then(|index| usize::try_from(index).ok());
            refusal.remote = data;
        }
        error
    }

    /// Adds the query to an error that another process answered, so that the place of the error is shown in it.
    #[must_use]
    pub fn of_query(mut self, query: &[u8]) -> Self {
        if let Self::Refused(refusal) = &mut self
            && refusal.remote.is_some()
        {
            refusal.asked = Some(String::from_utf8_lossy(query).into_owned());
        }
        self
    }

    /// Marks the error as one of opening or joining the store.
    pub(crate) fn of_reach(mut self) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.of_reach = true;
        }
        self
    }

    /// Returns `true` if the store could not be opened or joined at that moment, whatever was asked of it: its message
    /// names places and processes of this machine.
    #[must_use]
    pub fn is_of_reach(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.of_reach)
    }

    /// The grain of a batch that it is about, from 0.
    #[must_use]
    pub fn batch_index(&self) -> Option<usize> {
        self.refusal()?.index
    }

    /// Where to go on after an answer that was too large.
    #[must_use]
    pub fn cursor(&self) -> Option<u64> {
        self.refusal()?.cursor
    }

    /// Converts the CAL error of a query.
    #[must_use]
    pub fn from_cal(error: &cal::Error, query: &str) -> Self {
        let mut refused =
            Self::refused(error.code().to_owned(), error.message().to_owned(), cal_hint(error));
        if let Self::Refused(refusal) = &mut refused {
            refusal.cal = Some((error.clone(), query.to_owned()));
        }
        refused
    }

    /// Adds where in the input it happened.
    pub fn in_context(mut self, place: &str) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.message = format!("{place}: {}", refusal.message);
        }
        self
    }

    /// Replaces the hint if the error has this code.
    pub fn with_hint_for(mut self, code: &str, hint: &str) -> Self {
        if let Self::Refused(refusal) = &mut self
            && refusal.code == code
        {
            hint.clone_into(&mut refusal.hint);
        }
        self
    }

    /// Converts a bad finding of `grain doctor`.
    pub fn from_finding(code: Option<String>, detail: String, advice: Option<String>) -> Self {
        let code = code.map_or(Cow::Borrowed(Code::Io.name()), Cow::Owned);
        Self::refused(code, detail, advice.unwrap_or_default())
    }

    /// Returns the refusal, if the error is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::OutputClosed | Self::AlreadyReported(_) => None,
        }
    }

    /// Returns `true` if the error has this code.
    pub fn has_code(&self, code: Code) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == code.name())
    }

    /// Returns `true` if the store is open in another process.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == "ERR_BUSY")
    }

    /// Returns the exit code: 1 refused or failed, 2 wrong usage, 3 store open elsewhere, 4 stored data
    /// damaged.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::AlreadyReported(code) => *code,
            Self::Refused(refusal) if refusal.of_usage => 2,
            Self::Refused(refusal) => match refusal.code.as_ref() {
                "ERR_BUSY" => 3,
                "ERR_INTEGRITY" if !refusal.of_input => 4,
                _ => 1,
            },
        }
    }

    pub(crate) fn refused(
        code: impl Into<Cow<'static, str>>,
        message: String,
        hint: impl Into<String>,
    ) -> Self {
        Self::Refused(Box::new(Refusal {
            code: code.into(),
            message,
            hint: hint.into(),
            cal: None,
            of_input: false,
            of_usage: false,
            cursor: None,
            index: None,
            asked: None,
            remote: None,
            of_reach: false,
        }))
    }

    /// Marks the error as one about the input.
    fn about_input(mut self) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.of_input = true;
        }
        self
    }
}

impl Refusal {
    /// Returns code, message and hint, or the CAL error object (CAL 22) with a hint.
    #[must_use]
    pub fn object(&self) -> Value {
        if let Some(Value::Object(data)) = &self.remote {
            let mut object = data.clone();
            object.retain(|name, _| !["cursor", "index", "about"].contains(&name.as_str()));
            object.insert("hint".to_owned(), Value::from(self.hint.as_str()));
            // An error of CAL has its own message.
            let of_cal = object.get("message").cloned();
            let message = of_cal.unwrap_or_else(|| Value::from(self.message.as_str()));
            object.insert("message".to_owned(), message);
            return Value::Object(object);
        }
        match self.cal_object() {
            Some(object) => object,
            None => json!({ "code": self.code, "message": self.message, "hint": self.hint }),
        }
    }

    /// Returns the error object without the message, for responses that have it elsewhere.
    pub(crate) fn data(&self) -> Value {
        if let Some(data) = &self.remote {
            return data.clone();
        }
        match self.cal_object() {
            Some(object) => object,
            None => {
                let mut data = json!({ "code": self.code, "hint": self.hint });
                let index = self.index.map(|index| index as u64);
                let about = (self.of_input && self.code == Code::Integrity.name()).then_some(INPUT);
                let more = [
                    ("cursor", self.cursor.map(Value::from)),
                    ("index", index.map(Value::from)),
                    ("about", about.map(Value::from)),
                ];
                if let Value::Object(data) = &mut data {
                    for (name, value) in more {
                        data.extend(value.map(|value| (name.to_owned(), value)));
                    }
                }
                data
            }
        }
    }

    /// The query that an error of CAL points into, and the place in it.
    #[must_use]
    pub fn place(&self) -> Option<(&str, cal::Position)> {
        if let Some((error, query)) = &self.cal {
            return Some((query, error.position()?));
        }
        let place = self.remote.as_ref()?.get("position")?;
        let number = |name: &str| usize::try_from(place.get(name)?.as_u64()?).ok();
        let (start, end) = (number("start")?, number("end")?);
        let (line, col) = (number("line")?, number("col")?);
        Some((self.asked.as_deref()?, cal::Position { start, end, line, col }))
    }

    /// What an error of CAL says would be accepted.
    #[must_use]
    pub fn valid_values(&self) -> Vec<&str> {
        if let Some((error, _)) = &self.cal {
            return error.valid_values().iter().map(AsRef::as_ref).collect();
        }
        let listed = self.remote.as_ref().and_then(|data| data.get("valid_values")?.as_array());
        listed.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn cal_object(&self) -> Option<Value> {
        let (error, _) = self.cal.as_ref()?;
        let mut object = serde_json::to_value(error).unwrap_or_default();
        if let Value::Object(fields) = &mut object {
            fields.insert("hint".to_owned(), Value::from(self.hint.as_str()));
        }
        Some(object)
    }
}

impl From<grainstore::Error> for Error {
    fn from(error: grainstore::Error) -> Self {
        let mut refused = match error.is_input_error() {
            true => Self::refused(error.code(), error.to_string(), error.hint()).about_input(),
            false => {
                let hint = store_hint(error.code(), error.hint());
                Self::refused(error.code(), error.to_string(), hint)
            }
        };
        if let Self::Refused(refusal) = &mut refused {
            refusal.index = error.batch_index();
        }
        refused
    }
}

/// Errors of a neighbouring format concern its file, those of the store meanwhile do not.
impl From<grainstore_interop::Error> for Error {
    fn from(error: grainstore_interop::Error) -> Self {
        let refused = Self::refused(error.code(), error.to_string(), error.hint());
        match error.store_error() {
            Some(of_store) if !of_store.is_input_error() => {
                let hint = store_hint(error.code(), error.hint()).to_owned();
                Self::refused(error.code(), error.to_string(), hint)
            }
            _ => refused.about_input(),
        }
    }
}

/// Errors of the format concern input bytes, before the store is involved.
impl From<format::Error> for Error {
    fn from(error: format::Error) -> Self {
        Self::refused(error.code(), error.to_string(), error.hint()).about_input()
    }
}

/// For output errors; errors of reading name the file.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        if Stalled::is(&error) {
            let message = "nobody read the events of the stream any longer, so it was cancelled";
            let hint = "read them while it runs: a stream waits 60 seconds for its reader";
            return Self::new(Code::Cancelled, message, hint);
        }
        Self::new(Code::Io, format!("cannot write the output: {error}"), "check the disk")
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}

/// Returns the hint for an error of the store. The format's hint for damaged bytes assumes that they can be
/// fetched again from elsewhere, which those of a store cannot.
fn store_hint<'h>(code: &str, hint: &'h str) -> &'h str {
    let of_format = format::ErrorKind::Integrity.hint();
    if code == Code::Integrity.name() && hint == of_format { DAMAGED_HINT } else { hint }
}

/// Returns the hint for a CAL error, that of the store if the error is the store's.
fn cal_hint(error: &cal::Error) -> &str {
    match error.kind() {
        cal::ErrorKind::Memory => store_hint(error.code(), error.suggestion()),
        _ => error.suggestion(),
    }
}

/// The name of a process; one that cannot be seen from here, as in another container, has the number 0.
pub(crate) fn process(pid: u32) -> String {
    match pid {
        0 => "a process that cannot be seen from here".to_owned(),
        pid => format!("process {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_code() {
        for (code, exit) in [("ERR_BUSY", 3), ("ERR_INTEGRITY", 4), ("ERR_SCHEMA", 1)] {
            let error = Error::refused(code, String::new(), "");
            assert_eq!(error.exit_code(), exit, "{code}");
        }
        let given = Error::from(format::Error::new(format::ErrorKind::Integrity, "no"));
        assert_eq!(given.exit_code(), 1);
        assert!(!given.refusal().unwrap().hint.contains("restore a backup"));
        assert_eq!(Error::OutputClosed.exit_code(), 0);
    }

    #[test]
    fn damage_in_a_store_is_not_fetched_again_and_better_hints_stay() {
        let of_format = format::ErrorKind::Integrity.hint();
        assert_eq!(store_hint("ERR_INTEGRITY", of_format), DAMAGED_HINT);
        assert_eq!(store_hint("ERR_INTEGRITY", "grain reindex"), "grain reindex");
        assert_eq!(store_hint("ERR_BUSY", "wait"), "wait");
    }
}
