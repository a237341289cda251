//! `grain prove`: makes the signatures that invalidation policies ask for, without a store.

use clap::{Args, Subcommand};
use data_encoding::BASE64;
use grainstore::format::cose::proof::cosign;
use grainstore::{ContentAddress, Grain};
use grainstore_rpc::Proved;
use serde_json::json;

use super::keys::KeyOptions;
use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_JSON_BYTES, Source};

/// Sign what an invalidation policy asks a signature for; needs no store for a whole address
#[derive(Debug, Args)]
pub(crate) struct Prove {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Supersede(Supersede),
    /// Sign that a grain is to be contradicted: the proof for `contradict --cose`
    Contradict(About),
    /// Sign that a grain is to be contested: the proof for `set-verification ... contested --cose`
    Contest(About),
    /// Sign that a grain is to be retracted: the proof for `set-verification ... retracted --cose`
    Retract(About),
    /// Sign that the hold on a grain is to be lifted: the proof for `lift-hold --cose`
    LiftHold(About),
}

/// Add your signature to a grain that is to supersede another: its JSON on stdout, your DID on stderr
///
/// The answer has OLD in derived_from and one more entry in supersession_auth. Give it to the next
/// signer, and at last to `grain supersede`. A change of anything else in it makes every signature
/// void, so write supersession_justification into it first where one is needed.
///
/// These signatures count for a quorum. A delegated policy, and a lock that accepts a signature, ask for
/// one around the new grain itself: `grain prove supersede --signed OLD NEW --key-seed FILE >NEW.json`,
/// `grain sign NEW.json --key-seed FILE >NEW.cose`, `grain supersede --format cose OLD NEW.cose`.
#[derive(Debug, Args)]
struct Supersede {
    /// The grain to replace: 64 hex digits, or, with a store, the first 8 or more of them
    #[arg(value_name = "OLD")]
    old: String,
    /// The new grain as JSON; - for stdin
    #[arg(value_name = "FILE|-")]
    source: Source,
    /// The new grain will itself be signed, with `grain sign`, and given with --format cose
    #[arg(long)]
    signed: bool,
    #[command(flatten)]
    key: KeyOptions,
}

/// The proof, a COSE_Sign1 without a payload, goes to stdout, your DID to stderr. With --json both come
/// on stdout, as an object with cose (base64), did and address.
#[derive(Debug, Args)]
struct About {
    /// The grain: 64 hex digits, or, with a store, the first 8 or more of them
    address: String,
    #[command(flatten)]
    key: KeyOptions,
}

impl Prove {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        match self.what {
            What::Supersede(supersede) => supersede.run(context),
            What::Contradict(about) => about.run(Proved::Contradict, context),
            What::Contest(about) => about.run(Proved::Contest, context),
            What::Retract(about) => about.run(Proved::Retract, context),
            What::LiftHold(about) => about.run(Proved::LiftHold, context),
        }
    }
}

impl Supersede {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let key = self.key.read(&mut context.output)?;
        let old = parse_address(&self.old, context)?;
        let json = self.source.read_text(MAX_JSON_BYTES, &mut context.output)?;
        let cosigned = cosign(&old, &Grain::from_json(&json)?, self.signed, &key)?;
        context.output.document(&cosigned.grain)?;
        context.output.flush()?;
        context.output.note(key.did().as_str());
        Ok(())
    }
}

impl About {
    fn run(self, what: Proved, context: &mut Context<'_>) -> Result<()> {
        let key = self.key.read(&mut context.output)?;
        let address = parse_address(&self.address, context)?;
        let (cose, did) = (what.prove(&address, &key)?, key.did());
        let answer = json!({ "cose": BASE64.encode(&cose), "did": did, "address": address });
        context.output.answer(&answer, |output| output.binary(&cose, &[did.as_str()]))
    }
}

/// Parses an address. Only a prefix is looked up in the store.
fn parse_address(digits: &str, context: &Context<'_>) -> Result<ContentAddress> {
    if digits.len() >= 2 * ContentAddress::LEN {
        return Ok(digits.parse()?);
    }
    context.reach()?.address(digits)
}
