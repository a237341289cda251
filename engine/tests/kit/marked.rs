//! What a mark may answer and leaves behind (OMS 23.1, 23.2, 28.3): the part of the model that is
//! about grains whose standing changes without another being written.

use super::engine::VerificationStatus as Status;
use super::engine::format::{ContentAddress, EpochMs};
use super::model::{
    ACCESS, Broken, CONFLICT, DENIED, Entry, Known, Model, NOT_FOUND, allow, expect,
};
use super::offers::{Answer, Mark};
use super::rules::{self, Lock};

/// Takes a mark and its answer for true, or says why it cannot be. Sessions of these tests name no
/// actor, so those without a namespace are the operator's, who alone lifts holds.
pub(super) fn settle(
    model: &mut Model,
    namespace: Option<&str>,
    now: EpochMs,
    (address, mark): (&ContentAddress, Mark),
    answer: &Answer,
) -> Result<(), String> {
    let reached = |known: &&Known| rules::reaches(namespace, rules::partition(&known.grain));
    let Some(known) = model.find(address).filter(reached) else {
        return expect(answer, &Answer::Refused(NOT_FOUND));
    };
    if is_done(known, mark) {
        return expect(answer, &Answer::Marked);
    }
    let mut broken = Broken::new();
    let final_already = matches!(mark, Mark::Status(_)) && known.status == Status::Retracted;
    if final_already || (mark == Mark::Lift && !known.held) {
        broken.insert(CONFLICT);
    }
    if mark == Mark::Lift && namespace.is_some() {
        broken.insert(ACCESS);
    }
    let locks = match takes_away(known.status, mark) {
        true => locks_over(model, address, now),
        false => Vec::new(),
    };
    // A reason is given with every mark of these tests, which is what soft locks ask for.
    if locks.contains(&Lock::Shut) {
        broken.insert(DENIED);
    }
    allow(&broken, answer)?;
    let decision = match answer {
        Answer::Refused(DENIED | ACCESS) => "refused",
        Answer::Refused(_) => return Ok(()),
        _ => "done",
    };
    model.audit.push(Entry {
        time: now,
        operation: operation(mark),
        subjects: vec![*address],
        decision,
    });
    if decision == "done" {
        expect(answer, &Answer::Marked)?;
        let place = model.places[address];
        let known = &mut model.grains[place];
        known.needs_review |= locks.contains(&Lock::Soft);
        carry_out(known, mark, now);
    }
    Ok(())
}

/// The locks that bear on a grain where it stands: those of what came before it, and those of newer
/// versions that hold for the whole chain.
pub(crate) fn locks_over(model: &Model, address: &ContentAddress, now: EpochMs) -> Vec<Lock> {
    let mut locks = model.locks_over(address, None, now);
    let mut next = model.find(address).and_then(|known| known.superseded_by);
    while let Some(known) = next.and_then(|next| model.find(&next)) {
        if rules::covers_chain(&known.grain) {
            locks.push(rules::lock(&known.grain, known.held, now.get().div_euclid(1000)));
        }
        next = known.superseded_by;
    }
    locks
}

fn is_done(known: &Known, mark: Mark) -> bool {
    match mark {
        Mark::Contradict => known.contradicted,
        Mark::Status(status) => known.status == status,
        Mark::Hold | Mark::Lift => false,
    }
}

/// Whether a mark says less for a grain than what it was.
fn takes_away(from: Status, mark: Mark) -> bool {
    match (mark, from) {
        (Mark::Contradict | Mark::Status(Status::Retracted | Status::Contested), _)
        | (Mark::Status(Status::Unverified), Status::Verified) => true,
        (Mark::Status(_) | Mark::Hold | Mark::Lift, _) => false,
    }
}

fn operation(mark: Mark) -> &'static str {
    match mark {
        Mark::Contradict => "contradict",
        Mark::Status(_) => "set_verification",
        Mark::Hold => "hold",
        Mark::Lift => "lift_hold",
    }
}

fn carry_out(known: &mut Known, mark: Mark, now: EpochMs) {
    match mark {
        Mark::Contradict => known.contradicted = true,
        Mark::Status(status) => known.status = status,
        Mark::Hold => known.held = true,
        Mark::Lift => known.held = false,
    }
    if matches!(mark, Mark::Contradict | Mark::Status(Status::Retracted)) {
        known.end(now);
    }
}
