//! WITH: the options of a RECALL and of an ASSEMBLE.

use grainstore_format::GrainType;
use grainstore_sml::{Disclosure, Level};

use super::CheckContext;
use super::plan::{DisplayOptions, RecallPlan, SourceGrainType};
use super::resolve::belongs;
use crate::ast::{ConsistencyLevel, DiversityOption, LevelName, NumberArg, WithOption};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::fields::{FieldRef, ValueKind};
use crate::limits;
use crate::search::{Diversity, Rerank};
use crate::span::Spanned;

type Options<'a> = Spanned<Vec<Spanned<WithOption<'a>>>>;

/// Checks the options of a RECALL about `grain_type`.
pub(super) fn recall_options(
    options: Option<&Options<'_>>,
    grain_type: Option<GrainType>,
    context: &mut CheckContext<'_>,
) -> Result<DisplayOptions> {
    for field in deduplicated(options) {
        belongs(field, grain_type)?;
    }
    read(options, context)
}

/// Checks the options of an ASSEMBLE of these sources; those about grains are passed on to each source.
pub(super) fn assemble_options(
    options: Option<&Options<'_>>,
    sources: &[SourceGrainType],
    context: &mut CheckContext<'_>,
) -> Result<DisplayOptions> {
    for field in deduplicated(options) {
        belongs_to_a_source(field, sources)?;
    }
    let show = read(options, context)?;
    if show.total {
        let message = "total counts the matches of a RECALL, and an ASSEMBLE shows none";
        context.warn(codes::IGNORED_OPTION, message.to_owned());
    }
    Ok(show)
}

/// Returns `true` if an option of an ASSEMBLE asks for explanations of its sources.
pub(super) fn asks_explanation(options: Option<&Options<'_>>) -> bool {
    let mut all = options.into_iter().flat_map(|options| &options.node);
    all.any(|option| option.node == WithOption::Explanation)
}

/// Adds the options of an ASSEMBLE about grains to those of one of its sources.
pub(super) fn pass_to_source(show: &DisplayOptions, plan: &mut RecallPlan) {
    let of = &mut plan.show;
    of.assemble_adds_metadata = show.adds_grain_metadata();
    of.state |= show.state;
    of.score_breakdown |= show.score_breakdown;
    of.explanation |= show.explanation;
    of.provenance |= show.provenance;
    of.contradictions |= show.contradictions;
    plan.query.visibility.superseded |= show.state;
    plan.query.visibility.contradicted |= show.contradictions;
    if of.diversity.is_none()
        && let Some(diversity) = show.diversity
    {
        of.diversity = Some(diversity);
        plan.query.rerank = Some(Rerank { diversity: Some(diversity), ..Rerank::default() });
    }
}

/// Returns the fields of `dedup`.
fn deduplicated<'o>(
    options: Option<&'o Options<'_>>,
) -> impl Iterator<Item = &'o Spanned<FieldRef>> {
    options.into_iter().flat_map(|options| &options.node).filter_map(|option| match &option.node {
        WithOption::Dedup(field) => Some(field),
        _ => None,
    })
}

/// Checks that a field of one type has a source of that type: E060 or E061. A LET was checked by itself.
fn belongs_to_a_source(field: &Spanned<FieldRef>, sources: &[SourceGrainType]) -> Result<()> {
    let has = |source: &SourceGrainType| match source {
        SourceGrainType::Named(named) => Some(*named) == field.node.owner,
        SourceGrainType::FromLet => true,
        SourceGrainType::Any => false,
    };
    if sources.iter().any(has) {
        return Ok(());
    }
    let named = sources.iter().find_map(|source| match source {
        SourceGrainType::Named(named) => Some(*named),
        SourceGrainType::Any | SourceGrainType::FromLet => None,
    });
    belongs(field, named)
}

fn read(options: Option<&Options<'_>>, context: &mut CheckContext<'_>) -> Result<DisplayOptions> {
    let mut show = DisplayOptions::default();
    let mut seen: Vec<std::mem::Discriminant<WithOption<'_>>> = Vec::new();
    for option in options.iter().flat_map(|options| &options.node) {
        let kind = std::mem::discriminant(&option.node);
        let repeats = seen.contains(&kind) && !matches!(option.node, WithOption::Extension(..));
        if repeats {
            let error = Error::new(ErrorKind::UnexpectedToken, "the option stands twice");
            return Err(error.at(option.span).suggest("write each option once"));
        }
        seen.push(kind);
        match &option.node {
            WithOption::Superseded => show.state = true,
            WithOption::ScoreBreakdown => show.score_breakdown = true,
            WithOption::Explanation => show.explanation = true,
            WithOption::Total => show.total = true,
            WithOption::Provenance => show.provenance = true,
            WithOption::ContradictionDetection => show.contradictions = true,
            WithOption::IsoTimestamps => show.iso_timestamps = true,
            WithOption::Summarize => show.summarize = true,
            WithOption::ProgressiveDisclosure(level) => {
                show.disclosure = Some(level.map_or(Disclosure::Auto, fixed));
            }
            // A single machine is always linearizable, so every level is met; the answer says so.
            WithOption::Consistency(demand) => {
                if let ConsistencyLevel::Bounded(seconds) = demand {
                    not_negative(seconds, context)?;
                }
                context.consistency_requested = true;
            }
            // Not used, although allowed: an answer cached beyond an erasure would show erased grains.
            WithOption::Cache(seconds) => {
                context.whole(seconds, option.span)?;
                context.cache_allowed = true;
            }
            WithOption::Diversity(of) => show.diversity = Some(diversity(of, context)?),
            WithOption::Dedup(field) => show.dedup = Some(dedup_field(field)?),
            WithOption::Locale(locale) => {
                let locale = context.text(locale, option.span)?.to_owned();
                let message = format!("locale \"{locale}\" is ignored; text sorts by code point");
                context.warn(codes::IGNORED_OPTION, message);
            }
            WithOption::Extension(name, _) => {
                context
                    .warn(codes::IGNORED_OPTION, format!("option {name} is unknown and ignored"));
            }
        }
    }
    Ok(show)
}

/// Returns the diversity of an option, whose number lies in 0..=1; E006 otherwise.
fn diversity(of: &DiversityOption<'_>, context: &CheckContext<'_>) -> Result<Diversity> {
    let share = |number: &Spanned<NumberArg<'_>>, name: &str| {
        let value = context.number(number)?;
        if (0.0..=1.0).contains(&value) {
            return Ok(value);
        }
        let error = Error::new(ErrorKind::BadNumber, format!("{name} lies between 0 and 1"));
        Err(error.at(number.span).suggest("write a fraction such as 0.5"))
    };
    Ok(match of {
        DiversityOption::Mmr(None) => Diversity::Mmr { lambda: limits::DEFAULT_MMR_LAMBDA },
        DiversityOption::Mmr(Some(lambda)) => Diversity::Mmr { lambda: share(lambda, "lambda")? },
        DiversityOption::Threshold(most) => Diversity::Threshold(share(most, "the threshold")?),
    })
}

/// Checks the bound of a staleness: E006 if negative.
fn not_negative(seconds: &Spanned<NumberArg<'_>>, context: &CheckContext<'_>) -> Result<()> {
    if context.number(seconds)? >= 0.0 {
        return Ok(());
    }
    let error = Error::new(ErrorKind::BadNumber, "bounded takes seconds, and no fewer than 0");
    Err(error.at(seconds.span).suggest("write bounded(5), or linearizable"))
}

fn fixed(level: LevelName) -> Disclosure {
    Disclosure::Fixed(match level {
        LevelName::Summary => Level::Summary,
        LevelName::Headlines | LevelName::Standard => Level::Standard,
        LevelName::Full => Level::Full,
    })
}

/// Checks the field of `dedup`: E021 unless it holds a single value.
fn dedup_field(field: &Spanned<FieldRef>) -> Result<FieldRef> {
    let one = match field.node.shape {
        ValueKind::List | ValueKind::Hash | ValueKind::Score => false,
        ValueKind::Search => field.node.name == "content",
        _ => !matches!(field.node.name, "scope" | "depends_on"),
    };
    if one {
        return Ok(field.node);
    }
    let message = format!("dedup does not take {}", field.node.name);
    let error = Error::new(ErrorKind::WrongStage, message).at(field.span);
    Err(error.suggest("use a field with one value, such as subject"))
}
