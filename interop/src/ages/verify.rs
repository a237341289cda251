//! The verifier: one pack, and nothing else. The checks are made in the order of the standard, and the first that fails ends
//! them.
//!
//! Knows no store, no clock and no network.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use grainstore::ErrorKind;
use serde::Serialize;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use super::{PACK_VERSION, chain, rules, shape};
use crate::error::{Error, Result};
use crate::json;

/// Most bytes of a pack that [`verify`] reads; a larger one is TAMPERED.
pub const MAX_PACK_BYTES: u64 = 64 << 20;

/// Memory that the values of a pack take at most.
const MAX_PACK_MEMORY: u64 = 512 << 20;

/// Deepest nesting of a pack.
const MAX_DEPTH: usize = 16;

/// The verdict on a pack. There is no third one: what can be opened and is no pack is tampered with.
///
/// ```
/// use grainstore_interop::ages::{Verdict, verify};
///
/// let verdict = verify(b"{}");
/// assert_eq!(verdict.word(), "TAMPERED");
/// assert!(matches!(verdict, Verdict::Tampered(at) if at.check == 2 && at.step.is_none()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Verdict {
    /// All checks passed.
    #[non_exhaustive]
    Valid {
        /// Number of steps.
        steps: u64,
        /// Hash of the last step. Who knows it from elsewhere knows that no step behind it was cut off.
        root_hash: String,
    },
    /// A check failed.
    Tampered(Tampering),
}

/// The check of [`verify`] that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tampering {
    /// Number of the check: 1 JSON, 2 version, 3 members of the pack, 4 each step and its hash, 5 indices, 6 links, 7 genesis,
    /// 8 root.
    pub check: u8,
    /// Index of the step in the list, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// What differs. It holds names of members, and no values.
    pub reason: String,
}

impl std::fmt::Display for Tampering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.step {
            Some(step) => write!(f, "check {}, step {step}: {}", self.check, self.reason),
            None => write!(f, "check {}: {}", self.check, self.reason),
        }
    }
}

impl Verdict {
    /// The word of the standard: `VALID` or `TAMPERED`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Valid { .. } => "VALID",
            Self::Tampered(_) => "TAMPERED",
        }
    }

    /// Returns `true` if all checks passed.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        matches!(self, Self::Valid { .. })
    }
}

/// Checks a pack in a file, like [`verify`]. There is a verdict on what can be opened alone: a name that is mistyped shows
/// nothing about a pack.
///
/// ```
/// use grainstore_interop::ages::verify_file;
///
/// let refused = verify_file("/there/is/no/such.json".as_ref()).unwrap_err();
/// assert_eq!(refused.code(), "ERR_NOT_FOUND");
/// ```
///
/// # Errors
/// `ERR_NOT_FOUND`; `ERR_IO` for a folder, and for a file that cannot be opened or read.
pub fn verify_file(path: &Path) -> Result<Verdict> {
    let at = |error: std::io::Error| error_of(error).at_path(path);
    let file = File::open(path).map_err(at)?;
    let found = file.metadata().map_err(at)?;
    if found.is_dir() {
        return Err(Error::new(ErrorKind::Io, "it is a folder")
            .with_hint("name the packs in it; each is a file")
            .at_path(path));
    }
    if found.len() > MAX_PACK_BYTES {
        return Ok(too_large());
    }
    let mut bytes = Vec::new();
    file.take(MAX_PACK_BYTES + 1).read_to_end(&mut bytes).map_err(at)?;
    Ok(verify(&bytes))
}

fn error_of(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => error.into(),
        _ => {
            Error::new(ErrorKind::Io, error.to_string()).with_hint("check the path and its rights")
        }
    }
}

/// Checks the bytes of a pack (AGES v1, verifier).
///
/// ```
/// use grainstore_interop::ages::verify;
///
/// assert!(!verify(b"no pack").is_valid());
/// ```
#[must_use]
pub fn verify(bytes: &[u8]) -> Verdict {
    if bytes.len() as u64 > MAX_PACK_BYTES {
        return too_large();
    }
    match check(bytes) {
        Ok((steps, root_hash)) => Verdict::Valid { steps, root_hash },
        Err(tampering) => Verdict::Tampered(tampering),
    }
}

fn tampered(check: u8, step: Option<u64>, reason: String) -> Verdict {
    Verdict::Tampered(Tampering { check, step, reason })
}

fn too_large() -> Verdict {
    tampered(1, None, format!("it has more than {MAX_PACK_BYTES} bytes"))
}

/// An error of the pack as a whole.
fn of_pack(check: u8, reason: impl Into<String>) -> Tampering {
    Tampering { check, step: None, reason: reason.into() }
}

/// An error of a step.
fn of_step(check: u8, at: u64, reason: String) -> Tampering {
    Tampering { check, step: Some(at), reason }
}

/// Makes the checks one after the other. Returns the number of steps, and the root.
fn check(bytes: &[u8]) -> Result<(u64, String), Tampering> {
    let mut pack = json::parse_within(bytes, MAX_PACK_MEMORY)
        .map_err(|error| of_pack(1, error.to_string()))?;
    if depth(&pack) > MAX_DEPTH {
        return Err(of_pack(1, format!("it is nested deeper than {MAX_DEPTH}")));
    }
    let members = pack.as_object_mut().ok_or_else(|| of_pack(1, "it is no object"))?;
    if members.get("schema_version").and_then(Value::as_str) != Some(PACK_VERSION) {
        return Err(of_pack(2, format!("schema_version is not {PACK_VERSION}")));
    }
    shape::check(members, shape::PACK).map_err(|why| of_pack(3, why))?;
    let mut steps = match members.get_mut("steps").map(Value::take) {
        Some(Value::Array(steps)) => steps,
        _ => Vec::new(),
    };
    for (at, step) in (0..).zip(&mut steps) {
        check_step(members, step).map_err(|why| of_step(4, at, why))?;
    }
    let mut ids = HashSet::new();
    each(&steps, 5, |at, step| check_index(at, step, &mut ids))?;
    let mut last = None;
    each(&steps, 6, |_, step| check_link(step, &mut last))?;
    each(&steps, 7, check_genesis)?;
    let root = members.get("root_hash").and_then(Value::as_str).unwrap_or_default();
    match last {
        Some(hash) if same(&hash, root) => Ok((steps.len() as u64, hash)),
        _ => Err(of_pack(8, "root_hash is not the hash of the last step")),
    }
}

/// Checks all steps, one after the other.
fn each(
    steps: &[Value],
    number: u8,
    mut check: impl FnMut(u64, &Value) -> Result<(), String>,
) -> Result<(), Tampering> {
    for (at, step) in (0..).zip(steps) {
        check(at, step).map_err(|why| of_step(number, at, why))?;
    }
    Ok(())
}

/// Check 4: the members and rules of a step, whose it is, and its hash.
fn check_step(pack: &Map<String, Value>, step: &mut Value) -> Result<(), String> {
    let members = step.as_object().ok_or("it is no object")?;
    shape::check(members, shape::STEP)?;
    rules::check(step)?;
    for name in ["tenant_id", "request_id"] {
        if step.get(name) != pack.get(name) {
            return Err(format!("{name} is not that of the pack"));
        }
    }
    let made = chain::step_hash(step);
    if same(&made, text(step, "/chain/step_hash")) {
        Ok(())
    } else {
        Err("step_hash is not the hash of the step".to_owned())
    }
}

/// Check 5: indices without a gap, names that are there once.
fn check_index(at: u64, step: &Value, ids: &mut HashSet<String>) -> Result<(), String> {
    if step.get("step_index").and_then(Value::as_u64) != Some(at) {
        Err("step_index is not its place".to_owned())
    } else if !ids.insert(text(step, "/step_id").to_owned()) {
        Err("step_id is that of a step before".to_owned())
    } else {
        Ok(())
    }
}

/// Check 6: each step but the first names the hash of the one before.
fn check_link(step: &Value, last: &mut Option<String>) -> Result<(), String> {
    let own = text(step, "/chain/step_hash").to_owned();
    match last.replace(own) {
        Some(before) if !same(&before, text(step, "/chain/prev_step_hash")) => {
            Err("prev_step_hash is not the hash of the step before".to_owned())
        }
        _ => Ok(()),
    }
}

/// Check 7: the first step is the GENESIS, and no other.
fn check_genesis(at: u64, step: &Value) -> Result<(), String> {
    let is_genesis = text(step, "/kind") == "GENESIS";
    let has_none_before = step.pointer("/chain/prev_step_hash").is_some_and(Value::is_null);
    match at {
        0 if !is_genesis => Err("the first step is no GENESIS".to_owned()),
        0 if !has_none_before => Err("a GENESIS has no step before".to_owned()),
        0 => Ok(()),
        _ if is_genesis => Err("a GENESIS is the first step".to_owned()),
        _ => Ok(()),
    }
}

fn text<'s>(step: &'s Value, path: &str) -> &'s str {
    step.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// Compares hashes in constant time.
fn same(left: &str, right: &str) -> bool {
    left.as_bytes().ct_eq(right.as_bytes()).into()
}

fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    inner.unwrap_or(0).saturating_add(1)
}
