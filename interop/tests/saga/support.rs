//! Documents and keys that the tests of SAGA share.

use grainstore::EpochMs;
use grainstore_interop::saga::{BoxKey, Document, WalletKey};
use serde_json::{Value, json};
use std::io::Write as _;

/// 2026-03-20T10:00:00Z.
pub(crate) const NOW: EpochMs = EpochMs::new(1_774_000_800_000);

pub(crate) fn evm() -> WalletKey {
    WalletKey::secp256k1("eip155:8453", &[0x11; 32]).unwrap()
}

pub(crate) fn other_evm() -> WalletKey {
    WalletKey::secp256k1("eip155:8453", &[0x12; 32]).unwrap()
}

pub(crate) fn solana() -> WalletKey {
    WalletKey::ed25519("solana:mainnet", &[0x11; 32]).unwrap()
}

pub(crate) fn box_key() -> BoxKey {
    BoxKey::new([0x31; 32])
}

/// The envelope of the vectors, unsigned, with these layers.
pub(crate) fn envelope(export_type: &str, layers: Value) -> Value {
    let mut value = json!({
        "$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0",
        "documentId": "saga_test0001", "exportedAt": "2026-03-20T10:00:00Z",
        "exportType": export_type,
    });
    value["layers"] = layers;
    value
}

pub(crate) fn identity_of(chain: &str, address: &str) -> Value {
    json!({
        "handle": "aria-chen", "walletAddress": address, "chain": chain,
        "createdAt": "2026-01-15T08:00:00Z",
    })
}

pub(crate) const EVM_ADDRESS: &str = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";
pub(crate) const SOLANA_ADDRESS: &str = "F25s3DdjXdCxYBhh2z8FBusVEMT4b9bGNFVKJi3wFoF4";

pub(crate) fn evm_identity() -> Value {
    identity_of("eip155:8453", EVM_ADDRESS)
}

/// The layers of a document with everything but the vault, and every field of each.
pub(crate) fn full_layers() -> Value {
    serde_json::from_str(include_str!("full.json")).unwrap()
}

/// A signed document.
pub(crate) fn signed(value: Value, key: &WalletKey) -> Document {
    let mut document = Document::from_value(value).unwrap();
    document.sign(key).unwrap();
    document
}

/// A folder or file that is shared beside the checkout, or where `GRAINSTORE_SHARED` points, if it is there.
pub(crate) fn shared(name: &str) -> Option<std::path::PathBuf> {
    let folder = std::env::var("GRAINSTORE_SHARED").unwrap_or_else(|_| "../../shared".to_owned());
    let path = std::path::Path::new(&folder).join(name);
    if !path.exists() {
        // A test says so only where its output is shown.
        let _ = writeln!(std::io::stderr(), "skipped: there is no {}", path.display());
        return None;
    }
    Some(path)
}

/// The official schema, if it is there.
pub(crate) fn official_schema() -> Option<jsonschema::Validator> {
    let text = std::fs::read_to_string(shared("schemas/saga/saga.schema.json")?).unwrap();
    let schema = serde_json::from_str(&text).unwrap();
    Some(jsonschema::options().should_validate_formats(true).build(&schema).unwrap())
}
