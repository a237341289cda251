//! Supersessions in a circle, which only a file can state: a grain names those it replaces by their
//! hashes, so that one step of every circle is a claim that the grain behind it does not bear out.
//!
//! Each grain is looked at once, whatever the file says.

use std::collections::HashMap;

use grainstore_format::ContentAddress;
use grainstore_index::Sequence;

use super::conflict::{Conflicts, Disputed};
use super::replace::supersession;
use super::roots::names_parent;
use super::{Author, Plan};
use crate::base::error::Result;
use crate::state::view::is_withdrawal;

/// What a grain says of having replaced another, from the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Founded {
    /// Nothing: it does not name it.
    Not,
    /// It withdraws a consent, perhaps of an older version.
    AsWithdrawal,
    /// It names it.
    ByName,
}

impl Plan<'_> {
    /// Breaks every circle that one of these grains leads into, where the grain behind a step bears it
    /// out the least. The one in front of it stays current and is to be reviewed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`; `ERR_IO`.
    pub(crate) fn break_circles(
        &mut self,
        from: &[Sequence],
        author: &Author,
        conflicts: &mut Conflicts,
    ) -> Result<()> {
        let mut seen: HashMap<Sequence, usize> = HashMap::new();
        for (walk, start) in from.iter().enumerate() {
            let mut at = *start;
            loop {
                if let Some(earlier) = seen.insert(at, walk) {
                    if earlier == walk {
                        self.break_circle(at, author, conflicts)?;
                    }
                    seen.insert(at, earlier);
                    break;
                }
                let Some(next) = self.successor_of(at)? else { break };
                at = next;
            }
        }
        Ok(())
    }

    /// Breaks the circle this grain is in.
    fn break_circle(
        &mut self,
        start: Sequence,
        author: &Author,
        conflicts: &mut Conflicts,
    ) -> Result<()> {
        let mut weakest: Option<(Founded, Sequence)> = None;
        let mut at = start;
        while let Some(next) = self.successor_of(at)? {
            let founded = self.founded(at, next)?;
            if weakest.is_none_or(|(least, _)| founded < least) {
                weakest = Some((founded, at));
            }
            at = next;
            if at == start {
                break;
            }
        }
        let Some((_, at)) = weakest else { return Ok(()) };
        let mut state = self.state(at)?;
        let Some(by) = state.superseded_by.take() else { return Ok(()) };
        if state.is_current() {
            state.system_valid_to = None;
        }
        state.needs_review = true;
        self.states.insert(at, state);
        let address = self.read(at, |address, _| Ok(address))?;
        let why = format!("its supersession by {by} would run in a circle");
        conflicts.note(address, Disputed::Supersession, why);
        self.audit.push(supersession(&address, &by, author, Vec::new(), true));
        Ok(())
    }

    /// Where the grain lies that superseded this one.
    fn successor_of(&self, at: Sequence) -> Result<Option<Sequence>> {
        match self.state(at)?.superseded_by {
            Some(by) => self.locate(&by),
            None => Ok(None),
        }
    }

    fn founded(&self, old: Sequence, new: Sequence) -> Result<Founded> {
        let digits = self.read(old, |address: ContentAddress, _| Ok(address.to_string()))?;
        self.read(new, |_, grain| {
            let is_named =
                names_parent(grain, &digits) || grain.text("prior_consent") == Some(&digits);
            Ok(match (is_named, is_withdrawal(grain)) {
                (true, _) => Founded::ByName,
                (false, true) => Founded::AsWithdrawal,
                (false, false) => Founded::Not,
            })
        })
    }
}
