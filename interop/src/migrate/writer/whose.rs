//! Whose a record is of which its source tells what it said, and not whose it was.
//!
//! Of what came in before, the store knows it; the rest is taken only if the caller names a person: what is nobody's would
//! be found by everybody, and by no erasure of the person.

use grainstore::Grain;

use super::Writer;
use crate::error::Result;
use crate::migrate::grains::AGENT;
use crate::migrate::ledger::Entry;
use crate::migrate::record::{Body, Chain, Who};

/// Why such a record is left out.
pub(super) const NOBODYS: &str = "its history alone has it, and does not tell whose it was";

/// What a person should know of so many records that are left out.
pub(super) fn note_of(records: u64) -> String {
    format!(
        "{records} records are in the history alone, which does not tell whose they were: they are left out; \
         `--user` (`user_id`) takes everything as that person's"
    )
}

impl Writer<'_> {
    /// Returns `true` if neither the source nor the caller tells whose a record is.
    pub(super) fn is_nobodys(&self, chain: &Chain) -> bool {
        chain.is_partial && self.run.options.user.is_none()
    }

    /// Gives a record that came in before the person of its grain, if its source tells none. Also returns whether the grain
    /// has the text of the newest version.
    ///
    /// # Errors
    /// Those of reading the grain.
    pub(super) fn of_whom_it_was(&self, chain: Chain, entry: &Entry) -> Result<(Chain, bool)> {
        if !chain.is_partial {
            return Ok((chain, false));
        }
        let kept = self.run.session.inspect(&entry.head)?.grain()?;
        let newest = chain.versions.last().map(|(_, newest)| &newest.body);
        let says_the_same = newest.is_some_and(|body| {
            matches!(body, Body::Fact { object, .. } if object.as_str() == kept.text("object"))
        });
        if !self.is_nobodys(&chain) {
            return Ok((chain, says_the_same));
        }
        let mut chain = chain;
        for (_, version) in &mut chain.versions {
            version.who = Who { role: version.who.role.take(), ..who_of(&kept) };
            if let (Body::Fact { subject, .. }, Some(of)) =
                (&mut version.body, kept.text("subject"))
            {
                of.clone_into(subject);
            }
        }
        Ok((chain, says_the_same))
    }
}

fn who_of(grain: &Grain) -> Who {
    let own = |name: &str| grain.text(name).map(str::to_owned);
    let agent = grain.map("context").and_then(|context| context.get(AGENT)?.as_str());
    Who {
        user: own("user_id"),
        agent: agent.map(str::to_owned),
        session: own("session_id"),
        run: own("run_id"),
        role: own("role"),
    }
}
