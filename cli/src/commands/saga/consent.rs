//! `grain saga consent` and `grain saga agree`: wallets sign what they agree to. They need no store.

use clap::Args;
use grainstore::{Clock, EpochMs, SystemClock};
use grainstore_interop::saga::{Consent, Layer, Operation, transfer_consent};

use super::key::KeyOptions;
use crate::context::Context;
use crate::error::Result;
use crate::text::parse_time;

#[derive(Debug, Args)]
pub(super) struct Consenting {
    /// What it is to: transfer, clone, export, share or backup
    operation: Operation,
    /// A layer that it covers; may be given several times
    #[arg(long = "layer", value_name = "LAYER", required = true)]
    layers: Vec<Layer>,
    /// What the layers are for
    #[arg(long = "for", value_name = "TEXT")]
    what_for: String,
    /// When it ends
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<EpochMs>,
    #[command(flatten)]
    key: KeyOptions,
}

impl Consenting {
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let signer = self.key.signer(&mut context.output)?;
        let consent = Consent {
            operation: self.operation,
            granted_at: SystemClock.now(),
            expires_at: self.until,
            scope: self.layers,
            purpose: self.what_for,
        };
        let record = consent.sign(&signer)?;
        context.output.answer(&record, |output| output.line(&record.to_string()))
    }
}

#[derive(Debug, Args)]
pub(super) struct Agreeing {
    /// The id of the document
    document_id: String,
    /// The address of the destination
    destination: String,
    /// The time that stands in the message, for all parties the same
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: EpochMs,
    #[command(flatten)]
    key: KeyOptions,
}

impl Agreeing {
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let signer = self.key.signer(&mut context.output)?;
        let given = transfer_consent(&signer, &self.document_id, &self.destination, self.at)?;
        context.output.answer(&given, |output| output.line(&given.to_string()))
    }
}
