//! SAGA 1.0: documents and containers that carry an agent, read, judged, signed, redacted, encrypted, and kept in a
//! store.
//!
//! | what | where |
//! |---|---|
//! | a document, its rules and its signature | [`Document`], [`Validation`], [`SignatureVerdict`] |
//! | wallets and their keys | [`Wallet`], [`Signer`], [`WalletKey`], [`verify_signature`] |
//! | containers: a document with its files | [`Container`], [`write_container`] |
//! | encrypted layers | [`Document::encrypt`], [`BoxKey`], [`Recipient`] |
//! | credentials | [`Vault`], [`VaultKey`], [`Secrets`], [`stored_vault`], [`store_vault`] |
//! | what an organization keeps | [`Document::redact`], [`Classifications`], [`Manifest`] |
//! | who agreed to what | [`Consent`], [`TransferConsents`], [`consent_message`], [`transfer_consent`](transfer_consent()) |
//! | a store | [`import_document`], [`import_container`], [`export_document`], [`export_container`] |
//! | clones | [`Document::to_clone`] |
//! | the end of a consent, and of an agent | [`withdraw_consent`], [`erase_agent`] |
//! | exits | [`begin_exit`], [`dispute`], [`resolve_dispute`], [`finalize_exit`] |
//! | transfers | [`transfer_status`], [`freeze`], [`unfreeze`] |
//!
//! Redact, then encrypt, then sign: a signature is over what is written.

mod aes;
mod boxes;
mod classified;
mod classify;
mod clone;
mod consent;
mod container;
mod document;
mod encrypt;
mod erase;
mod exit;
mod export;
mod finding;
mod freeze;
mod fresh;
mod import;
mod keep_vault;
mod kinds;
mod manifest;
mod map;
mod native;
mod redact;
mod rules;
mod schema;
mod shape;
mod sign;
mod signature;
mod store;
mod time;
mod transfer_consent;
mod validate;
mod vault;
mod wallet;
mod withdraw;

pub use boxes::{BoxKey, BoxPublicKey};
pub use classified::{ClassifiedBy, classify_item, stored_classifications};
pub use classify::{Classification, Classifications, ItemType};
pub use clone::{CloneOptions, CloneReport};
pub use consent::{Consent, Operation, consent_message};
pub use container::{Container, ContainerFile, ContainerReport, ContainerVerdict, write_container};
pub use document::{Document, MAX_DOCUMENT_BYTES};
pub use encrypt::Recipient;
pub use erase::{ErasureReport, KeptItem, erase_agent};
pub use exit::{
    Dispute, DisputeDecision, DisputeStatus, ExitKind, ExitOptions, ExitPreview, FinalizeOptions,
    begin_exit, cancel_exit, dispute, exit_preview, finalize_exit, resolve_dispute,
};
pub use export::{
    ExportOptions, ExportReport, TransferRequest, export_container, export_document,
    stored_document,
};
pub use finding::{Finding, Level};
pub use freeze::{TransferStatus, freeze, transfer_status, unfreeze};
pub use import::{ImportOptions, ImportReport, import_container, import_document};
pub use keep_vault::{OldVersions, store_vault, stored_vault, vault_of};
pub use kinds::{ExportType, Layer};
pub use manifest::{Manifest, ManifestEntry, RedactionAction};
pub use redact::{ClassifiedItem, REDACTED_TEXT, RedactOptions};
pub use sign::{Signer, WalletKey, verify_signature};
pub use signature::SignatureVerdict;
pub use store::Counts;
pub use transfer_consent::{TransferConsents, TransferKind, transfer_consent};
pub use validate::{Validation, Verdict};
pub use vault::{
    Grant, LostWrap, NewItem, Permission, Secrets, ShownItem, Vault, VaultKey, VaultType,
};
pub use wallet::Wallet;
pub use withdraw::withdraw_consent;
