//! Ownership beliefs without a confidence (OMS 12.5.3): read as 1.0, and written with it.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use grainstore_format::{Encoding, Grain, GrainRef, Map, Value, encode_value};

fn belief(relation: &str, namespace: &str) -> String {
    format!(
        r#"{{"type": "belief", "subject": "did:web:bot", "relation": "{relation}", "object": "acme",
            "namespace": "{namespace}", "author_did": "did:web:acme", "created_at": 1000}}"#
    )
}

/// The bytes of the grain without its confidence, as others write it.
fn without_confidence(grain: &Grain) -> Vec<u8> {
    let blob = grain.encode(Encoding::MessagePack).unwrap();
    let short = [
        ("type", "t"),
        ("subject", "s"),
        ("relation", "r"),
        ("object", "o"),
        ("namespace", "ns"),
        ("author_did", "adid"),
        ("created_at", "ca"),
    ];
    let field = |(name, key): (&str, &str)| (key.to_owned(), grain.get(name).unwrap().clone());
    let payload = Value::Map(short.map(field).into_iter().collect::<Map>());
    let header = blob.bytes().get(..9).unwrap();
    [header, &encode_value(&payload, Encoding::MessagePack)].concat()
}

#[test]
fn an_ownership_belief_without_confidence_is_read_as_certain_and_written_so() {
    for relation in ["owned_by", "mg:owned_by"] {
        let grain = Grain::from_json(&belief(relation, "agent:identity")).unwrap();
        assert_eq!(
            grain.get("confidence").and_then(Value::as_f64),
            Some(1.0),
            "who writes puts it"
        );
        let blob = without_confidence(&grain);
        let read = Grain::decode(&blob).unwrap();
        assert_eq!((read.get("confidence"), read.number("confidence")), (None, Some(1.0)));
        assert_eq!(
            read.encode(Encoding::MessagePack).unwrap().bytes(),
            blob,
            "and it stays as it is"
        );
        let single = GrainRef::new(&blob).unwrap();
        assert_eq!(single.number("confidence"), Some(1.0));
    }
    for (relation, namespace) in [("owned_by", "team"), ("likes", "agent:identity")] {
        let refused = Grain::from_json(&belief(relation, namespace)).unwrap_err();
        assert_eq!(refused.code(), "ERR_SCHEMA", "{relation} {namespace}");
    }
}
