//! `grain history`: prints the versions of a grain, or of a subject's relation.

use clap::Args;
use grainstore::EpochMs;
use grainstore_rpc::Version;

use crate::context::{Context, find};
use crate::error::Result;
use crate::text::parse_time;
use crate::told::version_line;

/// Print all versions, newest first: address, standing, when created, what it says
#[derive(Debug, Args)]
#[command(override_usage = "grain history ADDRESS\n       \
                            grain history --subject S --relation R [--as-of TIME]")]
pub(crate) struct History {
    /// Any version: 64 hex digits, or the first 8 or more where they name one grain
    #[arg(required_unless_present = "subject", conflicts_with_all = ["subject", "relation", "as_of"])]
    address: Option<String>,
    /// Everything said of this subject ...
    #[arg(long, requires = "relation")]
    subject: Option<String>,
    /// ... under this relation
    #[arg(long, requires = "subject")]
    relation: Option<String>,
    /// Only what was current at this time: epoch milliseconds or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "subject")]
    as_of: Option<EpochMs>,
}

impl History {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let session = context.session()?;
        let versions = match (&self.address, &self.subject, &self.relation) {
            (Some(address), ..) => session.history(&find(&session, address)?)?,
            (None, subject, relation) => {
                let (subject, relation) = (text(subject.as_ref()), text(relation.as_ref()));
                session.history_of(subject, relation, None, self.as_of)?
            }
        };
        for stored in versions {
            let version = Version::try_from(stored)?;
            if context.output.is_json() {
                context.output.json_line(&version)?;
            } else {
                context.output.line(&version_line(version))?;
            }
        }
        Ok(())
    }
}

/// Returns an option that the parser requires.
fn text(option: Option<&String>) -> &str {
    option.map_or("", String::as_str)
}
