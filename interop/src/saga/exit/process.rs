//! The course of an exit: when disputes end, what was decided, what is disputed.

use std::fmt;
use std::str::FromStr;

use grainstore::{EpochMs, ErrorKind};
use serde::{Deserialize, Serialize, Serializer};

use super::{Decided, ExitOptions};
use crate::error::{Error, Result};
use crate::saga::classify::{Classification, Classifications, ItemType};
use crate::saga::kinds::named;
use crate::saga::store::AgentStore;

/// The mark.
const MARK: &str = "exit";
const HOUR_MS: u64 = 3_600_000;

named! {
    /// Why an agent leaves, which decides how long disputes are taken.
    ///
    /// ```
    /// use grainstore_interop::saga::ExitKind;
    ///
    /// assert_eq!(ExitKind::Voluntary.least_hours(), 48);
    /// assert_eq!(ExitKind::ForCause.least_hours(), 24);
    /// ```
    ExitKind, "kind of exit" {
        /// The agent asked for it.
        Voluntary => "voluntary",
        /// The organization asked for it.
        Involuntary => "involuntary",
        /// The organization asked for it, for a cause that it names.
        ForCause => "for-cause",
        /// There is no time: the export is due in seven days.
        Emergency => "emergency",
    }
}

impl ExitKind {
    /// The least hours for disputes.
    #[must_use]
    pub const fn least_hours(self) -> u64 {
        match self {
            Self::Voluntary | Self::Involuntary => 48,
            Self::ForCause => 24,
            Self::Emergency => 0,
        }
    }
}

/// Where a dispute of an exit is ([`begin_exit`](super::begin_exit)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DisputeStatus {
    /// Nobody decided.
    Pending,
    /// The item is classified otherwise now.
    Accepted,
    /// The item stays classified as it was.
    Rejected,
    /// Somebody else is to decide.
    Escalated,
}

/// How a dispute of an exit ([`begin_exit`](super::begin_exit)) is decided:
/// [`resolve_dispute`](super::resolve_dispute).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisputeDecision {
    /// The agent is right: the item is classified so.
    Accept(Classification),
    /// The item stays classified as it is.
    Reject,
    /// Somebody else is to decide.
    Escalate,
}

/// A dispute about how an item is classified in an exit ([`begin_exit`](super::begin_exit)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Dispute {
    /// What kind of item, by its name in manifests.
    pub item_type: String,
    /// Its id.
    pub id: String,
    /// What the agent says.
    pub justification: String,
    /// When it was filed, in epoch milliseconds.
    pub filed_at: i64,
    /// Where it is.
    pub status: DisputeStatus,
}

impl Dispute {
    fn is_open(&self) -> bool {
        matches!(self.status, DisputeStatus::Pending | DisputeStatus::Escalated)
    }
}

/// The course of an exit, as it is marked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Process {
    kind: String,
    pub(super) organization: String,
    opens_at: i64,
    closes_at: i64,
    decided: Vec<Decided>,
    pub(super) disputes: Vec<Dispute>,
}

impl Process {
    /// Begins the course of an exit.
    ///
    /// # Errors
    /// `ERR_POLICY` for too short a time.
    pub(super) fn begin(options: &ExitOptions, now: EpochMs) -> Result<Self> {
        let least = options.kind.least_hours();
        let hours = options.window_hours.unwrap_or(least);
        if hours < least {
            let message =
                format!("an exit of kind {} takes disputes for {least} hours", options.kind);
            return Err(Error::new(ErrorKind::Policy, message).with_hint("give it more time"));
        }
        let window = i64::try_from(hours.saturating_mul(HOUR_MS)).unwrap_or(i64::MAX);
        let decided = options.classifications.iter().map(|(item_type, id, class)| Decided {
            item_type: item_type.name().to_owned(),
            id: id.to_owned(),
            classification: class.name().to_owned(),
        });
        Ok(Self {
            kind: options.kind.name().to_owned(),
            organization: options.organization.clone(),
            opens_at: now.get(),
            closes_at: now.get().saturating_add(window),
            decided: decided.collect(),
            disputes: Vec::new(),
        })
    }

    pub(super) fn read(store: &AgentStore<'_>) -> Result<Option<Self>> {
        store.mark(MARK)
    }

    /// The course that is under way.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if none is.
    pub(super) fn of(store: &AgentStore<'_>) -> Result<Self> {
        Self::read(store)?.ok_or_else(|| {
            let message = format!("no exit of {} is under way", store.wallet());
            Error::new(ErrorKind::NotFound, message).with_hint("begin it first")
        })
    }

    pub(super) fn write(&self, store: &AgentStore<'_>) -> Result<()> {
        store.set_mark(MARK, Some(self))
    }

    pub(super) fn clear(store: &AgentStore<'_>) -> Result<()> {
        store.set_mark(MARK, None::<&Self>)
    }

    /// Returns `true` if a dispute is not decided.
    pub(super) fn is_disputed(&self) -> bool {
        self.disputes.iter().any(Dispute::is_open)
    }

    pub(super) fn kind(&self) -> ExitKind {
        self.kind.parse().unwrap_or(ExitKind::Voluntary)
    }

    pub(super) fn closes_at(&self) -> EpochMs {
        EpochMs::new(self.closes_at)
    }

    /// What was decided, and what became of disputes.
    pub(super) fn classifications(&self) -> Classifications {
        let mut classes = Classifications::default();
        for (item_type, id, class) in self.decided.iter().filter_map(Decided::parts) {
            classes.set(item_type, id, class);
        }
        for dispute in &self.disputes {
            let status = match dispute.status {
                DisputeStatus::Pending => "pending",
                DisputeStatus::Accepted => "accepted",
                DisputeStatus::Rejected => "rejected",
                DisputeStatus::Escalated => "escalated",
            };
            if let Ok(item_type) = dispute.item_type.parse() {
                classes.set_dispute(item_type, &dispute.id, status);
            }
        }
        classes
    }

    fn dispute_mut(&mut self, item_type: ItemType, id: &str) -> Option<&mut Dispute> {
        self.disputes.iter_mut().find(|it| it.item_type == item_type.name() && it.id == id)
    }

    /// Files a dispute.
    ///
    /// # Errors
    /// `ERR_CONFLICT` once the time is over, or for one that was decided.
    pub(super) fn file(
        &mut self,
        item_type: ItemType,
        id: &str,
        justification: &str,
        now: EpochMs,
    ) -> Result<()> {
        if now >= self.closes_at() {
            return Err(Error::new(ErrorKind::Conflict, "the time for disputes is over")
                .with_hint("ask the organization to begin the exit anew"));
        }
        let filed = Dispute {
            item_type: item_type.name().to_owned(),
            id: id.to_owned(),
            justification: justification.to_owned(),
            filed_at: now.get(),
            status: DisputeStatus::Pending,
        };
        match self.dispute_mut(item_type, id) {
            None => self.disputes.push(filed),
            Some(dispute) if dispute.status == DisputeStatus::Pending => *dispute = filed,
            Some(_) => return Err(decided_before(item_type, id)),
        }
        Ok(())
    }

    /// Decides a dispute.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_CONFLICT` for one that was decided.
    pub(super) fn decide(
        &mut self,
        item_type: ItemType,
        id: &str,
        decision: DisputeDecision,
    ) -> Result<()> {
        let dispute = self.dispute_mut(item_type, id).ok_or_else(|| {
            let message = format!("no dispute about {item_type} {id}");
            Error::new(ErrorKind::NotFound, message).with_hint("list the disputes of the exit")
        })?;
        if matches!(dispute.status, DisputeStatus::Accepted | DisputeStatus::Rejected) {
            return Err(decided_before(item_type, id));
        }
        dispute.status = match decision {
            DisputeDecision::Accept(_) => DisputeStatus::Accepted,
            DisputeDecision::Reject => DisputeStatus::Rejected,
            DisputeDecision::Escalate => DisputeStatus::Escalated,
        };
        if let DisputeDecision::Accept(classification) = decision {
            self.decided.push(Decided {
                item_type: item_type.name().to_owned(),
                id: id.to_owned(),
                classification: classification.name().to_owned(),
            });
        }
        Ok(())
    }

    /// Refuses to end the exit before it may.
    ///
    /// # Errors
    /// `ERR_CONFLICT`.
    pub(super) fn check_closed(&self, now: EpochMs) -> Result<()> {
        if now < self.closes_at() {
            let message = format!("disputes are taken until {}", self.closes_at());
            return Err(Error::new(ErrorKind::Conflict, message)
                .with_hint("finalize the exit after that time"));
        }
        match self.disputes.iter().find(|it| it.is_open()) {
            None => Ok(()),
            Some(dispute) => {
                let message = format!(
                    "the dispute about {} {} is not decided",
                    dispute.item_type, dispute.id
                );
                Err(Error::new(ErrorKind::Conflict, message).with_hint("decide it first"))
            }
        }
    }
}

fn decided_before(item_type: ItemType, id: &str) -> Error {
    let message = format!("the dispute about {item_type} {id} was decided before");
    Error::new(ErrorKind::Conflict, message).with_hint("what was decided stays")
}
