//! `grain subject-report`: prints or exports all grains of a user.

use std::path::PathBuf;

use clap::Args;
use grainstore::ExportOptions;
use grainstore_rpc::Version;

use super::erase::no_grain_warning;
use super::export::{refusal_note, stoppable, written};
use crate::context::Context;
use crate::error::{Code, Error, Result};

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
        let session = context.session_about(Some(&user))?;
        let Some(out) = &self.out else {
            let grains = session.subject_grains(&user)?;
            if grains.is_empty() {
                context.output.note(&no_grain_warning(&user));
            }
            for stored in grains {
                context.output.json_line(&Version::try_from(stored)?)?;
            }
            return Ok(());
        };
        let exported = stoppable(|cancel| {
            let how = ExportOptions { cancel, ..ExportOptions::default() };
            match self.access_request {
                true => session.access_request(out, &user, &how),
                false => session.export_subject(out, &user, &how),
            }
        })??;
        if exported.exported == 0 {
            context.output.note(&no_grain_warning(&user));
        }
        context.output.answer(&exported, |output| {
            output.line(&written(&exported))?;
            let Some(told) = refusal_note(&exported) else { return Ok(()) };
            output.line(&told)?;
            output.line(
                "where the person asked for it themself, all of it is theirs: --access-request",
            )
        })
    }
}
