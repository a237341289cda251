//! Which grains an assembly shows and at which level, by prices added up (`cal.md` section 5).
//!
//! Knows what an element costs, not what is done with it. Each element is rendered and counted on
//! its own, so the work grows with the number of grains, not with its square; nothing rendered here
//! is kept.

use std::iter;

use grainstore_format::GrainType;

use crate::assemble::{AssemblyOptions, Disclosure, Source};
use crate::budget::{Budget, allocate, shares};
use crate::error::Error;
use crate::format::{Element, Layout};
use crate::item::{Item, Level};
use crate::template::CHARS_A_TOKEN;
use crate::time::Clock;
use crate::tokens::TokenCounter;
use crate::watch::Watch;

/// Below this budget in tokens, [`Disclosure::Auto`] shows summaries.
const SMALL_BUDGET: usize = 1000;
/// A source that asks for no more grains than this is shown in full where it fits.
const FEW_GRAINS: usize = 5;

/// Prices in the unit of the budget.
pub(crate) struct Meter<'a> {
    counter: &'a dyn TokenCounter,
    layout: &'a dyn Layout,
    clock: Clock,
    unit: Unit,
    /// What the text takes without any grain.
    pub(crate) envelope: usize,
    /// What the budget leaves for elements and their groups.
    available: usize,
    /// Asked before each element.
    watch: Watch<'a>,
    /// Reused for one element after the other.
    scratch: String,
}

enum Unit {
    Tokens,
    Grains,
}

impl<'a> Meter<'a> {
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
                .fold(0_usize, |sum, part| sum.saturating_add(cost(part, layout, counter))),
        };
        let available = total.saturating_sub(envelope);
        let (clock, watch, scratch) = (options.clock, options.watch, String::new());
        Self { counter, layout, clock, unit, envelope, available, watch, scratch }
    }

    /// What it takes to show the item at this level.
    fn price(&mut self, item: &Item, level: Level) -> usize {
        match self.unit {
            Unit::Grains => 1,
            Unit::Tokens => {
                self.scratch.clear();
                if let Some(element) = Element::of(item, level, self.layout, &self.clock) {
                    self.layout.element(&mut self.scratch, &element);
                }
                cost(&self.scratch, self.layout, self.counter)
            }
        }
    }

    /// What it takes to open the group the item is the first of.
    fn group_price(&self, item: &Item, level: Level) -> usize {
        match (&self.unit, Element::of(item, level, self.layout, &self.clock)) {
            (Unit::Tokens, Some(first)) => {
                cost(&self.layout.group(&first), self.layout, self.counter)
            }
            _ => 0,
        }
    }
}

/// What a piece of the text takes of a budget in tokens: where its characters are bounded too, whichever
/// is more, so that what fits by its price fits both ways.
fn cost(piece: &str, layout: &dyn Layout, counter: &dyn TokenCounter) -> usize {
    let tokens = counter.count(piece);
    match layout.longest() {
        Some(_) => tokens.max(piece.chars().count().div_ceil(CHARS_A_TOKEN)),
        None => tokens,
    }
}

/// One source while its grains are chosen.
pub(crate) struct Draft<'a> {
    /// Its index among the sources.
    pub(crate) source: usize,
    /// Its place in the order of priority.
    pub(crate) rank: usize,
    pub(crate) label: &'a str,
    /// What it was given of the budget.
    pub(crate) allocated: usize,
    asked: usize,
    failed: bool,
    level: Level,
    entries: Vec<Entry<'a>>,
    groups: Vec<Opening>,
}

/// What stands before the first element of a group.
#[derive(Default)]
struct Opening {
    price: usize,
    paid: bool,
}

struct Entry<'a> {
    item: &'a Item,
    /// Which group of the source it is in.
    group: usize,
    /// What it takes at the level of the source.
    price: usize,
    placed: bool,
}

/// A grain that is shown.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) source: usize,
    /// The place of its source in the order of priority.
    pub(crate) rank: usize,
    /// Its place within the source.
    pub(crate) position: usize,
    pub(crate) item: &'a Item,
    /// Which group of its source it is in.
    pub(crate) group: usize,
    pub(crate) level: Level,
    /// What it takes by itself, without the opening of its group.
    pub(crate) price: usize,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(index: usize, rank: usize, source: &Source<'a>) -> Self {
        let items = if source.failed { &[] } else { source.items };
        let mut groups = Vec::new();
        let mut last: Option<GrainType> = None;
        let shown = items.iter().filter(|item| item.may_be_shown()).map(|item| {
            let grain_type = item.grain.grain_type();
            if last.replace(grain_type) != Some(grain_type) {
                groups.push(Opening::default());
            }
            Entry { item, group: groups.len().saturating_sub(1), price: 0, placed: false }
        });
        let entries = shown.collect();
        Self {
            source: index,
            rank,
            label: source.label,
            allocated: 0,
            asked: source.asked,
            failed: source.failed,
            level: Level::Standard,
            entries,
            groups,
        }
    }

    /// How many grains there are to show.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Its grains, placed or not, at the level of the source.
    pub(crate) fn all(&self) -> impl Iterator<Item = Placed<'a>> {
        self.entries.iter().enumerate().map(|(position, entry)| Placed {
            source: self.source,
            rank: self.rank,
            position,
            item: entry.item,
            group: entry.group,
            level: self.level,
            price: 0,
        })
    }

    /// What it takes to open the group.
    pub(crate) fn opening(&self, group: usize) -> usize {
        self.groups.get(group).map_or(0, |opening| opening.price)
    }

    fn set_level(&mut self, level: Level, meter: &mut Meter<'_>) -> Result<(), Error> {
        self.level = level;
        let mut opened = None;
        for entry in &mut self.entries {
            meter.watch.check()?;
            entry.price = meter.price(entry.item, level);
            if opened.replace(entry.group) != Some(entry.group)
                && let Some(opening) = self.groups.get_mut(entry.group)
            {
                opening.price = meter.group_price(entry.item, level);
            }
        }
        Ok(())
    }

    /// What it takes to show every grain at the level of the source.
    pub(crate) fn demand(&self) -> usize {
        let openings = self.groups.iter().map(|opening| opening.price);
        let prices = self.entries.iter().map(|entry| entry.price);
        openings.chain(prices).fold(0, usize::saturating_add)
    }

    /// Places what fits of the grains not placed yet, in order: one too large leaves room for
    /// smaller ones after it. Answers what is left of the allowance.
    fn fill(
        &mut self,
        allowance: usize,
        step_down: bool,
        meter: &mut Meter<'_>,
        placed: &mut Vec<Placed<'a>>,
    ) -> Result<usize, Error> {
        let mut left = allowance;
        let waiting = self.entries.iter_mut().enumerate().filter(|(_, entry)| !entry.placed);
        for (position, entry) in waiting {
            meter.watch.check()?;
            let Some(opening) = self.groups.get_mut(entry.group) else {
                continue;
            };
            let gap = if opening.paid { 0 } else { opening.price };
            let lower = |level: &Level| level.lower().filter(|_| step_down);
            let fitting = iter::successors(Some(self.level), lower).find_map(|level| {
                let own =
                    if level == self.level { entry.price } else { meter.price(entry.item, level) };
                (own.saturating_add(gap) <= left).then_some((level, own))
            });
            if let Some((level, price)) = fitting {
                (entry.placed, opening.paid) = (true, true);
                left -= price + gap;
                placed.push(Placed {
                    source: self.source,
                    rank: self.rank,
                    position,
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

/// Chooses the level of each source and gives it its part of the budget.
pub(crate) fn disclose(
    drafts: &mut [Draft<'_>],
    options: &AssemblyOptions<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Error> {
    choose_levels(drafts, options, meter)?;
    share_out(drafts, meter);
    if options.disclosure == Disclosure::Auto {
        let demands: Vec<_> = drafts.iter().map(Draft::demand).collect();
        for (draft, demand) in drafts.iter_mut().zip(demands) {
            if draft.level == Level::Full && demand > draft.allocated {
                draft.set_level(Level::Standard, meter)?;
            }
        }
        // Asking for less takes nothing from the others, so what fitted in full still does.
        share_out(drafts, meter);
    }
    Ok(())
}

/// Gives each source the level it is shown at if it fits.
pub(crate) fn choose_levels(
    drafts: &mut [Draft<'_>],
    options: &AssemblyOptions<'_>,
    meter: &mut Meter<'_>,
) -> Result<(), Error> {
    for draft in drafts {
        let level = match (options.disclosure, options.budget) {
            (Disclosure::Fixed(level), _) => level,
            (Disclosure::Auto, Budget::Tokens(..SMALL_BUDGET)) => Level::Summary,
            (Disclosure::Auto, _) if draft.asked <= FEW_GRAINS => Level::Full,
            (Disclosure::Auto, _) => Level::Standard,
        };
        draft.set_level(level, meter)?;
    }
    Ok(())
}

/// What each source was to get, had those that failed used up their shares; nothing where none failed.
pub(crate) fn meant(drafts: &[Draft<'_>], meter: &Meter<'_>) -> Option<Vec<usize>> {
    if !drafts.iter().any(|draft| draft.failed) {
        return None;
    }
    let shares = shares(meter.available, drafts.len());
    let demand =
        |(draft, share): (&Draft<'_>, _)| if draft.failed { share } else { draft.demand() };
    let demands: Vec<_> = drafts.iter().zip(shares).map(demand).collect();
    Some(allocate(meter.available, &demands))
}

fn share_out(drafts: &mut [Draft<'_>], meter: &Meter<'_>) {
    let demands: Vec<_> = drafts.iter().map(Draft::demand).collect();
    let given = allocate(meter.available, &demands);
    for (draft, given) in drafts.iter_mut().zip(given) {
        draft.allocated = given;
    }
}

/// Places the grains, `drafts` in priority order. Room that whole grains cannot use up flows to
/// the sources after, and what is left at the end once more to all of them.
pub(crate) fn place<'a>(
    drafts: &mut [Draft<'a>],
    disclosure: Disclosure,
    meter: &mut Meter<'_>,
) -> Result<Vec<Placed<'a>>, Error> {
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
