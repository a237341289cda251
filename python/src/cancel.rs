//! What ends a call before it is done.

use grainstore::cal::CancelHandle;
use pyo3::prelude::*;

/// Cancels the calls that it is given to.
#[pyclass(frozen, module = "grainstore._native")]
#[derive(Debug, Default)]
pub(crate) struct Cancel(pub(crate) CancelHandle);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}
