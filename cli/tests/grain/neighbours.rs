//! The commands on neighbouring formats, as a user types them: what they print, and with which code they end.

use std::fs;

use serde_json::json;

use crate::kit::{Place, belief};

const AGENT: &str = "0a1b2c3d-0000-4000-8000-00000000000a";

#[test]
fn an_auditor_verifies_decisions_with_one_command() {
    let place = Place::with_store();
    place.feed(&["put", "-"], belief("alice", "tea")).done();
    place.grain(&["ages", "export", "pack.json"]).done();
    let pack = fs::read_to_string(place.path().join("pack.json")).unwrap();
    let verdict = place.grain(&["ages", "verify", "pack.json"]);
    assert_eq!((verdict.code, verdict.out.as_slice()), (0, &b"VALID\n"[..]));
    fs::write(place.path().join("pack.json"), pack.replace("\"put\"", "\"get\"")).unwrap();
    let verdict = place.grain(&["ages", "verify", "pack.json"]);
    assert_eq!((verdict.code, verdict.out.as_slice()), (1, &b"TAMPERED\n"[..]));
    assert!(verdict.err.contains("check 4, step 2"), "{}", verdict.err);
    // A directory that is not there yet is made, and packs are verified together.
    place.grain(&["ages", "export", "evidence/"]).done();
    let written: Vec<_> = fs::read_dir(place.path().join("evidence")).unwrap().collect();
    let path = written[0].as_ref().unwrap().path();
    let sound = path.to_str().unwrap();
    let both = place.grain(&["ages", "verify", sound, "pack.json"]);
    let told = String::from_utf8(both.out).unwrap();
    assert_eq!((both.code, told), (1, format!("{sound}: VALID\npack.json: TAMPERED\n")));
    assert!(both.err.contains("pack.json: check 4"), "{}", both.err);
    assert_eq!(place.grain(&["ages", "verify", sound, sound]).code, 0);
}

#[test]
fn there_is_a_verdict_on_what_can_be_opened_alone() {
    let place = Place::with_store();
    place.feed(&["put", "-"], belief("alice", "tea")).done();
    place.grain(&["ages", "export", "evidence/"]).done();
    let written = fs::read_dir(place.path().join("evidence")).unwrap().next().unwrap().unwrap();
    let name = format!("evidence/{}", written.file_name().to_str().unwrap());
    // A folder is verified file by file.
    for folder in ["evidence", "evidence/"] {
        let whole = place.grain(&["ages", "verify", folder]).done();
        assert_eq!(whole.text(), format!("{name}: VALID\n"));
    }
    fs::write(place.path().join("evidence/b.ages.json"), "{}").unwrap();
    let whole = place.grain(&["ages", "verify", "evidence"]);
    assert_eq!(
        (whole.code, whole.text()),
        (1, &*format!("evidence/b.ages.json: TAMPERED\n{name}: VALID\n"))
    );
    // What is not there, or holds no file, has no verdict.
    fs::create_dir(place.path().join("empty")).unwrap();
    for (given, code) in [("nothing.json", "ERR_NOT_FOUND"), ("empty", "ERR_NOT_FOUND")] {
        let nothing = place.grain(&["ages", "verify", given]);
        assert_eq!((nothing.code, nothing.text()), (1, ""), "{given}");
        assert!(nothing.err.contains(code) && nothing.err.contains(given), "{}", nothing.err);
        let several = place.grain(&["ages", "verify", &name, given]);
        assert_eq!((several.code, several.text()), (1, &*format!("{name}: VALID\n")));
        assert!(several.err.contains(code) && several.err.contains(given), "{}", several.err);
    }
    let json = place.grain(&["--json", "ages", "verify", &name, "nothing.json"]);
    assert_eq!(json.code, 1);
    let told: serde_json::Value = serde_json::from_slice(&json.out).unwrap();
    assert_eq!(told["packs"][1]["error"]["code"], "ERR_NOT_FOUND");
    assert_eq!(told["packs"][1].get("verdict"), None);
    let empty = place.feed(&["ages", "verify", "-"], "");
    assert_eq!((empty.code, empty.text()), (1, "TAMPERED\n"));
    let mut rpc = place.rpc();
    let missing = json!({ "path": place.path().join("nothing.json") });
    assert_eq!(rpc.refusal("ages_verify", &missing), "ERR_NOT_FOUND");
    assert_eq!(rpc.refusal("ages_verify", &json!({ "path": place.path() })), "ERR_IO");
}

#[test]
fn an_agent_moves_from_store_to_store_in_an_archive() {
    let (from, to) = (Place::with_store(), Place::with_store());
    from.feed(&["put", "-"], belief("alice", "tea")).done();
    let name = ["--agent-id", AGENT, "--agent-name", "Ada", "--native"];
    from.grain(&[&["alf", "export", "ada.alf"][..], &name].concat()).done();
    from.grain(&["alf", "validate", "ada.alf"]).done();
    let archive = from.path().join("ada.alf");
    let archive = archive.to_str().unwrap();
    let dry = to.grain(&["alf", "import", archive, "--dry-run"]).done();
    assert!(dry.text().starts_with("nothing written; would be: 1 records"), "{}", dry.text());
    let report = to.grain(&["--json", "alf", "import", archive]).done().json();
    assert_eq!(report["records"]["created"], 1);
    let again = to.grain(&["--json", "alf", "import", archive]).done().json();
    assert_eq!(
        (&again["records"]["created"], &again["records"]["unchanged"]),
        (&json!(0), &json!(1))
    );
    let asked = r#"RECALL beliefs WHERE subject = "alice" AS text"#;
    assert_eq!(to.grain(&["cal", asked]).done().out, from.grain(&["cal", asked]).done().out);
    to.grain(&["verify"]).done();

    let nobody = ["--agent-id", AGENT, "--of-user", "0a1b2c3d-0000-4000-8000-0000000000ff"];
    let nobody = from.grain(&[&["alf", "export", "one.alf"][..], &nobody].concat());
    assert!(nobody.code == 1 && nobody.err.contains("ERR_NOT_FOUND"), "{}", nobody.err);
    let mut hers = belief("ann", "figs");
    hers.insert_str(1, r#""user_id": "ann", "#);
    from.feed(&["put", "-"], hers).done();
    let export = ["--json", "alf", "export", "one.alf", "--agent-id", AGENT];
    let left = from.grain(&export).done().json();
    assert_eq!((&left["records"], &left["native_left_out"]), (&json!(1), &json!(1)));
    from.grain(&[&export[..], &["--native"]].concat()).done();
    let one = from.grain(&[&export[..], &["--of-user", "ann"]].concat()).done().json();
    assert_eq!(one["records"], 1);
    let one = from.path().join("one.alf");
    let mirrored = to.grain(&["alf", "import", one.to_str().unwrap(), "--mirror"]);
    assert!(mirrored.code == 1 && mirrored.err.contains("ERR_CONFLICT"), "{}", mirrored.err);

    fs::write(to.path().join("cut.alf"), &fs::read(archive).unwrap()[..200]).unwrap();
    let cut = to.grain(&["alf", "validate", "cut.alf"]);
    assert_eq!(cut.code, 1, "{}", cut.err);
    let cut = to.grain(&["alf", "import", "cut.alf"]);
    assert!(cut.code == 1 && cut.err.contains("ERR_CORRUPT"), "{}", cut.err);
}

#[test]
fn what_another_tool_remembers_comes_in_once() {
    let place = Place::with_store();
    let memories = json!({ "results": [{
        "id": "m1", "memory": "Prefers tea", "user_id": "ann", "created_at": "2026-01-02T09:00:00Z",
    }] });
    fs::write(place.path().join("memories.json"), memories.to_string()).unwrap();
    let migrate = ["--json", "migrate", "mem0", "memories.json"];
    let dry = place.grain(&[&migrate[..], &["--dry-run"]].concat()).done().json();
    assert_eq!((&dry["dry_run"], &dry["added"]), (&json!(true), &json!(1)));
    assert_eq!(place.grain(&migrate).done().json()["added"], 1);
    assert_eq!(place.grain(&migrate).done().json()["unchanged"], 1);
    let other = place.grain(&["migrate", "letta", "memories.json"]);
    assert!(other.code == 1 && other.err.contains("`mem0`"), "{}", other.err);
    let about = ["--user", "bob", "--json", "migrate", "mem0", "memories.json"];
    assert_eq!(place.grain(&about).done().json()["added"], 1);
    let empty = place.grain(&["migrate", "mem0", "none.json"]);
    assert!(empty.code != 0 && !empty.err.contains("namespace"), "{}", empty.err);
}

#[test]
fn an_older_dump_comes_in_when_it_is_asked_for() {
    let place = Place::with_store();
    let write = |text: &str, updated: &str| {
        let memories = json!([{
            "id": "m1", "memory": text, "created_at": "2026-01-02T09:00:00Z", "updated_at": updated,
        }]);
        fs::write(place.path().join("memories.json"), memories.to_string()).unwrap();
    };
    write("Prefers tea", "2026-03-02T09:00:00Z");
    let migrate = ["--json", "migrate", "mem0", "memories.json"];
    assert_eq!(place.grain(&migrate).done().json()["added"], 1);
    write("Prefers coffee", "2026-02-02T09:00:00Z");
    let report = place.grain(&migrate).done().json();
    assert_eq!(report["left_out_why"], json!({"it is older than what is here": 1}));
    let asked = [&migrate[..], &["--allow-older"]].concat();
    assert_eq!(place.grain(&asked).done().json()["changed"], 1);

    let mut rpc = place.rpc_with_store();
    let params = json!({"format": "mem0", "path": place.path().join("memories.json")});
    write("Prefers tea", "2026-03-02T09:00:00Z");
    assert_eq!(rpc.result("migrate", &params)["added"], 1);
    write("Prefers coffee", "2026-02-02T09:00:00Z");
    assert_eq!(rpc.result("migrate", &params)["left_out"], 1);
    let mut asked = params;
    asked["allow_older"] = json!(true);
    assert_eq!(rpc.result("migrate", &asked)["changed"], 1);
}

#[test]
fn evidence_is_of_no_user() {
    let place = Place::with_store();
    place.put(&belief("alice", "tea"));
    for arguments in
        [&["--user", "bob", "ages", "export", "p.json"][..], &["--user", "bob", "ages", "segments"]]
    {
        let run = place.grain(arguments);
        assert!(run.code == 1 && run.err.contains("ERR_ACCESS"), "{arguments:?}: {}", run.err);
    }
    assert!(!place.path().join("p.json").exists());
}
