//! Grains, versions and audit entries as lines for people.

use grainstore::format::{REVIEW_FLAG, VerificationStatus};
use grainstore::{Clock as _, ContentAddress, EpochMs, Grain, GrainState, SystemClock};
use grainstore_sml::{Clock, Item, Level, project};
use serde::Deserialize;

use crate::text::{escape_line, format_time};

/// Formats a version on one line: address, status, creation time, content.
pub(crate) fn version_line(address: &ContentAddress, grain: &Grain, state: &GrainState) -> String {
    let (standing, created) = (status_word(state), format_time(grain.created_at()));
    let says = content_line(grain.clone(), state.verification_status);
    format!("{address}  {standing:<12}  {created}  {says}").trim_end().to_owned()
}

/// Returns the status of a grain in one word.
pub(crate) fn status_word(state: &GrainState) -> &'static str {
    match state {
        GrainState { superseded_by: Some(_), .. } => "superseded",
        GrainState { verification_status: VerificationStatus::Retracted, .. } => "retracted",
        GrainState { contradicted: true, .. } => "contradicted",
        state if state.has_ended(SystemClock.now()) => "ended",
        _ => "current",
    }
}

/// Returns the content of a grain on one line, after its subject; for a grain that awaits its review, only
/// that.
pub(crate) fn content_line(grain: Grain, status: VerificationStatus) -> String {
    if grain.awaits_review(status) {
        return format!("({REVIEW_FLAG})");
    }
    let subject = grain.text("subject").map(|subject| format!("{subject}: "));
    let says = text(grain, status);
    let subject = subject.filter(|_| !says.is_empty()).unwrap_or_default();
    format!("{subject}{says}")
}

/// Returns the content of a grain, as its formatted text has it.
fn text(grain: Grain, status: VerificationStatus) -> String {
    let clock = Clock { now: grain.time(), iso_timestamps: true };
    let verification = Some(status.name().to_owned());
    let item = Item { grain, verification, chosen: None, score: None };
    project(&item, Level::Summary, &clock).map_or_else(String::new, |shown| shown.text.into_owned())
}

/// What is shown of an audit entry, read from its JSON.
#[derive(Deserialize)]
pub(crate) struct ShownEntry {
    pub(crate) sequence: u64,
    time_ms: EpochMs,
    operation: String,
    actor: String,
    decision: String,
    #[serde(default)]
    subjects: Vec<ContentAddress>,
    #[serde(default)]
    rules: Vec<String>,
    status: Option<String>,
    refused_by: Option<ContentAddress>,
    why: Option<String>,
    reason: Option<String>,
    call: Option<ShownCall>,
    kid: Option<String>,
    count: Option<u64>,
    consent: Option<ShownConsent>,
}

/// The CAL call of an audit entry.
#[derive(Deserialize)]
struct ShownCall {
    query_hash: String,
    statement: Option<String>,
    token_id: Option<String>,
    result_count: Option<u64>,
    code: Option<String>,
    events_emitted: Option<u64>,
    cancel_reason: Option<String>,
}

#[derive(Deserialize)]
struct ShownConsent {
    kind: String,
    scope: Vec<String>,
}

/// Formats an audit entry on one line.
pub(crate) fn entry_line(entry: &ShownEntry) -> String {
    let ShownEntry { sequence, operation, actor, decision, .. } = entry;
    let time = format_time(entry.time_ms);
    let mut line = format!("{sequence:>6}  {time}  {operation:<9}  {decision:<7}  {actor}");
    let status = entry.status.as_ref().map(|status| format!("status={status}"));
    let by = entry.refused_by.map(|by| format!("by={by}"));
    let why = entry.why.as_ref().map(|why| format!("({why})"));
    let reason = entry.reason.as_deref().map(|reason| format!("reason={reason:?}"));
    let subjects = entry.subjects.iter().map(ToString::to_string);
    let words = entry.rules.iter().cloned().chain(status).chain(subjects).chain(by);
    let call = entry.call.iter().flat_map(call_words);
    let kid = entry.kid.as_ref().map(|kid| format!("kid={kid}"));
    let count = entry.count.map(|count| format!("count={count}"));
    let consent = entry.consent.as_ref();
    let consent = consent.map(|consent| format!("{}={}", consent.kind, consent.scope.join(",")));
    let after = kid.into_iter().chain(count).chain(consent);
    for word in words.chain(why).chain(reason).chain(call).chain(after) {
        line.push_str("  ");
        line.push_str(&escape_line(&word));
    }
    line
}

/// Formats the CAL call of an audit entry.
fn call_words(call: &ShownCall) -> Vec<String> {
    let hash: String = call.query_hash.chars().take("sha256:".len() + 12).collect();
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let words = [
        ("cal", call.statement.clone()),
        ("query", Some(hash)),
        ("token", call.token_id.clone()),
        ("results", number(call.result_count)),
        ("code", call.code.clone()),
        ("events", number(call.events_emitted)),
        ("cancelled", call.cancel_reason.clone()),
    ];
    words.into_iter().filter_map(|(name, word)| Some(format!("{name}={}", word?))).collect()
}
