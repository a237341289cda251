//! Rules: invalidation policies and presets.

#[path = "../kit/former.rs"]
#[expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]
mod former;
mod policy;
mod presets;
