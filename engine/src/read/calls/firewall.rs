//! The query firewall: statements the host does not allow, refused after they are checked and before any
//! grain is read (CAL 20.2).

use crate::handle::firewall::Firewall;
use std::sync::atomic::{AtomicU64, Ordering};

use grainstore_cal::{AdmissionGate, AdmissionRequest, MemoryError, StatementType, Tier};
use grainstore_format::Grain;

use super::prepare::check_covers;
use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::capability_token::CapabilityToken;
use crate::handle::session::Session;

/// The admission gate of one call.
pub(crate) struct CallGate<'g> {
    pub(crate) session: &'g Session,
    pub(crate) token: Option<&'g CapabilityToken>,
    /// True if the statement is only prepared, and does not count yet.
    pub(crate) is_prepare: bool,
    /// The tier the caller asked for, before the switch of the store lowered it.
    pub(crate) requested_tier: Tier,
}

impl CallGate<'_> {
    fn firewall(&self) -> &Firewall {
        self.session.store().inner().firewall()
    }

    /// Counts a statement of Tier 1 against the session's limit.
    fn count_evolving(&self, evolved: &AtomicU64) -> Result<(), MemoryError> {
        let most = self.firewall().max_evolving.unwrap_or(u64::MAX);
        let next = |count: u64| (count < most).then(|| count.saturating_add(1));
        let counted = match self.is_prepare {
            true => next(evolved.load(Ordering::Acquire)).ok_or(0),
            false => evolved.fetch_update(Ordering::AcqRel, Ordering::Acquire, next),
        };
        counted.map(drop).map_err(|_| {
            let message = format!("a session runs at most {most} statements that write");
            MemoryError::new("CAL-E043", message, "open another session, if you may")
        })
    }
}

impl AdmissionGate for CallGate<'_> {
    fn admit(&self, admission: &AdmissionRequest) -> Result<(), MemoryError> {
        if let Some(token) = self.token {
            check_covers(token, admission)?;
        }
        let firewall = self.firewall();
        if firewall.needs_namespace && self.session.options().namespace.is_none() {
            let message =
                "a session that asks in CAL is limited to a namespace here, and this one is not";
            let error = Error::new(ErrorKind::Policy, message);
            return Err(error.with_hint("open the session with a namespace").into());
        }
        firewall.check(admission)?;
        let defines = admission.statement_type == StatementType::DefineTemplate;
        if defines && self.requested_tier == Tier::Evolve && admission.tier == 0 {
            // The template was to be stored; refused rather than defined for the session alone.
            let message = "this store keeps nothing new: CAL only reads in it";
            return Err(MemoryError::new(
                "CAL-E044",
                message,
                "define it in Tier 0, for the session",
            ));
        }
        match admission.tier {
            0 => Ok(()),
            _ => self.count_evolving(self.session.cal_writes()),
        }
    }

    fn admit_whole_grain(&self, grain: &Grain) -> Result<(), MemoryError> {
        let rules = self.session.store().rules();
        let by_field = &rules.settings.phi_by_field;
        if !by_field.value || !has_phi(grain) {
            return Ok(());
        }
        let message = format!(
            "health data is given out by named fields here ({}), and the statement names none",
            by_field.article
        );
        let error = Error::new(ErrorKind::Policy, message);
        Err(error.with_hint("name the fields that are needed: | SELECT object, time, or PROJECT content(object) in a source of an ASSEMBLE").into())
    }

    fn needs_texts(&self) -> bool {
        !self.firewall().denied.is_empty()
    }
}

/// Returns `true` if a grain is tagged as health data.
fn has_phi(grain: &Grain) -> bool {
    let tags = grain.get("structural_tags").and_then(|tags| tags.as_array()).unwrap_or_default();
    tags.iter()
        .filter_map(|tag| tag.as_str())
        .any(|tag| tag.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("phi:")))
}
