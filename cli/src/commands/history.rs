//! `grain history`: prints the versions of a grain, or of a subject's relation.

use clap::Args;
use grainstore::EpochMs;
use grainstore_rpc::{self as operations, Version};

use crate::context::{Context, resolve_address};
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
        let address = self.address.map(|digits| resolve_address(&session, &digits)).transpose()?;
        let history = operations::History {
            address: address.map(Into::into),
            subject: self.subject,
            relation: self.relation,
            as_of: self.as_of.map(EpochMs::get),
            ..operations::History::default()
        };
        for stored in history.versions(&session)? {
            let one = Version::try_from(stored)?;
            let line = version_line(&one.address, &one.grain, &one.state.state);
            context.output.answer(&one, |output| output.line(&line))?;
        }
        Ok(())
    }
}
