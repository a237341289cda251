//! Grains, versions and audit entries as lines for people.

use data_encoding::HEXLOWER;
use grainstore::format::{REVIEW_FLAG, VerificationStatus};
use grainstore::{
    AuditEntry, AuditedCall, Clock as _, ContentAddress, Grain, GrainState, SystemClock,
};
use grainstore_sml::{Clock, Item, Level, project};

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

/// Formats an audit entry on one line.
pub(crate) fn entry_line(entry: &AuditEntry) -> String {
    let AuditEntry { sequence, operation, actor, decision, .. } = entry;
    let time = format_time(entry.time);
    let mut line = format!("{sequence:>6}  {time}  {operation:<9}  {decision:<7}  {actor}");
    let status = entry.status.map(|status| format!("status={}", status.name()));
    let by = entry.refused_by.map(|by| format!("by={by}"));
    let why = entry.why().map(|why| format!("({why})"));
    let reason = entry.reason.as_deref().map(|reason| format!("reason={reason:?}"));
    let subjects = entry.subjects.iter().map(ToString::to_string);
    let words = entry.rules.iter().cloned().chain(status).chain(subjects).chain(by);
    let call = entry.call.iter().flat_map(call_words);
    let kid = entry.kid.as_ref().map(|kid| format!("kid={kid}"));
    let count = entry.count.map(|count| format!("count={count}"));
    let consent = entry.consent.as_ref();
    let consent = consent.map(|consent| format!("{}={}", consent.kind(), consent.scope.join(",")));
    let after = kid.into_iter().chain(count).chain(consent);
    for word in words.chain(why).chain(reason).chain(call).chain(after) {
        line.push_str("  ");
        line.push_str(&escape_line(&word));
    }
    line
}

/// Formats the CAL call of an audit entry.
fn call_words(call: &AuditedCall) -> Vec<String> {
    let stream = call.stream.as_ref();
    let hash: String = HEXLOWER.encode(&call.query_hash).chars().take(12).collect();
    let words = [
        ("cal", call.statement.clone()),
        ("query", Some(format!("sha256:{hash}"))),
        ("token", call.token_id.clone()),
        ("results", call.result_count.map(|count| count.to_string())),
        ("code", call.code.clone()),
        ("events", stream.map(|stream| stream.events_emitted.to_string())),
        ("cancelled", stream.and_then(|stream| stream.cancel_reason.clone())),
    ];
    words.into_iter().filter_map(|(name, word)| Some(format!("{name}={}", word?))).collect()
}
