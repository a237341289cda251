//! `grain recall`: what is current about a subject, or answers some words, without writing CAL.

use clap::Args;
use grainstore::cal::Expansion;
use serde_json::Value;

use crate::ask::{FormatName, Question, show};
use crate::context::Context;
use crate::error::Result;

/// Print what is current about a subject, or what answers some words
///
/// Short for `grain cal 'RECALL WHERE subject = ... AND relation = ... AND query = ... LIMIT n'`; CAL has no
/// word for --expand.
#[derive(Debug, Args)]
pub(crate) struct Recall {
    /// The subject, word for word; may be left out where --text is given
    #[arg(required_unless_present = "text")]
    subject: Option<String>,
    /// Only grains with this relation
    #[arg(long)]
    relation: Option<String>,
    /// Words to search for, the best answers first: "as a phrase", begin*, misspelt~, +needed, -unwanted
    #[arg(long)]
    text: Option<String>,
    /// Also what up to N links lead to from the best answers, whatever its subject and relation: triples,
    /// derived_from, related_to and replies, both ways; each link leaves a quarter of the score
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    expand: Option<u8>,
    /// At most so many grains, up to 1000; 20 if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// The format of the answer; sml if not given
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    format: Option<FormatName>,
}

impl Recall {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let mut query = "RECALL".to_owned();
        let mut params = Vec::new();
        let given = [("subject", self.subject), ("relation", self.relation), ("query", self.text)];
        for (field, value) in given {
            if let Some(value) = value {
                let before = if params.is_empty() { "WHERE" } else { "AND" };
                query.push_str(&format!(" {before} {field} = ${field}"));
                params.push((field.to_owned(), Value::from(value)));
            }
        }
        if let Some(limit) = self.limit {
            query.push_str(" LIMIT ");
            query.push_str(&limit.to_string());
        }
        // Machines read the envelope and need no text beside it unless they ask.
        let format = self.format.or((!context.output.is_json()).then_some(FormatName::Sml));
        let expansion = self.expand.map(|hops| Expansion {
            hops: hops.into(),
            freely: true,
            ..Expansion::default()
        });
        let query = query.as_bytes();
        let question = Question { query, params, format, expansion, ..Question::default() };
        show(&question.ask(&context.session()?)?, &mut context.output)
    }
}
