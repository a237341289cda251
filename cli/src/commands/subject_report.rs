//! `grain subject-report`: prints or exports all grains of a user.

use std::path::PathBuf;

use clap::Args;
use grainstore::{ExportOptions, ExportReport};
use grainstore_rpc::Version;
use serde::Deserialize;
use serde_json::json;

use super::erase::no_grain_warning;
use super::export::{refusal_note, stoppable, written};
use super::followed::followed_call;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::output::Output;
use crate::reach::{Reach, Told, as_named, file_name};

/// Write everything the store has of a person (--user): every grain, in every version and state
///
/// Without --out it is JSON, one grain a line. With it it is a portable .mg file, and its counts are printed: the
/// rules on export hold for it, unless it is for the person who asked (--access-request).
#[derive(Debug, Args)]
pub(crate) struct SubjectReport {
    /// A portable file, such as ann.mg, that is replaced once the new one is whole
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The file is for the person it is about, who asked for it: everything is in it, whatever rule keeps it from
    /// others, and the audit log says access_request
    #[arg(long, requires = "out")]
    access_request: bool,
}

impl SubjectReport {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        // `--user` names the user of the report. The session is theirs or the operator's.
        let Some(user) = context.globals.user.take() else {
            return Err(Error::usage(
                Code::Schema,
                "give --user",
                "it says whom the report is about",
            ));
        };
        let reach = context.about(Some(&user))?;
        let Some(out) = &self.out else {
            return write_grains(&reach, &user, &mut context.output);
        };
        let exported = match reach.session() {
            Some(session) => stoppable(|cancel| {
                let how = ExportOptions { cancel, ..ExportOptions::default() };
                match self.access_request {
                    true => session.access_request(out, &user, &how),
                    false => session.export_subject(out, &user, &how),
                }
            })??,
            None => {
                let path = file_name(out)?;
                let asked =
                    json!({ "path": path, "subject": user, "access_request": self.access_request });
                let mut exported: ExportReport =
                    followed_call(context, &reach, "export", &asked)?.read()?;
                exported.files.iter_mut().for_each(|file| *file = as_named(out, file));
                exported
            }
        };
        if exported.exported == 0 {
            context.output.note(&no_grain_warning(&user));
        }
        context.output.answer(&exported, |output| {
            output.line(&written(&exported))?;
            let Some(told) = refusal_note(exported.refused, &exported.rules) else { return Ok(()) };
            output.line(&told)?;
            output.line(
                "where the person asked for it themself, all of it is theirs: --access-request",
            )
        })
    }
}

/// A part of the grains that another process tells.
#[derive(Deserialize)]
struct Part {
    versions: Vec<Told>,
    next_cursor: Option<u64>,
}

/// Prints the grains of a user, one a line.
fn write_grains(reach: &Reach, user: &str, output: &mut Output<'_>) -> Result<()> {
    let Some(session) = reach.session() else {
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            let asked = json!({ "user_id": user, "versions": true, "cursor": from });
            let part: Part = reach.read("subject_report", &asked)?;
            if from == 0 && part.versions.is_empty() {
                output.note(&no_grain_warning(user));
            }
            part.versions.iter().try_for_each(|one| output.json_line(one))?;
            cursor = part.next_cursor;
        }
        return Ok(());
    };
    let grains = session.subject_grains(user)?;
    if grains.is_empty() {
        output.note(&no_grain_warning(user));
    }
    for stored in grains {
        output.json_line(&Version::try_from(stored)?)?;
    }
    Ok(())
}
