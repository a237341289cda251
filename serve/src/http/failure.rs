//! Refusals and failures in the form of RFC 9457, `application/problem+json`.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use grainstore_rpc::Error;
use serde_json::{Map, Value, json};

/// What is answered in place of a result.
#[derive(Debug)]
pub(super) struct Failure(Box<Problem>);

#[derive(Debug)]
struct Problem {
    status: StatusCode,
    code: String,
    message: String,
    hint: String,
    /// More members of the object.
    more: Map<String, Value>,
    /// Seconds after which it may be asked again.
    retry_after: Option<u64>,
    /// The value of `WWW-Authenticate`.
    challenge: Option<&'static str>,
    /// The value of `Allow`.
    allow: Option<String>,
}

/// The result of what answers a request.
pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// What a failure of the server itself says to who asked: names of files and the like stand in its log alone.
const SERVER_FAILED: &str = "the server could not do it; its log says why";

impl Failure {
    pub(super) fn new(
        status: StatusCode,
        code: &str,
        message: impl Into<String>,
        hint: &str,
    ) -> Self {
        Self(Box::new(Problem {
            status,
            code: code.to_owned(),
            message: message.into(),
            hint: hint.to_owned(),
            more: Map::new(),
            retry_after: None,
            challenge: None,
            allow: None,
        }))
    }

    /// Malformed requests.
    pub(super) fn malformed(message: impl Into<String>) -> Self {
        let hint = "GET /v1/openapi.json describes every route";
        Self::new(StatusCode::BAD_REQUEST, "ERR_SCHEMA", message, hint)
    }

    /// Nobody is signed in.
    pub(super) fn unauthorized(message: &str, challenge: &'static str) -> Self {
        let hint = "send Authorization: Bearer TOKEN; `grain tokens create` makes one";
        let mut failure = Self::new(StatusCode::UNAUTHORIZED, "ERR_ACCESS", message, hint);
        failure.0.challenge = Some(challenge);
        failure
    }

    /// What the asker may not do.
    pub(super) fn forbidden(message: impl Into<String>, hint: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "ERR_ACCESS", message, hint)
    }

    pub(super) fn no_route() -> Self {
        let hint = "GET /v1/openapi.json lists the routes";
        Self::new(StatusCode::NOT_FOUND, "ERR_NOT_FOUND", "there is nothing at this path", hint)
    }

    pub(super) fn not_allowed(allow: String) -> Self {
        let message = format!("this path takes {allow}");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let mut failure = Self::new(status, "ERR_SCHEMA", message, "");
        failure.0.allow = Some(allow);
        failure
    }

    /// The same, with another hint.
    pub(super) fn with_hint(mut self, hint: &str) -> Self {
        hint.clone_into(&mut self.0.hint);
        self
    }

    /// Too much at once.
    pub(super) fn too_many(status: StatusCode, message: impl Into<String>, seconds: u64) -> Self {
        let mut failure = Self::new(status, "ERR_BUSY", message, "ask again later");
        failure.0.retry_after = Some(seconds);
        failure
    }

    /// A failure of the server, whatever its code: who asks learns no more than that.
    pub(super) fn of_server(error: &Error) -> Self {
        if let Some(refusal) = error.refusal() {
            tracing::error!(target: "grainstore::http", code = %refusal.code, "{}", refusal.message);
        }
        let hint = "look into the log of the server";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "ERR_IO", SERVER_FAILED, hint)
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.more.insert(name.to_owned(), value.into());
        self
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.0.status
    }

    pub(super) fn has_code(&self, code: &str) -> bool {
        self.0.code == code
    }

    /// The object, as a stream tells it.
    pub(super) fn object(&self) -> Value {
        let mut object = self.0.more.clone();
        let own = json!({
            "type": "about:blank",
            "title": self.0.status.canonical_reason().unwrap_or("Error"),
            "status": self.0.status.as_u16(),
            "code": self.0.code,
            "detail": self.0.message,
            "hint": self.0.hint,
        });
        if let Value::Object(own) = own {
            object.extend(own);
        }
        Value::Object(object)
    }

    pub(super) fn response(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.object().to_string()));
        *response.status_mut() = self.0.status;
        let headers = response.headers_mut();
        let problem = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, problem);
        if let Some(seconds) = self.0.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.0.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(allow) = self.0.allow.as_ref().and_then(|allow| allow.parse().ok()) {
            headers.insert(header::ALLOW, allow);
        }
        response
    }
}

/// The status of a code, where that of a refusal in general (422) is not it.
fn status_of(code: &str, exit_code: u8) -> StatusCode {
    match code {
        "ERR_INTEGRITY" if exit_code == 4 => StatusCode::INTERNAL_SERVER_ERROR,
        _ if exit_code == 2 => StatusCode::BAD_REQUEST,
        "ERR_NOT_FOUND" | "CAL-E046" | "CAL-E085" => StatusCode::NOT_FOUND,
        "ERR_ACCESS"
        | "ERR_POLICY"
        | "ERR_INVALIDATION_DENIED"
        | "ERR_TOKEN"
        | "ERR_READ_ONLY"
        | "CAL-E044"
        | "CAL-E045" => StatusCode::FORBIDDEN,
        "ERR_CONFLICT"
        | "ERR_SUPERSEDE_REQUIRED"
        | "ERR_EVIDENCE_REQUIRED"
        | "ERR_DEPENDENCY"
        | "CAL-E040"
        | "CAL-E041"
        | "CAL-E088" => StatusCode::CONFLICT,
        "ERR_ERASED" | "ERR_WITHDRAWN" | "ERR_CURSOR" | "CAL-E081" => StatusCode::GONE,
        "ERR_TOO_LARGE" => StatusCode::PAYLOAD_TOO_LARGE,
        "CAL-E043" | "CAL-E052" => StatusCode::TOO_MANY_REQUESTS,
        "ERR_BUSY" | "ERR_NOT_LEADER" | "ERR_FENCED" | "ERR_DIVERGED" | "ERR_DISABLED"
        | "ERR_TIMEOUT" | "CAL-E031" | "CAL-E075" | "CAL-E082" => StatusCode::SERVICE_UNAVAILABLE,
        "ERR_IO" | "ERR_STORE_VERSION" | "ERR_EMBEDDER" | IN_DOUBT => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

/// An error as others than the machine's own may be told it: what reaching the store came to names places and processes.
pub(super) fn told_to_others(error: Error) -> Error {
    let log = |error: &Error| {
        if let Some(refusal) = error.refusal() {
            tracing::error!(target: "grainstore::http", code = %refusal.code, "{}", refusal.message);
        }
    };
    if error.is_of_reach() {
        log(&error);
        return Error::of_code(
            "ERR_BUSY",
            "the store cannot be reached at present",
            "ask again later",
        );
    }
    match error.refusal() {
        Some(refusal) if refusal.code == IN_DOUBT => {
            let hint = refusal.hint.clone();
            log(&error);
            let message = "the process that had the store open ended: this was done, or was not";
            Error::of_code(IN_DOUBT, message, hint)
        }
        _ => error,
    }
}

/// The code of what was done or was not.
const IN_DOUBT: &str = "ERR_IN_DOUBT";

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let error = told_to_others(error);
        let Some(refusal) = error.refusal() else {
            return Self::new(StatusCode::INTERNAL_SERVER_ERROR, "ERR_IO", SERVER_FAILED, "");
        };
        let status = status_of(&refusal.code, error.exit_code());
        let is_own = status == StatusCode::INTERNAL_SERVER_ERROR && refusal.code != IN_DOUBT;
        if is_own {
            tracing::error!(target: "grainstore::http", code = %refusal.code, "{}", refusal.message);
        }
        let message = if is_own { SERVER_FAILED } else { refusal.message.as_str() };
        let hint = if is_own { "look into the log of the server" } else { refusal.hint.as_str() };
        let mut failure = Self::new(status, &refusal.code, message, hint);
        if let Value::Object(object) = refusal.object() {
            // An error of CAL has its place, its suggestion and what would be accepted.
            let named = |name: &String| !["code", "message", "hint"].contains(&name.as_str());
            failure.0.more = object.into_iter().filter(|(name, _)| named(name)).collect();
        }
        if is_own {
            failure.0.more.clear();
        }
        if let Some(index) = error.batch_index() {
            failure = failure.with("index", index);
        }
        if let Some(cursor) = error.cursor() {
            failure = failure.with("cursor", cursor);
        }
        // Who asks a copy that follows again is refused again: the message names the node that leads.
        let may_help = refusal.code != "ERR_NOT_LEADER";
        if may_help
            && [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status)
        {
            failure.0.retry_after =
                Some(if status == StatusCode::TOO_MANY_REQUESTS { 60 } else { 1 });
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use grainstore_rpc::Code;

    use super::*;

    #[test]
    fn failures_of_the_server_tell_nothing_of_it() {
        let error =
            Error::new(Code::Io, "cannot read /srv/memory/grains.redb: bad sector", "fsck /srv");
        let failure = Failure::from(error);
        assert_eq!(failure.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!failure.object().to_string().contains("/srv"), "{}", failure.object());
    }

    #[test]
    fn codes_have_the_status_that_clients_act_on() {
        for (code, exit, status) in [
            ("ERR_NOT_FOUND", 1, 404),
            ("ERR_SCHEMA", 2, 400),
            ("ERR_SCHEMA", 1, 422),
            ("ERR_INTEGRITY", 4, 500),
            ("ERR_INTEGRITY", 1, 422),
            ("CAL-E044", 1, 403),
            ("ERR_DISABLED", 1, 503),
            ("CAL-E002", 1, 422),
        ] {
            assert_eq!(status_of(code, exit).as_u16(), status, "{code}");
        }
    }
}
