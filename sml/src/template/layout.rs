//! A template as an output format: the text before, between, in and after the elements.

use super::parse::Node;
use super::value::{DocumentContext, Scope, SourceStats};
use super::variable::Variable;
use super::write::TemplateWriter;
use super::{Preset, Section, Template};
use crate::budget::Budget;
use crate::cancel::CancelCheck;
use crate::error::Error;
use crate::format::{ContextInfo, Element, Layout};
use crate::level::Level;
use crate::options::{AssemblyOptions, AssemblySource};
use crate::text_builder::TextBuilder;
use crate::tokens::TokenCounter;

/// Maximum number of characters that a [`Template`] writes per token of its budget (CAL 10.8).
pub const MAX_CHARS_PER_TOKEN: usize = 2;
/// The token budget that a budget in grains is treated as, for the limit on characters.
const GRAIN_BUDGET_TOKENS: usize = 16_000;

/// A template, and the assembly it is rendered for.
pub(crate) struct TemplateLayout<'t> {
    template: &'t Template,
    options: &'t AssemblyOptions<'t>,
    counter: &'t dyn TokenCounter,
    /// The statistics of the sources before any grain is placed.
    sources: Vec<SourceStats<'t>>,
}

impl<'t> TemplateLayout<'t> {
    /// Creates the layout. `order` is the order of priority.
    pub(crate) fn new(
        template: &'t Template,
        options: &'t AssemblyOptions<'t>,
        counter: &'t dyn TokenCounter,
        (sources, order): (&'t [AssemblySource<'t>], &[usize]),
    ) -> Self {
        let told = sources.iter().enumerate().map(|(at, source)| {
            let items = if source.failed { &[] } else { source.items };
            let rank = order.iter().position(|of| *of == at).unwrap_or_default();
            let found = items.iter().filter(|item| item.is_displayable()).count();
            SourceStats { label: source.label, rank, found, shown: 0, tokens: 0 }
        });
        Self { template, options, counter, sources: told.collect() }
    }

    fn section(&self, section: Section) -> Option<&[Node]> {
        self.template.section(section)
    }

    /// Returns the nodes that write an element, or `None` if the preset writes it.
    fn nodes_of(&self, element: &Element<'_>) -> Option<&[Node]> {
        if element.omitted {
            return Some(self.section(Section::ElementOmit).unwrap_or_default());
        }
        let summary = element.is_at(Level::Summary).then(|| self.section(Section::ElementSummary));
        summary.flatten().or_else(|| self.section(Section::Element))
    }

    fn document_context<'w>(
        &'w self,
        frame: &'w ContextInfo<'w>,
        sources: &'w [SourceStats<'w>],
        elements: &'w [Element<'w>],
        used: usize,
    ) -> DocumentContext<'w> {
        let AssemblyOptions { clock, disclosure, .. } = *self.options;
        let shown = elements.iter().filter(|element| !element.omitted).count();
        DocumentContext { frame, clock, disclosure, sources, elements, shown, used }
    }

    fn write(&self, out: &mut String, nodes: &[Node], scope: &Scope<'_>) {
        // A character has at most four bytes.
        TemplateWriter::new(out, self.char_limit().saturating_mul(4)).nodes(nodes, scope);
    }

    fn write_element(&self, out: &mut String, element: &Element<'_>, scope: &Scope<'_>) {
        match self.nodes_of(element) {
            Some(nodes) => self.write(out, nodes, &scope.at_grain(element)),
            None => self.template.preset.layout().element(out, element),
        }
    }

    fn header(&self, out: &mut String, scope: &Scope<'_>, frame: &ContextInfo<'_>) {
        match self.section(Section::Header) {
            Some(nodes) => self.write(out, nodes, scope),
            None => out.push_str(&self.template.preset.header(frame)),
        }
    }

    fn footer(&self, out: &mut String, scope: &Scope<'_>, frame: &ContextInfo<'_>, any: bool) {
        match self.section(Section::Footer) {
            Some(nodes) => self.write(out, nodes, scope),
            None => out.push_str(&self.template.preset.footer(frame, any)),
        }
    }

    /// Writes the text between two sources.
    fn source_break(&self, out: &mut String, scope: &Scope<'_>) {
        match self.section(Section::SourceBreak) {
            Some(nodes) => self.write(out, nodes, scope),
            None => out.push_str(self.template.preset.source_break()),
        }
    }

    /// Writes the text before an element: a source break if a source begins, and, for an element
    /// written by the preset, the preset's opening if the type changes.
    fn write_separator(
        &self,
        out: &mut String,
        element: &Element<'_>,
        before: &PrecedingElements<'_>,
        scope: &Scope<'_>,
    ) {
        let preset = self.template.preset;
        let own_break = self.section(Section::SourceBreak).is_some();
        let of_preset = self.nodes_of(element).is_none();
        let begins = before.last.is_some_and(|last| last.group.source != element.group.source);
        let opens = of_preset
            && match preset {
                // The groups of SML are sources, split where the type changes.
                Preset::Structured => before.shown.is_none_or(|last| last.group != element.group),
                _ => before.is_another_type(element),
            };
        if begins && own_break {
            self.source_break(out, &scope.in_source(element.group.source));
            let opening =
                if opens { preset.opening(element, before.last.is_none()) } else { String::new() };
            out.push_str(opening.trim_start_matches('\n'));
        } else if opens {
            let opening = preset.opening(element, before.last.is_none());
            let starts = if out.is_empty() { opening.trim_start_matches('\n') } else { &opening };
            out.push_str(starts);
        } else if begins && !of_preset {
            self.source_break(out, &scope.in_source(element.group.source));
        } else if before.last.is_none() && preset == Preset::Readable && !of_preset {
            // The heading of the preset is separated from the text below it.
            out.push_str(if self.section(Section::Header).is_none() { "\n" } else { "" });
        }
    }

    /// Returns the statistics of the sources, with the grains shown.
    ///
    /// # Errors
    /// `CAL-E082` if cancelled.
    fn source_stats<'w>(
        &'w self,
        frame: &'w ContextInfo<'w>,
        elements: &'w [Element<'w>],
        watch: CancelCheck<'_>,
    ) -> Result<Vec<SourceStats<'w>>, Error> {
        let mut told: Vec<SourceStats<'w>> = self.sources.clone();
        let shown = elements.iter().filter(|element| !element.omitted);
        for element in shown.clone() {
            if let Some(source) = told.get_mut(element.group.source) {
                source.shown = source.shown.saturating_add(1);
            }
        }
        if self.template.mentions(&[Variable::SourceTokensUsed]) {
            let mut tokens = vec![0_usize; told.len()];
            let whole = self.document_context(frame, &told, elements, 0);
            let mut text = String::new();
            for element in shown {
                watch.check()?;
                text.clear();
                self.write_element(&mut text, element, &Scope::new(&whole));
                if let Some(sum) = tokens.get_mut(element.group.source) {
                    *sum = sum.saturating_add(self.counter.count(&text));
                }
            }
            for (source, tokens) in told.iter_mut().zip(tokens) {
                source.tokens = tokens;
            }
        }
        Ok(told)
    }

    /// Returns the maximum number of characters of the text.
    fn char_limit(&self) -> usize {
        let tokens = match self.options.budget {
            Budget::Tokens(tokens) => tokens,
            Budget::Grains(_) => GRAIN_BUDGET_TOKENS,
        };
        tokens.saturating_mul(MAX_CHARS_PER_TOKEN)
    }
}

/// The elements before the current one.
#[derive(Default)]
struct PrecedingElements<'b> {
    /// The element directly before it.
    last: Option<&'b Element<'b>>,
    /// The last element before it that is shown, not omitted.
    shown: Option<&'b Element<'b>>,
}

impl PrecedingElements<'_> {
    fn is_another_type(&self, element: &Element<'_>) -> bool {
        self.shown.is_none_or(|last| last.group.grain_type != element.group.grain_type)
    }
}

impl Layout for TemplateLayout<'_> {
    fn frame(&self, frame: &ContextInfo<'_>) -> Vec<String> {
        let whole = self.document_context(frame, &self.sources, &[], 0);
        let scope = Scope::new(&whole);
        let (mut header, mut footer) = (String::new(), String::new());
        self.header(&mut header, &scope, frame);
        self.footer(&mut footer, &scope, frame, true);
        vec![header, footer]
    }

    fn group(&self, first: &Element<'_>) -> String {
        let frame = self.options.frame();
        let whole = self.document_context(&frame, &self.sources, &[], 0);
        let mut out = String::new();
        match self.section(Section::SourceBreak) {
            Some(_) => {
                self.source_break(&mut out, &Scope::new(&whole).in_source(first.group.source));
            }
            None if self.nodes_of(first).is_none() => {
                out.push_str(&self.template.preset.opening(first, false));
            }
            None => out.push_str(self.template.preset.source_break()),
        }
        out
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        let frame = self.options.frame();
        let whole = self.document_context(&frame, &self.sources, &[], 0);
        self.write_element(out, element, &Scope::new(&whole));
    }

    fn document<'w>(
        &self,
        frame: &ContextInfo<'_>,
        elements: &[Element<'_>],
        used: usize,
        watch: CancelCheck<'w>,
    ) -> Result<TextBuilder<'w>, Error> {
        let told = self.source_stats(frame, elements, watch)?;
        let whole = self.document_context(frame, &told, elements, used);
        let scope = Scope::new(&whole);
        let mut page = TextBuilder::new(String::new(), watch);
        self.header(&mut page.text, &scope, frame);
        let mut before = PrecedingElements::default();
        for element in elements {
            self.write_separator(&mut page.text, element, &before, &scope);
            self.write_element(&mut page.text, element, &scope);
            before.last = Some(element);
            if element.omitted {
                watch.check()?;
            } else {
                before.shown = Some(element);
                page.end_element()?;
            }
        }
        self.footer(&mut page.text, &scope, frame, !elements.is_empty());
        Ok(page)
    }

    fn states_usage(&self) -> bool {
        self.template.mentions(&[
            Variable::BudgetUsed,
            Variable::BudgetRemaining,
            Variable::BudgetUtilization,
        ])
    }

    fn max_chars(&self) -> Option<usize> {
        Some(self.char_limit())
    }

    fn has_omission_notes(&self) -> bool {
        self.section(Section::ElementOmit).is_some_and(|nodes| !nodes.is_empty())
    }
}
