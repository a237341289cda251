//! Operations reserved to the operator of the store, in a session that is limited to no namespace and no user
//! (ruling 55). Any other session is one caller among many.
//!
//! One list and one check. A method that takes a [`Store`](crate::Store) and no session is available to any
//! holder of the store: interfaces that give a store to others check here first.

use crate::rules::policy::Authority;
use crate::state::session_options::SessionOptions;

/// Declares the powers once: variant, the name it has in the audit log, and what it is, for people.
macro_rules! powers {
    ($($variant:ident $name:literal $text:literal;)+) => {
        /// An operation reserved to the operator of the whole store.
        /// [`Session::check_power`](crate::Session::check_power) asks for one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Power {
            $(#[doc = $text] $variant),+
        }

        impl Power {
            /// All powers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name of the method that needs it, and of its entries in the audit log.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// A human-readable description.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }
    };
}

powers! {
    LiftHold "lift_hold" "lifting a hold whose policy names no signers";
    ChangeRules "policy_set" "changing the rules of the store";
    SwitchCal "cal_switch" "switching CAL on and off";
    EraseOthers "erase" "erasing grains, and users other than oneself";
    Sweep "sweep" "erasing what is due";
    ReportOthers "subject_report" "telling what the store has of others";
    RotateKeys "rotate_key" "exchanging keys";
    Checkpoint "checkpoint" "signing the head of the audit log";
    Stats "stats" "figures of all namespaces";
    Reindex "reindex" "building the index anew";
    Compact "compact" "giving room back";
    RemoveVectors "remove_vectors" "removing the vectors of a model";
    Backup "backup" "copying the whole store";
    Application "application" "keeping rows and blobs of applications";
    Evidence "export_evidence" "handing on evidence of decisions";
}

impl SessionOptions {
    /// Whether a session as these say is the operator's, over the whole store, beside the operator that the
    /// host names with [`OpenOptions::operator`](crate::OpenOptions::operator).
    #[must_use]
    pub fn have_powers(&self, operator: Option<&str>) -> bool {
        let is_limited = self.namespace.is_some() || self.user_id.is_some();
        !is_limited && self.authority(operator).is_operator()
    }

    /// The authority of a session as these say.
    pub(crate) fn authority(&self, operator: Option<&str>) -> Authority {
        match self.unprivileged {
            true => Authority::Agent,
            false => Authority::of(self.actor.as_deref(), operator),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{OpenOptions, Store};

    #[test]
    fn an_unprivileged_session_has_no_power_whatever_its_actor() {
        let dir = tempfile::TempDir::new().unwrap();
        for operator in [None, Some("did:web:ops")] {
            for actor in [None, Some("did:web:ops"), Some("did:web:agent")] {
                let (actor, unprivileged) = (actor.map(str::to_owned), true);
                let options = SessionOptions { actor, unprivileged, ..SessionOptions::default() };
                assert!(!options.have_powers(operator), "{options:?} {operator:?}");
            }
        }
        let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
        let options = SessionOptions { unprivileged: true, ..SessionOptions::default() };
        let session = store.session(options);
        let part = session.narrower_part(None, None, Some("agent".into())).unwrap();
        for session in [session, part] {
            assert!(!session.has_powers());
            for power in Power::ALL {
                let told = session.check_power(*power).map_err(|error| error.code());
                assert_eq!(told, Err("ERR_ACCESS"), "{power:?}");
            }
        }
    }

    #[test]
    fn powers_are_the_operators_in_a_session_without_a_namespace_and_a_user() {
        let dir = tempfile::TempDir::new().unwrap();
        let options = OpenOptions::new().create(true).operator("did:web:ops");
        let store = Store::open(dir.path(), &options).unwrap();
        let names: BTreeSet<_> = Power::ALL.iter().map(|power| power.name()).collect();
        assert_eq!(names.len(), Power::ALL.len());
        let text = |text: Option<&str>| text.map(str::to_owned);
        for namespace in [None, Some("team")] {
            for user in [None, Some("ann")] {
                for actor in [None, Some("did:web:ops"), Some("did:web:agent")] {
                    let session = store.session(SessionOptions {
                        namespace: text(namespace),
                        user_id: text(user),
                        actor: text(actor),
                        ..SessionOptions::default()
                    });
                    let may =
                        namespace.is_none() && user.is_none() && actor != Some("did:web:agent");
                    assert_eq!(session.options().have_powers(Some("did:web:ops")), may);
                    for power in Power::ALL {
                        let told = session.check_power(*power).map_err(|error| error.code());
                        let wanted = if may { Ok(()) } else { Err("ERR_ACCESS") };
                        assert_eq!(told, wanted, "{power:?} {namespace:?} {user:?} {actor:?}");
                    }
                }
            }
        }
        let told = store.session(SessionOptions::default()).audit(None, 1000).unwrap();
        for power in Power::ALL {
            let of = told.iter().filter(|entry| entry.operation == power.name());
            let refused = of.filter(|entry| entry.decision == "refused").count();
            assert_eq!(refused, 3, "once for each actor: {power:?}");
        }
    }
}
