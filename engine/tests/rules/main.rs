//! Rules: invalidation policies and presets.

mod policy;
mod presets;
