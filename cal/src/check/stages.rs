//! The pipeline: RECENT first, stages as written, the default LIMIT last (CAL 8.1).

use grainstore_format::GrainType;

use super::plan::{PipelineOutput, PipelineStep, ProjectPlan, SortKey};
use super::resolve::belongs;
use super::{CheckContext, project};
use crate::ast::{CountArg, PipelineStage, Recall, SortDirection};
use crate::bounds::Order;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::{self, FieldRef};
use crate::limits;
use crate::query::Query;
use crate::span::{Span, Spanned};
use crate::suggest;

/// A checked pipeline.
pub(super) struct Pipeline {
    pub(super) steps: Vec<PipelineStep>,
    pub(super) limited_by_default: bool,
    pub(super) end: PipelineOutput,
    pub(super) select: Option<Vec<FieldRef>>,
    pub(super) project: Option<ProjectPlan>,
}

/// Checks the pipeline of a RECALL about `grain_type`. A leading sort by time sets the order of the query
/// as well; `dedup` acts on sorted grains before LIMIT.
pub(super) fn pipeline(
    recall: &Recall<'_>,
    grain_type: Option<GrainType>,
    dedup: Option<FieldRef>,
    context: &mut CheckContext<'_>,
    query: &mut Query,
) -> Result<Pipeline> {
    if let Some(extra) = recall.stages.get(limits::MAX_STAGES) {
        let message = format!("a pipeline has at most {} stages", limits::MAX_STAGES);
        return Err(Error::new(ErrorKind::TooManyStages, message).at(extra.span));
    }
    let mut pipeline = Pipeline {
        steps: Vec::new(),
        limited_by_default: false,
        end: PipelineOutput::Grains,
        select: None,
        project: None,
    };
    if recall.recent.is_some() || recall.thread.is_some() {
        let descending = recall.recent.is_some();
        let by_time = |field| PipelineStep::Sort(SortKey { field, descending });
        pipeline.steps.extend(fields::by_name("time").map(by_time));
    }
    if let Some(recent) = &recall.recent {
        pipeline.steps.push(PipelineStep::Take(limit(
            &recent.node,
            recent.span,
            "RECENT",
            context,
        )?));
    }
    let mut ended: Option<&str> = None;
    for stage in &recall.stages {
        if let Some(end) = ended {
            let error = Error::new(ErrorKind::WrongStage, format!("{end} ends the pipeline"));
            return Err(error.at(stage.span).suggest(format!("write {end} last")));
        }
        if let PipelineStage::Project(project) = &stage.node {
            let place = stage.span;
            let plan = project::project(project, place, recall, grain_type, context)?;
            if pipeline.project.replace(plan).is_some() {
                let error = Error::new(ErrorKind::WrongStage, "PROJECT stands twice").at(place);
                return Err(error.suggest("name all fields in one PROJECT"));
            }
        } else {
            ended = pipeline.add(stage, grain_type, context)?;
        }
    }
    let cut = pipeline.steps.iter().any(|step| matches!(step, PipelineStep::Take(_)));
    if pipeline.end == PipelineOutput::Grains && !cut {
        pipeline.steps.push(PipelineStep::Take(default_limit(recall, context)));
        pipeline.limited_by_default = true;
    }
    settle_order(&mut pipeline.steps, query);
    if let Some(field) = dedup {
        let sorts =
            pipeline.steps.iter().take_while(|step| matches!(step, PipelineStep::Sort(_))).count();
        pipeline.steps.insert(sorts, PipelineStep::Dedup(field));
    }
    Ok(pipeline)
}

/// Returns the LIMIT of a RECALL that states none.
pub(super) fn default_limit(recall: &Recall<'_>, context: &CheckContext<'_>) -> u64 {
    let thread = recall.thread.is_some();
    let default = if thread { limits::DEFAULT_THREAD_LIMIT } else { limits::DEFAULT_LIMIT };
    context.default_limit_cap.map_or(default, |few| default.min(few))
}

impl Pipeline {
    /// Adds a stage; returns its name if no stage may follow it.
    fn add(
        &mut self,
        stage: &Spanned<PipelineStage<'_>>,
        grain_type: Option<GrainType>,
        context: &CheckContext<'_>,
    ) -> Result<Option<&'static str>> {
        let step = match &stage.node {
            PipelineStage::Project(_) => return Ok(None),
            PipelineStage::Select(fields) => return self.select(fields, stage.span, grain_type),
            PipelineStage::OrderBy { field, direction } => {
                let field = sortable(field)?;
                PipelineStep::Sort(SortKey {
                    field,
                    descending: *direction == Some(SortDirection::Descending),
                })
            }
            PipelineStage::Limit(count) => {
                PipelineStep::Take(limit(count, stage.span, "LIMIT", context)?)
            }
            PipelineStage::Offset(count) => PipelineStep::Skip(context.whole(count, stage.span)?),
            PipelineStage::First => {
                self.steps.push(PipelineStep::Take(1));
                return Ok(Some("FIRST"));
            }
            PipelineStage::Count => return Ok(self.end_with(PipelineOutput::Count, "COUNT")),
            PipelineStage::Extract(extractor) => {
                return Ok(self.end_with(PipelineOutput::Values(*extractor), extractor.text()));
            }
            PipelineStage::GroupBy(field) => {
                return Ok(self.end_with(PipelineOutput::Groups(groupable(field)?), "GROUP BY"));
            }
        };
        self.steps.push(step);
        Ok(None)
    }

    fn end_with(&mut self, end: PipelineOutput, name: &'static str) -> Option<&'static str> {
        self.end = end;
        Some(name)
    }

    fn select(
        &mut self,
        fields: &[Spanned<FieldRef>],
        place: Span,
        grain_type: Option<GrainType>,
    ) -> Result<Option<&'static str>> {
        if self.select.is_some() {
            let error = Error::new(ErrorKind::WrongStage, "SELECT stands twice").at(place);
            return Err(error.suggest("name all fields in one SELECT"));
        }
        let mut selected: Vec<FieldRef> = Vec::with_capacity(fields.len());
        for field in fields {
            belongs(field, grain_type)?;
            if !fields::is_projectable(field.node) {
                let message = format!("SELECT does not take {}", field.node.name);
                let error = Error::new(ErrorKind::WrongStage, message).at(field.span);
                let valid = fields::projectable_names(grain_type);
                return Err(error.suggest("use one of the listed fields").valid(valid));
            }
            if !selected.contains(&field.node) {
                selected.push(field.node);
            }
        }
        self.select = Some(selected);
        Ok(None)
    }
}

/// Returns a LIMIT or RECENT: E006 for 0, E010 above the maximum.
fn limit(count: &CountArg<'_>, span: Span, name: &str, context: &CheckContext<'_>) -> Result<u64> {
    match context.whole(count, span)? {
        0 => {
            let error = Error::new(ErrorKind::BadNumber, format!("{name} is at least 1"));
            Err(error.at(span).suggest(format!("write a number from 1 to {}", limits::MAX_LIMIT)))
        }
        rows if rows > limits::MAX_LIMIT => {
            let (written, most) = (count.as_written(rows), limits::MAX_LIMIT);
            let message = format!("{name} {written} is above the maximum of {most}");
            Err(Error::new(ErrorKind::LimitTooLarge, message).at(span))
        }
        rows => Ok(rows),
    }
}

/// Checks the field of ORDER BY: E021 unless sortable.
fn sortable(field: &Spanned<FieldRef>) -> Result<FieldRef> {
    if field.node.sortable {
        return Ok(field.node);
    }
    let name = field.node.name;
    let advice =
        suggest::did_you_mean(name, fields::sortable_names(), "use one of the listed fields");
    let error = Error::new(ErrorKind::WrongStage, format!("ORDER BY does not take {name}"));
    Err(error.at(field.span).suggest(advice).valid(fields::sortable_names()))
}

/// Checks the field of GROUP BY: E021 unless groupable.
fn groupable(field: &Spanned<FieldRef>) -> Result<FieldRef> {
    if fields::GROUPABLE.contains(&field.node.name) {
        return Ok(field.node);
    }
    let message = format!("GROUP BY does not take {}", field.node.name);
    let error = Error::new(ErrorKind::WrongStage, message).at(field.span);
    Err(error.suggest("use one of the listed fields").valid(fields::GROUPABLE))
}

/// Removes each sort that is directly followed by another, which would undo it: ties are ordered by
/// address, not by an earlier sort. A leading sort by time sets the order in which the memory visits.
fn settle_order(steps: &mut Vec<PipelineStep>, query: &mut Query) {
    let both_sort = |a: &mut PipelineStep, b: &mut PipelineStep| {
        matches!((a, b), (PipelineStep::Sort(_), PipelineStep::Sort(_)))
    };
    steps.reverse();
    steps.dedup_by(both_sort);
    steps.reverse();
    if let Some(PipelineStep::Sort(key)) = steps.first()
        && key.is_by_time()
    {
        query.order = if key.descending { Order::Newest } else { Order::Oldest };
    }
}
