//! The rules of a store on the command line: `init --preset`, `policy show`, `policy set`, and what they
//! refuse.
//!
//! `GRAINSTORE_BLESS=1 cargo test -p grainstore-cli --test grain` writes the golden files.

use std::path::Path;

use grainstore::Preset;
use serde_json::{Value, json};

use crate::kit::Place;

fn golden(name: &str, found: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grain/golden");
    let path = folder.join(name);
    if std::env::var_os("GRAINSTORE_BLESS").is_some() {
        assert!(std::fs::write(&path, found).is_ok(), "{}", path.display());
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{}", path.display());
}

fn of_user(object: &str) -> String {
    json!({
        "type": "belief", "subject": "alice", "relation": "prefers", "object": object, "user_id": "u1",
        "confidence": 0.9, "created_at": 1_768_471_200_000_i64,
    })
    .to_string()
}

#[test]
fn policy_show_tells_every_rule_with_its_article_and_way_out() {
    for preset in Preset::all() {
        let shown = Place::empty().grain(&["policy", "show", preset.name()]).done();
        golden(&format!("policy_show_{}.txt", preset.name()), shown.text());
        // A store that holds to it shows the same.
        let place = Place::empty();
        place.grain(&["init", "--preset", preset.name()]).done();
        assert_eq!(place.grain(&["policy", "show"]).done().text(), shown.text());
        let json = place.grain(&["policy", "show", "--json"]).done().json();
        assert_eq!(json["preset"], preset.name());
        for rule in json["rules"].as_array().unwrap() {
            for part in ["id", "article", "because", "fix"] {
                assert!(shown.text().contains(rule[part].as_str().unwrap()), "{rule}");
            }
        }
    }
}

#[test]
fn a_file_of_the_name_of_a_preset_is_a_file() {
    let place = Place::empty();
    std::fs::write(place.path().join("gdpr"), of_user("tea")).unwrap();
    let shown = place.grain(&["policy", "show", "gdpr"]).done();
    assert!(shown.text().starts_with("mode        open"), "{}", shown.text());
}

#[test]
fn what_a_preset_refuses_is_told_with_rule_article_and_fix() {
    let place = Place::empty();
    place.grain(&["init", "--preset", "gdpr"]).done();
    let run = place.feed(&["put"], of_user("tea"));
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_POLICY"));
    assert!(run.err.contains("gdpr.basis (GDPR Art. 6(1))"), "{}", run.err);
    assert!(run.err.contains("set processing_basis"), "{}", run.err);
    let audit = place.grain(&["audit"]).done();
    assert!(audit.text().contains("gdpr.basis"), "{}", audit.text());
}

#[test]
fn policy_set_adds_rules_and_loosens_none_unless_told_to() {
    let place = Place::empty();
    place.grain(&["init", "--preset", "gdpr"]).done();
    std::fs::write(place.path().join("loose.toml"), "drop = [\"gdpr.basis\"]").unwrap();
    let run = place.grain(&["policy", "set", "loose.toml", "--reason", "in the way"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_POLICY"));
    assert!(
        run.err.contains("without gdpr.basis") && run.err.contains("--allow-weaker"),
        "{}",
        run.err
    );
    let run = place.grain(&["policy", "set", "loose.toml"]);
    assert_eq!(run.code, 2, "a reason is wanted");
    let set = ["policy", "set", "loose.toml", "--allow-weaker", "--reason", "agreed", "--json"];
    let changed = place.grain(&set).done().json();
    assert_eq!(changed["loosened"], json!(["without gdpr.basis (GDPR Art. 6(1))"]));
    place.feed(&["put"], of_user("tea")).done();
    let shown = place.grain(&["policy", "show"]).done();
    assert!(shown.text().contains("loosened    without gdpr.basis"), "{}", shown.text());
    let again = place.grain(&["policy", "set", "-", "--reason", "x"]).done();
    assert!(again.text().contains("nothing changed"), "an empty file changes nothing");
    let more =
        place.feed(&["policy", "set", "-", "--reason", "we bill"], "extends = \"sox\"").done();
    assert!(more.text().contains("added     sox.author"), "{}", more.text());
    let audit = place.grain(&["audit", "--json"]).done();
    let entries = audit.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let changes = entries.filter(|entry| entry["operation"] == "preset_changed");
    let decisions: Vec<_> = changes.map(|entry| entry["decision"].clone()).collect();
    assert_eq!(decisions, ["refused", "done", "done"]);
}

#[test]
fn an_export_says_what_it_is_for_where_a_rule_asks() {
    let place = Place::empty();
    place.grain(&["init", "--preset", "hipaa"]).done();
    let grain = of_user("tea").replace('{', "{\"processing_basis\": \"contract\",");
    place.feed(&["put"], grain).done();
    let run = place.grain(&["export", "out.mg"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_POLICY"));
    assert!(run.err.contains("hipaa.minimum-necessary"), "{}", run.err);
    place.grain(&["export", "out.mg", "--purpose", "treatment"]).done();
    let sold = place.grain(&["export", "other.mg", "--purpose", "treatment", "--purpose", "sale"]);
    assert!(sold.err.contains("hipaa.no-sale"), "{}", sold.err);
}

#[test]
fn health_data_goes_into_a_store_with_keys_and_into_no_other() {
    let grain = of_user("tea").replace(
        '{',
        "{\"processing_basis\": \"contract\", \"structural_tags\": [\"phi:diagnosis\"],",
    );
    let plain = Place::empty();
    plain.grain(&["init", "--preset", "hipaa"]).done();
    let run = plain.feed(&["put"], &grain);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_POLICY"));
    assert!(run.err.contains("hipaa.encryption") && run.err.contains("--encrypt"), "{}", run.err);
    let place = Place::empty();
    place.grain(&["init", "--preset", "hipaa", "--encrypt", "--key-file", "key"]).done();
    let address = place.feed(&["put", "--key-file", "key"], &grain).done().line();
    let got = place.grain(&["get", &address, "--key-file", "key"]).done();
    assert!(got.text().contains("phi:diagnosis"), "{}", got.text());
    let shown = place.grain(&["policy", "show", "--key-file", "key"]).done();
    assert!(shown.text().starts_with("preset      hipaa"), "{}", shown.text());
}

#[test]
fn rpc_opens_with_a_preset_and_has_fewer_rows_where_it_says_so() {
    let place = Place::empty();
    let path = place.path().join("s");
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": path, "create": true, "preset": "hipaa" }));
    assert_eq!(rpc.result("policy_show", &json!({}))["preset"], "hipaa");
    for number in 0..25 {
        let grain = json!({
            "type": "belief", "subject": "s", "relation": "r", "object": format!("{number}"),
            "confidence": 1.0, "created_at": 1000 + number,
        });
        rpc.result("put", &json!({ "grain": grain }));
    }
    let rows = |answer: Value| answer["results"].as_array().unwrap().len();
    assert_eq!(rows(rpc.result("query", &json!({}))), 10);
    assert_eq!(
        rows(rpc.result("query", &json!({ "limit": 24 }))),
        24,
        "a limit that is named counts"
    );
    assert_eq!(rpc.refusal("open", &json!({ "path": path, "preset": "sox" })), "ERR_POLICY");
    rpc.result("open", &json!({ "path": path }));
}
