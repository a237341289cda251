//! `grain verify-signature`: verifies a signed grain, without a store.

use clap::Args;
use grainstore::format::SignatureVerdict;
use grainstore_rpc::VerdictAnswer;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::{MAX_COSE_BYTES, Source};

/// Verify a signed grain (COSE_Sign1): valid and by whom, invalid, or unverifiable; needs no store
///
/// The key lies in the signer's DID (did:key), or --did-documents or --did-resolver tell it. The exit code is 0 for a valid signature alone.
#[derive(Debug, Args)]
pub(crate) struct VerifySignature {
    /// What to read; - or nothing for stdin
    #[arg(value_name = "FILE|-", default_value = "-")]
    source: Source,
}

impl VerifySignature {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let cose = self.source.read(MAX_COSE_BYTES, &mut context.output)?;
        let answer = match context.resolver()? {
            Some(resolver) => VerdictAnswer::by(cose, &*resolver)?,
            None => VerdictAnswer::of(cose)?,
        };
        let name = answer.verdict.name();
        let did = answer.verdict.did().map(|did| format!(" {did}")).unwrap_or_default();
        context.output.answer(&answer, |output| output.line(&format!("{name}{did}")))?;
        context.output.flush()?;
        match answer.verdict {
            SignatureVerdict::Valid(_) => Ok(()),
            SignatureVerdict::Invalid(reason) => {
                let hint = "ask the signer for the envelope as it was signed";
                Err(Error::new(Code::Signature, format!("invalid: {reason}"), hint))
            }
            SignatureVerdict::Unverifiable(reason) => {
                let hint = "a host that can find the key may verify it";
                Err(Error::new(Code::Signature, format!("unverifiable: {reason}"), hint))
            }
        }
    }
}
