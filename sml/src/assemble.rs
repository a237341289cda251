//! Several sources into one text that never exceeds its budget (`cal.md` section 5, ASSEMBLE).
//!
//! Ties selection to the format, and answers for the budget: whatever the selection counted, the
//! finished text is counted as a whole, and grains that do not fit are left out of it. Resolving sources and
//! removing duplicates is the caller's duty.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::budget::Budget;
use crate::chunks::{Chunk, chunks};
use crate::error::Error;
use crate::format::{Element, Format, Frame, Layout};
use crate::item::{Item, Level};
use crate::most::most;
use crate::select::{Draft, Meter, Placed, choose_levels, disclose, meant, place};
use crate::template::{Template, Templated};
use crate::time::Clock;
use crate::tokens::TokenCounter;
use crate::watch::Watch;

/// One source of an assembly, resolved.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its label, for the report; labels never appear in the text.
    pub label: &'a str,
    /// What it found, best first.
    pub items: &'a [Item],
    /// How many grains it asked for: its limit, not what it found.
    pub asked: usize,
    /// Whether it failed: then its items are ignored and its share goes to the others.
    pub failed: bool,
}

/// How the level of a grain is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disclosure {
    /// This level for every grain; one that does not fit is omitted.
    Fixed(Level),
    /// Summary below 1000 tokens; full where a source asks for at most 5 grains and they fit; else
    /// standard, and a grain that does not fit is tried in summary form before it is omitted.
    Auto,
}

/// What an assembly is to be like.
#[derive(Debug, Clone, Copy)]
pub struct AssemblyOptions<'a> {
    /// How the text is written.
    pub format: Format,
    /// A template that it is written by, in place of the format.
    pub template: Option<&'a Template>,
    /// The name of the context, shown by the formats that are data.
    pub name: Option<&'a str>,
    /// What the context is for, shown in the envelope.
    pub intent: Option<&'a str>,
    /// How much the text may hold.
    pub budget: Budget,
    /// Indexes into the sources, highest priority first. Sources that are not listed follow in
    /// their own order; indexes that name no source, or one again, are ignored.
    pub priority: &'a [usize],
    /// How much is shown of each grain.
    pub disclosure: Disclosure,
    /// What times are written against.
    pub clock: Clock,
    /// What may stop it.
    pub watch: Watch<'a>,
}

impl<'a> AssemblyOptions<'a> {
    pub(crate) fn frame(&self) -> Frame<'a> {
        Frame { name: self.name, intent: self.intent, budget: Some(self.budget) }
    }
}

/// A text within its budget, and what went into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembly {
    /// The text.
    pub text: String,
    /// Tokens of the whole text, by the counter in use.
    pub tokens: usize,
    /// One report a source, in the order the sources were given.
    pub sources: Vec<SourceReport>,
    /// The bytes behind each element or row, ascending.
    cuts: Vec<usize>,
}

impl Assembly {
    /// The text in pieces of at most so many tokens, each of whole elements or rows; one that is larger
    /// is a piece of its own.
    pub fn chunks<'a>(
        &'a self,
        tokens: usize,
        counter: &'a dyn TokenCounter,
    ) -> impl Iterator<Item = Chunk<'a>> {
        chunks(&self.text, &self.cuts, tokens, counter)
    }
}

/// What became of one source. Items that must not be shown at all are counted nowhere.
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
    /// Grains left out for the budget.
    pub omitted: usize,
    /// What the source was given of the budget, in its unit.
    pub allocated: usize,
    /// What it took, in the same unit; more than `allocated` where others left some over.
    pub used: usize,
}

/// How a budget is shared out, in its unit and in the order of the sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    /// What each source is given.
    pub given: Vec<usize>,
    /// What each was meant to get before the shares of sources that failed went to the others; nothing
    /// where none failed.
    pub meant: Option<Vec<usize>>,
}

/// Puts the sources together into one text within the budget.
///
/// # Errors
/// `CAL-E030` when the budget is below what the empty envelope takes; `CAL-E082` where the watch
/// stopped it.
pub fn assemble(
    sources: &[Source<'_>],
    options: &AssemblyOptions<'_>,
    counter: &dyn TokenCounter,
) -> Result<Assembly, Error> {
    assemble_telling(sources, options, counter, &mut |_| ControlFlow::Continue(()))
}

/// As [`assemble`], and tells how the budget is shared out before anything is written.
///
/// # Errors
/// As [`assemble`]; `CAL-E082` where what is told breaks it off, too.
pub fn assemble_telling(
    sources: &[Source<'_>],
    options: &AssemblyOptions<'_>,
    counter: &dyn TokenCounter,
    told: &mut dyn FnMut(Shares) -> ControlFlow<()>,
) -> Result<Assembly, Error> {
    let order = priority_order(options.priority, sources.len());
    let templated = templated((sources, &order), options, counter);
    let composer = Composer { layout: layout(templated.as_ref(), options), options, counter };
    let empty = composer.text(&[], &[])?;
    if !composer.fits(&empty) {
        return Err(composer.too_small(&empty));
    }
    let mut meter = Meter::new(options, composer.layout, counter);
    let mut drafts = drafts(sources, &order);
    disclose(&mut drafts, options, &mut meter)?;
    if told(shares(&drafts, &meter)).is_break() {
        return Err(Error::stopped());
    }
    let placed = place(&mut drafts, options.disclosure, &mut meter)?;
    let (placed, mut text) = composer.fit(&placed, empty)?;
    if composer.layout.shows_omitted() {
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

fn shares(drafts: &[Draft<'_>], meter: &Meter<'_>) -> Shares {
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
    Shares { given, meant: meant(drafts, meter).map(by_source) }
}

/// What the text would take, in the unit of the budget, if nothing were left out for it.
///
/// # Errors
/// `CAL-E082` where the watch stopped it.
pub fn demand(
    sources: &[Source<'_>],
    options: &AssemblyOptions<'_>,
    counter: &dyn TokenCounter,
) -> Result<usize, Error> {
    let order = priority_order(options.priority, sources.len());
    let templated = templated((sources, &order), options, counter);
    let mut meter = Meter::new(options, layout(templated.as_ref(), options), counter);
    let mut drafts = drafts(sources, &order);
    choose_levels(&mut drafts, options, &mut meter)?;
    Ok(drafts.iter().fold(meter.envelope, |sum, draft| sum.saturating_add(draft.demand())))
}

/// The template as a format of these sources, where there is one.
fn templated<'t>(
    sources: (&'t [Source<'t>], &[usize]),
    options: &'t AssemblyOptions<'t>,
    counter: &'t dyn TokenCounter,
) -> Option<Templated<'t>> {
    options.template.map(|template| Templated::new(template, options, counter, sources))
}

/// How the text is written.
fn layout<'l>(
    templated: Option<&'l Templated<'_>>,
    options: &AssemblyOptions<'_>,
) -> &'l dyn Layout {
    templated.map_or_else(|| options.format.layout(), |templated| templated as &dyn Layout)
}

/// The sources in the order of priority.
fn drafts<'a>(sources: &[Source<'a>], order: &[usize]) -> Vec<Draft<'a>> {
    let ranked = order.iter().enumerate();
    ranked
        .filter_map(|(rank, index)| Some(Draft::new(*index, rank, sources.get(*index)?)))
        .collect()
}

/// Every source once: the listed ones, then the others.
fn priority_order(listed: &[usize], sources: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(sources);
    for index in listed.iter().copied().chain(0..sources) {
        if index < sources && !order.contains(&index) {
            order.push(index);
        }
    }
    order
}

/// What is left out, in the order it would be placed in.
fn omitted<'a>(drafts: &[Draft<'a>], placed: &[Placed<'_>]) -> Vec<Placed<'a>> {
    let shown: BTreeSet<_> = placed.iter().map(|of| (of.source, of.position)).collect();
    let all = drafts.iter().flat_map(Draft::all);
    all.filter(|of| !shown.contains(&(of.source, of.position))).collect()
}

fn report(draft: &Draft<'_>, placed: &[Placed<'_>]) -> SourceReport {
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
    }
    report.omitted = draft.len() - report.full - report.standard - report.summary;
    report
}

/// A text that tells its own tokens is written again until the number is right; this often, as a
/// counter might never agree with itself.
const ROUNDS: usize = 5;

/// A finished text and its tokens.
struct Text {
    text: String,
    tokens: usize,
    cuts: Vec<usize>,
}

/// Writes the text of grains, and holds it to its budget.
struct Composer<'c> {
    layout: &'c dyn Layout,
    options: &'c AssemblyOptions<'c>,
    counter: &'c dyn TokenCounter,
}

impl Composer<'_> {
    /// The text of what was placed, and what of it that shows: all, or as many as fit, those placed
    /// earlier before others.
    fn fit<'p>(
        &self,
        placed: &[Placed<'p>],
        empty: Text,
    ) -> Result<(Vec<Placed<'p>>, Text), Error> {
        most(placed, empty, |some| Ok(self.fitting(self.text(some, &[])?)))
    }

    /// The same text with what stands for grains that are left out, of as many as fit.
    fn fit_omitted(
        &self,
        placed: &[Placed<'_>],
        omitted: &[Placed<'_>],
        text: Text,
    ) -> Result<Text, Error> {
        let (_, text) = most(omitted, text, |some| Ok(self.fitting(self.text(placed, some)?)))?;
        Ok(text)
    }

    fn fitting(&self, text: Text) -> Option<Text> {
        self.fits(&text).then_some(text)
    }

    /// Grains in the order of the sources and, within a source, in its own order.
    fn text(&self, placed: &[Placed<'_>], omitted: &[Placed<'_>]) -> Result<Text, Error> {
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
            let page = layout.document(&frame, &elements, used, options.watch)?;
            let tokens = counter.count(&page.text);
            let told = !layout.tells_use()
                || used == tokens
                || matches!(options.budget, Budget::Grains(_));
            rounds += 1;
            if told || rounds == ROUNDS {
                return Ok(Text { text: page.text, tokens, cuts: page.cuts });
            }
            used = tokens;
        }
    }

    fn fits(&self, text: &Text) -> bool {
        let in_budget = match self.options.budget {
            Budget::Tokens(tokens) => text.tokens <= tokens,
            Budget::Grains(_) => true,
        };
        in_budget
            && self
                .layout
                .longest()
                .is_none_or(|most| text.text.chars().take(most + 1).count() <= most)
    }

    /// The error where not even the text of no grains fits.
    fn too_small(&self, empty: &Text) -> Error {
        let (Budget::Tokens(budget) | Budget::Grains(budget)) = self.options.budget;
        match self.layout.longest() {
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
