//! The one error of the crate: a file of rows that cannot be loaded. It knows no codes.

use std::error::Error;
use std::fmt;

/// A file of rows that cannot be read, or does not hold the rows it should.
#[derive(Debug)]
pub struct LoadError {
    file: String,
    source: Box<dyn Error + Send + Sync>,
}

impl LoadError {
    pub(crate) fn new(
        file: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { file: file.into(), source: source.into() }
    }

    /// The file that could not be loaded.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot load the vectors of {}: {}", self.file, self.source)
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
