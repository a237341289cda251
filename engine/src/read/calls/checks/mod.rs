//! The sixteen self-checks of CAL (CAL 23): whether what is promised of the language holds in this store, now.
//! Each tries what it is about, or looks at what the audit log and the newest grains say of it.

mod data;
mod language;
mod log;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use grainstore_cal::{self as cal, Options, Params, Response, Writes};

use super::switch::CalSwitch;
use crate::base::error::Result;
use crate::handle::options::SessionOptions;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::operate::maintain::{Finding, Health};
use crate::state::audit::AuditEntry;
use crate::state::view::View;
use crate::write::reads::ReadsRecorded;

/// Entries of the audit log, from its end, that are looked at.
const ENTRIES: u64 = 1000;
/// What to do where a check fails.
const ADVICE: &str =
    "run `grain verify`; if that finds nothing, report it as a fault of the program";

/// What to do where reads are recorded nowhere.
const SWITCH_ON: &str =
    "open the store without --no-audit-reads (`audit_reads` of the library and of rpc)";
/// The same where the store was opened to be read.
const OPEN_TO_WRITE: &str = "open the store to write, without --read-only";
/// The one check whose failing may be the operator's wish.
const AUDIT_LOGGING: &str = "cal_audit_logging";

/// What a check found: what holds, or what does not.
type Checked = Result<std::result::Result<String, String>>;

/// One check.
struct Check {
    name: &'static str,
    /// Whether a store that fails it is not fit for use.
    critical: bool,
    /// Whether it runs statements, which a store where CAL is switched off does not.
    runs: bool,
    of: fn(&Subject) -> Checked,
}

const fn critical(name: &'static str, runs: bool, of: fn(&Subject) -> Checked) -> Check {
    Check { name, critical: true, runs, of }
}

const fn high(name: &'static str, runs: bool, of: fn(&Subject) -> Checked) -> Check {
    Check { name, critical: false, runs, of }
}

const CHECKS: [Check; 16] = [
    critical("cal_grammar_safety", false, language::grammar_safety),
    critical("cal_default_minimization", true, language::default_minimization),
    critical(AUDIT_LOGGING, false, log::audit_logging),
    critical("cal_authz_enforcement", true, language::authz_enforcement),
    critical("cal_no_policy_override", false, language::no_policy_override),
    critical("cal_injection_prevention", false, language::injection_prevention),
    critical("cal_tier1_audit", false, log::tier1_audit),
    critical("cal_tier1_policy_gate", true, language::tier1_policy_gate),
    high("cal_provenance_tracking", false, log::provenance_tracking),
    high("cal_ai_marking", false, log::ai_marking),
    high("cal_dsar_completeness", false, data::dsar_completeness),
    high("cal_hipaa_minimum_necessary", false, data::hipaa_minimum_necessary),
    high("cal_phi_in_queries", false, log::phi_in_queries),
    high("cal_rate_limiting", false, data::rate_limiting),
    high("cal_portability_format", false, data::portability_format),
    high("cal_consent_on_read", false, data::consent_on_read),
];

/// What is looked at.
struct Subject {
    session: Session,
    view: Arc<View>,
    /// The last entries of the audit log.
    entries: Vec<AuditEntry>,
}

impl Store {
    /// Runs the self-checks of CAL, one finding each, under their names in the standard. Nothing is written
    /// but what every call leaves: one of the checks asks for real, and looks for its entry.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY` where the audit log cannot be read.
    pub fn check_cal(&self) -> Result<Vec<Finding>> {
        let session = self.session(SessionOptions::default());
        let (count, _) = session.audit_head()?;
        let entries = session.audit(count.checked_sub(ENTRIES + 1), usize::MAX)?;
        let subject = Subject { view: session.view()?, session, entries };
        Ok(CHECKS.iter().map(|check| check.finding(&subject)).collect())
    }
}

impl Check {
    fn finding(&self, subject: &Subject) -> Finding {
        let off = subject.session.store().cal_switch() == CalSwitch::Off;
        let found = match self.runs && off {
            true => Ok(Ok("CAL is switched off, and nothing of it runs".to_owned())),
            false => (self.of)(subject),
        };
        // What the operator has switched off is no fault.
        let wanted = self.name == AUDIT_LOGGING
            && subject.session.store().reads_recorded() == ReadsRecorded::Nowhere;
        let failed = if self.critical && !wanted { Health::Bad } else { Health::Notice };
        let (health, detail, code) = match found {
            Ok(Ok(detail)) => (Health::Good, detail, None),
            Ok(Err(detail)) => (failed, detail, None),
            // Of grains under the keys of people nobody is named.
            Err(error) if error.code() == "ERR_KEY" => {
                (Health::Good, format!("not looked at: {error}"), None)
            }
            Err(error) => (failed, error.to_string(), Some(error.code())),
        };
        let advice = match wanted {
            true if subject.session.store().is_read_only() => OPEN_TO_WRITE,
            true => SWITCH_ON,
            false => ADVICE,
        };
        let advice = (health != Health::Good).then(|| advice.to_owned());
        Finding { name: self.name, health, detail, code, advice }
    }
}

impl Subject {
    /// Runs a statement that reads, as the operator, without a trace: who it is for is nobody.
    fn ask(&self, query: &str, params: Params) -> Result<Response, cal::Error> {
        self.ask_as(&self.session, query, params)
    }

    fn ask_as(
        &self,
        session: &Session,
        query: &str,
        params: Params,
    ) -> Result<Response, cal::Error> {
        let reading = session.reading().map_err(super::prepare::refused)?;
        let options = Options { params, totals: false, ..Options::at(self.session.now()) };
        cal::execute(&reading, query, &options, &Writes::default())
    }
}

/// Values of parameters.
fn params(pairs: &[(&str, &str)]) -> Result<Params, cal::Error> {
    let mut params = Params::new();
    for (name, value) in pairs {
        params.bind(name, &serde_json::Value::from(*value))?;
    }
    Ok(params)
}

/// What a check says that could not ask: nothing of it holds until it can.
fn unasked(error: &cal::Error) -> Checked {
    match error.code() {
        "ERR_KEY" => Ok(Ok(format!("not looked at: {}", error.message()))),
        code => Ok(Err(format!("{code}: {}", error.message()))),
    }
}
