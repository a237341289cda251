//! Powers of the store: what is for its operator, in a session that is limited to no namespace and no
//! user (ruling 55 of the project's reading). Any other session is one caller among many.
//!
//! One list and one check. What takes a [`Store`](crate::Store) and no session is for whoever holds it:
//! faces that give a store to others ask here first.

use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::session::Session;
use crate::rules::policy::Rule;
use crate::state::audit::Operation;

/// Declares the powers once: variant, the name it has in the audit log, and what it is, for people.
macro_rules! powers {
    ($($variant:ident $name:literal $text:literal;)+) => {
        /// What only the operator of the whole store does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Power {
            $(#[doc = $text] $variant),+
        }

        impl Power {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name: that of the method it is asked for by, and of its entries in the audit log.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// What it is, for a person.
            #[must_use]
            pub const fn text(self) -> &'static str {
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
}

impl Session {
    /// Whether this session is the operator's, over the whole store.
    #[must_use]
    pub fn has_powers(&self) -> bool {
        self.author().speaks_for_store()
    }

    /// Refuses what is for the operator of the whole store, unless it is the operator who asks. A
    /// refusal is in the audit log.
    ///
    /// # Errors
    /// `ERR_ACCESS`; `ERR_IO` where the refusal cannot be written.
    pub fn check_power(&self, power: Power) -> Result<()> {
        match self.has_powers() {
            true => Ok(()),
            false => Err(self.refused_power(power)),
        }
    }

    /// The refusal of a power, with its entry in the audit log.
    pub(crate) fn refused_power(&self, power: Power) -> Error {
        let message = format!("{} is for the operator of the whole store", power.text());
        let error = Error::new(ErrorKind::Access, message)
            .with_hint("open a session of the operator, without a namespace and a user");
        self.refused(Operation::Power(power), Vec::new(), Rule::NotOperator, None, error)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{OpenOptions, SessionOptions, Store};

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
