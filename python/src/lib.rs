//! The native half of the Python package `grainstore`: a client of a store, and conversions between Python's values and
//! JSON. What people call is in Python, beside this.
//!
//! - `client`: a store as the package calls it. `cancel`: what ends a call early.
//! - `to_json`, `from_json`: values of Python as JSON, and back.
//! - `embedder`: a function of Python that makes vectors. `errors`: errors as exceptions of the package.

mod cancel;
mod client;
mod embedder;
mod errors;
mod from_json;
mod to_json;

/// What the package takes from here.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::cancel::Cancel;
    #[pymodule_export]
    use super::client::Client;
    #[pymodule_export]
    use super::client::version;
}
