//! Export and import of grains in `.mg` files (OMS section 11).
//!
//! - `external_sort`: sorts any number of grains into the order of a file.
//! - `export`: writes what a session sees, with its state. `export_filter`: the rules on export.
//! - `import`: reads files, with the state of their grains, into the store.

mod export;
mod export_filter;
mod external_sort;
pub(crate) mod import;

pub use export::{ExportOptions, ExportReport};
pub(crate) use export_filter::Recipient;
pub use import::{ImportOptions, ImportReport, MAX_IMPORT_CLAIMS};
