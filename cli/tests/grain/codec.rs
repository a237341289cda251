//! Every vector through the program: `grain encode` and `grain decode`, and their methods of rpc.

use data_encoding::{BASE64, HEXLOWER};
use grainstore::Grain;
use grainstore_vectors::{
    EncodeRow, RowEncoding, accept_decode_rows, dev_rows, encode_rows, refuse_decode_rows,
    refuse_encode_rows,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::kit::{Place, refusal};

fn name(encoding: RowEncoding) -> &'static str {
    match encoding {
        RowEncoding::MsgPack => "msgpack",
        RowEncoding::Cbor => "cbor",
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// A grain as JSON in canonical form: foreign rows tell it as it was offered.
fn canonical(json: &str) -> Value {
    serde_json::to_value(Grain::from_json(json).unwrap()).unwrap()
}

/// JSON text on one line. A newline between tokens means what a space does.
fn on_one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

/// Encodes and decodes a row both ways.
fn check(rows: &[EncodeRow]) {
    let place = Place::empty();
    let mut rpc = place.rpc();
    for row in rows {
        let encoding = name(row.encoding);
        let run = place.feed(&["encode", "--encoding", encoding], row.grain()).done();
        assert_eq!(HEXLOWER.encode(&run.out), HEXLOWER.encode(&row.blob), "{}", row.name);
        assert_eq!(run.err, format!("{}\n", row.address), "{}", row.name);

        let params = format!(r#"{{"grain":{},"encoding":"{encoding}"}}"#, on_one_line(row.grain()));
        let answer = rpc.call_text("encode", &params)["result"].clone();
        let expected = json!({ "address": row.address, "blob": BASE64.encode(&row.blob) });
        assert_eq!(answer, expected, "{}", row.name);

        let decoded = place.feed(&["decode"], &row.blob).done().json();
        let header = &row.blob[..9];
        let expected = json!({
            "address": row.address,
            "header": {
                "version": header[0], "flags": header[1], "type": header[2],
                "ns_hash": u16::from_be_bytes([header[3], header[4]]),
                "created_at_sec": u32::from_be_bytes(header[5..].try_into().unwrap()),
            },
            "encoding": encoding,
            "grain": canonical(row.decoded()),
        });
        assert_eq!(decoded, expected, "{}", row.name);
        let blob = BASE64.encode(&row.blob);
        assert_eq!(rpc.result("decode", &json!({ "blob": blob })), expected, "{}", row.name);
    }
}

#[test]
fn every_reference_row_comes_out_to_the_byte() {
    match dev_rows().unwrap() {
        Some(rows) => {
            assert!(rows.len() >= 21);
            check(&rows);
        }
        None => println!("skipped: no vectors/dev.json under GRAINSTORE_SHARED or ../shared/data"),
    }
}

#[test]
fn rows_of_our_own_come_out_to_the_byte() {
    // One program start a row: a sample is enough here, the codec's own tests run them all.
    let rows: Vec<_> = encode_rows().unwrap().into_iter().step_by(8).collect();
    assert!(!rows.is_empty());
    check(&rows);
}

#[test]
fn every_text_that_is_no_grain_is_refused_with_its_code() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let (mut refused, mut not_json) = (0, 0);
    for row in refuse_encode_rows().unwrap() {
        let is_json = serde_json::from_str::<&RawValue>(&row.grain_text).is_ok();
        if !is_json && row.grain_text.contains('\n') {
            // Cut in two, neither half is a request.
            continue;
        }
        let response = rpc.ask(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"encode","params":{{"grain":{}}}}}"#,
            on_one_line(&row.grain_text)
        ));
        if is_json {
            assert_eq!(refusal(&response), row.code, "{}", row.name);
            refused += 1;
        } else {
            // The whole line is not JSON then, or a request of another shape.
            assert_eq!(row.code, "ERR_CORRUPT", "{}", row.name);
            let code = response["error"]["code"].as_i64();
            assert!(matches!(code, Some(-32700 | -32602)), "{}: {response}", row.name);
            not_json += 1;
        }
    }
    assert!(refused > 300 && not_json > 5, "{refused} and {not_json} rows");
}

#[test]
fn every_command_line_refusal_has_the_same_code() {
    let place = Place::empty();
    for row in refuse_encode_rows().unwrap().into_iter().step_by(10) {
        let run = place.feed(&["encode"], &row.grain_text);
        assert_eq!((run.code, run.error_code()), (1, row.code), "{}", row.name);
        assert!(run.out.is_empty(), "{}", row.name);
    }
}

#[test]
fn every_blob_is_read_or_refused_with_its_code() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let accepted = accept_decode_rows().unwrap();
    let refused = refuse_decode_rows().unwrap();
    assert!(!accepted.is_empty() && !refused.is_empty());
    for row in accepted {
        let answer = rpc.result("decode", &json!({ "blob": BASE64.encode(&row.blob) }));
        assert_eq!(answer["grain"], parsed(row.grain()), "{}", row.name);
    }
    for row in refused {
        let params = json!({ "blob": BASE64.encode(&row.blob) });
        assert_eq!(rpc.refusal("decode", &params), row.code, "{}", row.name);
    }
}

#[test]
fn json_output_holds_the_address_and_the_blob() {
    let place = Place::empty();
    let run = place.feed(&["encode", "--json"], crate::kit::belief("a", "b")).done();
    let encoded = run.json();
    assert_eq!(run.err, "");
    let blob = BASE64.decode(encoded["blob"].as_str().unwrap().as_bytes()).unwrap();
    let decoded = place.feed(&["decode", "--json"], blob).done();
    assert_eq!(decoded.text().lines().count(), 1);
    assert_eq!(decoded.json()["address"], encoded["address"]);
}
