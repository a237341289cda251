//! The self-checks of CAL: all there, all run, and failing where something is wrong.

use grainstore::cal::Tier;
use grainstore::format::EpochMs;
use grainstore::{CalSwitch, Finding, Health, OpenOptions, Preset, ReadsDestination};

use crate::calls::kit::{ADD, START_MS, World};

const NAMES: [&str; 16] = [
    "cal_grammar_safety",
    "cal_default_minimization",
    "cal_audit_logging",
    "cal_authz_enforcement",
    "cal_no_policy_override",
    "cal_injection_prevention",
    "cal_tier1_audit",
    "cal_tier1_policy_gate",
    "cal_provenance_tracking",
    "cal_ai_marking",
    "cal_dsar_completeness",
    "cal_hipaa_minimum_necessary",
    "cal_phi_in_queries",
    "cal_rate_limiting",
    "cal_portability_format",
    "cal_consent_on_read",
];

fn detail<'f>(findings: &'f [Finding], name: &str) -> &'f str {
    &findings.iter().find(|finding| finding.name == name).unwrap().detail
}

#[test]
fn every_check_of_the_standard_runs_and_holds_under_every_preset() {
    for preset in Preset::all() {
        let world = World::with(OpenOptions::new().preset(preset));
        let fields = serde_json::json!({
            "type": "belief", "subject": "bob", "relation": "likes", "object": "tea",
            "confidence": 1.0, "created_at": START_MS, "user_id": "bob",
            "processing_basis": "contract",
        });
        let grain = grainstore::Grain::from_json(&fields.to_string()).unwrap();
        world.operator().put(grain).unwrap();
        let options = grainstore::cal::ExecuteOptions::at(EpochMs::new(START_MS));
        let options = grainstore::cal::ExecuteOptions { tier: Tier::Evolve, ..options };
        let evolved = world.operator().ask_with(ADD.as_bytes(), &options).unwrap();
        let address = serde_json::to_value(&evolved).unwrap()["content_address"].clone();
        let supersede = format!(
            r#"SUPERSEDE sha256:{} SET object = "water" REASON "he changed""#,
            address.as_str().unwrap()
        );
        world.operator().ask_with(supersede.as_bytes(), &options).unwrap();
        for switch in [CalSwitch::On, CalSwitch::Reads, CalSwitch::Off] {
            world.operator().switch_cal(switch, "a test").unwrap();
            let before = world.operator().audit_head().unwrap();
            let found = world.store.check_cal().unwrap();
            let own = world.operator().audit(before.0.checked_sub(1), 10).unwrap();
            let own: Vec<_> = own.iter().map(|entry| entry.operation.as_str()).collect();
            let noted = world.store.reads_recorded() == ReadsDestination::AuditLog;
            assert_eq!(own, if noted { vec!["cal"] } else { vec![] }, "nothing else is written");
            let names: Vec<_> = found.iter().map(|finding| finding.name).collect();
            assert_eq!(names, NAMES);
            for finding in &found {
                assert_eq!(finding.health, Health::Good, "{} {switch}: {finding:?}", preset.name());
            }
            for (name, told) in [
                ("cal_tier1_audit", "2 of the last writes"),
                ("cal_provenance_tracking", "1 of the last successors"),
                ("cal_ai_marking", "1 of the last grains"),
                ("cal_dsar_completeness", "asking for a person finds 1,"),
                ("cal_portability_format", "2 of the newest 2"),
            ] {
                assert!(detail(&found, name).starts_with(told), "{}", detail(&found, name));
            }
        }
        assert!(world.store.doctor().ok);
        assert!(world.store.verify(true).unwrap().ok);
    }
}
