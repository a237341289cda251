//! Grains that leave the store in `.mg` files, and come into it (OMS section 11).
//!
//! - `order`: grains in the order of a file, however many there are.
//! - `export`: what a session sees, with its state, as files.
//! - `import`: files, with the state of their grains, into the store.

mod export;
pub(crate) mod import;
mod leaving;
mod order;

pub use export::{Exported, Exporting};
pub use import::{Imported, Importing, MAX_IMPORT_CLAIMS};
pub(crate) use leaving::Recipient;
