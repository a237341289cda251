//! PROJECT: the fields it shows (CAL 10.3.5).

use grainstore_format::GrainType;

use super::plan::{ProjectPlan, ProjectedField};
use super::resolve::belongs;
use super::{CheckContext, domain};
use crate::ast::{ConditionField, ProjectClause, ProjectField, Recall};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields;
use crate::span::{Span, Spanned};

/// Checks a PROJECT of a RECALL about `grain_type`.
pub(super) fn project(
    project: &ProjectClause<'_>,
    place: Span,
    recall: &Recall<'_>,
    grain_type: Option<GrainType>,
    context: &mut CheckContext<'_>,
) -> Result<ProjectPlan> {
    let mut part = |fields: &[Spanned<ProjectField<'_>>]| -> Result<Vec<ProjectedField>> {
        let mut shown: Vec<ProjectedField> = Vec::with_capacity(fields.len());
        for field in fields {
            let field = checked(field, recall, grain_type, context)?;
            if !shown.contains(&field) {
                shown.push(field);
            }
        }
        Ok(shown)
    };
    let content = project.content.as_deref().map(&mut part).transpose()?;
    let attr = part(project.attr.as_deref().unwrap_or_default())?;
    Ok(ProjectPlan { place, content, attr })
}

fn checked(
    field: &Spanned<ProjectField<'_>>,
    recall: &Recall<'_>,
    grain_type: Option<GrainType>,
    context: &mut CheckContext<'_>,
) -> Result<ProjectedField> {
    match field.node {
        ProjectField::Field(ConditionField::Table(row)) => {
            belongs(&Spanned::new(row, field.span), grain_type)?;
            if !fields::is_projectable(row) {
                let message = format!("PROJECT does not take {}", row.name);
                let error = Error::new(ErrorKind::WrongStage, message).at(field.span);
                let valid = fields::projectable_names(grain_type);
                return Err(error.suggest("use one of the listed fields").valid(valid));
            }
            Ok(ProjectedField::Field(row))
        }
        ProjectField::Field(ConditionField::Domain { prefix, name }) => {
            let full = format!("{prefix}:{name}");
            let conditions = recall.conditions.as_ref().map(|list| list.node.as_slice());
            domain::warn(prefix, &full, conditions.unwrap_or_default(), context)?;
            Ok(ProjectedField::Domain(full))
        }
        ProjectField::Attribute(name) => Ok(ProjectedField::Attribute(name)),
        ProjectField::Extension(name) => Ok(ProjectedField::Payload(name.to_owned())),
    }
}
