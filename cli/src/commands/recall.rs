//! `grain recall`: current knowledge about a subject or a search text, without writing CAL.

use clap::{ArgGroup, Args, ValueEnum};
use grainstore::cal::{Expansion, Format};
use grainstore_rpc::{BeyondCal, Question};
use serde_json::Value;

use crate::context::Context;
use crate::error::Result;
use crate::names::{FORMATS, named};
use crate::statement::{show, write_scores};

/// Print what is current about a subject, or what answers some words
///
/// Short for `grain cal 'RECALL WHERE subject = ... AND relation = ... AND query = ... LIMIT n'`, which can
/// ask for more (docs/cal.md) but has no word for --expand, --run, --author, --entity and --basis. With --json each grain has its address, its score
/// and the fields that match; --scores shows them to people.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("asked").required(true).multiple(true)
    .args(["subject", "text", "session", "run", "author", "entity", "basis"])))]
pub(crate) struct Recall {
    /// The subject, word for word; may be left out where --text or --session is given
    subject: Option<String>,
    /// Only grains with this relation
    #[arg(long)]
    relation: Option<String>,
    /// Words to search for, the best answers first: "as a phrase", begin*, misspelt~, +needed, -unwanted
    #[arg(long, allow_hyphen_values = true)]
    text: Option<String>,
    /// Also what up to N links lead to from the best answers, whatever its subject and relation: triples,
    /// derived_from, related_to and replies, both ways; each link leaves a quarter of the score
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    expand: Option<u8>,
    /// Only grains of this type: belief, event, goal ...
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "session")]
    grain_type: Option<String>,
    /// Only events of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only grains of this run (run_id)
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Only grains that name this author (author_did)
    #[arg(long, value_name = "DID")]
    author: Option<String>,
    /// Only grains about this entity (entity_id)
    #[arg(long, value_name = "ID")]
    entity: Option<String>,
    /// Only what rests on this legal basis (processing_basis): the whole address of a consent, or a word such
    /// as contract
    #[arg(long, value_name = "ADDRESS|WORD")]
    basis: Option<String>,
    /// The order of an answer without --text and --expand; newest if not given
    #[arg(long, value_enum, value_name = "ORDER", conflicts_with_all = ["text", "expand"])]
    sort: Option<Sort>,
    /// Only answers to --text with at least this score, from 0 to 1
    #[arg(long, value_name = "SCORE", requires = "text")]
    min_score: Option<f64>,
    /// At most so many grains, up to 1000; 20 if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Show a grain a line: its score, its address, what it says; with --json what scores are made of
    #[arg(long, conflicts_with = "format")]
    scores: bool,
    /// The format of the answer; sml if not given
    #[arg(long = "as", value_parser = named::<Format>(FORMATS), value_name = "FORMAT")]
    format: Option<Format>,
}

/// Orders by the time of grains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// The newest first
    Newest,
    /// The oldest first
    Oldest,
}

impl Sort {
    /// The stage of CAL.
    fn stage(self) -> &'static str {
        match self {
            Self::Newest => " | ORDER BY time DESC",
            Self::Oldest => " | ORDER BY time ASC",
        }
    }
}

impl Recall {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        // Only events have sessions, and a field of one type needs the type to be named.
        let mut query = if self.session.is_some() { "RECALL events" } else { "RECALL" }.to_owned();
        let mut params = Vec::new();
        let given = [
            ("subject", self.subject),
            ("relation", self.relation),
            ("type", self.grain_type),
            ("session_id", self.session),
            ("query", self.text),
        ];
        for (field, value) in given {
            if let Some(value) = value {
                let before = if params.is_empty() { "WHERE" } else { "AND" };
                query.push_str(&format!(" {before} {field} = ${field}"));
                params.push((field.to_owned(), Value::from(value)));
            }
        }
        if let Some(score) = self.min_score {
            query.push_str(" AND score >= $score");
            params.push(("score".to_owned(), Value::from(score)));
        }
        if self.scores {
            query.push_str(" WITH score_breakdown");
        }
        query.push_str(self.sort.map_or("", Sort::stage));
        if let Some(limit) = self.limit {
            let stage = if self.sort.is_some() { " |" } else { "" };
            query.push_str(&format!("{stage} LIMIT {limit}"));
        }
        let beyond = BeyondCal {
            run_id: self.run,
            author_did: self.author,
            entity_id: self.entity,
            processing_basis: self.basis,
        };
        // The JSON answer needs no text unless a format is asked for.
        let needs_text = !context.output.is_json() && !self.scores;
        let format = self.format.or(needs_text.then_some(Format::Sml));
        let expansion = self.expand.map(|hops| Expansion {
            hops: hops.into(),
            freely: true,
            ..Expansion::default()
        });
        let query = query.as_bytes();
        // What no grain can hold is refused before the store is opened.
        beyond.clone().conditions()?;
        let question = Question { query, params, format, expansion, beyond, ..Question::default() };
        let answer = context.reach()?.ask(&question)?;
        let show = if self.scores { write_scores } else { show };
        show(&answer, &mut context.output)
    }
}
