//! The console: its files, and signing in to it (docs/console.md).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::call::{json_response, read_body};
use super::failure::{Failure, Result};
use super::state::Server;

/// Most bytes of a sign-in.
const MAX_SIGN_IN_BYTES: usize = 16 << 10;

/// A file of the console.
pub(super) struct File {
    pub(super) path: &'static str,
    media: &'static str,
    bytes: &'static [u8],
}

/// The files, as `npm run build` in `serve/console` makes them.
pub(super) const FILES: &[File] = &[
    File {
        path: "/",
        media: "text/html; charset=utf-8",
        bytes: include_bytes!("../../console/dist/index.html"),
    },
    File {
        path: "/console.js",
        media: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../console/dist/console.js"),
    },
    File {
        path: "/console.css",
        media: "text/css; charset=utf-8",
        bytes: include_bytes!("../../console/dist/console.css"),
    },
    File {
        path: "/icon.svg",
        media: "image/svg+xml",
        bytes: include_bytes!("../../console/dist/icon.svg"),
    },
];

/// The tags of the files by their paths: so much of the SHA-256 of each.
static TAGS: LazyLock<HashMap<&str, String>> = LazyLock::new(|| {
    let tag = |file: &'static File| {
        let digest = HEXLOWER.encode(&Sha256::digest(file.bytes));
        (file.path, format!("\"{}\"", digest.get(..16).unwrap_or_default()))
    };
    FILES.iter().map(tag).collect()
});

impl File {
    /// The file, or that it is the one the browser has.
    pub(super) fn response(&self, headers: &HeaderMap) -> Response<Body> {
        let tag = TAGS.get(self.path).map(String::as_str).unwrap_or_default();
        let known = headers.get(header::IF_NONE_MATCH).is_some_and(|given| given == tag);
        let mut response =
            Response::new(if known { Body::empty() } else { Body::from(self.bytes) });
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media));
        // Asked for again each time, so that a page is never of another version than its server.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::from_str(tag) {
            headers.insert(header::ETAG, tag);
        }
        response
    }
}

/// What signs in: the code of the URL that the server printed, or a token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    code: Option<String>,
    token: Option<String>,
}

/// Signs in.
pub(super) async fn sign_in(server: &Server, from: IpAddr, body: Body) -> Result<Response<Body>> {
    let body = read_body(body, MAX_SIGN_IN_BYTES).await?;
    let given: SignIn = serde_json::from_slice(&body)
        .map_err(|_| Failure::malformed("give code or token, in JSON"))?;
    let accesses = server.accesses()?;
    let welcome = accesses.sign_in(given.code.as_deref(), given.token.as_deref(), from)?;
    let mut response = json_response(welcome.told.to_string());
    response.headers_mut().insert(header::SET_COOKIE, welcome.cookie);
    Ok(response)
}

/// Tells who is signed in.
pub(super) fn who(server: &Server, parts: &Parts) -> Result<Response<Body>> {
    Ok(json_response(server.accesses()?.who(&parts.headers)?.to_string()))
}

/// Signs out.
pub(super) fn sign_out(server: &Server, from: IpAddr, parts: &Parts) -> Result<Response<Body>> {
    let accesses = server.accesses()?;
    accesses.caller(&parts.headers, from, true)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let cookie = accesses.sign_out(&parts.headers)?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}
