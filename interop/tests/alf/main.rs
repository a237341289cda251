//! ALF: archives into stores and out again, archives that lie, and what a store does to them.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::needless_pass_by_value,
    reason = "a test stops at a surprise, says what it skips, and takes values as they are written"
)]

mod again;
mod attack;
mod audit_files;
#[path = "../common/camera.rs"]
mod camera;
mod consents;
mod cut_off;
mod delta;
mod edited;
mod erased;
mod examples;
mod forgotten;
mod gone;
mod hidden;
mod histories;
mod hostile;
mod kit;
mod links;
mod locks;
mod lost_place;
mod many_files;
mod mirrors;
mod names;
mod native;
mod order;
mod person;
mod poison;
mod purge;
mod replaced;
mod resting;
mod returning;
mod round_trip;
mod scale;
mod schemas;
mod vouched;
