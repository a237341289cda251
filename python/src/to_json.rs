//! Values of Python as JSON. What is wrong is told with its place, such as `grain.confidence`.

use std::fmt::Write as _;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::value::RawValue;

use crate::errors;

/// The function that makes a plain value of one of another type: a grain, a time, bytes, an array.
static PLAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Most bytes of the parameters of a call, as of a request.
const MAX_BYTES: usize = 64 << 20;
/// Most lists and dicts within each other.
const MAX_DEPTH: usize = 100;

/// Returns a value as JSON.
///
/// # Errors
/// `TypeError` for a type that is none of JSON, `ValueError` for NaN, infinities, texts with lone surrogates, numbers
/// beyond 64 bits and what is nested too deep, each with the place of the value. `ERR_TOO_LARGE`.
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> PyResult<Box<RawValue>> {
    let mut out = Out { bytes: Vec::with_capacity(256) };
    if let Err(wrong) = out.write(value, 0) {
        return Err(wrong.exception(value.py()));
    }
    let text =
        String::from_utf8(out.bytes).map_err(|error| PyValueError::new_err(error.to_string()))?;
    RawValue::from_string(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Something that is no JSON, and where it is, the innermost part first.
struct Wrong {
    why: Why,
    place: Vec<Part>,
}

enum Why {
    Type(String),
    Value(String),
    TooLarge,
    Raised(PyErr),
}

enum Part {
    Name(String),
    At(usize),
}

impl Wrong {
    fn of_value(message: impl Into<String>) -> Self {
        Self { why: Why::Value(message.into()), place: Vec::new() }
    }

    fn within(mut self, part: Part) -> Self {
        self.place.push(part);
        self
    }

    fn exception(self, py: Python<'_>) -> PyErr {
        let mut place = String::new();
        for part in self.place.iter().rev() {
            let written = match part {
                Part::Name(name) if place.is_empty() => write!(place, "{name}"),
                Part::Name(name) => write!(place, ".{name}"),
                Part::At(index) => write!(place, "[{index}]"),
            };
            if written.is_err() {
                break;
            }
        }
        let told = |message: String| match place.is_empty() {
            true => message,
            false => format!("{place}: {message}"),
        };
        match self.why {
            Why::Type(message) => PyTypeError::new_err(told(message)),
            Why::Value(message) => PyValueError::new_err(told(message)),
            Why::TooLarge => {
                let message = told(format!("a call has at most {MAX_BYTES} bytes"));
                let code = grainstore_rpc::Code::TooLarge;
                errors::exception(py, &grainstore_rpc::Error::new(code, message, "split it"))
            }
            Why::Raised(error) => error,
        }
    }
}

impl From<PyErr> for Wrong {
    fn from(error: PyErr) -> Self {
        Self { why: Why::Raised(error), place: Vec::new() }
    }
}

struct Out {
    bytes: Vec<u8>,
}

impl Out {
    fn write(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> Result<(), Wrong> {
        if depth > MAX_DEPTH {
            return Err(Wrong::of_value(format!(
                "lists and dicts are nested {MAX_DEPTH} deep at most"
            )));
        }
        if let Ok(text) = value.cast::<PyString>() {
            self.write_text(text)
        } else if value.is_none() {
            self.push(b"null")
        } else if let Ok(value) = value.cast::<PyBool>() {
            self.push(if value.is_true() { b"true" } else { b"false" })
        } else if let Ok(number) = value.cast::<PyInt>() {
            self.write_int(number)
        } else if let Ok(number) = value.cast::<PyFloat>() {
            self.write_float(number.value())
        } else if let Ok(members) = value.cast::<PyDict>() {
            self.write_members(members, depth)
        } else if let Ok(items) = value.cast::<PyList>() {
            self.write_items(items.iter(), depth)
        } else if let Ok(items) = value.cast::<PyTuple>() {
            self.write_items(items.iter(), depth)
        } else {
            let py = value.py();
            let plain = PLAIN.import(py, "grainstore._plain", "plain")?.call1((value,));
            match plain {
                Ok(plain) => self.write(&plain, depth + 1),
                Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                    let why = Why::Type(error.value(py).to_string());
                    Err(Wrong { why, place: Vec::new() })
                }
                Err(error) if error.get_type(py).is(py.get_type::<PyValueError>()) => {
                    Err(Wrong::of_value(error.value(py).to_string()))
                }
                Err(error) => Err(error.into()),
            }
        }
    }

    fn write_text(&mut self, text: &Bound<'_, PyString>) -> Result<(), Wrong> {
        // A text is not copied before it is known to fit.
        if text.len().is_ok_and(|length| length > MAX_BYTES) {
            return Err(Wrong { why: Why::TooLarge, place: Vec::new() });
        }
        let Ok(text) = text.to_str() else {
            return Err(Wrong::of_value("a lone surrogate is no text of Unicode"));
        };
        let written = serde_json::to_writer(&mut self.bytes, text);
        written.map_err(|error| Wrong::of_value(error.to_string()))?;
        self.check_size()
    }

    fn write_int(&mut self, number: &Bound<'_, PyInt>) -> Result<(), Wrong> {
        let text = match (number.extract::<i64>(), number.extract::<u64>()) {
            (Ok(number), _) => number.to_string(),
            (_, Ok(number)) => number.to_string(),
            _ => return Err(Wrong::of_value("a whole number has at most 64 bits")),
        };
        self.push(text.as_bytes())
    }

    fn write_float(&mut self, number: f64) -> Result<(), Wrong> {
        if !number.is_finite() {
            return Err(Wrong::of_value("NaN and infinities are no numbers here"));
        }
        let written = serde_json::to_writer(&mut self.bytes, &number);
        written.map_err(|error| Wrong::of_value(error.to_string()))?;
        self.check_size()
    }

    fn write_members(&mut self, members: &Bound<'_, PyDict>, depth: usize) -> Result<(), Wrong> {
        self.push(b"{")?;
        // A value that is made plain by code of its own may change the dict meanwhile.
        for (at, member) in members.items().iter().enumerate() {
            if at > 0 {
                self.push(b",")?;
            }
            let (name, value) = member.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let Ok(name) = name.cast_into::<PyString>() else {
                let message = "the names of a dict have to be texts".to_owned();
                return Err(Wrong { why: Why::Type(message), place: Vec::new() });
            };
            self.write_text(&name)?;
            self.push(b":")?;
            let part = || Part::Name(name.to_string());
            self.write(&value, depth + 1).map_err(|wrong| wrong.within(part()))?;
        }
        self.push(b"}")
    }

    fn write_items<'py>(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> Result<(), Wrong> {
        self.push(b"[")?;
        for (at, item) in items.enumerate() {
            if at > 0 {
                self.push(b",")?;
            }
            self.write(&item, depth + 1).map_err(|wrong| wrong.within(Part::At(at)))?;
        }
        self.push(b"]")
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        self.bytes.extend_from_slice(bytes);
        self.check_size()
    }

    fn check_size(&self) -> Result<(), Wrong> {
        match self.bytes.len() > MAX_BYTES {
            true => Err(Wrong { why: Why::TooLarge, place: Vec::new() }),
            false => Ok(()),
        }
    }
}
