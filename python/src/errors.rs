//! Errors of the store as exceptions of the package, which `grainstore._errors` has by their codes.

use grainstore_rpc::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::from_json::from_value;

/// The function that makes an exception.
static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The exit code of a command that was called wrongly.
const USAGE: u8 = 2;

/// The exception of an error: its class by the code, with message, hint and what else the error says.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    made(py, error).unwrap_or_else(|failure| failure)
}

fn made(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let Some(refusal) = error.refusal() else {
        return Ok(PyRuntimeError::new_err(error.to_string()));
    };
    let make = MAKE.import(py, "grainstore._errors", "made")?;
    let more = from_value(py, &refusal.object())?;
    let is_usage = error.exit_code() == USAGE;
    let places = (error.batch_index(), error.cursor());
    let of = (refusal.code.as_ref(), &refusal.message, &refusal.hint, is_usage, places, more);
    Ok(PyErr::from_value(make.call1(of)?))
}
