//! Views that lie, and fields that may not be hidden (OMS 10).
#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

use grainstore_format::fields::{ELIDABLE, FIELDS};
use grainstore_format::{
    Encoding, Grain, Map, SigningKey, Value, check_revealed, check_view, disclose, disclosure_of,
    is_disclosed_view, restore_original, sign,
};

fn original() -> Vec<u8> {
    let grain = Grain::from_json(
        r#"{"type": "belief", "subject": "alice", "relation": "r", "object": "o", "confidence": 1,
            "user_id": "alice-1", "namespace": "hr", "created_at": 1737000000000}"#,
    );
    grain.unwrap().encode(Encoding::MessagePack).unwrap().into_bytes()
}

fn changed(view: &Grain, change: impl FnOnce(&mut Map)) -> Grain {
    let mut fields = view.fields().clone();
    change(&mut fields);
    Grain::from_fields(fields).unwrap()
}

#[test]
fn fields_the_standard_does_not_list_are_not_hidden() {
    let blob = original();
    for def in FIELDS.iter().filter(|def| !ELIDABLE.contains(&def.name)) {
        let refused = disclose(&blob, &[def.name]).map_err(|error| error.code());
        assert_eq!(refused.err(), Some("ERR_SCHEMA"), "{}", def.name);
    }
    for name in ["user", "s", "nonsense", ""] {
        assert!(disclose(&blob, &["user_id", name]).is_err(), "{name:?}");
    }
    for name in ELIDABLE {
        assert!(disclose(&blob, &[name]).is_ok(), "{name}");
    }
}

#[test]
fn a_view_that_lies_is_told_from_one_that_does_not() {
    let blob = original();
    let view = disclose(&blob, &["user_id", "namespace"]).unwrap();
    assert!(is_disclosed_view(&view) && !is_disclosed_view(&Grain::decode(&blob).unwrap()));
    assert_eq!(check_view(&view, &blob), Ok(()));
    let hash = |byte: &str| Value::from(format!("sha256:{}", byte.repeat(32)));
    let elided = |name: &'static str, value: Value| {
        move |fields: &mut Map| {
            let Some(Value::Map(elided)) = fields.get_mut("_elided") else { return };
            elided.insert(name.to_owned(), value);
        }
    };
    let lies = [
        changed(&view, |fields| drop(fields.insert("object".into(), Value::from("other")))),
        changed(&view, |fields| drop(fields.insert("importance".into(), Value::from(0.5)))),
        changed(&view, |fields| drop(fields.insert("user_id".into(), Value::from("alice-1")))),
        changed(&view, |fields| drop(fields.insert("_disclosure_of".into(), hash("ab")))),
        changed(&view, elided("user_id", hash("ab"))),
        changed(&view, elided("context", hash("ab"))),
        changed(&view, |fields| drop(fields.remove("_elided"))),
    ];
    for (at, lie) in lies.iter().enumerate() {
        let refused = check_view(lie, &blob).map_err(|error| error.code());
        assert_eq!(refused, Err("ERR_INTEGRITY"), "lie {at}");
    }
    let plain = Grain::decode(&blob).unwrap();
    assert_eq!(check_view(&plain, &blob).map_err(|error| error.code()), Err("ERR_SCHEMA"));
    let bare = changed(&view, |fields| {
        let Some(Value::Str(of)) = fields.get_mut("_disclosure_of") else { return };
        *of = of.replace("sha256:", "");
    });
    assert_eq!(disclosure_of(&bare), disclosure_of(&view), "readers take it without its prefix");
    assert_eq!(check_view(&bare, &blob), Ok(()));
}

#[test]
fn a_grain_is_restored_only_from_what_was_hidden() {
    let blob = original();
    let revealed: Map = [("user_id", "alice-1"), ("namespace", "hr")]
        .map(|(name, value)| (name.to_owned(), Value::from(value)))
        .into();
    let key = SigningKey::ed25519_from_seed(&[1; 32]);
    let signed = sign(&blob, &key, None).unwrap();
    for original in [&blob[..], signed.blob().unwrap()] {
        let view = disclose(original, &["user_id", "namespace"]).unwrap();
        assert_eq!(restore_original(&view, &revealed).unwrap().bytes(), original);
        // The view as JSON has no header to go by.
        let json = Grain::from_json(&serde_json::to_string(&view).unwrap()).unwrap();
        assert_eq!(restore_original(&json, &revealed).unwrap().bytes(), original);
        let lie = changed(&view, |fields| drop(fields.insert("object".into(), Value::from("x"))));
        let refused = restore_original(&lie, &revealed).map_err(|error| error.code());
        assert_eq!(refused.err(), Some("ERR_INTEGRITY"));
        let shown = check_revealed(&view, "subject", &Value::from("alice"));
        assert_eq!(shown.map_err(|error| error.code()), Err("ERR_SCHEMA"), "it is not hidden");
    }
}
