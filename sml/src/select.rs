//! Which grains an assembly shows and at which level, by prices added up (`cal.md` section 5).
//!
//! Knows what an element costs, not what is done with it. Each element is rendered and counted on
//! its own, so the work grows with the number of grains, not with its square; nothing rendered here
//! is kept.

use std::iter;

use grainstore_format::GrainType;

use crate::assemble::{AssemblyOptions, Disclosure, Source};
use crate::budget::{Budget, allocate};
use crate::item::{Item, Level};
use crate::project::project;
use crate::sml;
use crate::time::Clock;
use crate::tokens::TokenCounter;

/// Below this budget in tokens, [`Disclosure::Auto`] shows summaries.
const SMALL_BUDGET: usize = 1000;
/// A source that asks for no more grains than this is shown in full where it fits.
const FEW_GRAINS: usize = 5;

/// Prices in the unit of the budget.
pub(crate) struct Meter<'a> {
    counter: &'a dyn TokenCounter,
    clock: Clock,
    unit: Unit,
    /// What the budget leaves for elements and gaps.
    available: usize,
    /// The price of the empty line of a group.
    gap: usize,
    /// Reused for one element after the other.
    scratch: String,
}

enum Unit {
    Tokens,
    Grains,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(options: &AssemblyOptions<'_>, counter: &'a dyn TokenCounter) -> Self {
        let clock = options.clock;
        let (unit, available, gap) = match options.budget {
            Budget::Grains(grains) => (Unit::Grains, grains, 0),
            Budget::Tokens(tokens) => {
                let gap = counter.count(sml::GAP);
                let open = counter.count(&sml::open(options.intent));
                let envelope = open.saturating_add(gap).saturating_add(counter.count(sml::CLOSE));
                (Unit::Tokens, tokens.saturating_sub(envelope), gap)
            }
        };
        Self { counter, clock, unit, available, gap, scratch: String::new() }
    }

    /// What it takes to show the item at this level.
    fn price(&mut self, item: &Item, level: Level) -> usize {
        match self.unit {
            Unit::Grains => 1,
            Unit::Tokens => {
                self.scratch.clear();
                if let Some(projection) = project(item, level, &self.clock) {
                    sml::element(&mut self.scratch, &projection);
                }
                self.counter.count(&self.scratch)
            }
        }
    }
}

/// One source while its grains are chosen.
pub(crate) struct Draft<'a> {
    /// Its index among the sources.
    pub(crate) source: usize,
    pub(crate) label: &'a str,
    /// What it was given of the budget.
    pub(crate) allocated: usize,
    asked: usize,
    level: Level,
    entries: Vec<Entry<'a>>,
    /// For each group of the source, whether its empty line is paid for.
    groups: Vec<bool>,
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
pub(crate) struct Placed<'a> {
    pub(crate) source: usize,
    /// Its place within the source.
    pub(crate) position: usize,
    pub(crate) item: &'a Item,
    pub(crate) level: Level,
    /// What it took, the empty line of its group included where it opened one.
    pub(crate) price: usize,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(index: usize, source: &Source<'a>) -> Self {
        let items = if source.failed { &[] } else { source.items };
        let mut groups = Vec::new();
        let mut last: Option<GrainType> = None;
        let shown = items.iter().filter(|item| item.may_be_shown()).map(|item| {
            let grain_type = item.grain.grain_type();
            if last.replace(grain_type) != Some(grain_type) {
                groups.push(false);
            }
            Entry { item, group: groups.len().saturating_sub(1), price: 0, placed: false }
        });
        let entries = shown.collect();
        Self {
            source: index,
            label: source.label,
            allocated: 0,
            asked: source.asked,
            level: Level::Standard,
            entries,
            groups,
        }
    }

    /// How many grains there are to show.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn set_level(&mut self, level: Level, meter: &mut Meter<'_>) {
        self.level = level;
        for entry in &mut self.entries {
            entry.price = meter.price(entry.item, level);
        }
    }

    /// What it takes to show every grain at the level of the source.
    fn demand(&self, meter: &Meter<'_>) -> usize {
        let gaps = self.groups.len().saturating_mul(meter.gap);
        self.entries.iter().fold(gaps, |sum, entry| sum.saturating_add(entry.price))
    }

    /// Places what fits of the grains not placed yet, in order: one too large leaves room for
    /// smaller ones after it. Answers what is left of the allowance.
    fn fill(
        &mut self,
        allowance: usize,
        step_down: bool,
        meter: &mut Meter<'_>,
        placed: &mut Vec<Placed<'a>>,
    ) -> usize {
        let mut left = allowance;
        let waiting = self.entries.iter_mut().enumerate().filter(|(_, entry)| !entry.placed);
        for (position, entry) in waiting {
            let Some(paid) = self.groups.get_mut(entry.group) else {
                continue;
            };
            let gap = if *paid { 0 } else { meter.gap };
            let lower = |level: &Level| level.lower().filter(|_| step_down);
            let fitting = iter::successors(Some(self.level), lower).find_map(|level| {
                let own =
                    if level == self.level { entry.price } else { meter.price(entry.item, level) };
                let price = own.saturating_add(gap);
                (price <= left).then_some((level, price))
            });
            if let Some((level, price)) = fitting {
                (entry.placed, *paid) = (true, true);
                left -= price;
                placed.push(Placed {
                    source: self.source,
                    position,
                    item: entry.item,
                    level,
                    price,
                });
            }
        }
        left
    }
}

/// Chooses the level of each source and gives it its part of the budget.
pub(crate) fn disclose(
    drafts: &mut [Draft<'_>],
    options: &AssemblyOptions<'_>,
    meter: &mut Meter<'_>,
) {
    for draft in &mut *drafts {
        let level = match (options.disclosure, options.budget) {
            (Disclosure::Fixed(level), _) => level,
            (Disclosure::Auto, Budget::Tokens(..SMALL_BUDGET)) => Level::Summary,
            (Disclosure::Auto, _) if draft.asked <= FEW_GRAINS => Level::Full,
            (Disclosure::Auto, _) => Level::Standard,
        };
        draft.set_level(level, meter);
    }
    share_out(drafts, meter);
    if options.disclosure == Disclosure::Auto {
        let demands: Vec<_> = drafts.iter().map(|draft| draft.demand(meter)).collect();
        for (draft, demand) in drafts.iter_mut().zip(demands) {
            if draft.level == Level::Full && demand > draft.allocated {
                draft.set_level(Level::Standard, meter);
            }
        }
        // Asking for less takes nothing from the others, so what fitted in full still does.
        share_out(drafts, meter);
    }
}

fn share_out(drafts: &mut [Draft<'_>], meter: &Meter<'_>) {
    let demands: Vec<_> = drafts.iter().map(|draft| draft.demand(meter)).collect();
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
) -> Vec<Placed<'a>> {
    let step_down = disclosure == Disclosure::Auto;
    let mut placed = Vec::new();
    let mut left = 0;
    for draft in &mut *drafts {
        left = draft.fill(draft.allocated + left, step_down, meter, &mut placed);
    }
    for draft in drafts {
        left = draft.fill(left, step_down, meter, &mut placed);
    }
    placed
}
