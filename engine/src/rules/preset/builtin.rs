//! The table of built-in presets: a name, and the file with its rules. All differences between presets are in
//! the files.

use std::sync::LazyLock;

use super::file::{RuleFile, invalid_rule_file};
use super::intern::intern;
use crate::base::error::{Error, ErrorKind, Result};

const PRESET_FILES: [(&str, &str); 6] = [
    ("open", include_str!("rules/open.toml")),
    ("gdpr", include_str!("rules/gdpr.toml")),
    ("hipaa", include_str!("rules/hipaa.toml")),
    ("sox", include_str!("rules/sox.toml")),
    ("ccpa", include_str!("rules/ccpa.toml")),
    ("lgpd", include_str!("rules/lgpd.toml")),
];

/// A built-in rule set, for [`OpenOptions::preset`](crate::OpenOptions::preset).
///
/// ```
/// use grainstore::{Preset, prelude::*};
///
/// # let dir = tempfile::tempdir()?;
/// let gdpr = Preset::from_name("gdpr")?;
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true).preset(gdpr))?;
/// let session = store.session(SessionOptions::default());
/// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9).user_id("ann");
/// let refused = session.put(grain.build()?);
/// assert!(refused.is_err_and(|error| error.code() == "ERR_POLICY"), "it names no basis");
/// assert!(store.rules().rules.iter().any(|rule| rule.id.starts_with("gdpr.")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset(usize);

/// The default preset: what the standard requires of every store.
impl Default for Preset {
    fn default() -> Self {
        Self(0)
    }
}

impl Preset {
    /// Returns the preset of this name.
    ///
    /// # Errors
    /// `ERR_POLICY`, listing the known names.
    pub fn from_name(name: &str) -> Result<Self> {
        let found = PRESET_FILES.iter().position(|(known, _)| *known == name);
        found.map(Self).ok_or_else(|| {
            let known: Vec<_> = Self::all().map(Self::name).collect();
            let message = format!("there is no preset {name:?}: {} are", known.join(", "));
            Error::new(ErrorKind::Policy, message).with_hint("name one of these, or none")
        })
    }

    /// All presets.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PRESET_FILES.len()).map(Self)
    }

    /// Name of the preset.
    #[must_use]
    pub fn name(self) -> &'static str {
        PRESET_FILES.get(self.0).map_or("", |(name, _)| name)
    }

    /// The file of the preset, parsed once per process.
    ///
    /// # Errors
    /// None: a test of this module reads every preset.
    pub(super) fn file(self) -> Result<&'static RuleFile> {
        static READ: LazyLock<Vec<Result<RuleFile>>> =
            LazyLock::new(|| PRESET_FILES.iter().map(|(_, text)| RuleFile::read(text)).collect());
        match READ.get(self.0) {
            Some(Ok(file)) => Ok(file),
            Some(Err(error)) => Err(error.clone()),
            None => Err(invalid_rule_file("it is not there")),
        }
    }
}

/// Returns the reason of a built-in rule by its id in the audit log.
pub(crate) fn builtin_reason(id: &str) -> Option<&'static str> {
    let mut files = Preset::all().filter_map(|preset| preset.file().ok());
    let rule = files.find_map(|file| file.rules.iter().find(|rule| rule.id == id))?;
    Some(intern(&rule.because))
}
