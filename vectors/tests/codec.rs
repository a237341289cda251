//! Runs every row against `grainstore-format`. A test tells all failing rows at once, and a file
//! that lost rows fails too. It knows no rules: those lie in the rows.

use std::collections::BTreeSet;
use std::fmt::Debug;

use grainstore_format::{Blob, DecodeOptions, Encoding, Error, Grain, GrainRef, PlainBlob};
use grainstore_vectors::{
    AcceptDecodeRow, EncodeRow, LargeRow, RowEncoding, accept_decode_rows, dev_rows, encode_rows,
    large_rows, refuse_decode_rows, refuse_encode_rows,
};

/// Bit 5 of the flags byte: the payload is CBOR (OMS 3.1.1).
const CBOR_FLAG: u8 = 0x20;

/// What a row came to: nothing, or why it fails.
type Outcome<T = ()> = Result<T, Failure>;

/// Why a row fails, for a person.
struct Failure(String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(format!("{}: {error}", error.code()))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

#[test]
fn grains_encode_to_the_exact_bytes_and_read_back() {
    let rows = encode_rows().unwrap();
    report(304, rows.iter().map(|row| (row.name.as_str(), check_encode(row))));
}

#[test]
fn reference_rows_kept_outside_the_project_agree() {
    match dev_rows().unwrap() {
        Some(rows) => report(21, rows.iter().map(|row| (row.name.as_str(), check_bytes(row)))),
        None => println!("skipped: no data/vectors/dev.json; set GRAINSTORE_SHARED to its root"),
    }
}

#[test]
fn large_grains_encode_to_their_size_and_address() {
    let rows = large_rows().unwrap();
    report(14, rows.iter().map(|row| (row.name.as_str(), check_large(row))));
}

#[test]
fn invalid_grains_are_refused_with_the_exact_code() {
    let rows = refuse_encode_rows().unwrap();
    let outcomes = rows.iter().map(|row| {
        let result = encode(&row.grain_text, RowEncoding::MsgPack);
        (row.name.as_str(), check_refusal(result, &row.code))
    });
    report(331, outcomes);
}

#[test]
fn unusual_blobs_are_read() {
    let rows = accept_decode_rows().unwrap();
    report(51, rows.iter().map(|row| (row.name.as_str(), check_accept(row))));
}

#[test]
fn bad_blobs_are_refused_with_the_exact_code() {
    let rows = refuse_decode_rows().unwrap();
    let outcomes = rows
        .iter()
        .map(|row| (row.name.as_str(), check_refusal(Grain::decode(&row.blob), &row.code)));
    report(295, outcomes);
}

#[test]
fn views_of_bad_blobs_read_fields_without_panic() {
    let options = DecodeOptions::default();
    let mut viewed = 0;
    for row in refuse_decode_rows().unwrap() {
        let Ok(open) = PlainBlob::new(&row.blob, &options) else {
            continue;
        };
        viewed += 1;
        for name in ["type", "subject", "context", "content_refs", "supersession_auth", "n", "x"] {
            let _ = open.view().get(name).map(|value| value.to_value());
        }
    }
    assert!(viewed >= 150, "only {viewed} bad blobs could be viewed");
}

fn check_encode(row: &EncodeRow) -> Outcome {
    check_bytes(row)?;
    check_reading(&row.blob, row.decoded())
}

/// The grain encodes to the bytes and the address, and so it does once more after decoding.
fn check_bytes(row: &EncodeRow) -> Outcome {
    let blob = encode(row.grain(), row.encoding)?;
    same("bytes", &hex(blob.bytes()), &hex(&row.blob))?;
    same("address", &blob.address().to_string(), &row.address)?;
    check_reencoding(&row.blob, row.encoding)
}

fn check_large(row: &LargeRow) -> Outcome {
    let blob = encode(&row.grain_text, row.encoding)?;
    same("size", &blob.bytes().len(), &row.size)?;
    same("address", &blob.address().to_string(), &row.address)?;
    let again = Grain::decode(blob.bytes())?.encode(codec(row.encoding))?;
    same("address of the bytes encoded again", &again.address(), &blob.address())
}

fn check_accept(row: &AcceptDecodeRow) -> Outcome {
    check_reading(&row.blob, row.grain())?;
    if !row.exact {
        return Ok(());
    }
    let cbor = row.blob.get(1).is_some_and(|flags| flags & CBOR_FLAG != 0);
    check_reencoding(&row.blob, if cbor { RowEncoding::Cbor } else { RowEncoding::MsgPack })
}

/// The blob decodes to the grain, and a view answers every field as the decoded grain does.
fn check_reading(blob: &[u8], expected: &str) -> Outcome {
    let grain = Grain::decode(blob)?;
    let text = serde_json::to_string(&grain)?;
    same("decoded grain", &json(&text)?, &json(expected)?)?;
    let open = PlainBlob::new(blob, &DecodeOptions::default())?;
    for (name, value) in grain.fields() {
        let seen = open.view().get(name).map(|value| value.to_value());
        same(&format!("view of {name}"), &seen.as_ref(), &Some(value))?;
    }
    same("type of the view", &open.view().grain_type(), &grain.grain_type())
}

fn check_reencoding(blob: &[u8], encoding: RowEncoding) -> Outcome {
    let again = GrainRef::new(blob)?.to_grain()?.encode(codec(encoding))?;
    same("bytes encoded again", &hex(again.bytes()), &hex(blob))
}

fn check_refusal<T>(result: Result<T, Error>, code: &str) -> Outcome {
    match result {
        Ok(_) => Err(Failure(format!("accepted, expected {code}"))),
        Err(error) if error.code() == code => Ok(()),
        Err(error) => Err(Failure(format!("{}, expected {code}: {error}", error.code()))),
    }
}

fn encode(json: &str, encoding: RowEncoding) -> Result<Blob, Error> {
    Grain::from_json(json)?.encode(codec(encoding))
}

fn codec(encoding: RowEncoding) -> Encoding {
    match encoding {
        RowEncoding::MsgPack => Encoding::MessagePack,
        RowEncoding::Cbor => Encoding::Cbor,
    }
}

fn json(text: &str) -> Outcome<serde_json::Value> {
    Ok(serde_json::from_str(text)?)
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

fn same<T: PartialEq + Debug>(what: &str, got: &T, expected: &T) -> Outcome {
    if got == expected {
        return Ok(());
    }
    let message = format!("{what}:\n    got      {got:?}\n    expected {expected:?}");
    Err(Failure(message))
}

/// Fails with every row that failed, with a name used twice, or with fewer rows than there were.
fn report<'a>(least: usize, outcomes: impl Iterator<Item = (&'a str, Outcome)>) {
    let mut names = BTreeSet::new();
    let mut failures = Vec::new();
    for (name, outcome) in outcomes {
        if !names.insert(name) {
            failures.push(format!("{name}: the name is used twice"));
        }
        if let Err(Failure(why)) = outcome {
            failures.push(format!("{name}: {why}"));
        }
    }
    let count = names.len();
    assert!(count >= least, "{count} rows, at least {least} expected");
    let failed = failures.len();
    assert!(failures.is_empty(), "{failed} of {count} rows fail:\n  {}", failures.join("\n  "));
}
