//! Export and import of grains in `.mg` files (OMS section 11).
//!
//! - `order`: sorts any number of grains into the order of a file.
//! - `export`: writes what a session sees, with its state. `leaving`: the rules on export.
//! - `import`: reads files, with the state of their grains, into the store.

mod export;
pub(crate) mod import;
mod leaving;
mod order;

pub use export::{ExportOptions, ExportReport};
pub use import::{ImportOptions, ImportReport, MAX_IMPORT_CLAIMS};
pub(crate) use leaving::Recipient;
