//! Erasure: what it takes, what it leaves, what refuses it, and that nothing of it comes back.

#[path = "../kit/random.rs"]
mod random;

mod kit;

mod reads;
mod refusals;
mod report;
mod returns;
mod scan;
mod sweep;
