//! Chooses the grains of an assembly and their levels, by adding up costs (CAL 8.2).
//!
//! It knows the cost of an element, not its use. Each element is rendered and counted on its own, so
//! the work is linear in the number of grains; nothing rendered here is kept.

use std::iter;

use grainstore_format::GrainType;

use crate::budget::{Budget, allocate, weighted_shares};
use crate::cancel::CancelCheck;
use crate::error::Error;
use crate::format::{Element, Layout};
use crate::item::Item;
use crate::level::Level;
use crate::options::{AssemblyOptions, AssemblySource, Disclosure};
use crate::template::MAX_CHARS_PER_TOKEN;
use crate::time::Clock;
use crate::tokens::TokenCounter;

/// Below this budget in tokens, [`Disclosure::Auto`] shows summaries.
const SMALL_BUDGET_TOKENS: usize = 1000;
/// A source that asks for at most this many grains is shown in full if it fits.
const FULL_LEVEL_MAX_GRAINS: usize = 5;

/// Computes costs in the unit of the budget.
pub(crate) struct CostMeter<'a> {
    counter: &'a dyn TokenCounter,
    layout: &'a dyn Layout,
    clock: Clock,
    unit: Unit,
    /// The cost of the text without any grain.
    pub(crate) envelope: usize,
    /// The part of the budget left for elements and groups.
    available: usize,
    /// Checked before each element.
    cancel: CancelCheck<'a>,
    /// A buffer reused for each element.
    scratch: String,
}

enum Unit {
    Tokens,
    Grains,
}

impl<'a> CostMeter<'a> {
    pub(crate) fn new(
        options: &AssemblyOptions<'a>,
        layout: &'a dyn Layout,
        counter: &'a dyn TokenCounter,
    ) -> Self {
        let (unit, total) = match options.budget {
            Budget::Grains(grains) => (Unit::Grains, grains),
            Budget::Tokens(tokens) => (Unit::Tokens, tokens),
        };
        let envelope = match unit {
            Unit::Grains => 0,
            Unit::Tokens => layout
                .frame(&options.frame())
                .iter()
                .fold(0_usize, |sum, part| sum.saturating_add(text_cost(part, layout, counter))),
        };
        let available = total.saturating_sub(envelope);
        let (clock, watch, scratch) = (options.clock, options.cancel, String::new());
        Self { counter, layout, clock, unit, envelope, available, cancel: watch, scratch }
    }

    /// Returns the cost of the item at this level.
    fn cost(&mut self, item: &Item, level: Level) -> usize {
        match self.unit {
            Unit::Grains => 1,
            Unit::Tokens => {
                self.scratch.clear();
                if let Some(element) = Element::of(item, level, self.layout, &self.clock) {
                    self.layout.element(&mut self.scratch, &element);
                }
                text_cost(&self.scratch, self.layout, self.counter)
            }
        }
    }

    /// Returns the cost of opening the group whose first item this is.
    fn group_cost(&self, item: &Item, level: Level) -> usize {
        match (&self.unit, Element::of(item, level, self.layout, &self.clock)) {
            (Unit::Tokens, Some(first)) => {
                text_cost(&self.layout.group(&first), self.layout, self.counter)
            }
            _ => 0,
        }
    }
}

/// Returns the cost of a piece of text in tokens. If the characters are limited too, the greater of
/// tokens and characters / 2 counts, so that text within the cost is within both limits.
fn text_cost(piece: &str, layout: &dyn Layout, counter: &dyn TokenCounter) -> usize {
    let tokens = counter.count(piece);
    match layout.max_chars() {
        Some(_) => tokens.max(piece.chars().count().div_ceil(MAX_CHARS_PER_TOKEN)),
        None => tokens,
    }
}

/// One source during selection.
pub(crate) struct SourceSelection<'a> {
    /// The index among the sources.
    pub(crate) source: usize,
    /// The rank by priority.
    pub(crate) rank: usize,
    pub(crate) label: &'a str,
    /// The share of the budget allocated to it.
    pub(crate) allocated: usize,
    limit: usize,
    failed: bool,
    level: Level,
    entries: Vec<SelectionEntry<'a>>,
    groups: Vec<GroupOpening>,
}

/// The text before the first element of a group.
#[derive(Default)]
struct GroupOpening {
    price: usize,
    paid: bool,
}

struct SelectionEntry<'a> {
    item: &'a Item,
    /// The position within the source.
    position: usize,
    /// The index of its group within the source.
    group: usize,
    /// The cost at the level of the source.
    price: usize,
    placed: bool,
}

/// A grain that will be shown.
#[derive(Clone, Copy)]
pub(crate) struct PlacedGrain<'a> {
    pub(crate) source: usize,
    /// The rank of its source by priority.
    pub(crate) rank: usize,
    /// The position within the source, counting items that must not be shown.
    pub(crate) position: usize,
    pub(crate) item: &'a Item,
    /// The index of its group within the source.
    pub(crate) group: usize,
    pub(crate) level: Level,
    /// The cost of the element, without the opening of its group.
    pub(crate) price: usize,
}

impl<'a> SourceSelection<'a> {
    pub(crate) fn new(index: usize, rank: usize, source: &AssemblySource<'a>) -> Self {
        let items = if source.failed { &[] } else { source.items };
        let mut groups = Vec::new();
        let mut last: Option<GrainType> = None;
        let numbered = items.iter().enumerate();
        let shown = numbered.filter(|(_, item)| item.is_displayable()).map(|(position, item)| {
            let grain_type = item.grain.grain_type();
            if last.replace(grain_type) != Some(grain_type) {
                groups.push(GroupOpening::default());
            }
            let group = groups.len().saturating_sub(1);
            SelectionEntry { item, position, group, price: 0, placed: false }
        });
        let entries = shown.collect();
        Self {
            source: index,
            rank,
            label: source.label,
            allocated: 0,
            limit: source.limit,
            failed: source.failed,
            level: Level::Standard,
            entries,
            groups,
        }
    }

    /// Returns the number of grains that may be shown.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Iterates over all its grains, placed or not, at the level of the source.
    pub(crate) fn all(&self) -> impl Iterator<Item = PlacedGrain<'a>> {
        self.entries.iter().map(|entry| PlacedGrain {
            source: self.source,
            rank: self.rank,
            position: entry.position,
            item: entry.item,
            group: entry.group,
            level: self.level,
            price: 0,
        })
    }

    /// Returns the cost of opening a group.
    pub(crate) fn opening(&self, group: usize) -> usize {
        self.groups.get(group).map_or(0, |opening| opening.price)
    }

    fn set_level(&mut self, level: Level, meter: &mut CostMeter<'_>) -> Result<(), Error> {
        self.level = level;
        let mut opened = None;
        for entry in &mut self.entries {
            meter.cancel.check()?;
            entry.price = meter.cost(entry.item, level);
            if opened.replace(entry.group) != Some(entry.group)
                && let Some(opening) = self.groups.get_mut(entry.group)
            {
                opening.price = meter.group_cost(entry.item, level);
            }
        }
        Ok(())
    }

    /// Returns the cost of all its grains at the level of the source.
    pub(crate) fn demand(&self) -> usize {
        let openings = self.groups.iter().map(|opening| opening.price);
        let prices = self.entries.iter().map(|entry| entry.price);
        openings.chain(prices).fold(0, usize::saturating_add)
    }

    /// Places the grains that fit the allowance, in order. One that does not fit is skipped, so that
    /// smaller ones after it can be placed. With `step_down`, lower levels are tried too. Returns the
    /// rest of the allowance.
    fn fill(
        &mut self,
        allowance: usize,
        step_down: bool,
        meter: &mut CostMeter<'_>,
        placed: &mut Vec<PlacedGrain<'a>>,
    ) -> Result<usize, Error> {
        let mut left = allowance;
        for entry in self.entries.iter_mut().filter(|entry| !entry.placed) {
            meter.cancel.check()?;
            let Some(opening) = self.groups.get_mut(entry.group) else {
                continue;
            };
            let gap = if opening.paid { 0 } else { opening.price };
            let lower = |level: &Level| level.lower().filter(|_| step_down);
            let fitting = iter::successors(Some(self.level), lower).find_map(|level| {
                let own =
                    if level == self.level { entry.price } else { meter.cost(entry.item, level) };
                (own.saturating_add(gap) <= left).then_some((level, own))
            });
            if let Some((level, price)) = fitting {
                (entry.placed, opening.paid) = (true, true);
                left -= price + gap;
                placed.push(PlacedGrain {
                    source: self.source,
                    rank: self.rank,
                    position: entry.position,
                    item: entry.item,
                    group: entry.group,
                    level,
                    price,
                });
            }
        }
        Ok(left)
    }
}

/// Chooses the level of each source and allocates its share of the budget.
pub(crate) fn choose_and_allocate(
    drafts: &mut [SourceSelection<'_>],
    options: &AssemblyOptions<'_>,
    meter: &mut CostMeter<'_>,
) -> Result<(), Error> {
    choose_levels(drafts, options, meter)?;
    allocate_shares(drafts, meter);
    if options.disclosure == Disclosure::Auto {
        let demands: Vec<_> = drafts.iter().map(SourceSelection::demand).collect();
        for (draft, demand) in drafts.iter_mut().zip(demands) {
            if draft.level == Level::Full && demand > draft.allocated {
                draft.set_level(Level::Standard, meter)?;
            }
        }
        // A lower demand takes nothing from other sources, so those that fit at full level still do.
        allocate_shares(drafts, meter);
    }
    Ok(())
}

/// Sets the initial level of each source, before it is known to fit.
pub(crate) fn choose_levels(
    drafts: &mut [SourceSelection<'_>],
    options: &AssemblyOptions<'_>,
    meter: &mut CostMeter<'_>,
) -> Result<(), Error> {
    for draft in drafts {
        let level = match (options.disclosure, options.budget) {
            (Disclosure::Fixed(level), _) => level,
            (Disclosure::Auto, Budget::Tokens(..SMALL_BUDGET_TOKENS)) => Level::Summary,
            (Disclosure::Auto, _) if draft.limit <= FULL_LEVEL_MAX_GRAINS => Level::Full,
            (Disclosure::Auto, _) => Level::Standard,
        };
        draft.set_level(level, meter)?;
    }
    Ok(())
}

/// Returns what each source would have been allocated if none had failed, or `None` if none failed.
pub(crate) fn allocations_without_failures(
    drafts: &[SourceSelection<'_>],
    meter: &CostMeter<'_>,
) -> Option<Vec<usize>> {
    if !drafts.iter().any(|draft| draft.failed) {
        return None;
    }
    let shares = weighted_shares(meter.available, drafts.len());
    let demand = |(draft, share): (&SourceSelection<'_>, _)| {
        if draft.failed { share } else { draft.demand() }
    };
    let demands: Vec<_> = drafts.iter().zip(shares).map(demand).collect();
    Some(allocate(meter.available, &demands))
}

fn allocate_shares(drafts: &mut [SourceSelection<'_>], meter: &CostMeter<'_>) {
    let demands: Vec<_> = drafts.iter().map(SourceSelection::demand).collect();
    let given = allocate(meter.available, &demands);
    for (draft, given) in drafts.iter_mut().zip(given) {
        draft.allocated = given;
    }
}

/// Takes back what was placed, and halves the allowances. Returns `false` once there is nothing left of them.
pub(crate) fn halve_allowances(drafts: &mut [SourceSelection<'_>]) -> bool {
    let mut any = false;
    for draft in drafts {
        draft.entries.iter_mut().for_each(|entry| entry.placed = false);
        draft.groups.iter_mut().for_each(|opening| opening.paid = false);
        draft.allocated /= 2;
        any |= draft.allocated > 0;
    }
    any
}

/// Places the grains of all sources; `drafts` is in priority order. The rest of an allowance is passed
/// on to the next source, and what is left at the end is offered to all sources once more.
pub(crate) fn place_grains<'a>(
    drafts: &mut [SourceSelection<'a>],
    disclosure: Disclosure,
    meter: &mut CostMeter<'_>,
) -> Result<Vec<PlacedGrain<'a>>, Error> {
    let step_down = disclosure == Disclosure::Auto;
    let mut placed = Vec::new();
    let mut left = 0;
    for draft in &mut *drafts {
        left = draft.fill(draft.allocated + left, step_down, meter, &mut placed)?;
    }
    for draft in drafts {
        left = draft.fill(left, step_down, meter, &mut placed)?;
    }
    Ok(placed)
}
