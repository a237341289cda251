//! Templates: texts compiled and names resolved (CAL 10.5 to 10.8). Every error of a template is found
//! here, with its span, before the statement runs.

use grainstore_sml::{Preset, Section, Template, template_variables};

use super::CheckContext;
use super::bindings;
use super::plan::{DefinePlan, PlanWithLets, StatementPlan};
use crate::ast::{
    FormatClause, FormatName, ParsedQuery, SectionText, Statement, TemplateDefinition,
};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::memory::NamedTemplate;
use crate::parse;
use crate::span::{Span, Spanned};
use crate::suggest;

/// Checks a definition and its LETs.
///
/// # Errors
/// E086 to E096, except errors of the name that only the memory can tell.
pub(super) fn define(
    definition: &Spanned<TemplateDefinition<'_>>,
    context: &mut CheckContext<'_>,
) -> Result<PlanWithLets> {
    let TemplateDefinition { lets, name, extends, sections } = &definition.node;
    let lets = bindings::lets(lets, false, context)?;
    compile(extends.as_ref(), sections)?;
    if FormatName::PRESETS.iter().any(|preset| preset.name().eq_ignore_ascii_case(name.node)) {
        let message = format!("{} is a preset", name.node);
        return Err(Error::new(ErrorKind::TemplateTaken, message).at(name.span));
    }
    let plan = DefinePlan {
        name: Spanned::new(name.node.to_owned(), name.span),
        extends: extends.as_ref().map(|preset| preset.node.to_ascii_lowercase()),
        text: TemplateDefinition { lets: Vec::new(), ..definition.node.clone() }.to_string(),
    };
    Ok(PlanWithLets { lets, plan: StatementPlan::Define(plan) })
}

/// Returns the template of a FORMAT; `None` if it names a format.
///
/// # Errors
/// E085 for an unknown name; E090 to E096 for an invalid inline template.
pub(super) fn format_template(
    clause: &FormatClause<'_>,
    context: &CheckContext<'_>,
) -> Result<Option<Template>> {
    match clause {
        FormatClause::Name(_) => Ok(None),
        FormatClause::Inline(sections) => compile(None, sections).map(Some),
        FormatClause::Template(name) => {
            let known = context.memory.templates()?;
            // Templates of the session take precedence over those of its namespace.
            let named = known.iter().filter(|of| of.name == name.node);
            match named.min_by_key(|of| of.keeper) {
                Some(found) => stored_template(found).map(Some),
                None => Err(not_found(name, &known)),
            }
        }
    }
}

impl NamedTemplate {
    /// Returns `true` if the stored definition is valid and has the template's name.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        stored_template(self).is_ok()
    }
}

/// Parses a stored template.
fn stored_template(template: &NamedTemplate) -> Result<Template> {
    let statement = parse::parse_unlocated(&template.definition)?;
    let damaged = || {
        let message = format!("the template {} is kept in a way nobody reads", template.name);
        Error::new(ErrorKind::TemplateNotFound, message)
    };
    let Statement(ParsedQuery::Define(definition)) = &statement else { return Err(damaged()) };
    if definition.node.name.node != template.name {
        return Err(damaged());
    }
    compile(definition.node.extends.as_ref(), &definition.node.sections).map_err(|_| damaged())
}

fn not_found(name: &Spanned<&str>, known: &[NamedTemplate]) -> Error {
    let error =
        Error::new(ErrorKind::TemplateNotFound, format!("no template is called {}", name.node));
    let error = error.at(name.span);
    if let Some(format) = FormatName::all().find(|of| of.name().eq_ignore_ascii_case(name.node)) {
        return error.suggest(format!("{0} is no template: write FORMAT {0}", format.name()));
    }
    let names = known.iter().map(|of| of.name.as_str());
    let error = match suggest::closest_of(name.node, names) {
        Some(near) => error.suggest(format!("Did you mean \"{near}\"?")),
        None => error,
    };
    error.valid(known.iter().map(|of| of.name.clone()))
}

/// Compiles the sections of a template.
fn compile(extends: Option<&Spanned<&str>>, sections: &[SectionText<'_>]) -> Result<Template> {
    let preset = match extends {
        Some(name) => {
            Preset::from_extends(name.node).map_err(|error| of_template(&error, name.span))?
        }
        None => Preset::default(),
    };
    let texts: Vec<(Section, &str)> =
        sections.iter().map(|of| (of.section.node, of.text.node.as_ref())).collect();
    Template::new(preset, &texts).map_err(|error| of_template(&error, error_span(&error, sections)))
}

/// Returns the span of an error in a template: the byte range if the text is unchanged from the source,
/// else the whole text.
fn error_span(error: &grainstore_sml::Error, sections: &[SectionText<'_>]) -> Span {
    let Some(place) = error.place() else { return Span::default() };
    let Some(SectionText { section, text }) = sections.get(place.section) else {
        return Span::default();
    };
    let Some(range) = &place.range else { return section.span };
    let length = text.span.end().saturating_sub(text.span.start());
    // A newline may have been added at the end; any other change moves byte offsets.
    let is_as_written =
        text.node.trim_end_matches('\n').len() <= length && text.node.len() <= length + 1;
    if !is_as_written || range.end > length {
        return text.span;
    }
    Span::new(text.span.start() + range.start, text.span.start() + range.end)
}

fn of_template(error: &grainstore_sml::Error, place: Span) -> Error {
    let mut kinds = ErrorKind::ALL.iter().copied();
    let kind = kinds.find(|kind| kind.code() == error.code()).unwrap_or(ErrorKind::TemplateSyntax);
    let refused = Error::new(kind, error.to_string()).at(place);
    match (kind, error.name()) {
        (ErrorKind::UnknownVariable, Some(name)) => refused
            .suggest(closest_variable(name).map_or_else(
                || error.hint().to_owned(),
                |near| format!("Did you mean \"{near}\"?"),
            ))
            .valid(template_variables()),
        (ErrorKind::ExtendsTemplate, Some(name)) => {
            let presets = Preset::ALL.into_iter().map(Preset::name);
            refused
                .suggest(suggest::did_you_mean(name, presets.clone(), error.hint()))
                .valid(presets)
        }
        (ErrorKind::ExtendsData, _) => {
            refused.suggest(error.hint()).valid(Preset::ALL.map(Preset::name))
        }
        _ => refused.suggest(error.hint()),
    }
}

/// Returns the variable closest to `name`: among those with the same part before the dot, else among all.
fn closest_variable(name: &str) -> Option<&'static str> {
    let (group, rest) = name.split_once('.').unwrap_or((name, ""));
    let of_group = || {
        template_variables()
            .filter_map(|known| known.split_once('.').filter(|(of, _)| *of == group))
            .map(|(_, rest)| rest)
    };
    if of_group().next().is_none() {
        return suggest::closest(name, template_variables()).map(|(near, _)| near);
    }
    let (near, _) = suggest::closest(rest, of_group())?;
    template_variables().find(|known| known.split_once('.') == Some((group, near)))
}
