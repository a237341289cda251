//! DEFINE TEMPLATE: a template for the session, or in Tier 1 for its namespace.

use super::{Run, Tier};
use crate::check::plan::DefinePlan;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::memory::{NamedTemplate, TemplateKeeper, TemplateKept};
use crate::response::Answer;

impl Run<'_> {
    /// Runs a DEFINE TEMPLATE.
    ///
    /// # Errors
    /// E088 for a name that is taken, E089 where there are too many.
    pub(super) fn define(&self, plan: DefinePlan) -> Result<Answer> {
        let DefinePlan { name, extends, text: definition } = plan;
        let keeper = match self.options.tier {
            Tier::Read => TemplateKeeper::Session,
            Tier::Evolve => TemplateKeeper::Namespace,
        };
        let template = NamedTemplate { name: name.node, keeper, definition };
        match self.memory.keep_template(&template)? {
            TemplateKept::Kept => {
                Ok(Answer::Defined { template: template.name, extends, kept: keeper })
            }
            TemplateKept::Taken => {
                let message = format!("there is a template called {}", template.name);
                Err(Error::new(ErrorKind::TemplateTaken, message).at(name.span))
            }
            TemplateKept::Full => {
                let of = match keeper {
                    TemplateKeeper::Session => "session",
                    TemplateKeeper::Namespace => "namespace",
                };
                let message = format!("a {of} has {} templates at most", NamedTemplate::MOST);
                Err(Error::new(ErrorKind::TooManyTemplates, message).at(name.span))
            }
        }
    }
}
