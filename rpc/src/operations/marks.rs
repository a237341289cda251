//! Operations that change the state of a grain without writing another: `contradict`, `set_verification`,
//! `hold`, `lift_hold`.

use grainstore::Session;
use grainstore::format::VerificationStatus;
use serde::Deserialize;

use crate::arguments::Nothing;
use crate::error::{Code, Error, Result};
use crate::json::{Address, Base64};

/// Arguments of [`contradict`], [`hold`] and [`lift_hold`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The grain.
    pub address: Address,
    /// The reason, for the audit log.
    pub reason: String,
    /// A COSE_Sign1 with a detached payload.
    pub cose: Option<Base64>,
}

/// Marks a grain as contradicted.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{Mark, contradict};
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let mark = Mark { address: tea.into(), reason: "she never drinks any".into(), cose: None };
/// contradict(mark, &session)?;
/// assert!(session.get(&tea)?.state.contradicted);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn contradict(mark: Mark, session: &Session) -> Result<Nothing> {
    let Mark { address, reason, cose } = mark;
    session.contradict(&address.get()?, &reason, proof_bytes(cose.as_ref()))?;
    Ok(Nothing {})
}

/// Holds a grain. Any session that sees it may, so `cose` is not read.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{Mark, hold, lift_hold};
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let mark = |reason: &str| Mark { address: tea.into(), reason: reason.into(), cose: None };
/// hold(mark("case 12"), &session)?;
/// assert!(session.get(&tea)?.state.held);
/// lift_hold(mark("case 12 is closed"), &session)?;
/// assert!(!session.get(&tea)?.state.held);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn hold(mark: Mark, session: &Session) -> Result<Nothing> {
    session.hold(&mark.address.get()?, &mark.reason)?;
    Ok(Nothing {})
}

/// Lifts the [`hold`] on a grain.
pub fn lift_hold(mark: Mark, session: &Session) -> Result<Nothing> {
    let Mark { address, reason, cose } = mark;
    session.lift_hold(&address.get()?, &reason, proof_bytes(cose.as_ref()))?;
    Ok(Nothing {})
}

/// Arguments of [`set_verification`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetVerification {
    /// The grain.
    pub address: Address,
    /// The name of the status.
    pub status: String,
    /// The reason, for the audit log.
    pub reason: String,
    /// A COSE_Sign1 with a detached payload.
    pub cose: Option<Base64>,
}

/// Sets the verification status of a grain.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{SetVerification, set_verification};
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let (status, reason) = ("contested".into(), "she says otherwise".into());
/// set_verification(SetVerification { address: tea.into(), status, reason, cose: None }, &session)?;
/// assert_eq!(session.get(&tea)?.state.verification_status.name(), "contested");
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn set_verification(given: SetVerification, session: &Session) -> Result<Nothing> {
    let SetVerification { address, status, reason, cose } = given;
    let status = VerificationStatus::from_name(&status).ok_or_else(|| {
        let message = format!("{status:?} is no verification status");
        let names = VerificationStatus::ALL.map(VerificationStatus::name).join(", ");
        Error::new(Code::Schema, message, format!("use one of {names}"))
    })?;
    session.set_verification(&address.get()?, status, &reason, proof_bytes(cose.as_ref()))?;
    Ok(Nothing {})
}

fn proof_bytes(cose: Option<&Base64>) -> Option<&[u8]> {
    cose.map(|Base64(bytes)| bytes.as_slice())
}
