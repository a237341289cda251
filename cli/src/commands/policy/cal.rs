//! `grain policy cal`: shows and sets the CAL switch of the store.

use clap::Args;
use grainstore::CalSwitch;
use grainstore_rpc::Switched;
use serde_json::json;

use crate::context::Context;
use crate::error::Result;

/// Show how far CAL runs in the store, or switch it: on, reads (what would write is refused), off
///
/// Only the operator switches, without --namespace and --user. The switch is kept until it is set again, and
/// goes into the audit log with the reason.
#[derive(Debug, Args)]
pub(super) struct Cal {
    /// on, reads or off; without it nothing changes
    #[arg(value_name = "on|reads|off", value_parser = parse_switch, requires = "reason")]
    to: Option<CalSwitch>,
    /// Why: it goes into the audit log
    #[arg(long, value_name = "TEXT", requires = "to")]
    reason: Option<String>,
}

impl Cal {
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let switch = json!({ "to": self.to, "reason": self.reason });
        let switched: Switched = context.reach()?.read("cal_switch", &switch)?;
        let at = switched.cal;
        let means = match at {
            CalSwitch::On => "it runs",
            CalSwitch::Reads => "it reads; what would write is refused (CAL-E044)",
            CalSwitch::Off => "it does not run (ERR_DISABLED)",
        };
        context.output.answer(&switched, |output| output.line(&format!("CAL is {at}: {means}")))
    }
}

fn parse_switch(name: &str) -> Result<CalSwitch, String> {
    CalSwitch::named(name).ok_or_else(|| "it is on, reads or off".to_owned())
}
