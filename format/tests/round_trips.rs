//! Properties of the codec over random grains and random bytes: one grain, one encoding, one address.

#![expect(clippy::indexing_slicing, reason = "a test may stop at a surprise")]

use std::collections::BTreeMap;

use grainstore_format::{Encoding, Grain, GrainRef, Map, Value};
use proptest::prelude::*;

/// Text from every corner that matters: ASCII, composed and combining, wide, empty.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z_]{0,12}",
        2 => "[ -~]{0,40}",
        1 => "\\PC{0,12}",
        1 => Just("e\u{301}t\u{e9}".to_owned()),
    ]
    .prop_map(|s| s.replace('\u{feff}', ""))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-300_i64..300).prop_map(Value::from),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::from),
        prop_oneof![Just(0.0), Just(-0.0), Just(1.5), Just(65504.0)].prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(prop_oneof![9 => inner.clone(), 1 => Just(Value::Null)], 0..5)
                .prop_map(Value::Array),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..5).prop_map(Value::Map),
        ]
    })
}

/// Belief, event, state or goal with unknown fields beside the known ones.
fn fields() -> impl Strategy<Value = Map> {
    let known = (text(), text(), 0.0..=1.0_f64, 0..4_294_967_295_999_i64, text());
    let extra = prop::collection::btree_map("x_[a-z]{1,4}", value(), 0..5);
    let tags = prop::collection::vec("(pii:|phi:|reg:|)[a-z]{1,5}", 0..4);
    (0..4_usize, known, extra, tags, value()).prop_map(|(kind, known, extra, tags, open)| {
        let (subject, object, confidence, created_at, namespace) = known;
        let mut map: BTreeMap<String, Value> = extra;
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("subject", format!("s{subject}").into());
        put("relation", "prefers".into());
        put("object", object.into());
        put("created_at", created_at.into());
        put("namespace", namespace.into());
        put("structural_tags", tags.into());
        put("confidence", confidence.into());
        put("context", Value::Map(Map::from([("k".to_owned(), open)])));
        put("type", ["belief", "event", "state", "goal"][kind].into());
        put("description", "d".into());
        put("goal_state", "active".into());
        map
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_encoding_gives_the_grain_back(fields in fields()) {
        let grain = Grain::from_fields(fields).unwrap();
        for encoding in [Encoding::MessagePack, Encoding::Cbor] {
            let blob = grain.encode(encoding).unwrap();
            let decoded = Grain::decode(blob.bytes()).unwrap();
            prop_assert_eq!(decoded.fields(), grain.fields());
            prop_assert_eq!(decoded.encode(encoding).unwrap(), blob);
        }
        let json = serde_json::to_string(&grain).unwrap();
        prop_assert_eq!(Grain::from_json(&json).unwrap(), grain);
    }

    #[test]
    fn a_view_reads_what_decoding_reads(fields in fields()) {
        let grain = Grain::from_fields(fields).unwrap();
        for encoding in [Encoding::MessagePack, Encoding::Cbor] {
            let blob = grain.encode(encoding).unwrap();
            let view = GrainRef::new(blob.bytes()).unwrap();
            for (name, value) in grain.fields() {
                prop_assert_eq!(&view.get(name).unwrap().to_value(), value);
            }
            prop_assert!(view.get("x_absent").is_none());
            prop_assert_eq!(view.time(), grain.time());
            prop_assert_eq!(view.to_grain().unwrap(), Grain::decode(blob.bytes()).unwrap());
        }
    }

    #[test]
    fn whatever_is_accepted_re_encodes_to_the_same_bytes(
        fields in fields(),
        cbor in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let encoding = if cbor { Encoding::Cbor } else { Encoding::MessagePack };
        let mut bytes = Grain::from_fields(fields).unwrap().encode(encoding).unwrap().into_bytes();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        // A compressed or encrypted payload has no canonical outer form.
        if let Ok(grain) = Grain::decode(&bytes) && bytes[1] & 0b110 == 0 {
            let encoding =
                if bytes[1] & 0b10_0000 != 0 { Encoding::Cbor } else { Encoding::MessagePack };
            prop_assert_eq!(grain.encode(encoding).unwrap().into_bytes(), bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Grain::decode(&bytes);
        if bytes.len() > 3 {
            (bytes[0], bytes[1], bytes[2]) = (1, bytes[1] & 0x20, bytes[2] % 12);
            let _ = Grain::decode(&bytes);
            if let Ok(view) = GrainRef::new(&bytes) {
                let _ = view.get("context").map(|v| v.to_value());
            }
        }
        let _ = Grain::from_json(&String::from_utf8_lossy(&bytes));
    }
}
