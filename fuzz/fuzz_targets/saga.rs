//! SAGA documents: no bytes make reading and judging panic; what is read is written the same again; and a document that is
//! signed is imported or refused, and exported again.
//!
//! The document is given to a known wallet and signed by it first, so that a mutation reaches what lies behind the signature.
#![no_main]

use grainstore::EpochMs;
use grainstore::prelude::*;
use grainstore_interop::saga::{
    Document, ExportOptions, ImportOptions, SignatureVerdict, Signer, WalletKey, export_document, import_document,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = Document::parse(bytes) else { return };
    let now = EpochMs::new(1_774_000_800_000);
    document.validate(now);
    let Ok(written) = document.canonical() else { return };
    let again = Document::parse(written.as_bytes()).expect("what was written is read");
    assert_eq!(again.canonical().expect("it is written again"), written);

    let key = WalletKey::ed25519("solana:mainnet", &[0x11; 32]).expect("a key");
    let mut value = again.to_value();
    let Some(identity) = value.pointer_mut("/layers/identity").filter(|found| found.is_object()) else {
        return;
    };
    identity["chain"] = key.wallet().chain().into();
    identity["walletAddress"] = key.wallet().address().into();
    let Ok(mut document) = Document::from_value(value) else { return };
    if document.sign(&key).is_err() {
        return;
    }
    assert_eq!(document.verify(), SignatureVerdict::Verified);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).expect("a store");
    let session = store.session(SessionOptions::default());
    if import_document(&session, &document, &ImportOptions::default()).is_ok() {
        let (exported, _) = match export_document(&session, &ExportOptions::default(), &key) {
            Ok(exported) => exported,
            // A consent of the document, or a part that must be encrypted, may stand against it.
            Err(_) => return,
        };
        assert_eq!(exported.verify(), SignatureVerdict::Verified);
    }
});
