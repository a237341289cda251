//! A store as the package calls it: methods by their names, with values of Python.

use std::ops::ControlFlow;
use std::sync::Arc;

use grainstore::SessionOptions;
use grainstore::embed::Metric;
use grainstore_rpc::{ClientOptions, Following};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::value::RawValue;

use crate::cancel::Cancel;
use crate::embedder::PythonEmbedder;
use crate::errors::exception;
use crate::from_json::from_text;
use crate::to_json::to_json;

/// A function that embeds, the name of its model, the length of its vectors, and how they are compared.
type GivenEmbedder = (Py<PyAny>, String, usize, String);

/// A store that this process owns or has joined, and who asks.
#[pyclass(frozen, module = "grainstore._native")]
#[derive(Debug)]
pub(crate) struct Client {
    /// There until it is dropped.
    client: Option<grainstore_rpc::Client>,
    process: u32,
}

impl Drop for Client {
    /// Who closes a store waits for threads that may wait for the interpreter. A fork leaves its parent's store alone.
    fn drop(&mut self) {
        let client = self.client.take();
        if std::process::id() != self.process {
            std::mem::forget(client);
            return;
        }
        Python::try_attach(|py| py.detach(|| drop(client)));
    }
}

#[pymethods]
impl Client {
    /// Opens a store by the parameters of the method `open`, or joins who has it open.
    #[staticmethod]
    #[pyo3(signature = (params, embedder=None, former_embedder=None))]
    fn open(
        py: Python<'_>,
        params: &Bound<'_, PyAny>,
        embedder: Option<GivenEmbedder>,
        former_embedder: Option<GivenEmbedder>,
    ) -> PyResult<Self> {
        let params = to_json(params)?;
        let (path, mut options) =
            ClientOptions::from_params(&params).map_err(|error| exception(py, &error))?;
        if let Some(given) = embedder {
            let (embedder, metric) = embedder_of(given)?;
            options.open = options.open.embedder(Arc::new(embedder), metric);
        }
        if let Some(given) = former_embedder {
            let (embedder, metric) = embedder_of(given)?;
            options.open = options.open.former_embedder(Arc::new(embedder), metric);
        }
        let client = py.detach(|| grainstore_rpc::Client::open(&path, options));
        let client = client.map_err(|error| exception(py, &error))?;
        Ok(Self::of(client))
    }

    /// The same store, for somebody else.
    #[pyo3(signature = (namespace, user_id, actor, purposes))]
    fn with_session(
        &self,
        namespace: Option<String>,
        user_id: Option<String>,
        actor: Option<String>,
        purposes: Vec<String>,
    ) -> PyResult<Self> {
        let session =
            SessionOptions { namespace, user_id, actor, purposes, ..SessionOptions::default() };
        Ok(Self::of(self.client()?.with_session(session)))
    }

    /// Calls a method of docs/rpc.md. `listener` gets its events; what it raises ends the call.
    #[pyo3(signature = (method, params, cancel=None, listener=None))]
    #[expect(clippy::needless_pass_by_value, reason = "an argument of Python is taken by value")]
    fn call<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        params: &Bound<'py, PyAny>,
        cancel: Option<&Cancel>,
        listener: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let params = to_json(params)?;
        let client = self.client()?;
        let cancel = cancel.map(|cancel| cancel.0.clone()).unwrap_or_default();
        let mut raised = None;
        let answer = py.detach(|| {
            let Some(listener) = &listener else {
                let mut following = Following { cancel, ..Following::default() };
                return client.call_following(method, &params, &mut following);
            };
            let mut tell = |event: &RawValue| match told(listener, event) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = error;
                    ControlFlow::Break(())
                }
            };
            let mut following =
                Following { on_event: Some(&mut tell), cancel, ..Following::default() };
            client.call_following(method, &params, &mut following)
        });
        if let Some(raised) = raised {
            return Err(raised);
        }
        let answer = answer.map_err(|error| exception(py, &error))?;
        from_text(py, answer.get())
    }

    /// Closes the store for all that share it in this process.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let client = self.client()?;
        py.detach(|| client.close()).map_err(|error| exception(py, &error))
    }

    /// The process that owned the store when it was last looked for; None if it is this one.
    #[getter]
    fn owner(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        // In a fork a lock may be held by a thread that is not there.
        if std::process::id() != self.process {
            return Ok(None);
        }
        // Who closes a store has the lock while it waits for threads that may wait for the interpreter.
        let client = self.client()?;
        Ok(py.detach(|| client.owner()))
    }

    /// True if the store was made when it was opened.
    #[getter]
    fn created(&self) -> PyResult<bool> {
        Ok(self.client()?.has_created())
    }

    /// Why no other process can use the store meanwhile.
    #[getter]
    fn unshared(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let client = self.client()?;
        Ok(py.detach(|| client.unshared()))
    }
}

impl Client {
    fn of(client: grainstore_rpc::Client) -> Self {
        Self { client: Some(client), process: std::process::id() }
    }

    fn client(&self) -> PyResult<&grainstore_rpc::Client> {
        self.client.as_ref().ok_or_else(|| PyRuntimeError::new_err("the client is gone"))
    }
}

/// Hands an event to a listener. The error is what it raised; there is none if the interpreter has ended.
fn told(listener: &Py<PyAny>, event: &RawValue) -> Result<(), Option<PyErr>> {
    let told = Python::try_attach(|py| {
        let event = from_text(py, event.get())?;
        listener.call1(py, (event,)).map(drop)
    });
    told.ok_or(None)?.map_err(Some)
}

fn embedder_of(given: GivenEmbedder) -> PyResult<(PythonEmbedder, Metric)> {
    let (embed, model, dimension, metric) = given;
    let known = Metric::ALL.into_iter().find(|known| known.name() == metric);
    let metric = known.ok_or_else(|| {
        PyValueError::new_err(format!("metric is cosine, dot or l2, not {metric:?}"))
    })?;
    Ok((PythonEmbedder { embed, model, dimension }, metric))
}

/// The version of the store.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
