//! Envelopes: no bytes are too odd to be judged, what is valid splits around its blob and joins again,
//! and whatever decodes can be signed.
#![no_main]

use grainstore_format::{
    Envelope, Flags, Header, OfflineResolver, SignatureVerdict, SigningKey, sign, verify_detached,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let key = SigningKey::ed25519_from_seed(&[1; 32]);
    if let SignatureVerdict::Valid(_) = verify_detached(bytes, b"message", &OfflineResolver) {
        assert!(bytes.len() > 64, "a proof has a signature");
    }
    if let Ok(envelope) = Envelope::parse(bytes.to_vec()) {
        let _ = (envelope.kid(), envelope.address(), envelope.grain());
        if let SignatureVerdict::Valid(_) = envelope.verify(&OfflineResolver) {
            let blob = envelope.blob().expect("a valid envelope has a blob");
            let (before, after) = envelope.wrapper_parts().expect("in one piece");
            assert_eq!(Envelope::from_parts(before, blob, after).as_ref(), Ok(&envelope));
        }
    }
    if let Ok(envelope) = sign(bytes, &key, Some(1)) {
        assert_eq!(envelope.verify(&OfflineResolver), SignatureVerdict::Valid(key.did()));
        let (header, _) = Header::read(envelope.blob().expect("signed")).expect("a blob");
        assert!(header.flags.contains(Flags::SIGNED));
    }
});
