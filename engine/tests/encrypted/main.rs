//! Encrypted stores: what they answer, what they refuse, and what lies on disk.

mod answers;
mod bytes;
mod opening;
mod world;
