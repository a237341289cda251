//! JSON-RPC 2.0 errors: the protocol's own codes, and -32000 with the code of the store in `data`.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{Code, Error};

/// Invalid JSON.
const PARSE_ERROR: i64 = -32_700;
/// Valid JSON, but no valid request.
const INVALID_REQUEST: i64 = -32_600;
/// Unknown method.
const METHOD_NOT_FOUND: i64 = -32_601;
/// Parameters that are missing, unknown or of the wrong type.
pub(crate) const INVALID_PARAMS: i64 = -32_602;
/// The operation was refused or failed: see `data`.
const OPERATION_ERROR: i64 = -32_000;

/// The `error` member of a response.
#[derive(Debug, Serialize)]
pub(crate) struct Fault {
    code: i64,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Fault {
    pub(crate) fn parse(message: &str) -> Self {
        Self::protocol(PARSE_ERROR, format!("not JSON: {message}"))
    }

    pub(crate) fn invalid_request(message: &str) -> Self {
        Self::protocol(INVALID_REQUEST, format!("not a request: {message}"))
    }

    pub(crate) fn request_too_large(limit: usize) -> Self {
        let data = json!({ "code": Code::TooLarge.name(), "hint": "split the batch" });
        let fault = Self::invalid_request(&format!("a line has at most {limit} bytes"));
        Self { data: Some(data), ..fault }
    }

    pub(crate) fn unknown_method(method: &str) -> Self {
        let method: String = method.chars().take(64).collect();
        Self::protocol(METHOD_NOT_FOUND, format!("no method {method:?}; hello lists them"))
    }

    fn protocol(code: i64, message: String) -> Self {
        Self { code, message, data: None }
    }
}

impl Fault {
    /// The error that another process has answered.
    pub(crate) fn of_json(json: &RawValue) -> Self {
        Error::from_fault(json).into()
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) if refusal.of_usage => {
                Self::protocol(INVALID_PARAMS, refusal.message)
            }
            Error::Refused(refusal) => {
                Self { code: OPERATION_ERROR, data: Some(refusal.data()), message: refusal.message }
            }
            // These only come from writing responses, not from a method.
            Error::OutputClosed | Error::AlreadyReported(_) => {
                Self::protocol(OPERATION_ERROR, "the reader went away".to_owned())
            }
        }
    }
}
