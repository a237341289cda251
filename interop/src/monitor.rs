//! How a caller follows long work, and ends it.

use grainstore::ErrorKind;
use grainstore::cal::CancelHandle;

use crate::error::{Error, Result};

/// Follows an import, an export or a migration: it is told of the progress, and may cancel.
///
/// ```
/// use grainstore_interop::Monitor;
///
/// let progress = |done: u64, of: u64| assert!(done <= of);
/// let monitor = Monitor { progress: Some(&progress), ..Monitor::default() };
/// monitor.cancel.cancel();
/// ```
#[derive(Default)]
pub struct Monitor<'m> {
    /// Is told how many of how many records, items or bytes are done.
    pub progress: Option<&'m dyn Fn(u64, u64)>,
    /// Cancels the work, which then ends with `ERR_TIMEOUT`. What was acknowledged to the store before stays; the
    /// same import again takes the rest.
    pub cancel: CancelHandle,
}

impl<'m> Monitor<'m> {
    /// A monitor of the same work, for options that have one of their own.
    ///
    /// ```
    /// use grainstore_interop::Monitor;
    ///
    /// let monitor = Monitor::default();
    /// monitor.again().cancel.cancel();
    /// assert!(monitor.cancel.stop_reason().is_some());
    /// ```
    #[must_use]
    pub fn again(&self) -> Self {
        Self { progress: self.progress, cancel: self.cancel.clone() }
    }
}

impl Monitor<'_> {
    /// Tells of the progress.
    ///
    /// # Errors
    /// `ERR_TIMEOUT` if the work was cancelled.
    pub(crate) fn step(&self, done: u64, of: u64) -> Result<()> {
        if self.cancel.check().is_err() {
            return Err(Error::new(ErrorKind::Timeout, "cancelled")
                .with_hint("the same call again takes what is left"));
        }
        if let Some(progress) = self.progress {
            progress(done, of);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Monitor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_progress = self.progress.is_some();
        f.debug_struct("Monitor").field("progress", &has_progress).finish_non_exhaustive()
    }
}
