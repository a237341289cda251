//! The signature of a document: made, and judged.

use serde::Serialize;
use serde_json::{Value, json};

use super::document::Document;
use super::sign::{Signer, invalid, verify_signature};
use super::wallet::Wallet;
use crate::error::{Error, Result};

/// What the signature of a document came to: of [`Document::verify`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SignatureVerdict {
    /// The wallet of the identity layer signed this document.
    Verified,
    /// The wallet signed the text of `signature.message`, which says nothing of the content. Some tools sign so.
    MessageOnly,
    /// Nothing that the wallet signed; the text says why.
    Invalid(String),
}

impl SignatureVerdict {
    /// Refuses what is not good enough to be imported.
    ///
    /// # Errors
    /// `ERR_SIGNATURE`.
    pub(super) fn require(&self, allow_message_only: bool) -> Result<()> {
        match self {
            Self::Verified => Ok(()),
            Self::MessageOnly if allow_message_only => Ok(()),
            Self::MessageOnly => Err(invalid(
                "it is over a message that says nothing of the content",
            )
            .with_hint(
                "ask for a document that is signed as a whole, or allow message-only signatures",
            )),
            Self::Invalid(why) => Err(invalid(why)),
        }
        .map_err(|error| error.in_entry("signature"))
    }
}

impl Document {
    /// Judges its signature: over the canonical form of all but the signature, by the wallet of the identity layer.
    ///
    /// ```
    /// use grainstore_interop::saga::{Document, SignatureVerdict, WalletKey};
    ///
    /// let key = WalletKey::ed25519("solana:mainnet", &[0x11; 32])?;
    /// let mut document = Document::parse(
    ///     br#"{"$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0", "documentId": "saga_a1",
    ///         "exportedAt": "2026-03-20T10:00:00Z", "exportType": "identity", "layers": {"identity": {
    ///         "handle": "aria", "walletAddress": "F25s3DdjXdCxYBhh2z8FBusVEMT4b9bGNFVKJi3wFoF4",
    ///         "chain": "solana:mainnet", "createdAt": "2026-01-15T08:00:00Z"}}}"#,
    /// )?;
    /// document.sign(&key)?;
    /// assert_eq!(document.verify(), SignatureVerdict::Verified);
    /// let changed = document.canonical()?.replace("aria", "ario");
    /// let verdict = Document::parse(changed.as_bytes())?.verify();
    /// assert!(matches!(verdict, SignatureVerdict::Invalid(_)));
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    #[must_use]
    pub fn verify(&self) -> SignatureVerdict {
        match self.verified() {
            Ok(verdict) => verdict,
            Err(error) => {
                let why = error.message();
                let why = why.strip_prefix(super::sign::INVALID).unwrap_or(why);
                SignatureVerdict::Invalid(why.to_owned())
            }
        }
    }

    fn verified(&self) -> Result<SignatureVerdict> {
        let wallet = self.wallet()?;
        let signature = self.get("signature").ok_or_else(|| invalid("there is none"))?;
        let text = |name: &str| signature.get(name).and_then(Value::as_str).unwrap_or_default();
        let signer = Wallet::new(text("chain"), text("walletAddress"))?;
        if signer != wallet {
            return Err(invalid("its wallet is not that of the identity layer"));
        }
        let (sig, message) = (text("sig"), text("message"));
        match verify_signature(&wallet, self.signed_text()?.as_bytes(), sig) {
            Ok(()) => Ok(SignatureVerdict::Verified),
            Err(_) if verify_signature(&wallet, message.as_bytes(), sig).is_ok() => {
                Ok(SignatureVerdict::MessageOnly)
            }
            Err(error) => Err(error),
        }
    }

    /// Signs it, in the place of any signature it has. Whatever changes afterwards makes the signature invalid.
    ///
    /// # Errors
    /// `ERR_KEY` for the key of another wallet than that of its identity layer; the errors of the signer.
    pub fn sign(&mut self, signer: &dyn Signer) -> Result<()> {
        let wallet = self.wallet()?;
        if signer.wallet() != &wallet {
            let message = format!("the key is of {}, the document of {wallet}", signer.wallet());
            return Err(super::sign::bad_key(&message));
        }
        let sig = signer.sign(self.signed_text()?.as_bytes())?;
        let message = format!("SAGA export {} at {}", self.id(), self.text("exportedAt"));
        let signature = json!({
            "walletAddress": wallet.address(), "chain": wallet.chain(), "message": message, "sig": sig,
        });
        self.members_mut().insert("signature".to_owned(), signature);
        match self.verify() {
            SignatureVerdict::Verified => Ok(()),
            _ => Err(Error::new(
                grainstore::ErrorKind::Signature,
                "the signer's signature is not one of its wallet",
            )),
        }
    }
}
