//! The score of one document, from its words: the sum over the units of a plan, in their order.

use super::part::{Cursor, Part};
use super::plan::{Local, Plan, What};
use super::watch::Watch;
use crate::error::Result;

/// Which documents of a part have something that counts.
pub(super) struct Having(Vec<Cursor>);

impl Having {
    /// Whether a document may have any of it; asked in ascending order.
    pub(super) fn any(&mut self, document: u32) -> bool {
        self.0.iter_mut().any(|cursor| cursor.has(document))
    }
}

/// A plan in the terms of one part.
pub(super) struct Locals<'p> {
    /// The units, in their order.
    pub(super) units: Vec<Local<'p>>,
    /// What no answer has: of each, all together.
    pub(super) barred: Vec<Vec<Local<'p>>>,
}

impl<'p> Locals<'p> {
    /// A plan in the terms of the part of this position.
    pub(super) fn of(plan: &'p Plan, part: usize) -> Self {
        let barred = plan.barred.iter();
        Self {
            units: plan.units.iter().map(|unit| unit.what.localize(part)).collect(),
            barred: barred.map(|all| all.iter().map(|one| one.localize(part)).collect()).collect(),
        }
    }

    /// Whether no document of the part can be an answer.
    pub(super) fn is_empty(&self) -> bool {
        self.units.iter().all(|local| matches!(local, Local::Nothing))
    }

    /// Which documents have something that counts: a phrase what has its first word.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the postings cannot be read.
    pub(super) fn having(&self, part: Part<'_>) -> Result<Having> {
        let mut cursors = Vec::new();
        for local in &self.units {
            match local {
                Local::Term(found) => cursors.push(part.cursor(found)?),
                Local::Phrase(terms) => {
                    for (found, _) in terms.iter().take(1) {
                        cursors.push(part.cursor(found)?);
                    }
                }
                Local::Group(members) => {
                    for (found, _) in members {
                        cursors.push(part.cursor(found)?);
                    }
                }
                Local::Nothing => {}
            }
        }
        Ok(Having(cursors))
    }

    /// The score of a document; `None` if it is no answer.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if its words cannot be read; `ERR_TIMEOUT`.
    pub(super) fn score(
        &self,
        plan: &Plan,
        part: Part<'_>,
        document: u32,
        watch: &Watch<'_>,
    ) -> Result<Option<f64>> {
        watch.step(1)?;
        let words = part.words(document)?;
        let code = part.length_code(document);
        let share = |local: &Local| local.share(&words, (&plan.norms, code), watch);
        let mut score = 0.0;
        for (unit, local) in plan.units.iter().zip(&self.units) {
            let share = share(local)?;
            if share > 0.0 {
                score += unit.value * share;
            } else if unit.must {
                return Ok(None);
            }
        }
        let is_barred = any_has_all(&self.barred, share)?;
        Ok((score > 0.0 && !is_barred).then_some(score))
    }
}

/// Whether a document is an answer to a plan: whether [`Locals::score`] would give a score. Looks no
/// further than that takes.
///
/// # Errors
/// Those of [`Locals::score`].
pub(super) fn answers(
    plan: &Plan,
    (at, part): (usize, Part<'_>),
    document: u32,
    watch: &Watch<'_>,
) -> Result<bool> {
    watch.step(1)?;
    let words = part.words(document)?;
    let code = part.length_code(document);
    let share = |what: &What| what.localize(at).share(&words, (&plan.norms, code), watch);
    let mut counts = false;
    for unit in plan.units.iter().filter(|unit| unit.must) {
        if share(&unit.what)? <= 0.0 {
            return Ok(false);
        }
        counts = true;
    }
    for unit in &plan.units {
        counts = counts || share(&unit.what)? > 0.0;
    }
    Ok(counts && !any_has_all(&plan.barred, share)?)
}

/// Whether all of any have a share.
fn any_has_all<T>(any: &[Vec<T>], share: impl Fn(&T) -> Result<f64>) -> Result<bool> {
    for all in any {
        let mut has = true;
        for one in all {
            has = has && share(one)? > 0.0;
        }
        if has {
            return Ok(true);
        }
    }
    Ok(false)
}
