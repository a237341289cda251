//! Runs the rows about signatures and disclosed views against `grainstore-format`. It knows no
//! rules: those lie in the rows.
#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

use std::collections::BTreeSet;

use grainstore_format::{
    ContentAddress, Did, Encoding, Envelope, Grain, Map, OfflineResolver, SignatureVerdict,
    SigningKey, Value, check_revealed, check_view, disclose, disclosure_of, restore_original, sign,
};
use grainstore_vectors::{CoseRow, DiscloseRow, Signed, cose_rows, disclose_rows};

#[test]
fn envelopes_have_the_verdict_of_their_row() {
    let rows = cose_rows().unwrap();
    assert!(rows.len() >= 136, "{} rows", rows.len());
    let names: BTreeSet<_> = rows.iter().map(|row| &row.name).collect();
    assert_eq!(names.len(), rows.len(), "each name once");
    let wrong: Vec<String> = rows.iter().filter_map(|row| verdict(row).err()).collect();
    assert!(wrong.is_empty(), "{} rows fail:\n  {}", wrong.len(), wrong.join("\n  "));
}

fn verdict(row: &CoseRow) -> Result<(), String> {
    let failed = |got: String| Err(format!("{}: {got}", row.name));
    let envelope = Envelope::parse(row.cose.clone());
    let opened = envelope.and_then(|envelope| {
        let address = ContentAddress::of(envelope.blob()?);
        assert_eq!(envelope.address(), address);
        Ok(envelope)
    });
    let envelope = match opened {
        Ok(envelope) => envelope,
        Err(error) if row.code.as_deref() == Some(error.code()) => return Ok(()),
        Err(error) => return failed(format!("{}: {error}", error.code())),
    };
    let verdict = envelope.verify(&OfflineResolver);
    let did = verdict.did().map(Did::as_str);
    if Some(verdict.name()) != row.verdict.as_deref() || did != row.did.as_deref() {
        return failed(format!("{verdict:?}"));
    }
    if row.address.as_ref().is_some_and(|address| *address != envelope.address().to_string()) {
        return failed(format!("address {}", envelope.address()));
    }
    if let SignatureVerdict::Valid(_) = verdict {
        let (before, after) = envelope.wrapper_parts().unwrap();
        let again = Envelope::from_parts(before, envelope.blob().unwrap(), after);
        assert_eq!(again.as_ref(), Ok(&envelope), "{}", row.name);
        envelope.grain().map_err(|error| format!("{}: {error}", row.name))?;
    }
    Ok(())
}

#[test]
fn signing_gives_the_exact_envelope() {
    let mut signed = 0;
    for row in cose_rows().unwrap() {
        let Some(Signed { algorithm, secret, blob, iat }) = row.signed else { continue };
        let secret = secret.try_into().unwrap();
        let key = match algorithm.as_str() {
            "ed25519" => SigningKey::ed25519_from_seed(&secret),
            _ => SigningKey::p256_from_bytes(&secret).unwrap(),
        };
        let envelope = sign(&blob, &key, iat).unwrap();
        assert_eq!(envelope.bytes(), row.cose, "{}", row.name);
        assert_eq!(Some(key.did().as_str()), row.did.as_deref(), "{}", row.name);
        let grain = envelope.grain().unwrap();
        let encoding = grain.decoded_header().unwrap().encoding();
        let again = grain.encode(encoding).unwrap();
        assert_eq!(again.bytes(), envelope.blob().unwrap(), "the flag byte stays: {}", row.name);
        let bare = Grain::decode(envelope.blob().unwrap()).map_err(|error| error.code());
        assert_eq!(bare, Err("ERR_SIGNED_MISMATCH"), "{}", row.name);
        signed += 1;
    }
    assert!(signed >= 31, "{signed} rows");
}

#[test]
fn an_envelope_is_bounded_inside_and_around() {
    let row = cose_rows().unwrap().remove(0);
    let envelope = Envelope::parse(row.cose).unwrap();
    let (before, after) = envelope.wrapper_parts().unwrap();
    let iat = before.windows(5).position(|bytes| bytes == b"\xa1\x63iat").unwrap();
    let around = |padding: usize| {
        let length = u32::try_from(padding).unwrap().to_be_bytes();
        let unprotected = [&[0xa1, 0x63][..], b"pad", &[0x5a], &length, &vec![0; padding]].concat();
        let blob = &before[iat + 10..];
        [&before[..iat], &unprotected, blob, envelope.blob().unwrap(), after].concat()
    };
    let room = Envelope::MAX_WRAPPER_BYTES - (around(0).len() - envelope.blob().unwrap().len());
    let fits = Envelope::parse(around(room)).unwrap();
    assert_eq!(fits.verify(&OfflineResolver).name(), "valid");
    for over in [room + 1, Envelope::MAX_BYTES] {
        let code = Envelope::parse(around(over)).map_err(|error| error.code());
        assert_eq!(code.err(), Some("ERR_TOO_LARGE"), "{over}");
    }
}

#[test]
fn any_bit_of_an_envelope_that_is_flipped_shows() {
    let row = cose_rows().unwrap().remove(0);
    let iat = row.cose.windows(3).position(|bytes| bytes == b"iat").unwrap();
    let mut shown = 0;
    for bit in 0..8 * row.cose.len() {
        let mut bytes = row.cose.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let verdict = Envelope::parse(bytes).map(|envelope| envelope.verify(&OfflineResolver));
        // What is not signed: the time, its name, and the form of what stands around the rest.
        let unsigned = (iat - 2..iat + 8).contains(&(bit / 8)) || bit / 8 == 0;
        if matches!(verdict, Ok(SignatureVerdict::Valid(_))) {
            assert!(unsigned, "bit {bit} of {}", row.cose.len() * 8);
        } else {
            shown += 1;
        }
    }
    assert!(shown > 8 * (row.cose.len() - 12), "{shown}");
}

#[test]
fn views_have_the_exact_bytes_and_lead_back_to_their_grain() {
    let rows = disclose_rows().unwrap();
    assert!(rows.len() >= 13, "{} rows", rows.len());
    for row in &rows {
        leads_back(row);
    }
}

fn leads_back(row: &DiscloseRow) {
    let name = &row.name;
    let view = disclose(&row.blob, &row.hide).unwrap();
    let json: serde_json::Value = serde_json::from_str(row.view()).unwrap();
    assert_eq!(serde_json::to_value(&view).unwrap(), json, "{name}");
    let blob = view.encode(Encoding::MessagePack).unwrap();
    assert_eq!(blob.bytes(), row.view_blob, "{name}");
    assert_eq!(blob.address().to_string(), row.view_address, "{name}");
    let received = Grain::decode(blob.bytes()).unwrap();
    assert_eq!(disclosure_of(&received), Ok(ContentAddress::of(&row.blob)), "{name}");
    assert_eq!(check_view(&received, &row.blob), Ok(()), "{name}");
    let original = Grain::from_json(row.grain()).unwrap();
    let elided = received.map("_elided").cloned().unwrap_or_default();
    let revealed: Map =
        elided.keys().map(|name| (name.clone(), original.get(name).unwrap().clone())).collect();
    for (field, value) in &revealed {
        assert_eq!(check_revealed(&received, field, value), Ok(()), "{name}");
        let other = check_revealed(&received, field, &Value::from("another value"));
        assert_eq!(other.map_err(|error| error.code()), Err("ERR_INTEGRITY"), "{name}");
        let mut without = revealed.clone();
        without.remove(field);
        let refused = restore_original(&received, &without).map_err(|error| error.code());
        assert_eq!(refused.err(), Some("ERR_SCHEMA"), "{name}");
    }
    assert_eq!(restore_original(&received, &revealed).unwrap().bytes(), row.blob, "{name}");
    // Hiding the rest of it later gives the same as hiding all at once.
    let (first, rest) = row.hide.split_at(row.hide.len() / 2);
    let once = disclose(&row.blob, first).unwrap().encode(Encoding::MessagePack).unwrap();
    let twice = disclose(once.bytes(), rest).unwrap().encode(Encoding::MessagePack).unwrap();
    assert_eq!(twice.bytes(), row.view_blob, "{name}");
}
