//! `grain recall`: what is current about a subject, without writing CAL.

use clap::Args;
use serde_json::Value;

use crate::ask::{FormatName, Question, show};
use crate::context::Context;
use crate::error::{Code, Error, Result};

/// Print what is current about a subject
///
/// Short for `grain cal 'RECALL WHERE subject = ... AND relation = ... LIMIT n'`.
#[derive(Debug, Args)]
pub(crate) struct Recall {
    /// The subject, word for word
    subject: String,
    /// Only grains with this relation
    #[arg(long)]
    relation: Option<String>,
    /// Text search; not available in this version
    #[arg(long)]
    text: Option<String>,
    /// At most so many grains, up to 1000; 20 if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// The format of the answer; sml if not given
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    format: Option<FormatName>,
}

impl Recall {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        if self.text.is_some() {
            return Err(Error::unavailable(Code::Schema, "text search (--text)"));
        }
        let mut query = "RECALL WHERE subject = $subject".to_owned();
        let mut params = vec![("subject".to_owned(), Value::from(self.subject))];
        if let Some(relation) = self.relation {
            query.push_str(" AND relation = $relation");
            params.push(("relation".to_owned(), Value::from(relation)));
        }
        if let Some(limit) = self.limit {
            query.push_str(" LIMIT ");
            query.push_str(&limit.to_string());
        }
        // Machines read the envelope and need no text beside it unless they ask.
        let format = self.format.or((!context.output.is_json()).then_some(FormatName::Sml));
        let question = Question { query: query.as_bytes(), params, format, ..Question::default() };
        show(&question.ask(&context.session()?)?, &mut context.output)
    }
}
