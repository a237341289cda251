//! What a caller chooses about a migration.

use std::path::PathBuf;

use crate::archive::Limits;

/// How [`run`](super::run) goes about it. The default takes what it can, and tells what it left out.
///
/// ```
/// use grainstore_interop::migrate::MigrateOptions;
///
/// let options = MigrateOptions { dry_run: true, user: Some("ann".into()), ..Default::default() };
/// assert!(!options.strict);
/// ```
#[derive(Debug, Clone, Default)]
pub struct MigrateOptions {
    /// Writes nothing, and tells what would be written.
    pub dry_run: bool,
    /// Ends at the first record that has something wrong with it. What can be found out by reading is found out before
    /// anything is written.
    pub strict: bool,
    /// The namespace of all that comes in, instead of those that the source names.
    pub namespace: Option<String>,
    /// The user of all that comes in, instead of those that the source names.
    pub user: Option<String>,
    /// What becomes of records whose source has no date, or one that cannot be read.
    pub undated: Undated,
    /// Takes records again whose grains were erased here. What was erased with its user stays refused.
    pub return_erased: bool,
    /// Lets a record take the place of what is here though its source dates it before that. It is left out otherwise.
    pub allow_older: bool,
    /// The second file that a format reads, if it has one: see [`Format::beside`](super::Format::beside).
    pub beside: Option<PathBuf>,
    /// What is read of an archive or a folder at most.
    pub limits: Limits,
}

/// What becomes of a record without a date that can be read: part of [`MigrateOptions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Undated {
    /// It is left out, and reported.
    #[default]
    LeaveOut,
    /// It takes the time of the migration.
    ImportTime,
}
