//! DEFINE TEMPLATE (CAL 10.6): saves a template for the session, or in Tier 1 for its namespace.

use super::Executor;
use crate::check::plan::DefinePlan;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::memory::{NamedTemplate, TemplateOwner, TemplateSaveOutcome};
use crate::response::Answer;
use crate::tier::Tier;

impl Executor<'_> {
    /// Runs a DEFINE TEMPLATE.
    ///
    /// # Errors
    /// E088 if the name is taken, E089 if there are too many templates.
    pub(super) fn define(&self, plan: DefinePlan) -> Result<Answer> {
        let DefinePlan { name, extends, text: definition } = plan;
        let keeper = self.template_owner();
        let template = NamedTemplate { name: name.node, keeper, definition };
        match self.memory.save_template(&template)? {
            TemplateSaveOutcome::Kept => {
                Ok(Answer::Defined { template: template.name, extends, kept: keeper })
            }
            refused => Err(save_error(&template, refused).at(name.span)),
        }
    }

    /// Checks a definition without saving it, against the templates known now.
    ///
    /// # Errors
    /// As [`Executor::define`].
    pub(super) fn check_definition(&self, plan: &DefinePlan) -> Result<()> {
        let keeper = self.template_owner();
        let template =
            NamedTemplate { name: plan.name.node.clone(), keeper, definition: plan.text.clone() };
        match template.check_against(&self.memory.templates()?) {
            TemplateSaveOutcome::Kept => Ok(()),
            refused => Err(save_error(&template, refused).at(plan.name.span)),
        }
    }

    fn template_owner(&self) -> TemplateOwner {
        match self.options.tier {
            Tier::Read => TemplateOwner::Session,
            Tier::Evolve => TemplateOwner::Namespace,
        }
    }
}

/// Returns the error of a template that was not saved.
fn save_error(template: &NamedTemplate, refused: TemplateSaveOutcome) -> Error {
    if refused == TemplateSaveOutcome::Full {
        let of = match template.keeper {
            TemplateOwner::Session => "session",
            TemplateOwner::Namespace => "namespace",
        };
        let message = format!("a {of} has {} templates at most", NamedTemplate::MAX_PER_OWNER);
        return Error::new(ErrorKind::TooManyTemplates, message);
    }
    let message = format!("there is a template called {}", template.name);
    Error::new(ErrorKind::TemplateTaken, message)
}
