//! ALF.
mod agent;
mod bundle;
mod change;
mod delta;
mod export;
mod import;
mod issue;
mod names;
mod partition;
mod record;
mod schema;
mod survey;
mod validate;
mod vectors;

pub use delta::{ApplyReport, DeltaOptions, DeltaReport, apply_delta, export_delta};
pub use export::{ExportOptions, ExportReport, PartitionReport, export};
pub use import::{ImportMode, ImportOptions, ImportReport, LayerCounts, RecordCounts, import};
pub use issue::{Issue, MAX_ISSUES};
pub use partition::Granularity;
pub use survey::Artifacts;
pub use validate::{Validation, validate};
