//! `grain add`: stores one fact or one event given as arguments, dated now.
//!
//! For people; programs give whole grains to `put`.

use clap::Args;
use grainstore::format::{BeliefBuilder, EventBuilder};
use grainstore::{Clock as _, EpochMs, Offer, SystemClock};

use crate::commands::put;
use crate::context::Context;
use crate::error::Result;
use crate::text::parse_time;

/// Add a fact or, with --event, something that happened, dated now; print its address
///
/// The grain is of --namespace and --user, where they are given. What replaces another grain goes through
/// `grain supersede`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// What the fact is about
    #[arg(required_unless_present = "event", requires = "relation")]
    subject: Option<String>,
    /// What is said of it, such as prefers
    #[arg(requires = "object")]
    relation: Option<String>,
    /// The value of the relation
    object: Option<String>,
    /// The text of an event, in place of a fact
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["subject", "confidence"])]
    event: Option<String>,
    /// How sure the fact is, from 0 to 1
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    confidence: f64,
    /// A tag; may be given several times
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// When it was created, RFC 3339 or epoch milliseconds; now unless given
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    created_at: Option<EpochMs>,
}

impl Add {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        let now = || reach.session().map_or_else(|| SystemClock.now(), |session| session.now());
        let created_at = self.created_at.unwrap_or_else(now);
        let (namespace, user) = context.named();
        let common = [("namespace", &namespace), ("user_id", &user)];
        let common = common.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        /// Sets what both types of grains have, and builds the grain.
        macro_rules! complete {
            ($builder:expr) => {{
                let mut builder = $builder;
                for (name, value) in common {
                    builder = builder.set(name, value);
                }
                if !self.tags.is_empty() {
                    builder = builder.structural_tags(self.tags);
                }
                builder.build()?
            }};
        }
        let grain = match (self.event, self.subject, self.relation, self.object) {
            (None, Some(subject), Some(relation), Some(object)) => {
                let confidence = self.confidence;
                complete!(BeliefBuilder::new(created_at, subject, relation, object, confidence))
            }
            // The parser asks for all three words of a fact, or the event.
            (event, ..) => complete!(EventBuilder::new(created_at, event.unwrap_or_default())),
        };
        put::store_one(reach, Offer::Grain(grain), &mut context.output)
    }
}
