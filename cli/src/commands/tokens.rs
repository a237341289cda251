//! `grain tokens`: who may ask a served store (docs/http.md).

use clap::{Args, Subcommand};
use grainstore::EpochMs;
use grainstore_serve::{Grant, NewToken, Token, Tokens as Kept};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::text::{format_time, parse_time};

/// Make, list and revoke the bearer tokens of a store that `grain serve` serves
#[derive(Debug, Args)]
pub(crate) struct Tokens {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a token, and print it: it is shown this once, and kept nowhere
    ///
    /// --namespace, --user, --actor and --purpose say whom it works for, and are encrypted in the store's directory by
    /// the token itself. A running server takes it at once.
    Create {
        /// What it is for, shown by `list`
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
        /// 0: it reads; 1: it may write, too
        #[arg(long, value_name = "TIER", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=1))]
        tier: u8,
        /// It has the rights of the operator of the whole store
        #[arg(long = "as-operator")]
        as_operator: bool,
        /// When it ends, by RFC 3339 or in epoch milliseconds; without it, when it is revoked
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        expires: Option<EpochMs>,
    },
    /// List all tokens, revoked and expired ones too
    List,
    /// Revoke a token for good, by its id: 8 hex digits, which are in its text, too
    Revoke {
        /// The id
        id: String,
    },
}

impl Tokens {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let tokens = Kept::of(&context.globals.store);
        match self.what {
            What::Create { label, tier, as_operator, expires } => {
                let globals = &context.globals;
                if globals.read_only && tier == 1 {
                    let message = "--read-only and --tier 1 contradict each other";
                    return Err(Error::new(Code::Schema, message, "leave one of them out"));
                }
                let grant = Grant {
                    namespace: globals.namespace.clone(),
                    user_id: globals.user.clone(),
                    actor: globals.actor.clone(),
                    purposes: globals.purposes.clone(),
                    writes: tier == 1,
                    operator: as_operator,
                };
                let expires_at = expires.map(EpochMs::get);
                let made = tokens.create(NewToken { label, grant, expires_at })?;
                let output = &mut context.output;
                let mut told = told(&made.token);
                if let Value::Object(told) = &mut told {
                    told.insert("token".to_owned(), Value::from(made.text.as_str()));
                }
                output.answer(&told, |output| output.line(&made.text))?;
                output.flush()?;
                if !output.is_json() {
                    output
                        .note(&format!("token {}: keep it, it is not shown again", made.token.id));
                }
                Ok(())
            }
            What::List => {
                if !context.globals.store.is_dir() {
                    let message =
                        format!("there is no store at {}", context.globals.store.display());
                    return Err(Error::new(Code::NotFound, message, "name it with --store"));
                }
                let output = &mut context.output;
                for token in tokens.list()? {
                    output.answer(&told(&token), |output| output.line(&line(&token)))?;
                }
                Ok(())
            }
            What::Revoke { id } => {
                let id = id_of(&id);
                let token = tokens.revoke(id)?.ok_or_else(|| {
                    let message = format!("there is no token {id}");
                    Error::new(Code::NotFound, message, "`grain tokens list` shows their ids")
                })?;
                context.output.answer(&told(&token), |output| output.line(&line(&token)))
            }
        }
    }
}

/// The id in what somebody gave: the id, or the whole text of a token.
fn id_of(given: &str) -> &str {
    let id = given.strip_prefix("gst_").and_then(|rest| rest.split('_').next());
    id.unwrap_or(given)
}

/// A token in JSON.
fn told(token: &Token) -> Value {
    json!({
        "id": token.id,
        "label": token.label,
        "tier": u8::from(token.writes),
        "operator": token.operator,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
    })
}

/// A token on a line.
fn line(token: &Token) -> String {
    let time = |ms: i64| format_time(EpochMs::new(ms));
    let may = match (token.operator, token.writes) {
        (true, true) => "operator",
        (true, false) => "operator, reads",
        (false, true) => "writes",
        (false, false) => "reads",
    };
    let ends = match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {}", time(at)),
        (None, Some(at)) => format!("until {}", time(at)),
        (None, None) => "until revoked".to_owned(),
    };
    format!("{}  {may}  made {}  {ends}  {}", token.id, time(token.created_at), token.label)
        .trim_end()
        .to_owned()
}
