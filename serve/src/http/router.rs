//! From a path to what answers it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use axum::routing::{MethodFilter, on};
use grainstore::cal::CancelHandle;
use serde_json::Value;
use tracing::Instrument as _;

use super::access::{Caller, MAX_SOCKETS};
use super::call::{answer, call, check_reach, json_response, read_large_body};
use super::failure::{Failure, Result};
use super::listen::Peer;
use super::metrics::Kind;
use super::params::{collect, object};
use super::routes::{CAL_PATH, Memory, ROUTES, Route, Verb};
use super::state::Server;
use super::{changes, complete, console, guard, mcp, openapi, socket, streams};

/// What a response was of, for the log and the figures.
#[derive(Clone)]
struct Of {
    route: &'static str,
    /// The id of the token; never its text.
    caller: Option<Arc<str>>,
}

/// A request in parts, with what is known of it.
struct Asked {
    server: Arc<Server>,
    from: IpAddr,
    parts: Parts,
    body: Body,
    path: Vec<(String, String)>,
}

impl Asked {
    /// Who asks; it is their turn.
    fn caller(&self, needs_csrf: bool) -> Result<Caller> {
        let accesses = self.server.accesses()?;
        let caller = accesses.caller(&self.parts.headers, self.from, needs_csrf)?;
        match caller.access.bucket.take() {
            true => Ok(caller),
            false => {
                let status = StatusCode::TOO_MANY_REQUESTS;
                Err(Failure::too_many(status, "this token asks too often", 1))
            }
        }
    }

    fn path(&self, name: &str) -> &str {
        self.path.iter().find(|(of, _)| of == name).map_or("", |(_, text)| text.as_str())
    }
}

/// What answers a request that is no plain call of a method.
type Special = fn(Asked) -> Answering;
type Answering = std::pin::Pin<Box<dyn Future<Output = Answered> + Send>>;

/// An answer, with who asked.
struct Answered {
    caller: Option<Arc<str>>,
    result: Result<Response<Body>>,
}

/// Makes the answer of what somebody asks.
async fn of_caller<F: Future<Output = Result<Response<Body>>>>(
    asked: Asked,
    needs_csrf: bool,
    work: impl FnOnce(Asked, Caller) -> F,
) -> Answered {
    let mut caller = match asked.caller(needs_csrf) {
        Ok(caller) => caller,
        Err(failure) => return Answered { caller: None, result: Err(failure) },
    };
    let id = Some(Arc::clone(&caller.access.id));
    let Ok(place) = Arc::clone(&caller.access.places).try_acquire_owned() else {
        let message = "this token asks too much at once";
        let failure = Failure::too_many(StatusCode::TOO_MANY_REQUESTS, message, 1);
        return Answered { caller: id, result: Err(failure) };
    };
    caller.place = Some(Arc::new(place));
    Answered { caller: id, result: work(asked, caller).await }
}

/// Answers that concern nobody in particular.
fn open(result: Result<Response<Body>>) -> Answered {
    Answered { caller: None, result }
}

/// The routes beside the table.
const SPECIAL: &[(Verb, &str, Special)] = &[
    (Verb::Get, "/health", |_| Box::pin(async { open(Ok(text("ok\n"))) })),
    (Verb::Get, "/ready", |asked| {
        Box::pin(async move { open(asked.server.accesses().map(|_| text("ready\n"))) })
    }),
    (Verb::Get, "/v1/openapi.json", |_| {
        Box::pin(async { open(Ok(json_response(openapi::text()))) })
    }),
    (Verb::Get, "/metrics", |asked| {
        Box::pin(of_caller(asked, true, |asked, caller| async move {
            check_operator(&caller)?;
            let server = &asked.server;
            let mut response =
                text(server.metrics.text(server.gate.running(), server.gate.waiting()));
            let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
            Ok(response)
        }))
    }),
    (Verb::Get, "/v1/metrics.json", |asked| {
        Box::pin(of_caller(asked, true, |asked, caller| async move {
            check_operator(&caller)?;
            Ok(json_response(asked.server.metrics.json().to_string()))
        }))
    }),
    (Verb::Get, "/v1", |asked| {
        Box::pin(of_caller(asked, true, |asked, caller| async move {
            hello(&asked.server, &caller).await
        }))
    }),
    (Verb::Post, "/v1/cal/complete", |asked| {
        Box::pin(of_caller(asked, true, |asked, caller| async move {
            complete::respond(&asked.server, &caller, asked.body).await
        }))
    }),
    (Verb::Get, "/v1/changes", |asked| {
        Box::pin(of_caller(asked, true, |asked, caller| async move {
            check_get(&asked.parts)?;
            let after = match streams::last_event_id(&asked.parts.headers)? {
                Some(after) => Some(after),
                None => after_of(asked.parts.uri.query())?,
            };
            changes::respond(&asked.server, &caller, after).await
        }))
    }),
    (Verb::Get, "/v1/cal/streams/{id}", |asked| {
        Box::pin(of_caller(asked, true, |asked, caller| async move {
            check_get(&asked.parts)?;
            streams::resume(&asked.server, &caller, asked.path("id"), &asked.parts.headers).await
        }))
    }),
    (Verb::Delete, "/v1/cal/streams/{id}", |asked| {
        Box::pin(of_caller(asked, true, |asked, caller| async move {
            asked.server.streams.find(&caller.access, asked.path("id"))?.cancel();
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            Ok(response)
        }))
    }),
    (Verb::Get, "/v1/cal/socket", |asked| {
        // A page cannot add a header here: the origin tells that it is the console's.
        Box::pin(of_caller(asked, false, upgrade))
    }),
    (Verb::Post, "/mcp", |asked| Box::pin(of_caller(asked, true, answer_mcp))),
    (Verb::Post, "/console/session", |asked| {
        Box::pin(async move { open(console::sign_in(&asked.server, asked.from, asked.body).await) })
    }),
    (Verb::Get, "/console/session", |asked| {
        Box::pin(async move { open(console::who(&asked.server, &asked.parts)) })
    }),
    (Verb::Delete, "/console/session", |asked| {
        Box::pin(async move { open(console::sign_out(&asked.server, asked.from, &asked.parts)) })
    }),
];

async fn answer_mcp(asked: Asked, caller: Caller) -> Result<Response<Body>> {
    let request = Request::from_parts(asked.parts, asked.body);
    mcp::respond(&asked.server, &caller, request).await
}

fn text(body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

fn check_operator(caller: &Caller) -> Result<()> {
    match caller.access.grant.operator {
        true => Ok(()),
        false => {
            let message = "figures of the server are for the operator";
            Err(Failure::forbidden(message, "ask for a token with --as-operator"))
        }
    }
}

/// Refuses HEAD, which asks for a stream and takes nothing of it.
fn check_get(parts: &Parts) -> Result<()> {
    match parts.method == Method::GET {
        true => Ok(()),
        false => Err(Failure::not_allowed("GET".to_owned())),
    }
}

/// The sequence in the query string of the change feed.
fn after_of(query: Option<&str>) -> Result<Option<u64>> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(None) };
    let digits = query.strip_prefix("after=").filter(|digits| digits.len() <= 15);
    let number = digits.and_then(|digits| digits.parse().ok());
    number
        .map(Some)
        .ok_or_else(|| Failure::malformed("the query string takes after, a whole number"))
}

/// Sections of CAL that are there over HTTP, and not without it.
const BUILT_HERE: &[&str] = &["11.3", "11.6"];

/// Names the program, its conformance, and what the token may do.
async fn hello(server: &Server, caller: &Caller) -> Result<Response<Body>> {
    let params = serde_json::value::RawValue::from_string("{}".to_owned());
    let params = params.map_err(grainstore_rpc::Error::from)?;
    let access = &caller.access;
    let held = (server.gate.enter(&access.running, false).await?, caller.place.clone());
    let answer = call(&access.client, "hello", params, CancelHandle::new(), held).await?;
    let mut hello: Value =
        serde_json::from_str(answer.get()).map_err(grainstore_rpc::Error::from)?;
    if let Value::Object(hello) = &mut hello {
        if let Some(Value::Array(exceptions)) = hello.get_mut("cal_exceptions") {
            let is_built = |exception: &Value| {
                let named = exception.as_str().unwrap_or_default();
                BUILT_HERE.iter().any(|section| named.split(' ').next() == Some(*section))
            };
            exceptions.retain(|exception| !is_built(exception));
        }
        hello.remove("methods");
        hello.insert("cal_one_step_writes".to_owned(), Value::from(false));
        hello.insert("access".to_owned(), caller.access.told());
    }
    Ok(json_response(hello.to_string()))
}

/// Turns a connection into a WebSocket, which keeps the place of its connection.
async fn upgrade(mut asked: Asked, mut caller: Caller) -> Result<Response<Body>> {
    if caller.is_console && !asked.parts.headers.contains_key(header::ORIGIN) {
        return Err(Failure::forbidden("a page has an origin", "use a token"));
    }
    let Some(route) = ROUTES.iter().find(|route| route.path == CAL_PATH) else {
        return Err(Failure::no_route());
    };
    let place = Arc::clone(&caller.access.sockets).try_acquire_owned().map_err(|_| {
        let message = format!("a client has at most {MAX_SOCKETS} WebSockets at once");
        Failure::too_many(StatusCode::TOO_MANY_REQUESTS, message, 10)
    })?;
    let connection = asked.parts.extensions.get::<Peer>().map(|peer| Arc::clone(&peer.place));
    let upgrade = WebSocketUpgrade::from_request_parts(&mut asked.parts, &()).await;
    let upgrade = upgrade.map_err(|_| {
        let (status, hint) = (StatusCode::UPGRADE_REQUIRED, "connect with a WebSocket client");
        Failure::new(status, "ERR_SCHEMA", "this path is a WebSocket", hint)
    })?;
    let upgrade = upgrade
        .max_message_size(socket::MAX_MESSAGE_BYTES)
        .max_frame_size(socket::MAX_MESSAGE_BYTES)
        .max_write_buffer_size(socket::MAX_MESSAGE_BYTES);
    let server = asked.server;
    // Its streams have places of their own.
    caller.place = None;
    Ok(upgrade.on_upgrade(move |socket| async move {
        socket::serve(server, caller, route, socket).await;
        drop((place, connection));
    }))
}

/// Answers a route of the table: as a stream where it is asked for as one.
async fn of_route(route: &'static Route, asked: Asked, caller: Caller) -> Result<Response<Body>> {
    let form = streams::Form::of(&asked.parts.headers).filter(|_| route.path == CAL_PATH);
    let Asked { server, parts, body, path, .. } = asked;
    let Some(form) = form else {
        return answer(&server, route, &caller, &path, &parts, body).await;
    };
    let (body, taken) = read_large_body(&server, &caller.access, body).await?;
    let params = collect(route, &path, parts.uri.query(), &parts.headers, &body)?;
    check_reach(route, &caller, &params)?;
    let params = (object(&params)?, taken);
    let stream = server.streams.start(&caller.access, params, &server.metrics.streams)?;
    streams::respond(&server, &caller.access, stream, form, None).await
}

/// The name of a verb; one word for those that nobody has.
fn verb_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

/// A span named by what is done to the memory (GenAI conventions of OpenTelemetry). No text of a request is in it.
fn span(memory: Memory, route: &'static str) -> tracing::Span {
    macro_rules! named {
        ($name:literal) => {
            tracing::info_span!(
                target: "grainstore::http",
                $name,
                gen_ai.operation.name = $name,
                gen_ai.provider.name = "grainstore",
                http.route = route
            )
        };
    }
    match memory {
        Memory::Search => named!("search_memory"),
        Memory::Update => named!("update_memory"),
        Memory::Delete => named!("delete_memory"),
        Memory::Other => tracing::Span::none(),
    }
}

/// Takes a request apart.
async fn asked(server: &Arc<Server>, request: Request) -> Result<Asked> {
    let from = request.extensions().get::<Peer>().map(|peer| peer.address.ip());
    let (mut parts, body) = request.into_parts();
    let path = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path = path.map_err(|_| Failure::malformed("the path is no UTF-8"))?;
    let path = path.iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let from = from.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    Ok(Asked { server: Arc::clone(server), from, parts, body, path })
}

/// An answer as a response that says what it is of.
fn finish(route: &'static str, answered: Answered) -> Response<Body> {
    let Answered { caller, result } = answered;
    let mut response = result.unwrap_or_else(|failure| failure.response());
    response.extensions_mut().insert(Of { route, caller });
    response
}

/// Checks, notes and logs every request, whatever it is.
async fn observe(
    server: Arc<Server>,
    request: Request,
    next: axum::middleware::Next,
) -> Response<Body> {
    let began = Instant::now();
    let verb = verb_name(request.method());
    let checked = server.setting.names.check(request.uri(), request.headers());
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.response(),
    };
    guard::add_headers(response.headers_mut());
    let of = response.extensions_mut().remove::<Of>();
    let route = of.as_ref().map_or("none", |of| of.route);
    let caller = of.as_ref().and_then(|of| of.caller.as_deref()).unwrap_or("-");
    let (status, took) = (response.status().as_u16(), began.elapsed());
    server.metrics.note(&Kind { route, verb }, status, took);
    let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    tracing::info!(target: "grainstore::access", method = verb, route, status, us, token = caller);
    response
}

/// The router of a server.
pub(super) fn router(server: &Arc<Server>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let server = Arc::clone(server);
        let handler = move |request: Request| async move {
            let answered = match asked(&server, request).await {
                Ok(asked) => {
                    let work = |asked, caller| of_route(route, asked, caller);
                    of_caller(asked, true, work).instrument(span(route.memory, route.path)).await
                }
                Err(failure) => open(Err(failure)),
            };
            finish(route.path, answered)
        };
        router = router.route(route.path, on(filter(route.verb), handler));
    }
    for (verb, path, special) in SPECIAL {
        let server = Arc::clone(server);
        let handler = move |request: Request| async move {
            let answered = match asked(&server, request).await {
                Ok(asked) => special(asked).await,
                Err(failure) => open(Err(failure)),
            };
            finish(path, answered)
        };
        router = router.route(path, on(filter(*verb), handler));
    }
    for file in console::FILES {
        let handler = move |request: Request| async move {
            finish(file.path, open(Ok(file.response(request.headers()))))
        };
        router = router.route(file.path, on(MethodFilter::GET, handler));
    }
    let observed = Arc::clone(server);
    router
        .fallback(|| async { finish("none", open(Err(Failure::no_route()))) })
        .method_not_allowed_fallback(|request: Request| async move {
            finish("none", open(Err(Failure::not_allowed(allowed(request.uri().path())))))
        })
        .layer(axum::middleware::from_fn(move |request: Request, next| {
            observe(Arc::clone(&observed), request, next)
        }))
}

fn filter(verb: Verb) -> MethodFilter {
    match verb {
        Verb::Get => MethodFilter::GET,
        Verb::Post => MethodFilter::POST,
        Verb::Delete => MethodFilter::DELETE,
    }
}

/// The verbs that a path takes.
fn allowed(path: &str) -> String {
    let fits = |template: &str| {
        let (template, path) = (template.split('/'), path.split('/'));
        template.clone().count() == path.clone().count()
            && template.zip(path).all(|(own, given)| own.starts_with('{') || own == given)
    };
    let templates =
        ROUTES.iter().map(|route| route.path).chain(SPECIAL.iter().map(|(_, path, _)| *path));
    // A path that is written out goes before one with a name in it.
    let is_exact = templates.clone().any(|template| template == path);
    let matches = |template: &str| if is_exact { template == path } else { fits(template) };
    let table = ROUTES.iter().filter(|route| matches(route.path)).map(|route| route.verb);
    let special = SPECIAL.iter().filter(|(_, path, _)| matches(path)).map(|(verb, ..)| *verb);
    let files = console::FILES.iter().filter(|file| matches(file.path)).map(|_| Verb::Get);
    let mut names: Vec<&str> = Vec::new();
    for verb in table.chain(special).chain(files) {
        let own: &[&str] = match verb {
            Verb::Get => &["GET", "HEAD"],
            Verb::Post => &["POST"],
            Verb::Delete => &["DELETE"],
        };
        names.extend(own.iter().filter(|name| !names.contains(name)).copied().collect::<Vec<_>>());
    }
    names.join(", ")
}
