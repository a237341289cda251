//! Assembles several sources into one text that never exceeds its budget (CAL 8.2, ASSEMBLE).
//!
//! Connects selection and format, and enforces the budget: whatever selection estimated, the finished
//! text is counted as a whole, and grains that do not fit are left out. The caller resolves sources and
//! removes duplicates.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::best_fit::best_fit;
use crate::budget::Budget;
use crate::chunks::{Chunk, chunks};
use crate::error::Error;
use crate::format::{Element, Layout};
use crate::level::Level;
use crate::options::{AssemblyOptions, AssemblySource};
use crate::select::{
    CostMeter, PlacedGrain, SourceSelection, allocations_without_failures, choose_and_allocate,
    choose_levels, halve_allowances, place_grains,
};
use crate::template::TemplateLayout;
use crate::tokens::TokenCounter;

/// A text within its budget, with a report on each source, made by [`assemble`](crate::assemble()).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembly {
    /// The text.
    pub text: String,
    /// The tokens of the whole text, by the counter in use.
    pub tokens: usize,
    /// One report per source, in the order the sources were given.
    pub sources: Vec<SourceReport>,
    /// The byte offsets at which an element or row ends, ascending.
    cuts: Vec<usize>,
}

impl Assembly {
    /// Splits the text into chunks of at most `tokens` tokens. A chunk consists of whole elements or
    /// rows; one that is larger than the limit forms a chunk of its own.
    pub fn chunks<'a>(
        &'a self,
        tokens: usize,
        counter: &'a dyn TokenCounter,
    ) -> impl Iterator<Item = Chunk<'a>> {
        chunks(&self.text, &self.cuts, tokens, counter)
    }
}

/// The outcome of one source of an [assembly](crate::assemble()). Items that must not be shown are not
/// counted anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceReport {
    /// The label of the source.
    pub label: String,
    /// Grains shown at full level.
    pub full: usize,
    /// Grains shown at standard level.
    pub standard: usize,
    /// Grains shown in summary form.
    pub summary: usize,
    /// Grains omitted because of the budget.
    pub omitted: usize,
    /// The share of the budget the source was allocated, in the unit of the budget.
    pub allocated: usize,
    /// The amount it used, in the same unit. More than `allocated` if other sources left some over.
    pub used: usize,
    /// The positions of the grains shown among the items of the source, ascending.
    pub shown: Vec<usize>,
}

/// The division of a budget, in its unit and in the order of the sources, as the callback of
/// [`assemble_with_progress`] gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetShares {
    /// The amount each source is allocated.
    pub allocated: Vec<usize>,
    /// The amount each would have been allocated if no source had failed, or `None` if none failed.
    pub without_failures: Option<Vec<usize>>,
}

/// Assembles the sources into one text within the budget.
///
/// ```
/// # use grainstore_format::{BeliefBuilder, EpochMs};
/// # use grainstore_sml::{AssemblyOptions, AssemblySource, Budget, CancelCheck, Clock, Disclosure};
/// # use grainstore_sml::{Estimator, Format, Item, Level, assemble};
/// # let belief = |object: &str| -> Result<Item, grainstore_format::Error> {
/// #     let created_at = EpochMs::new(1_768_471_200_000);
/// #     let grain = BeliefBuilder::new(created_at, "alice", "mg:prefers", object, 0.9).build()?;
/// #     Ok(Item { grain, verification: None, chosen: None, score: None })
/// # };
/// # let options = AssemblyOptions {
/// #     format: Format::Text, budget: Budget::Tokens(40),
/// #     template: None, name: None, intent: None,
/// #     disclosure: Disclosure::Fixed(Level::Summary), priority: &[], cancel: CancelCheck::NEVER,
/// #     clock: Clock { now: EpochMs::new(1_768_474_800_000), iso_timestamps: false },
/// # };
/// // `belief("tea")?` is an item: alice prefers tea. The budget of `options` is 40 tokens.
/// let items = [belief("tea")?, belief(&"every kind of coffee, ".repeat(20))?];
/// let sources = [AssemblySource { label: "likes", items: &items, limit: 20, failed: false }];
/// let assembly = assemble(&sources, &options, &Estimator)?;
/// assert!(assembly.tokens <= 40 && assembly.text.contains("tea"));
/// assert_eq!((assembly.sources[0].summary, assembly.sources[0].omitted), (1, 1));
/// assert_eq!(assembly.sources[0].shown, [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `CAL-E030` if the empty envelope does not fit the budget; `CAL-E082` if cancelled.
pub fn assemble(
    sources: &[AssemblySource<'_>],
    options: &AssemblyOptions<'_>,
    counter: &dyn TokenCounter,
) -> Result<Assembly, Error> {
    assemble_with_progress(sources, options, counter, &mut |_| ControlFlow::Continue(()))
}

/// Like [`assemble`], and passes the division of the budget to a callback before anything is written.
///
/// ```
/// # use grainstore_format::{BeliefBuilder, EpochMs};
/// # use grainstore_sml::{AssemblyOptions, AssemblySource, Budget, CancelCheck, Clock, Disclosure};
/// # use grainstore_sml::{Estimator, Format, Item, Level, assemble_with_progress};
/// # let belief = |object: &str| -> Result<Item, grainstore_format::Error> {
/// #     let created_at = EpochMs::new(1_768_471_200_000);
/// #     let grain = BeliefBuilder::new(created_at, "alice", "mg:prefers", object, 0.9).build()?;
/// #     Ok(Item { grain, verification: None, chosen: None, score: None })
/// # };
/// # let options = AssemblyOptions {
/// #     format: Format::Text, budget: Budget::Grains(1), template: None, name: None, intent: None,
/// #     disclosure: Disclosure::Fixed(Level::Summary), priority: &[], cancel: CancelCheck::NEVER,
/// #     clock: Clock { now: EpochMs::new(1_768_474_800_000), iso_timestamps: false },
/// # };
/// use std::ops::ControlFlow;
///
/// // `belief("tea")?` is an item: alice prefers tea. The budget of `options` is one grain.
/// let items = [belief("tea")?, belief("jazz")?];
/// let sources = [AssemblySource { label: "likes", items: &items, limit: 20, failed: false }];
/// let mut allocated = Vec::new();
/// let assembly = assemble_with_progress(&sources, &options, &Estimator, &mut |shares| {
///     allocated = shares.allocated.clone();
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!((allocated, assembly.sources[0].used), (vec![1], 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`assemble`]; `CAL-E082` also if the callback breaks.
pub fn assemble_with_progress(
    sources: &[AssemblySource<'_>],
    options: &AssemblyOptions<'_>,
    counter: &dyn TokenCounter,
    told: &mut dyn FnMut(BudgetShares) -> ControlFlow<()>,
) -> Result<Assembly, Error> {
    let order = priority_order(options.priority, sources.len());
    let templated = template_layout((sources, &order), options, counter);
    let composer = BudgetedWriter { layout: layout(templated.as_ref(), options), options, counter };
    let empty = composer.text(&[], &[])?;
    if !composer.fits(&empty) {
        return Err(composer.too_small(&empty));
    }
    let mut meter = CostMeter::new(options, composer.layout, counter);
    let mut drafts = drafts(sources, &order);
    choose_and_allocate(&mut drafts, options, &mut meter)?;
    if told(shares(&drafts, &meter)).is_break() {
        return Err(Error::stopped());
    }
    let allocated: Vec<_> = drafts.iter().map(|draft| draft.allocated).collect();
    let mut chosen = place_grains(&mut drafts, options.disclosure, &mut meter)?;
    let (mut placed, mut text) = composer.fit(&chosen, empty.clone())?;
    // A template may show contents more than once: then what was chosen takes more than its price, and smaller grains
    // may fit where it does not.
    while placed.is_empty() && !chosen.is_empty() && halve_allowances(&mut drafts) {
        chosen = place_grains(&mut drafts, options.disclosure, &mut meter)?;
        (placed, text) = composer.fit(&chosen, empty.clone())?;
    }
    for (draft, allocated) in drafts.iter_mut().zip(allocated) {
        draft.allocated = allocated;
    }
    if composer.layout.has_omission_notes() {
        text = composer.fit_omitted(&placed, &omitted(&drafts, &placed), text)?;
    }

    let mut reports = vec![SourceReport::default(); sources.len()];
    for draft in &drafts {
        if let Some(slot) = reports.get_mut(draft.source) {
            *slot = report(draft, &placed);
        }
    }
    Ok(Assembly { text: text.text, tokens: text.tokens, sources: reports, cuts: text.cuts })
}

fn shares(drafts: &[SourceSelection<'_>], meter: &CostMeter<'_>) -> BudgetShares {
    let by_source = |ranked: Vec<usize>| {
        let mut amounts = vec![0; drafts.len()];
        for (draft, amount) in drafts.iter().zip(ranked) {
            if let Some(slot) = amounts.get_mut(draft.source) {
                *slot = amount;
            }
        }
        amounts
    };
    let given = by_source(drafts.iter().map(|draft| draft.allocated).collect());
    BudgetShares {
        allocated: given,
        without_failures: allocations_without_failures(drafts, meter).map(by_source),
    }
}

/// Returns the budget the text would need, in the unit of the budget, for no grain to be omitted.
///
/// ```
/// # use grainstore_format::{BeliefBuilder, EpochMs};
/// # use grainstore_sml::{AssemblyOptions, AssemblySource, Budget, CancelCheck, Clock, Disclosure};
/// # use grainstore_sml::{Estimator, Format, Item, Level, required_budget};
/// # let belief = |object: &str| -> Result<Item, grainstore_format::Error> {
/// #     let created_at = EpochMs::new(1_768_471_200_000);
/// #     let grain = BeliefBuilder::new(created_at, "alice", "mg:prefers", object, 0.9).build()?;
/// #     Ok(Item { grain, verification: None, chosen: None, score: None })
/// # };
/// # let options = AssemblyOptions {
/// #     format: Format::Text, budget: Budget::Grains(1), template: None, name: None, intent: None,
/// #     disclosure: Disclosure::Fixed(Level::Summary), priority: &[], cancel: CancelCheck::NEVER,
/// #     clock: Clock { now: EpochMs::new(1_768_474_800_000), iso_timestamps: false },
/// # };
/// // `belief("tea")?` is an item: alice prefers tea. The budget of `options` is one grain.
/// let items = [belief("tea")?, belief("jazz")?];
/// let sources = [AssemblySource { label: "likes", items: &items, limit: 20, failed: false }];
/// assert_eq!(required_budget(&sources, &options, &Estimator)?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `CAL-E082` if cancelled.
pub fn required_budget(
    sources: &[AssemblySource<'_>],
    options: &AssemblyOptions<'_>,
    counter: &dyn TokenCounter,
) -> Result<usize, Error> {
    let order = priority_order(options.priority, sources.len());
    let templated = template_layout((sources, &order), options, counter);
    let mut meter = CostMeter::new(options, layout(templated.as_ref(), options), counter);
    let mut drafts = drafts(sources, &order);
    choose_levels(&mut drafts, options, &mut meter)?;
    Ok(drafts.iter().fold(meter.envelope, |sum, draft| sum.saturating_add(draft.demand())))
}

/// Returns the template as a layout for these sources, if there is a template.
fn template_layout<'t>(
    sources: (&'t [AssemblySource<'t>], &[usize]),
    options: &'t AssemblyOptions<'t>,
    counter: &'t dyn TokenCounter,
) -> Option<TemplateLayout<'t>> {
    options.template.map(|template| TemplateLayout::new(template, options, counter, sources))
}

/// Returns the layout of the template, or of the format.
fn layout<'l>(
    templated: Option<&'l TemplateLayout<'_>>,
    options: &AssemblyOptions<'_>,
) -> &'l dyn Layout {
    templated.map_or_else(|| options.format.layout(), |templated| templated as &dyn Layout)
}

/// Returns the sources in order of priority.
fn drafts<'a>(sources: &[AssemblySource<'a>], order: &[usize]) -> Vec<SourceSelection<'a>> {
    let ranked = order.iter().enumerate();
    ranked
        .filter_map(|(rank, index)| Some(SourceSelection::new(*index, rank, sources.get(*index)?)))
        .collect()
}

/// Returns each source index once: the listed ones, then the others.
fn priority_order(listed: &[usize], sources: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(sources);
    for index in listed.iter().copied().chain(0..sources) {
        if index < sources && !order.contains(&index) {
            order.push(index);
        }
    }
    order
}

/// Returns the grains left out, in source order.
fn omitted<'a>(drafts: &[SourceSelection<'a>], placed: &[PlacedGrain<'_>]) -> Vec<PlacedGrain<'a>> {
    let shown: BTreeSet<_> = placed.iter().map(|of| (of.source, of.position)).collect();
    let all = drafts.iter().flat_map(SourceSelection::all);
    all.filter(|of| !shown.contains(&(of.source, of.position))).collect()
}

fn report(draft: &SourceSelection<'_>, placed: &[PlacedGrain<'_>]) -> SourceReport {
    let label = draft.label.to_owned();
    let mut report = SourceReport { label, allocated: draft.allocated, ..SourceReport::default() };
    let mut opened = BTreeSet::new();
    for placed in placed.iter().filter(|placed| placed.source == draft.source) {
        match placed.level {
            Level::Full => report.full += 1,
            Level::Standard => report.standard += 1,
            Level::Summary => report.summary += 1,
        }
        let gap = if opened.insert(placed.group) { draft.opening(placed.group) } else { 0 };
        report.used = report.used.saturating_add(placed.price).saturating_add(gap);
        report.shown.push(placed.position);
    }
    report.shown.sort_unstable();
    report.omitted = draft.len() - report.full - report.standard - report.summary;
    report
}

/// Maximum number of times a text that states its own token count is rewritten. Rewriting stops once the
/// count is right, which may never happen with some counters.
const MAX_ROUNDS: usize = 5;

/// A finished text and its token count.
#[derive(Clone)]
struct CountedText {
    text: String,
    tokens: usize,
    cuts: Vec<usize>,
}

/// Writes the text of grains and holds it to the budget.
struct BudgetedWriter<'c> {
    layout: &'c dyn Layout,
    options: &'c AssemblyOptions<'c>,
    counter: &'c dyn TokenCounter,
}

impl BudgetedWriter<'_> {
    /// Returns the text of the placed grains, and the grains in it: all, or as many as fit, earlier
    /// placed ones first.
    fn fit<'p>(
        &self,
        placed: &[PlacedGrain<'p>],
        empty: CountedText,
    ) -> Result<(Vec<PlacedGrain<'p>>, CountedText), Error> {
        best_fit(placed, empty, |some| Ok(self.if_fits(self.text(some, &[])?)))
    }

    /// Returns the text with as many of the notes for omitted grains added as fit.
    fn fit_omitted(
        &self,
        placed: &[PlacedGrain<'_>],
        omitted: &[PlacedGrain<'_>],
        text: CountedText,
    ) -> Result<CountedText, Error> {
        let (_, text) = best_fit(omitted, text, |some| Ok(self.if_fits(self.text(placed, some)?)))?;
        Ok(text)
    }

    fn if_fits(&self, text: CountedText) -> Option<CountedText> {
        self.fits(&text).then_some(text)
    }

    /// Writes the grains in the order of the sources and, within a source, in its own order.
    fn text(
        &self,
        placed: &[PlacedGrain<'_>],
        omitted: &[PlacedGrain<'_>],
    ) -> Result<CountedText, Error> {
        let Self { layout, options, counter } = *self;
        let shown = placed.iter().map(|placed| (placed, false));
        let mut order: Vec<_> = shown.chain(omitted.iter().map(|of| (of, true))).collect();
        order.sort_by_key(|(placed, _)| (placed.source, placed.position));
        let elements = order.into_iter().filter_map(|(placed, omitted)| {
            let mut element = Element::of(placed.item, placed.level, layout, &options.clock)?;
            (element.group.source, element.rank) = (placed.source, placed.rank);
            element.omitted = omitted;
            Some(element)
        });
        let elements: Vec<_> = elements.collect();
        let frame = options.frame();
        let mut used = match options.budget {
            Budget::Grains(_) => elements.iter().filter(|element| !element.omitted).count(),
            Budget::Tokens(tokens) => tokens,
        };
        let mut rounds = 0;
        loop {
            let page = layout.document(&frame, &elements, used, options.cancel)?;
            let tokens = counter.count(&page.text);
            let told = !layout.states_usage()
                || used == tokens
                || matches!(options.budget, Budget::Grains(_));
            rounds += 1;
            if told || rounds == MAX_ROUNDS {
                return Ok(CountedText { text: page.text, tokens, cuts: page.cuts });
            }
            used = tokens;
        }
    }

    fn fits(&self, text: &CountedText) -> bool {
        let in_budget = match self.options.budget {
            Budget::Tokens(tokens) => text.tokens <= tokens,
            Budget::Grains(_) => true,
        };
        in_budget
            && self
                .layout
                .max_chars()
                .is_none_or(|most| text.text.chars().take(most + 1).count() <= most)
    }

    /// Returns the error for a text without grains that exceeds the budget.
    fn too_small(&self, empty: &CountedText) -> Error {
        let (Budget::Tokens(budget) | Budget::Grains(budget)) = self.options.budget;
        match self.layout.max_chars() {
            Some(most)
                if empty.tokens <= budget || matches!(self.options.budget, Budget::Grains(_)) =>
            {
                Error::too_long(empty.text.chars().count(), most)
            }
            _ => Error::budget(budget, empty.tokens),
        }
    }
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
