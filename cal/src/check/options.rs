//! WITH: what the options mean for a RECALL and for an ASSEMBLE.

use grainstore_sml::{Disclosure, Level};

use super::Context;
use super::plan::Show;
use crate::ast::{DiversityOf, LevelName, Number, WithOption};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::fields::{FieldRef, Shape};
use crate::limits;
use crate::search::Diversity;
use crate::span::Spanned;

type Options<'a> = Spanned<Vec<Spanned<WithOption<'a>>>>;

/// The options of a RECALL.
pub(super) fn of_recall(options: Option<&Options<'_>>, context: &mut Context<'_>) -> Result<Show> {
    read(options, context)
}

/// The options of an ASSEMBLE; those about grains belong into its sources or into a RECALL.
pub(super) fn of_assemble(
    options: Option<&Options<'_>>,
    context: &mut Context<'_>,
) -> Result<Show> {
    let show = read(options, context)?;
    for option in options.iter().flat_map(|options| &options.node) {
        let about_grains = matches!(
            option.node,
            WithOption::Superseded
                | WithOption::ScoreBreakdown
                | WithOption::Explanation
                | WithOption::Provenance
                | WithOption::ContradictionDetection
                | WithOption::Diversity(_)
        );
        if about_grains {
            let message = format!("{} is an option of a RECALL", option.node);
            let error = Error::new(ErrorKind::WrongStage, message).at(option.span);
            return Err(error.suggest(format!("write RECALL ... WITH {}", option.node)));
        }
    }
    Ok(show)
}

fn read(options: Option<&Options<'_>>, context: &mut Context<'_>) -> Result<Show> {
    let mut show = Show::default();
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
            WithOption::Provenance => show.provenance = true,
            WithOption::ContradictionDetection => show.contradictions = true,
            WithOption::IsoTimestamps => show.iso_timestamps = true,
            WithOption::Summarize => show.summarize = true,
            WithOption::ProgressiveDisclosure(level) => {
                show.disclosure = Some(level.map_or(Disclosure::Auto, fixed));
            }
            // One machine is always linearizable: whatever is asked for is met.
            WithOption::Consistency(_) => {}
            WithOption::Diversity(of) => show.diversity = Some(diversity(of)?),
            WithOption::Dedup(field) => show.dedup = Some(comparable(field)?),
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

/// How answers are kept apart, by a number from 0 to 1; E006 beyond.
fn diversity(of: &DiversityOf<'_>) -> Result<Diversity> {
    let share = |number: &Spanned<Number<'_>>, name: &str| {
        let value = number.node.value;
        if (0.0..=1.0).contains(&value) {
            return Ok(value);
        }
        let error = Error::new(ErrorKind::BadNumber, format!("{name} lies between 0 and 1"));
        Err(error.at(number.span).suggest("write a fraction such as 0.5"))
    };
    Ok(match of {
        DiversityOf::Mmr(None) => Diversity::Mmr { lambda: limits::LAMBDA },
        DiversityOf::Mmr(Some(lambda)) => Diversity::Mmr { lambda: share(lambda, "lambda")? },
        DiversityOf::Threshold(most) => Diversity::Threshold(share(most, "the threshold")?),
    })
}

fn fixed(level: LevelName) -> Disclosure {
    Disclosure::Fixed(match level {
        LevelName::Summary => Level::Summary,
        LevelName::Headlines | LevelName::Standard => Level::Standard,
        LevelName::Full => Level::Full,
    })
}

/// E021: duplicates are told by fields that hold one plain payload value.
fn comparable(field: &Spanned<FieldRef>) -> Result<FieldRef> {
    let plain = matches!(
        field.node.shape,
        Shape::Text | Shape::Word(_) | Shape::Address | Shape::Number { .. }
    );
    let stored = !matches!(field.node.name, "verification_status" | "consent_action" | "namespace");
    if plain && stored {
        return Ok(field.node);
    }
    let message = format!("dedup does not take {}", field.node.name);
    let error = Error::new(ErrorKind::WrongStage, message).at(field.span);
    Err(error.suggest("use a field with one value, such as subject"))
}
