//! The identity a session works under, and the part of the store it works on.

/// The identity of a session, and the part of the store it works on.
///
/// Reads see grains of `namespace` and of namespaces below it (`namespace:...`) only, and of those the grains
/// of `user_id` and those without a user; other writes are refused. A session with neither sees everything:
/// it is the operator's. No session sees what rests on a withdrawn consent.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// let of = |namespace: &str, user: &str| {
///     let (namespace, user_id) = (Some(namespace.into()), Some(user.into()));
///     store.session(SessionOptions { namespace, user_id, ..Default::default() })
/// };
/// let (ann, alice) = (of("team", "ann"), of("team", "alice"));
/// let tea = BeliefBuilder::new(ann.now(), "ann", "prefers", "tea", 0.9).namespace("team");
/// let tea = ann.put(tea.user_id("ann").build()?)?.address();
/// assert!(ann.exists(&tea)? && !alice.exists(&tea)?);
///
/// let outside = BeliefBuilder::new(ann.now(), "ann", "prefers", "tea", 0.9).namespace("elsewhere");
/// assert!(ann.put(outside.build()?).is_err_and(|error| error.code() == "ERR_ACCESS"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// The namespace to work in (OMS 28.2), `None` for all.
    pub namespace: Option<String>,
    /// The user it works for, whose grains it sees beside those without a user; `MY` in CAL.
    pub user_id: Option<String>,
    /// The DID that writes are recorded under, `None` for the operator. If
    /// [`OpenOptions::operator`](crate::OpenOptions::operator) is not set, it has the operator's rights as
    /// well.
    pub actor: Option<String>,
    /// The agent that acts: the observer of observations it adds through CAL.
    pub agent_id: Option<String>,
    /// The purposes of its reads.
    pub purposes: Vec<String>,
    /// True for a session that is never the operator's, whatever its actor: one that a server gives to a client.
    /// Without an actor its writes are recorded as the operator's all the same, so give it one.
    pub unprivileged: bool,
}
