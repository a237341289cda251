//! `grain ages verify`: a verdict on each pack that is named, and on those in a folder that is named.
//!
//! What cannot be opened has no verdict: it is reported as any other file is.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_interop::ages::{self, MAX_PACK_BYTES, Verdict};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::Source;

/// A pack that was named, and what came of it.
struct Found {
    file: String,
    verdict: Result<Verdict>,
}

/// Prints the verdict on one pack alone, on several and on those of a folder each with its name.
pub(super) fn run(packs: &[Source], context: &mut Context<'_>) -> Result<()> {
    match packs {
        [pack] if !is_folder(pack) => verify(pack, context),
        packs => verify_all(packs, context),
    }
}

fn is_folder(pack: &Source) -> bool {
    matches!(pack, Source::File(path) if path.is_dir())
}

/// Prints the verdict alone on stdout, and the reason on stderr.
fn verify(pack: &Source, context: &mut Context<'_>) -> Result<()> {
    let verdict = verdict_of(pack, context)?;
    context.output.answer(&verdict, |output| output.line(verdict.word()))?;
    context.output.flush()?;
    match &verdict {
        Verdict::Tampered(tampering) => {
            context.output.note(&tampering.to_string());
            Err(Error::AlreadyReported(1))
        }
        _ => Ok(()),
    }
}

/// Prints a verdict for each pack, with its name. What has none is told on stderr.
fn verify_all(packs: &[Source], context: &mut Context<'_>) -> Result<()> {
    let mut found = Vec::with_capacity(packs.len());
    for pack in packs {
        match pack {
            Source::File(path) if path.is_dir() => of_folder(path, &mut found, context),
            _ => {
                let verdict = verdict_of(pack, context);
                found.push(Found { file: pack.to_string(), verdict });
            }
        }
    }
    let told: Vec<_> = found.iter().map(Found::told).collect();
    context.output.answer(&json!({ "packs": told }), |output| {
        found.iter().try_for_each(|Found { file, verdict }| match verdict {
            Ok(verdict) => output.line(&format!("{file}: {}", verdict.word())),
            Err(_) => Ok(()),
        })
    })?;
    context.output.flush()?;
    let mut is_sound = true;
    for Found { file, verdict } in &found {
        let why = match verdict {
            Ok(Verdict::Tampered(tampering)) => format!("{file}: {tampering}"),
            Ok(_) => continue,
            Err(Error::Refused(refusal)) => format!("{}: {}", refusal.code, refusal.message),
            Err(_) => file.clone(),
        };
        context.output.note(&why);
        is_sound = false;
    }
    if is_sound { Ok(()) } else { Err(Error::AlreadyReported(1)) }
}

impl Found {
    fn told(&self) -> Value {
        match &self.verdict {
            Ok(verdict) => json!({ "file": self.file, "verdict": verdict }),
            Err(Error::Refused(refusal)) => json!({ "file": self.file, "error": refusal.object() }),
            Err(_) => json!({ "file": self.file }),
        }
    }
}

/// Verifies the packs of a folder: its files whose names end with `.json`. The others are named.
fn of_folder(folder: &Path, found: &mut Vec<Found>, context: &mut Context<'_>) {
    let before = found.len();
    let listed = match files_of(folder) {
        Ok(listed) => listed,
        Err(error) => {
            found.push(Found { file: folder.display().to_string(), verdict: Err(error) });
            return;
        }
    };
    for path in listed {
        let is_pack = path.extension().is_some_and(|name| name.eq_ignore_ascii_case("json"));
        let source = Source::File(path);
        if is_pack && !is_folder(&source) {
            let verdict = verdict_of(&source, context);
            found.push(Found { file: source.to_string(), verdict });
        } else {
            context.output.note(&format!("{source} is not verified: it is no file .json"));
        }
    }
    if found.len() == before {
        let file = folder.display().to_string();
        let message = format!("{file}: there is no pack in the folder, no file .json");
        let hint = "name the folder or the packs that `grain ages export` wrote";
        found.push(Found { file, verdict: Err(Error::new(Code::NotFound, message, hint)) });
    }
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: std::io::Error| {
        let message = format!("cannot read {}: {error}", folder.display());
        Error::new(Code::Io, message, "check the path")
    };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn verdict_of(pack: &Source, context: &mut Context<'_>) -> Result<Verdict> {
    match pack {
        Source::File(path) => Ok(ages::verify_file(path)?),
        Source::Stdin => {
            let mut bytes = Vec::new();
            let read = pack.open(&mut context.output)?.take(MAX_PACK_BYTES + 1);
            { read }.read_to_end(&mut bytes).map_err(|error| pack.read_error(&error))?;
            Ok(ages::verify(&bytes))
        }
    }
}
