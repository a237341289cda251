//! The sixteen self-checks of CAL (CAL 23): whether the guarantees of the language hold in this store now.
//! Each tries what it checks, or examines the audit log and the newest grains.

mod data;
mod language;
mod log;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use grainstore_cal::{self as cal, ExecuteOptions, Params, Response, WriteQuotas};

use crate::base::error::Result;
use crate::handle::cal_switch::CalSwitch;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::operate::maintain::{Finding, Health};
use crate::read::read_log::ReadsDestination;
use crate::state::audit::AuditEntry;
use crate::state::session_options::SessionOptions;
use crate::state::view::View;

/// Number of last audit entries that are examined.
const MAX_EXAMINED_ENTRIES: u64 = 1000;
/// Advice for a failed check.
const ADVICE: &str =
    "run `grain verify`; if that finds nothing, report it as a fault of the program";

/// Advice if reads are not recorded anywhere.
const ENABLE_READ_LOG_ADVICE: &str =
    "open the store without --no-audit-reads (`audit_reads` of the library and of rpc)";
/// Advice if reads are not recorded because the store was opened read-only.
const OPEN_FOR_WRITING_ADVICE: &str = "open the store to write, without --read-only";
/// The one check that may fail by the operator's choice.
const AUDIT_LOGGING: &str = "cal_audit_logging";

/// Outcome of a check: `Ok` with what holds, or `Err` with what does not.
type SelfCheckOutcome = Result<std::result::Result<String, String>>;

/// One check.
struct SelfCheck {
    name: &'static str,
    /// True if a store that fails it is not fit for use.
    critical: bool,
    /// True if it runs statements and is therefore skipped where CAL is switched off.
    runs_statements: bool,
    run: fn(&SelfCheckContext) -> SelfCheckOutcome,
}

const fn critical(
    name: &'static str,
    runs: bool,
    of: fn(&SelfCheckContext) -> SelfCheckOutcome,
) -> SelfCheck {
    SelfCheck { name, critical: true, runs_statements: runs, run: of }
}

const fn high(
    name: &'static str,
    runs: bool,
    of: fn(&SelfCheckContext) -> SelfCheckOutcome,
) -> SelfCheck {
    SelfCheck { name, critical: false, runs_statements: runs, run: of }
}

const CHECKS: [SelfCheck; 16] = [
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

/// The store under check.
struct SelfCheckContext {
    session: Session,
    view: Arc<View>,
    /// The last entries of the audit log.
    entries: Vec<AuditEntry>,
}

impl Store {
    /// Runs the self-checks of CAL: one finding each, under its name in the standard. Writes only the entry
    /// that every call leaves, since one of the checks makes a real call and looks for it.
    ///
    /// ```
    /// use grainstore::Health;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// assert!(store.check_cal()?.iter().all(|finding| finding.health != Health::Bad));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY` if the audit log cannot be read.
    pub fn check_cal(&self) -> Result<Vec<Finding>> {
        let session = self.session(SessionOptions::default());
        let (count, _) = session.audit_head()?;
        let entries = session.audit(count.checked_sub(MAX_EXAMINED_ENTRIES + 1), usize::MAX)?;
        let subject = SelfCheckContext { view: session.view()?, session, entries };
        Ok(CHECKS.iter().map(|check| check.finding(&subject)).collect())
    }
}

impl SelfCheck {
    fn finding(&self, subject: &SelfCheckContext) -> Finding {
        let off = subject.session.store().cal_switch() == CalSwitch::Off;
        let found = match self.runs_statements && off {
            true => Ok(Ok("CAL is switched off, and nothing of it runs".to_owned())),
            false => (self.run)(subject),
        };
        // What the operator has switched off is not a fault.
        let wanted = self.name == AUDIT_LOGGING
            && subject.session.store().reads_recorded() == ReadsDestination::Nowhere;
        let failed = if self.critical && !wanted { Health::Bad } else { Health::Notice };
        let (health, detail, code) = match found {
            Ok(Ok(detail)) => (Health::Good, detail, None),
            Ok(Err(detail)) => (failed, detail, None),
            // Grains under the keys of users cannot be read without them: not a failure.
            Err(error) if error.code() == "ERR_KEY" => {
                (Health::Good, format!("not looked at: {error}"), None)
            }
            Err(error) => (failed, error.to_string(), Some(error.code())),
        };
        let advice = match wanted {
            true if subject.session.store().is_read_only() => OPEN_FOR_WRITING_ADVICE,
            true => ENABLE_READ_LOG_ADVICE,
            false => ADVICE,
        };
        let advice = (health != Health::Good).then(|| advice.to_owned());
        Finding { name: self.name, health, detail, code, advice }
    }
}

impl SelfCheckContext {
    /// Runs a reading statement as the operator. Leaves no audit entry, since no caller gets the answer.
    fn ask(&self, query: &str, params: Params) -> Result<Response, cal::Error> {
        self.ask_as(&self.session, query, params)
    }

    fn ask_as(
        &self,
        session: &Session,
        query: &str,
        params: Params,
    ) -> Result<Response, cal::Error> {
        let reading = session.reading().map_err(crate::read::calls::cal_error)?;
        let options =
            ExecuteOptions { params, totals: false, ..ExecuteOptions::at(self.session.now()) };
        cal::execute(&reading, query, &options, &WriteQuotas::default())
    }
}

/// Binds parameters to text values.
fn params(pairs: &[(&str, &str)]) -> Result<Params, cal::Error> {
    let mut params = Params::new();
    for (name, value) in pairs {
        params.bind(name, &serde_json::Value::from(*value))?;
    }
    Ok(params)
}

/// The outcome of a check whose query failed: a failure, except where keys are missing.
fn query_failed(error: &cal::Error) -> SelfCheckOutcome {
    match error.code() {
        "ERR_KEY" => Ok(Ok(format!("not looked at: {}", error.message()))),
        code => Ok(Err(format!("{code}: {}", error.message()))),
    }
}
