//! Exits: shown, disputed, decided, finalized.

use grainstore::EpochMs;
use grainstore_interop::archive::Limits;
use grainstore_interop::saga::{
    Classification, Container, DisputeDecision, Document, ExitKind, ExitOptions, FinalizeOptions,
    ImportOptions, ItemType, Signer, begin_exit, cancel_exit, dispute, erase_agent, exit_preview,
    finalize_exit, freeze, import_document, resolve_dispute,
};

use crate::export::{Setup, open, recipient, redact};
use crate::support::*;

#[test]
fn an_exit_is_shown_disputed_and_finalized_after_its_time() {
    let setup = Setup::new();
    let (session, agent, org) = (&setup.session, evm().wallet().clone(), other_evm());
    let options = |hours| ExitOptions {
        kind: ExitKind::Voluntary,
        organization: "company_flowstate".into(),
        window_hours: hours,
        classifications: Default::default(),
    };
    assert_eq!(exit_preview(session, &agent).unwrap_err().code(), "ERR_NOT_FOUND");
    assert_eq!(begin_exit(session, &agent, &options(Some(47))).unwrap_err().code(), "ERR_POLICY");
    let preview = begin_exit(session, &agent, &options(None)).unwrap();
    assert_eq!(preview.closes_at, EpochMs::new(NOW.get() + 48 * 3_600_000));
    assert!(preview.manifest.entries.iter().any(|entry| entry.id == "task_1"));
    assert!(
        preview
            .items
            .iter()
            .any(|item| { item.id == "task_3" && item.classification == Classification::Public })
    );
    assert!(!preview.document.canonical().unwrap().contains("Refactor"));
    assert_eq!(begin_exit(session, &agent, &options(None)).unwrap_err().code(), "ERR_CONFLICT");
    let file = |id: &str| dispute(session, &agent, ItemType::Task, id, "it is mine");
    assert_eq!(file("task_3").unwrap_err().code(), "ERR_NOT_FOUND");
    file("task_1").unwrap();
    file("task_2").unwrap();
    let finalize = || {
        let options = FinalizeOptions { plain_long_term: true, ..FinalizeOptions::default() };
        finalize_exit(session, setup.path("exit.saga"), options, &evm(), &org)
    };
    assert_eq!(finalize().unwrap_err().code(), "ERR_CONFLICT");
    setup.clock.set(EpochMs::new(NOW.get() + 49 * 3_600_000));
    let late = file("task_4").unwrap_err();
    assert_eq!(late.code(), "ERR_CONFLICT");
    assert_eq!(finalize().unwrap_err().code(), "ERR_CONFLICT");
    let decide =
        |id: &str, decision| resolve_dispute(session, &agent, ItemType::Task, id, decision);
    decide("task_1", DisputeDecision::Accept(Classification::AgentPortable)).unwrap();
    decide("task_2", DisputeDecision::Escalate).unwrap();
    assert_eq!(finalize().unwrap_err().code(), "ERR_CONFLICT");
    decide("task_2", DisputeDecision::Reject).unwrap();
    assert_eq!(decide("task_2", DisputeDecision::Escalate).unwrap_err().code(), "ERR_CONFLICT");
    assert!(
        exit_preview(session, &agent).unwrap().document.canonical().unwrap().contains("Refactor")
    );
    finalize().unwrap();
    let container = Container::open(setup.path("exit.saga"), Limits::default()).unwrap();
    let document = container.document();
    let text = document.canonical().unwrap();
    assert!(text.contains("Refactor auth") && !text.contains("merger"));
    assert_eq!(document.verify_manifest().unwrap().as_deref(), Some(org.wallet().address()));
    let manifest = document.get("redactionManifest").unwrap();
    let entry = manifest["entries"].as_array().unwrap().iter().find(|it| it["id"] == "task_2");
    assert_eq!(entry.unwrap()["disputeStatus"], "rejected");
    // It is over, and the agent may be frozen.
    assert_eq!(cancel_exit(session, &agent).unwrap_err().code(), "ERR_NOT_FOUND");
    freeze(session, &agent, "the agent has its container").unwrap();
    assert_eq!(begin_exit(session, &agent, &options(None)).unwrap_err().code(), "ERR_READ_ONLY");
}

#[test]
fn an_emergency_exit_has_no_time_and_a_warning() {
    let setup = Setup::new();
    let options = ExitOptions {
        kind: ExitKind::Emergency,
        organization: "company_flowstate".into(),
        window_hours: None,
        classifications: Default::default(),
    };
    let preview = begin_exit(&setup.session, evm().wallet(), &options).unwrap();
    assert!(preview.warnings[0].contains("seven days"));
    let how = FinalizeOptions { recipients: vec![recipient()], ..FinalizeOptions::default() };
    let org = other_evm();
    let report = finalize_exit(&setup.session, setup.path("exit.saga"), how, &evm(), &org).unwrap();
    assert!(report.redacted > 0 && report.removed > 0);
}

#[test]
fn an_erasure_keeps_the_disputes_that_are_not_decided() {
    let setup = Setup::new();
    let (session, agent) = (&setup.session, evm().wallet().clone());
    let options = ExitOptions {
        kind: ExitKind::ForCause,
        organization: "company_flowstate".into(),
        window_hours: None,
        classifications: Default::default(),
    };
    begin_exit(session, &agent, &options).unwrap();
    dispute(session, &agent, ItemType::Task, "task_1", "it is mine").unwrap();
    let report = erase_agent(session, &agent, "the agent asked", Some("five years")).unwrap();
    assert_eq!(report.kept.iter().map(|it| it.kind.as_str()).collect::<Vec<_>>(), ["disputes"]);
    resolve_dispute(session, &agent, ItemType::Task, "task_1", DisputeDecision::Reject).unwrap();
    assert!(erase_agent(session, &agent, "the agent asked", None).unwrap().kept.is_empty());
    assert_eq!(cancel_exit(session, &agent).unwrap_err().code(), "ERR_NOT_FOUND");
}

#[test]
fn an_exit_of_an_agent_that_was_redacted_elsewhere_is_shown_with_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let (session, _) = open(dir.path());
    let mut document = Document::from_value(envelope("full", full_layers())).unwrap();
    document.redact(&redact(), Some(&other_evm())).unwrap();
    document.sign(&evm()).unwrap();
    let mut value = document.to_value();
    let tasks = value["layers"]["taskHistory"]["recentTasks"].as_array_mut().unwrap();
    tasks.push(serde_json::json!({"taskId": "task_9", "status": "failed", "title": "new"}));
    import_document(&session, &signed(value, &evm()), &ImportOptions::default()).unwrap();
    let options = ExitOptions {
        kind: ExitKind::Voluntary,
        organization: "company_acme".into(),
        window_hours: None,
        classifications: Default::default(),
    };
    let preview = begin_exit(&session, evm().wallet(), &options).unwrap();
    let ids: Vec<_> = preview.manifest.entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["task_9"]);
    let listed = preview.document.get("redactionManifest").unwrap()["entries"].to_string();
    assert!(listed.contains("task_1") && listed.contains("task_9"));
}
