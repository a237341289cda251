//! Tests of the presets as data: their contents, what a change loosens, and that only data differs between
//! them.

use crate::disk::layout::PlainEnvelope;
use std::path::Path;

use super::*;
use crate::base::error::ErrorKind;

fn kept(name: &str) -> StoredRules {
    StoredRules::of(Preset::from_name(name).unwrap())
}

#[test]
fn every_preset_reads_and_has_the_rules_of_the_standard() {
    let open = Preset::default().rules().unwrap();
    assert_eq!((open.preset, open.rules.len()), ("open", 11));
    for preset in Preset::all() {
        let rules = preset.rules().unwrap_or_else(|error| panic!("{}: {error}", preset.name()));
        assert_eq!(rules.rules.get(..11), Some(&open.rules[..]), "{}", preset.name());
        let own = rules.rules.iter().skip(11);
        for rule in own {
            assert!(rule.id.starts_with(&format!("{}.", preset.name())), "{}", rule.id);
        }
        assert!(rules.settings.erasure_sla_days.value <= 30, "OMS 23.2");
    }
}

/// Names of presets are in their files and the table alone: no code tests for a regulation.
#[test]
fn no_code_names_a_preset_but_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names: Vec<_> = Preset::all().map(Preset::name).filter(|name| *name != "open").collect();
    let mut looked = 0;
    let mut folders =
        ["engine/src", "rpc/src", "cli/src", "cal/src"].map(|folder| root.join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            match path.is_dir() {
                true => folders.push(path),
                false if is_rust && !path.ends_with("preset/builtin.rs") => {
                    looked += 1;
                    let text = std::fs::read_to_string(&path).unwrap();
                    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                    let is_test = path.to_string_lossy().contains("tests");
                    // Examples in doc comments are what a host writes.
                    let is_code = |line: &&str| !line.trim_start().starts_with("//");
                    for name in names.iter().filter(|_| !is_test) {
                        let quoted = format!("\"{name}");
                        let said = code.lines().filter(is_code).any(|line| line.contains(&quoted));
                        assert!(!said, "{} names the preset {name}", path.display());
                    }
                }
                false => {}
            }
        }
    }
    assert!(looked > 100, "{looked} files");
}

/// The rules of a row of the meta table.
fn opened(row: &[u8]) -> crate::Result<StoredRules> {
    StoredRules::from_json(PlainEnvelope::open(0, row)?)
}

#[test]
fn what_is_kept_of_rules_has_these_bytes_and_is_read_back() {
    let change = kept("gdpr").extended(r#"drop = ["gdpr.balancing"]"#).unwrap().unwrap();
    let row = PlainEnvelope::seal(0, &change.kept.to_json().unwrap());
    let json = r#"{"name":"gdpr","overrides":[{"settings":{},"drop":["gdpr.balancing"]}]}"#;
    assert_eq!(change.kept.to_json().unwrap(), json.as_bytes());
    assert_eq!(row[..2], [1, 0], "version and protection of an envelope");
    assert_eq!(opened(&row).unwrap(), change.kept);
    for at in 0..row.len() {
        let mut other = row.clone();
        other[at] ^= 1;
        assert!(opened(&other).is_err() && opened(&row[..at]).is_err(), "{at}");
    }
}

/// A store opens although a later version of a preset lacks a dropped rule or has gained a list.
#[test]
fn what_was_taken_once_is_read_whatever_became_of_the_preset() {
    let json = r#"{"name":"gdpr","overrides":[{"settings":{},"drop":["gdpr.long-gone"],
        "lists":{"health":["phi:own"]}}]}"#;
    let rules = StoredRules::from_json(json.as_bytes()).unwrap().rules().unwrap();
    assert_eq!(rules.rules, Preset::from_name("gdpr").unwrap().rules().unwrap().rules);
    let unknown = StoredRules::from_json(br#"{"name":"pipl"}"#).unwrap();
    assert_eq!(unknown.rules().unwrap_err().code(), "ERR_STORE_VERSION");
}

/// A change, what it loosens and what it adds.
#[test]
fn what_a_change_loosens_is_found_and_named() {
    let rule = r#"[[rule]]
        id = "own.author"
        on = ["put"]
        require = { has = ["author_did"] }
        article = "house rule 1"
        because = "somebody made it"
        fix = "set author_did"
    "#;
    let other = rule.replace("own.author", "gdpr.basis");
    for (file, loosened, added) in [
        ("", vec![], vec![]),
        (rule, vec![], vec!["own.author"]),
        (r#"settings.query_limit = { value = 10, article = "house" }"#, vec![], vec![]),
        (
            r#"settings.query_limit = { value = 90, article = "house" }"#,
            vec!["query_limit from 50 (GDPR Art. 5(1)(c)) to 90"],
            vec![],
        ),
        (
            r#"settings.encrypt = { value = "sensitive", article = "house" }"#,
            vec!["encrypt from users (GDPR Art. 32(1)(a)) to sensitive"],
            vec![],
        ),
        (r#"settings.encrypt = { value = "everything", article = "house" }"#, vec![], vec![]),
        (
            r#"settings.user_may_erase = { value = false, article = "house" }"#,
            vec!["user_may_erase from true (GDPR Art. 17(1)) to false"],
            vec![],
        ),
        (r#"drop = ["gdpr.basis"]"#, vec!["without gdpr.basis (GDPR Art. 6(1))"], vec![]),
        (&other, vec!["another gdpr.basis (GDPR Art. 6(1))"], vec![]),
    ] {
        let change = kept("gdpr").extended(file).unwrap();
        let told = change.map(|change| (change.loosened, change.added)).unwrap_or_default();
        assert_eq!(told.0, loosened, "{file}");
        assert_eq!(told.1, added, "{file}");
    }
}

#[test]
fn a_further_preset_loosens_nothing_and_its_stricter_settings_hold() {
    let change = kept("gdpr").extended(r#"extends = "sox""#).unwrap().unwrap();
    assert!(change.loosened.is_empty(), "{:?}", change.loosened);
    let rules = change.rules;
    assert_eq!((rules.preset, rules.also.as_slice()), ("gdpr", &["sox"][..]));
    assert_eq!(rules.settings.minimum_retention_years.value, 7);
    assert_eq!(rules.settings.minimum_retention_years.article, "17 CFR 210.2-06(a)");
    assert!(rules.settings.user_may_erase.value, "a right that one gives stays");
    let ids: Vec<_> = rules.rules.iter().map(|rule| rule.id).collect();
    assert!(ids.contains(&"gdpr.basis") && ids.contains(&"sox.author"));
    assert_eq!(ids.iter().filter(|id| **id == "oms.phi-basis").count(), 1);
    let both = kept("gdpr").extended(r#"extends = "hipaa""#).unwrap().unwrap().rules;
    assert_eq!(both.settings.encrypt.value, EncryptionScope::Everything, "users and sensitive");
    let again = change.kept.extended(r#"extends = "sox""#).unwrap();
    assert_eq!(again, None, "it holds already");
}

#[test]
fn json_of_the_same_shape_is_the_same_file() {
    let toml = r#"
        drop = ["gdpr.balancing"]
        [[rule]]
        id = "own.rule"
        on = ["put", "export"]
        when = { tag = ["@direct_identifiers"], equals = { user_id = ["a", 1, true] } }
        forbid = true
        article = "a"
        because = "b"
        fix = "c"
    "#;
    let json = r#"{"drop": ["gdpr.balancing"], "rule": [{"id": "own.rule", "on": ["put", "export"],
        "when": {"tag": ["@direct_identifiers"], "equals": {"user_id": ["a", 1, true]}},
        "forbid": true, "article": "a", "because": "b", "fix": "c"}]}"#;
    let of = |text| kept("gdpr").extended(text).unwrap().unwrap();
    assert_eq!(of(toml), of(json));
}

#[test]
fn what_is_no_file_of_rules_is_refused_with_what_is_wrong() {
    let rule = |inside: &str| {
        format!(
            "[[rule]]\nid = \"own.rule\"\narticle = \"a\"\nbecause = \"b\"\nfix = \"c\"\n{inside}"
        )
    };
    let wide: String = (1..7)
        .map(|n| {
            let names = vec![format!("\"c{}\"", n - 1); 40].join(",");
            format!("conditions.c{n} = {{ is = [{names}] }}\n")
        })
        .collect();
    let wide = "conditions.c0 = { type = [\"belief\"] }\n".to_owned() + &wide;
    let deep = format!("{}{}", "{ not = ".repeat(12), "{}".to_owned() + &" }".repeat(12));
    for (file, says) in [
        ("rules = 1".to_owned(), "unknown field"),
        ("not toml".to_owned(), "expected"),
        ("{\"rule\": 1}".to_owned(), "invalid type"),
        (rule("on = [\"put\"]"), "one effect"),
        (rule("on = [\"put\"]\nforbid = true\nset = { needs_review = true }"), "one effect"),
        (rule("on = []\nforbid = true"), "on no deed"),
        (rule("on = [\"sell\"]\nforbid = true"), "unknown variant"),
        (rule("on = [\"put\"]\nforbid = true\nwhen = { tag = [\"@nothing\"] }"), "no list"),
        (rule("on = [\"put\"]\nforbid = true\nwhen = { is = [\"nothing\"] }"), "no condition"),
        (rule("on = [\"put\"]\nforbid = true\nwhen = { type = [\"poem\"] }"), "no grain type"),
        (rule("on = [\"put\"]\nforbid = true\nwhen = { colour = 1 }"), "unknown field"),
        (rule(&format!("on = [\"put\"]\nforbid = true\nwhen = {deep}")), "deep"),
        (wide + &rule("on = [\"put\"]\nforbid = true\nwhen = { is = [\"c6\"] }"), "parts"),
        (
            format!(
                "{}\n{}",
                rule("on = [\"put\"]\nforbid = true"),
                rule("on = [\"put\"]\nforbid = true")
            ),
            "twice",
        ),
        (rule("on = [\"put\"]\nforbid = true").replace("own.rule", "OWN rule"), "an id has"),
        (rule("on = [\"put\"]\nforbid = true").replace("\"c\"", "\" \""), "not empty"),
        ("drop = [\"gdpr.nothing\"]".to_owned(), "no such rule"),
        ("name = \"mine\"".to_owned(), "a change has neither"),
        (
            "settings.erasure_sla_days = { value = 29, article = \"a\" }".to_owned(),
            "out of its range",
        ),
        ("settings.query_limit = { value = 0, article = \"a\" }".to_owned(), "out of its range"),
        ("lists.health = [\"phi:name\"]".to_owned(), "a list \"health\" already"),
        (
            "lists.a = [\"@b\"]\nlists.b = [\"@a\"]\n".to_owned()
                + &rule("on = [\"put\"]\nforbid = true\nwhen = { tag = [\"@a\"] }"),
            "circle",
        ),
    ] {
        let error = kept("gdpr").extended(&file).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "ERR_SCHEMA", "{file}: {error}");
        assert!(error.to_string().contains(says), "{file}: {error}");
    }
    let large = "#".repeat(70_000);
    assert_eq!(kept("gdpr").extended(&large).unwrap_err().code(), "ERR_TOO_LARGE");
    let unknown = kept("gdpr").extended("extends = \"pipl\"").unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Policy);
    assert!(unknown.to_string().contains("open, gdpr, hipaa, sox, ccpa, lgpd"), "{unknown}");
}

/// docs/presets.md lists the purposes that are a sale and those that are not: refusals refer to it.
#[test]
fn the_page_on_presets_lists_the_purposes() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/presets.md");
    let page = std::fs::read_to_string(page).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let lists = &Preset::default().file().unwrap().lists;
    for name in ["sale_purposes", "other_purposes"] {
        let list = lists.get(name).unwrap().join(", ");
        assert!(page.contains(&format!("- `@{name}`: {list}.")), "{name}: {list}");
    }
}
