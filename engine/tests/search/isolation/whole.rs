//! The table of ways to read is whole: it has every method of a session.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::isolation::reads::READS;

/// What writes and does not read, what asks in another way for what is above, and what tells nothing of
/// grains.
const OTHERS: [&str; 49] = [
    "access_request",
    "check_power",
    "has_powers",
    "change_rules",
    "switch_cal",
    "part",
    "narrower_part",
    // Names nothing outside the session: tests/rules/policy/explained.rs.
    "policy",
    "erase",
    "erase_returned",
    // For the operator of the whole store alone, to erase what it names: interop/tests/saga/fresh.rs.
    "versions_to_erase",
    "warnings_of_successor",
    "erase_user",
    "export_subject",
    "subject_grains",
    "subject_report",
    "sweep",
    "put",
    "put_fact",
    "submit",
    "put_batch",
    "submit_batch",
    "supersede",
    "submit_supersede",
    "contradict",
    "set_verification",
    "hold",
    "lift_hold",
    "embed",
    "import",
    "import_opened",
    "options",
    "store",
    "now",
    "audit_head",
    "record_failed_call",
    // Calls, and no grains: whose are shown is asked in tests/cal/calls/reads.rs.
    "reads",
    "reads_by",
    "reads_head",
    // For the operator of the whole store alone: src/tests/application/calls.rs.
    "put_side_blob",
    "side_blob",
    "remove_side_blob",
    "put_row",
    "remove_row",
    "write_rows",
    "row",
    "rows",
    "record_transfer",
    "audit_evidence",
];

#[test]
fn every_method_of_a_session_is_in_the_table() {
    let mut methods = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                methods.extend(methods_in(&fs::read_to_string(path).unwrap()));
            }
        }
    }
    assert!(methods.contains("get") && methods.contains("export"), "{methods:?}");
    let listed = READS.iter().flat_map(|read| read.methods).chain(&OTHERS);
    let listed: BTreeSet<String> = listed.map(|name| (*name).to_owned()).collect();
    assert_eq!(methods, listed, "add what is new to READS, with what it shows, or to OTHERS");
}

/// The public methods that a file gives a session.
fn methods_in(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_within = false;
    for line in source.lines() {
        match line {
            "impl Session {" => is_within = true,
            "}" => is_within = false,
            _ => {}
        }
        if let Some(rest) = line.strip_prefix("    pub fn ").filter(|_| is_within) {
            let name = rest.split(['(', '<']).next().unwrap();
            found.insert(name.to_owned());
        }
    }
    found
}
